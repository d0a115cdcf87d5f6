//! Lanes: the partitions that the consumer is assigned, each with a queue of its own, read forward from round to round.
//!
//! librdkafka fetches ahead while a round is written, up to a bound for each partition; that is the back-pressure. Nobody
//! joins a group, so nobody rebalances. Invariant: a lane gives every message of a range, in order, once, or fails; a lane that
//! has failed is made anew, since librdkafka's fetcher may have stopped, or gone on behind what it could not read.

use super::super::{Error, Result};
use super::client::Client;
use super::queue::{Fetched, Next, Queue};
use super::ranges::OffsetRange;
use crate::config::KafkaConfig;
use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a lane waits for the next message before it lets its reader look around (at a signal to stop, say).
const SLICE: Duration = Duration::from_millis(100);
/// A partition that is assigned can be moved at once; right after the assignment it may take a moment.
const SEEK_WITHIN: Duration = Duration::from_secs(5);
/// Of a lane that must be moved before it is read.
const NOWHERE: i64 = -1;

/// All lanes of a source.
#[derive(Debug)]
pub(super) struct Lanes {
    config: KafkaConfig,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// Made when it is known how many partitions there are.
    client: Option<Client>,
    lanes: BTreeMap<i32, Arc<Mutex<Lane>>>,
}

/// One partition, as far as it has been read.
pub(super) struct Lane {
    queue: Queue,
    client: Client,
    partition: i32,
    /// No message below this is still to come, and none from here on has been given out.
    next: i64,
    /// All before this has been in the queue.
    complete: i64,
    /// How long nothing has come while something was waited for.
    waited: Duration,
    failed: bool,
}

impl std::fmt::Debug for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lane").field("partition", &self.partition).field("next", &self.next).finish_non_exhaustive()
    }
}

/// What a reader made of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    More,
    /// Taken, and no more for now.
    Enough,
    /// Not taken: to be given again.
    Again,
}

/// How a call to [`Lane::read`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// The range has been read to its end.
    End,
    /// There is more: the caller had enough, or nothing came for a moment.
    More,
}

impl Lanes {
    pub fn new(config: &KafkaConfig) -> Lanes {
        Lanes { config: config.clone(), open: Mutex::default() }
    }

