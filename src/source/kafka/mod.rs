//! `JsonKafkaSource` and `AvroKafkaSource`: a topic, read by ranges of offsets as Hudi's `KafkaOffsetGen` computes them.
//!
//! A fetch asks where the topic begins and ends (`client.rs`), checks the checkpoint against it (`start.rs`), shares the round
//! out over the partitions (`ranges.rs`, `pace.rs`), and leaves the reading (`lane.rs`) and decoding (`piece.rs`) to whoever
//! polls a piece, one a partition. Knows no table. Invariants: the position is the table's, never the group's; a range is fixed
//! before it is read, and read wholly or not at all; a lane that goes on where it stopped asks the broker for nothing twice.

mod append;
mod client;
mod dead_letter;
mod decoder;
mod infer;
mod lane;
mod offsets;
mod pace;
mod piece;
mod queue;
mod ranges;
mod start;
mod tombstone;

pub use append::with_offset_columns;
pub use client::Client;
pub use dead_letter::{DeadLetter, produce_dead_letters};
pub use offsets::Offsets;

use super::{Batches, Error, Fetch, FetchRequest, FetchStats, Origin, Raw, Rejects, Result, Source};
use crate::config::{AvroValues, BadRecordsConfig, KafkaConfig, SourceClass, SourceConfig, Tombstones};
use crate::schema::{Registry, TableSchema};
use decoder::{Decoder, Format};
use lane::{Lane, Lanes, Read, Taken, locked};
use pace::Pace;
use piece::{Piece, Shared};
use ranges::OffsetRange;
use start::Start;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A position is a partition and an offset in it.
const OFFSET_BITS: u32 = 48;
/// An idle topic is asked this often: an answer costs a broker nothing, and the next message is not late.
const IDLE_WAIT: Duration = Duration::from_millis(100);

/// Telling the group is not worth a longer wait: the position is in the table.
const TELL_WITHIN: Duration = Duration::from_secs(5);
/// How long a broker that does not know what another knows is asked again: metadata takes a moment to spread.
const SPREADS_WITHIN: Duration = Duration::from_secs(2);
/// The size of so many messages tells that of others, and is not waited for longer.
const SAMPLED: usize = 1000;
const SAMPLE_WITHIN: Duration = Duration::from_secs(1);
const ASK_AGAIN: Duration = Duration::from_millis(200);

fn pack(partition: i32, offset: i64) -> u64 {
    (partition as u64) << OFFSET_BITS | offset as u64
}

fn unpack(position: u64) -> (i32, i64) {
    ((position >> OFFSET_BITS) as i32, (position & ((1 << OFFSET_BITS) - 1)) as i64)
}

/// A topic as a source of rows.
#[derive(Debug)]
pub struct KafkaSource {
    config: KafkaConfig,
    bad_records: BadRecordsConfig,
    client: Client,
    format: Format,
    lanes: Arc<Lanes>,
    round: Mutex<Round>,
}

/// What is remembered of the last fetch.
#[derive(Debug, Default)]
struct Round {
    pace: Pace,
    bytes_read: Arc<AtomicU64>,
    without_value: Arc<AtomicU64>,
}

impl Round {
    /// A round begins, and one that has not ended failed: its bytes and its messages without a value, still to be counted.
    fn begin(&mut self, events: u64) -> (Arc<AtomicU64>, Arc<AtomicU64>) {
        (self.bytes_read, self.without_value) = Default::default();
        self.pace.begin(events);
        (self.bytes_read.clone(), self.without_value.clone())
    }
}

impl KafkaSource {
    /// Makes the client; the brokers are asked by the first fetch.
    pub fn open(config: &SourceConfig) -> Result<KafkaSource> {
        let kafka = config.kafka.clone().ok_or(Error::Worker { what: "open", why: "no topic is configured".into() })?;
        let client = Client::open(&kafka)?;
        let format = match (&config.class, &kafka.avro) {
            (SourceClass::AvroKafka, AvroValues::Registered(registry)) => Format::Registered(Registry::open(registry)?),
            (SourceClass::AvroKafka, AvroValues::Bare) => Format::Bare,
            _ => Format::Json,
        };
        Ok(KafkaSource {
            format,
            bad_records: config.bad_records.clone(),
            lanes: Arc::new(Lanes::new(&kafka)),
            config: kafka,
            client,
            round: Mutex::default(),
        })
    }

