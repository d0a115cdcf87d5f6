//! Lanes: the partitions that the consumer is assigned, each with a queue of its own, read forward from round to round.
//!
//! librdkafka fetches ahead while a round is written, up to a bound for each partition; that is the back-pressure. Nobody
//! joins a group, so nobody rebalances. Invariant: a lane gives every message of a range, in order, once, or fails.

use super::super::{Error, Result};
use super::client::{Client, Events};
use super::ranges::OffsetRange;
use crate::config::KafkaConfig;
use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, OwnedMessage};
use rdkafka::{Message, Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a lane waits for the next message before it lets its reader look around (at a signal to stop, say).
const SLICE: Duration = Duration::from_millis(100);

/// The same where the queue has said that it is at the end: what is there has come by then, or is not there.
const PROMPT: Duration = Duration::from_millis(20);

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
    client: Client,
    partition: i32,
    queue: PartitionQueue<Events>,
    /// No message below this is still to come, and none from here on has been given out.
    next: i64,
    /// A message taken from the queue that belongs to a later range.
    held: Option<OwnedMessage>,
    end: End,
    /// When the queue last gave anything.
    heard: Instant,
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

/// What a queue has said of the end of the log, before the end of a range was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Unseen,
    /// It has been there; maybe before the range was planned.
    Seen,
    /// It was asked once more, by a seek, and has yet to say so again.
    Asked,
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

    /// Makes the lanes of these ranges and begins to fetch. Blocks.
    pub fn open(&self, ranges: &[OffsetRange]) -> Result<()> {
        let mut open = self.locked();
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
        let (consumer, topic) = (client.consumer(), client.topic());
        let mut list = TopicPartitionList::new();
        for range in &new {
            list.add_partition_offset(topic, range.partition, Offset::Offset(range.from)).map_err(failed)?;
        }
        consumer.incremental_assign(&list).map_err(failed)?;
        let mut made = Vec::new();
        for range in new {
            let queue = consumer.split_partition_queue(topic, range.partition).ok_or_else(|| {
                failed(KafkaError::Subscription(format!("partition {} has no queue", range.partition)))
            })?;
            made.push(Lane {
                client: client.clone(),
                partition: range.partition,
                queue,
                next: range.from,
                held: None,
                end: End::Unseen,
                heard: Instant::now(),
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
    fn consumer(&self) -> &Arc<BaseConsumer<Events>> {
        self.client.consumer()
    }

    /// Drops what has been fetched and fetches from `offset` on.
    fn seek(&mut self, offset: i64) -> Result<()> {
        let topic = self.client.topic();
        let deadline = Instant::now() + self.client.timeout();
        loop {
            match self.consumer().seek(topic, self.partition, Offset::Offset(offset), self.client.timeout()) {
                Ok(()) => break,
                // Right after the assignment the partition may not be ready to be moved.
                Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                Err(e) => return Err(self.client.error("seek", &e)),
            }
        }
        (self.next, self.held) = (offset, None);
        Ok(())
    }

    /// Moves to the start of a range, where the lane is already if it goes on from the last one.
    pub fn begin(&mut self, from: i64) -> Result<()> {
        if self.next != from {
            self.seek(from)?;
        }
        (self.end, self.heard) = (End::Unseen, Instant::now());
        Ok(())
    }

    /// Gives the messages up to `until` to `take`, until it has enough or none comes for a moment. Blocks.
    pub fn read(&mut self, until: i64, take: impl FnMut(&dyn Record) -> Result<Taken>) -> Result<Read> {
        let read = self.go_on(until, take);
        if read.is_err() {
            // A message may have left the queue that nobody has taken: whoever begins next begins with a seek.
            self.next = NOWHERE;
        }
        read
    }

    fn go_on(&mut self, until: i64, mut take: impl FnMut(&dyn Record) -> Result<Taken>) -> Result<Read> {
        if let Some(held) = self.held.take_if(|m| Message::offset(m) < until) {
            match take(&held)? {
                Taken::Again => {
                    self.held = Some(held);
                    return Ok(Read::More);
                }
                Taken::Enough => {
                    self.next = Message::offset(&held) + 1;
                    return Ok(self.progress(until));
                }
                Taken::More => self.next = Message::offset(&held) + 1,
            }
        }
        if self.held.is_some() {
            self.next = until;
        }
        while self.next < until {
            let wait = if self.end == End::Seen { PROMPT } else { SLICE };
            match self.queue.poll(wait) {
                Some(Ok(message)) => {
                    (self.heard, self.end) = (Instant::now(), End::Unseen);
                    let offset = Message::offset(&message);
                    if offset < self.next {
                        continue;
                    }
                    if offset >= until {
                        (self.held, self.next) = (Some(message.detach()), until);
                        break;
                    }
                    match take(&message)? {
                        Taken::More => self.next = offset + 1,
                        Taken::Enough => {
                            self.next = offset + 1;
                            break;
                        }
                        Taken::Again => {
                            self.held = Some(message.detach());
                            break;
                        }
                    }
                }
                // The range was there when it was planned: what is left of it are markers, or has been compacted.
                Some(Err(KafkaError::PartitionEOF(_))) if self.end == End::Asked => self.next = until,
                Some(Err(KafkaError::PartitionEOF(_))) => self.end = End::Seen,
                Some(Err(e)) => self.failed(e)?,
                None if self.end == End::Seen => {
                    self.seek(self.next)?;
                    self.end = End::Asked;
                }
                None if self.heard.elapsed() < self.client.timeout() => return Ok(Read::More),
                None => {
                    let silence = KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut);
                    return Err(self.client.error("read", &silence));
                }
            }
        }
        Ok(self.progress(until))
    }

    fn progress(&self, until: i64) -> Read {
        if self.next >= until { Read::End } else { Read::More }
    }

    /// What an error in the queue means: the range is gone, the client tries on by itself, or, to be safe, the round fails:
    /// after a batch that it cannot read the client would go on behind it.
    fn failed(&self, error: KafkaError) -> Result<()> {
        use RDKafkaErrorCode as Code;
        match error.rdkafka_error_code() {
            Some(Code::OffsetOutOfRange | Code::AutoOffsetReset) => Err(Error::KafkaVanished {
                topic: self.client.topic().to_string(),
                partition: self.partition,
                offset: self.next,
            }),
            Some(
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
                | Code::KafkaStorageError,
            ) => {
                tracing::debug!(partition = self.partition, %error, "kafka client");
                Ok(())
            }
            _ => Err(self.client.error("read", &error)),
        }
    }
}

/// A message, wherever its bytes are.
pub(super) trait Record {
    fn offset(&self) -> i64;
    fn key(&self) -> Option<&[u8]>;
    fn value(&self) -> Option<&[u8]>;
    /// Epoch milliseconds.
    fn timestamp(&self) -> Option<i64>;
}

macro_rules! record {
    ($($message:ty),*) => {
        $(impl Record for $message {
            fn offset(&self) -> i64 {
                Message::offset(self)
            }
            fn key(&self) -> Option<&[u8]> {
                Message::key(self)
            }
            fn value(&self) -> Option<&[u8]> {
                Message::payload(self)
            }
            fn timestamp(&self) -> Option<i64> {
                Message::timestamp(self).to_millis()
            }
        })*
    };
}
record!(OwnedMessage, BorrowedMessage<'_>);