    fn locked(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the lanes of these ranges, where they are not there, and begins to fetch. Blocks.
    pub fn open(&self, ranges: &[OffsetRange]) -> Result<()> {
        let mut open = self.locked();
        if open.lanes.values().any(|lane| locked(lane).failed) {
            *open = Open::default();
        }
        let opened = open.add(&self.config, ranges);
        if opened.is_err() {
            // Half assigned: the next call begins with another client.
            *open = Open::default();
        }
        opened
    }

    /// The lane of a partition that has been opened.
    pub fn get(&self, partition: i32) -> Option<Arc<Mutex<Lane>>> {
        self.locked().lanes.get(&partition).cloned()
    }
}

impl Open {
    fn add(&mut self, config: &KafkaConfig, ranges: &[OffsetRange]) -> Result<()> {
        let new: Vec<&OffsetRange> =
            ranges.iter().filter(|r| r.len() > 0 && !self.lanes.contains_key(&r.partition)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let client = match &self.client {
            Some(client) => client.clone(),
            None => self.client.insert(Client::reading(config, ranges.len())?).clone(),
        };
        let failed = |e: KafkaError| client.error("assign partitions", &e);
        let mut list = TopicPartitionList::new();
        for range in &new {
            list.add_partition_offset(client.topic(), range.partition, Offset::Offset(range.from)).map_err(failed)?;
        }
        client.consumer().incremental_assign(&list).map_err(failed)?;
        let mut made = Vec::new();
        for range in new {
            let queue = Queue::split(&client, range.partition).ok_or_else(|| {
                failed(KafkaError::Subscription(format!("partition {} has no queue", range.partition)))
            })?;
            let (client, partition) = (client.clone(), range.partition);
            made.push(Lane {
                queue,
                client,
                partition,
                next: range.from,
                complete: 0,
                waited: Duration::ZERO,
                failed: false,
            });
        }
        for mut lane in made {
            // Messages that came before the queue was split off went astray: from here on they come by it, from the start.
            lane.seek(lane.next)?;
            self.lanes.insert(lane.partition, Arc::new(Mutex::new(lane)));
        }
        Ok(())
    }
}

pub(super) fn locked(lane: &Mutex<Lane>) -> MutexGuard<'_, Lane> {
    lane.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lane {
    /// Drops what has been fetched and fetches from `offset` on.
    fn seek(&mut self, offset: i64) -> Result<()> {
        self.next = NOWHERE;
        let deadline = Instant::now() + SEEK_WITHIN;
        let (consumer, topic) = (self.client.consumer(), self.client.topic());
        while let Err(e) = consumer.seek(topic, self.partition, Offset::Offset(offset), SEEK_WITHIN) {
            if Instant::now() > deadline {
                self.failed = true;
                return Err(self.client.error("seek", &e));
            }
            tracing::debug!(partition = self.partition, error = %e, "not ready to be moved");
            std::thread::sleep(Duration::from_millis(5));
        }
        self.queue.forget();
        (self.next, self.complete) = (offset, offset);
        Ok(())
    }

    /// Moves to where a reader is, where the lane is already if that reader was the last.
    pub fn begin(&mut self, from: i64) -> Result<()> {
        if self.next != from {
            self.seek(from)?;
            self.waited = Duration::ZERO;
        }
        Ok(())
    }

    /// How many of the messages from `from` on are at hand, and their bytes. Takes none of them. Blocks for a moment.
    pub fn sample(&mut self, from: i64) -> Result<(usize, usize)> {
        self.begin(from)?;
        Ok(self.queue.sample(SLICE))
    }

    /// Where the next message will be, or behind it.
    pub fn next(&self) -> i64 {
        self.next
    }

    /// Gives the messages up to `until` to `take`, until it has enough or none comes for a moment. Blocks.
    pub fn read(&mut self, until: i64, take: impl FnMut(&Fetched) -> Result<Taken>) -> Result<Read> {
        let read = self.go_on(until, take);
        self.failed |= read.is_err();
        read
    }

    fn go_on(&mut self, until: i64, mut take: impl FnMut(&Fetched) -> Result<Taken>) -> Result<Read> {
        while self.next < until {
            if self.complete >= until {
                self.next = until;
                break;
            }
            match self.queue.next(SLICE) {
                Next::Message(message) => {
                    self.waited = Duration::ZERO;
                    let offset = message.offset();
                    if offset >= until {
                        // It stays in the queue, for whoever reads the next range.
                        self.next = until;
                        break;
                    }
                    let taken = match offset < self.next {
                        true => Taken::More,
                        false => take(message)?,
                    };
                    if taken == Taken::Again {
                        return Ok(Read::More);
                    }
                    self.queue.pass();
                    self.next = self.next.max(offset + 1);
                    if taken == Taken::Enough {
                        break;
                    }
                }
                // Markers, aborted messages and holes are behind it. An end before the range's is that of a replica which
                // lags: its fetcher goes on.
                Next::End(offset) if offset > self.complete => {
                    (self.complete, self.waited) = (offset, Duration::ZERO);
                }
                Next::End(_) => {}
                Next::Error(code) => {
                    self.failed(code)?;
                    return Ok(Read::More);
                }
                Next::Nothing => {
                    self.waited += SLICE;
                    if self.waited < self.client.timeout() {
                        return Ok(Read::More);
                    }
                    let silence = KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut);
                    return Err(self.client.error("read", &silence));
                }
            }
        }
        Ok(if self.next >= until { Read::End } else { Read::More })
    }

    /// What an error in the queue means: the range is gone, the client tries on by itself, or, to be safe, the round fails:
    /// after a batch that it cannot read the client would go on behind it.
    fn failed(&self, code: RDKafkaErrorCode) -> Result<()> {
        use RDKafkaErrorCode as Code;
        match code {
            Code::OffsetOutOfRange | Code::AutoOffsetReset => Err(Error::KafkaVanished {
                topic: self.client.topic().to_string(),
                partition: self.partition,
                offset: self.next,
            }),
            Code::BrokerTransportFailure
            | Code::AllBrokersDown
            | Code::OperationTimedOut
            | Code::RequestTimedOut
            | Code::Resolve
            | Code::NotLeaderForPartition
            | Code::LeaderNotAvailable
            | Code::FencedLeaderEpoch
            | Code::UnknownLeaderEpoch
            | Code::OffsetNotAvailable
            | Code::ReplicaNotAvailable
            | Code::KafkaStorageError => {
                tracing::debug!(partition = self.partition, %code, "kafka client");
                Ok(())
            }
            code => Err(self.client.error("read", &KafkaError::MessageConsumption(code))),
        }
    }
}