    fn round(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the topic begins and ends, and where the round starts in it.
    async fn start(&self, from: Option<&str>) -> Result<(start::Bounds, Start)> {
        let deadline = Instant::now() + SPREADS_WITHIN;
        loop {
            let found = async {
                let bounds = self.client.bounds().await?;
                self.check_bounds(&bounds)?;
                let start = start::start(&self.client, &self.config, from, &bounds).await?;
                Ok((bounds, start))
            };
            match found.await {
                Err(Error::NoTopic { .. } | Error::KafkaCheckpoint { .. }) if Instant::now() < deadline => {
                    tokio::time::sleep(ASK_AGAIN).await;
                }
                found => return found,
            }
        }
    }

    /// Positions hold 15 bits of partition and 48 of offset.
    fn check_bounds(&self, bounds: &start::Bounds) -> Result<()> {
        match bounds.iter().find(|(p, (_, end))| **p >= 1 << 15 || *end >= 1 << OFFSET_BITS) {
            Some((partition, (_, end))) => Err(Error::KafkaClient {
                why: format!(
                    "partition {partition} with end {end} of topic {} is beyond what is done",
                    self.config.topic
                ),
            }),
            None => Ok(()),
        }
    }

    fn checkpoint(&self, ranges: &[OffsetRange]) -> String {
        Offsets { topic: self.config.topic.clone(), next: ends(ranges) }.to_string()
    }

    async fn open_lanes(&self, ranges: &[OffsetRange]) -> Result<Vec<(OffsetRange, Arc<Mutex<Lane>>)>> {
        let (lanes, wanted) = (self.lanes.clone(), ranges.to_vec());
        let opened = tokio::task::spawn_blocking(move || lanes.open(&wanted));
        opened.await.map_err(|e| Error::Worker { what: "open partitions", why: e.to_string() })??;
        let lane = |range: &OffsetRange| {
            let missing = || Error::Worker { what: "open partitions", why: format!("{} is missing", range.partition) };
            Ok((*range, self.lanes.get(range.partition).ok_or_else(missing)?))
        };
        ranges.iter().filter(|r| r.len() > 0).map(lane).collect()
    }

    /// How many messages make so many bytes. Before any have been read the first ones that are there are looked at.
    async fn events(&self, bytes: u64, ranges: &[OffsetRange]) -> Result<u64> {
        let (guess, is_new) = {
            let round = self.round();
            (round.pace.events(bytes), round.pace.is_new())
        };
        if !is_new || count(ranges) <= guess {
            return Ok(guess);
        }
        let lanes = self.open_lanes(ranges).await?;
        let seen = tokio::task::spawn_blocking(move || sample(&lanes)).await;
        let (messages, seen) = seen.map_err(|e| Error::Worker { what: "look at messages", why: e.to_string() })??;
        let mut round = self.round();
        round.pace.sampled(messages, seen);
        Ok(round.pace.events(bytes))
    }

    /// What messages are decoded with; inferred where nobody says.
    async fn reader(
        &self,
        given: Option<TableSchema>,
        ranges: &[OffsetRange],
        warnings: &mut Vec<String>,
    ) -> Result<TableSchema> {
        if let Some(given) = given {
            return Ok(match self.config.append_offsets {
                true => append::without_offset_columns(&given)?,
                false => given,
            });
        }
        let inferred = infer::infer(self.open_lanes(ranges).await?).await?;
        let named = inferred.schema.fields().iter().map(|f| format!("{} {}", f.name(), f.data_type()));
        warnings.push(format!(
            "no schema provider: the schema was inferred from this batch and stays: {}",
            named.collect::<Vec<_>>().join(", ")
        ));
        if !inferred.left_out.is_empty() {
            let names = inferred.left_out.join(", ");
            warnings.push(format!("fields without a value in this batch are left out for good: {names}"));
        }
        Ok(TableSchema::from_arrow(&inferred.schema, &self.config.topic)?)
    }
}

#[async_trait::async_trait]
impl Source for KafkaSource {
    async fn fetch(&self, request: FetchRequest) -> Result<Fetch> {
        let (bounds, start) = self.start(request.from.as_deref()).await?;
        let end: BTreeMap<i32, i64> = bounds.iter().map(|(p, (_, end))| (*p, *end)).collect();
        let lag = start.from.iter().map(|(p, from)| (*p, (end[p] - from).max(0))).collect();
        let allocate = |end, most| ranges::allocate(&start.from, end, most, self.config.min_partitions);
        let last = until(&end, &start.from, request.until.as_deref());
        let whole = allocate(&last, self.config.max_events);
        let most = match request.bytes {
            Some(bytes) => self.events(bytes, &whole).await?,
            None => u64::MAX,
        };
        let (ranges, rest) = match count(&whole) > most {
            true => (allocate(&ends(&whole), most), Some(&whole)),
            false => (whole.clone(), None),
        };
        let checkpoint = self.checkpoint(&ranges);
        let rest = rest.map(|rest| self.checkpoint(rest));
        let events = count(&ranges);
        let mut stats = FetchStats {
            warnings: start.warnings,
            lost: start.lost,
            topic: Some(self.config.topic.clone()),
            lag,
            events,
            ..Default::default()
        };
        if events == 0 {
            self.round().begin(0);
            return Ok(Fetch { batches: None, checkpoint: Some(checkpoint), rest: None, stats });
        }
        let (bytes_read, without_value) = self.round().begin(events);
        tracing::debug!(events, from = ?start.from, next = checkpoint, "offsets planned");
        let lanes = self.open_lanes(&ranges).await?;
        let shared = Arc::new(Shared {
            format: self.format.clone(),
            // Over all that waits: a field that only comes later would be left out for good.
            reader: self.reader(request.schema, &whole, &mut stats.warnings).await?,
            positions: request.positions,
            append_offsets: self.config.append_offsets,
            tombstones: self.config.tombstones == Tombstones::Delete,
            rejects: Arc::new(Rejects::new(&self.bad_records)),
            bytes_read,
            without_value,
            times: Arc::default(),
        });
        let decoded = Decoder::new(&shared.format, &shared.reader, shared.positions)?.rows().schema().clone();
        let schema = if shared.append_offsets { append::appended(&decoded) } else { decoded };
        let schema = if shared.tombstones { tombstone::with_tombstones(&schema) } else { schema };
        let partitions = lanes
            .into_iter()
            .map(|(range, lane)| {
                Arc::new(Piece { range, lane, shared: shared.clone(), schema: schema.clone() }) as Arc<_>
            })
            .collect();
        let batches = Batches {
            schema,
            partitions,
            rejects: shared.rejects.clone(),
            bytes_read: shared.bytes_read.clone(),
            times: shared.times.clone(),
        };
        Ok(Fetch { batches: Some(batches), checkpoint: Some(checkpoint), rest, stats })
    }

    async fn describe(&self, position: u64) -> String {
        let (partition, offset) = unpack(position);
        format!("topic {}, partition {partition}, offset {offset}", self.config.topic)
    }

    fn origin(&self, position: u64) -> Origin {
        let (partition, offset) = unpack(position);
        Origin { source: self.config.topic.clone(), partition: Some(partition), offset }
    }

    async fn raw(&self, positions: &[u64]) -> Result<Vec<Option<Raw>>> {
        let (lanes, wanted) = (self.lanes.clone(), positions.iter().copied().collect::<BTreeSet<u64>>());
        let work = tokio::task::spawn_blocking(move || again(&lanes, &wanted));
        let found = work.await.map_err(|e| Error::Worker { what: "read messages again", why: e.to_string() })?;
        Ok(positions.iter().map(|position| found.get(position).cloned()).collect())
    }

    async fn on_commit(&self, checkpoint: &str) -> Result<()> {
        let without_value = {
            let mut round = self.round();
            let bytes = round.bytes_read.load(Ordering::Relaxed);
            round.pace.end(bytes);
            round.without_value.swap(0, Ordering::Relaxed)
        };
        if without_value > 0 {
            match self.config.tombstones {
                Tombstones::Skip => {
                    tracing::info!(count = without_value, "messages without a value (tombstones) were skipped")
                }
                Tombstones::Delete => {
                    tracing::info!(count = without_value, "messages with an empty value were skipped")
                }
            }
        }
        let Some(next) = Offsets::parse(checkpoint).map(|o| o.next).filter(|_| self.config.commit_offset) else {
            return Ok(());
        };
        let not_told = |why: &dyn std::fmt::Display| {
            tracing::warn!(error = %why, "the table has the commit, but the group was not told; the next commit tells it");
        };
        match tokio::time::timeout(TELL_WITHIN, self.client.commit(next)).await {
            Err(late) => not_told(&late),
            Ok(Err(e)) if e.is_retryable() => not_told(&e),
            Ok(done) => done?,
        }
        Ok(())
    }

    async fn has_nothing_after(&self, checkpoint: &str) -> Result<bool> {
        let Some(at) = Offsets::parse(checkpoint).filter(|at| at.topic == self.config.topic) else { return Ok(false) };
        let ends = self.client.bounds().await?;
        Ok(ends.len() == at.next.len()
            && ends.iter().all(|(p, (first, end))| at.next.get(p) == Some(end) && first <= end))
    }

    fn idle_wait(&self) -> Duration {
        IDLE_WAIT
    }
}

fn count(ranges: &[OffsetRange]) -> u64 {
    ranges.iter().map(OffsetRange::len).sum()
}

fn ends(ranges: &[OffsetRange]) -> BTreeMap<i32, i64> {
    ranges.iter().map(|r| (r.partition, r.until)).collect()
}

/// Where a batch ends at the latest: a position that an earlier fetch has given, in which a new partition has nothing.
fn until(end: &BTreeMap<i32, i64>, from: &BTreeMap<i32, i64>, position: Option<&str>) -> BTreeMap<i32, i64> {
    let Some(position) = position.and_then(Offsets::parse) else { return end.clone() };
    let most = |partition: &i32| position.next.get(partition).or(from.get(partition)).copied();
    end.iter().map(|(p, end)| (*p, most(p).unwrap_or(*end).min(*end))).collect()
}

/// The first messages that are at hand, and their bytes.
fn sample(lanes: &[(OffsetRange, Arc<Mutex<Lane>>)]) -> Result<(usize, usize)> {
    let (mut messages, mut bytes) = (0, 0);
    let deadline = Instant::now() + SAMPLE_WITHIN;
    for (range, lane) in lanes {
        if messages >= SAMPLED || Instant::now() > deadline {
            break;
        }
        let (more, size) = locked(lane).sample(range.from)?;
        (messages, bytes) = (messages + more, bytes + size);
    }
    Ok((messages, bytes))
}

/// Messages by their positions, in one pass over each partition. Those that are gone meanwhile are not among them.
fn again(lanes: &Lanes, wanted: &BTreeSet<u64>) -> HashMap<u64, Raw> {
    let mut found = HashMap::new();
    let partitions: BTreeSet<i32> = wanted.iter().map(|position| unpack(*position).0).collect();
    for partition in partitions {
        let mut offsets = wanted.range(pack(partition, 0)..pack(partition + 1, 0)).map(|position| unpack(*position).1);
        let (Some(first), Some(lane)) = (offsets.next(), lanes.get(partition)) else { continue };
        let until = offsets.next_back().unwrap_or(first) + 1;
        let mut lane = locked(&lane);
        let mut take = |message: &queue::Fetched| {
            let position = pack(partition, message.offset());
            if wanted.contains(&position) {
                let raw = Raw {
                    value: message.value().map(|v| v.to_vec().into()),
                    key: message.key().map(|k| k.to_vec().into()),
                    timestamp_ms: message.timestamp(),
                };
                found.insert(position, raw);
            }
            Ok(Taken::More)
        };
        let mut read = lane.begin(first).map(|()| Read::More);
        while matches!(read, Ok(Read::More)) {
            read = lane.read(until, &mut take);
        }
        if let Err(e) = read {
            tracing::warn!(error = %e, partition, "bad records cannot be read again: they are kept as rows");
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{KafkaCheckpointType, OffsetReset};

    pub(super) fn config(topic: &str) -> KafkaConfig {
        KafkaConfig {
            topic: topic.into(),
            client: Vec::new(),
            reset: OffsetReset::Latest,
            group: None,
            checkpoint_type: KafkaCheckpointType::String,
            min_partitions: 0,
            max_events: 10,
            fail_on_data_loss: false,
            commit_offset: false,
            append_offsets: false,
            tombstones: Tombstones::Skip,
            timeout: Duration::from_secs(1),
            avro: AvroValues::Bare,
        }
    }

    #[test]
    fn a_batch_ends_where_it_is_told() {
        let at = |offsets: &[(i32, i64)]| offsets.iter().copied().collect::<BTreeMap<i32, i64>>();
        let (end, from) = (at(&[(0, 9), (1, 9), (2, 9)]), at(&[(0, 1), (1, 1), (2, 1)]));
        assert_eq!(until(&end, &from, None), end);
        // A partition that has been added, and one that was cut behind the position.
        assert_eq!(until(&end, &from, Some("t,0:4,1:12")), at(&[(0, 4), (1, 9), (2, 1)]));
    }

    #[test]
    fn a_position_is_a_place() {
        for (partition, offset) in [(0, 0), (7, 1), (32_767, (1 << OFFSET_BITS) - 1)] {
            assert_eq!(unpack(pack(partition, offset)), (partition, offset));
        }
    }
}
