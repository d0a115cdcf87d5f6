//! Records that cannot be taken: counted, shown, kept aside, and judged once the rows of a round are read.
//!
//! One [`Rejects`] a fetch, shared by all who read it. Reading goes on past a bad record whatever the policy, so that a round
//! that fails names the first one and says how many there are. Invariants: a record counts once, however often the input is
//! read; nothing of a round with a bad record is committed before [`Rejects::verdict`] has been asked.

use super::{Error, Source};
use crate::config::{BadRecordPolicy, BadRecordsConfig, QuarantineTarget};
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bad records after which a round that has failed anyway stops to count.
const ENOUGH: u64 = 10_000;
/// Bad records that are shown each by itself; the rest is counted.
const SHOWN_RECORDS: usize = 10;
/// Characters of a record that a message shows.
const SHOWN_CHARACTERS: usize = 200;
/// Bytes of records that a round keeps aside in memory until they are written.
const MOST_KEPT_BYTES: usize = 256 << 20;

/// Why a record cannot be taken, in Hudi's words (`ErrorEvent.ErrorReason`, 0.15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    JsonDeserialization,
    AvroDeserialization,
    /// No record key, ordering value or partition path can be made of it.
    RecordCreation,
    /// A row that does not fit the schema of the table.
    RecordSchema,
}

impl Reason {
    /// As Hudi's error tables have it.
    pub fn name(self) -> &'static str {
        match self {
            Reason::JsonDeserialization => "JSON_AVRO_DESERIALIZATION_FAILURE",
            Reason::AvroDeserialization => "AVRO_DESERIALIZATION_FAILURE",
            Reason::RecordCreation => "RECORD_CREATION",
            Reason::RecordSchema => "INVALID_RECORD_SCHEMA",
        }
    }

    /// Whether the record never became a row, and so is not among the rows that were read.
    pub fn is_undecoded(self) -> bool {
        matches!(self, Reason::JsonDeserialization | Reason::AvroDeserialization)
    }
}

/// A record that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// See [`super::POSITION_COLUMN`]; `None` behind a transformer.
    pub position: Option<u64>,
    pub reason: Reason,
    /// Stable code of the kind of failure, see the README.
    pub code: &'static str,
    /// What is wrong, as a sentence.
    pub why: String,
    /// The record as it came; of a record that became a row its text, until [`Source::raw`] has given the bytes again.
    pub value: Option<Vec<u8>>,
    /// Key of the message.
    pub key: Option<Vec<u8>>,
    /// Time of the message.
    pub timestamp_ms: Option<i64>,
}

impl Rejected {
    fn bytes(&self) -> usize {
        let held = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
        size_of::<Rejected>() + self.why.len() + held(&self.value) + held(&self.key)
    }
}

/// What is said of a bad record.
#[derive(Debug, Clone)]
struct Sample {
    position: Option<u64>,
    code: &'static str,
    why: String,
    text: Option<String>,
}

impl Sample {
    fn new(rejected: &Rejected) -> Sample {
        Sample {
            position: rejected.position,
            code: rejected.code,
            why: rejected.why.clone(),
            // Of a row the message shows what matters already.
            text: rejected.value.as_deref().filter(|_| rejected.reason.is_undecoded()).map(shown),
        }
    }

    fn order(position: Option<u64>) -> u64 {
        position.unwrap_or(u64::MAX)
    }

    async fn place(&self, source: &dyn Source) -> String {
        match self.position {
            Some(position) => source.describe(position).await,
            None => "a row of the transformers".to_string(),
        }
    }
}

/// A round has bad records, and the policy does not let it pass: the first of them, and how many.
#[derive(Debug)]
pub struct BadRecords {
    place: String,
    why: String,
    text: Option<String>,
    count: u64,
    /// Reading stopped before all were counted.
    more: bool,
    code: &'static str,
    /// What the user can do.
    advice: String,
}

impl BadRecords {
    /// The code of the first one.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// How many were found.
    pub fn count(&self) -> u64 {
        self.count
    }
}

impl std::fmt::Display for BadRecords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.why)?;
        if let Some(text) = &self.text {
            write!(f, " in {text}")?;
        }
        match (self.count, self.more) {
            (_, true) => write!(f, " (one of more than {} bad records)", self.count)?,
            (1, false) => {}
            (count, false) => write!(f, " (the first of {count} bad records)")?,
        }
        write!(f, "; {}", self.advice)
    }
}

/// The bad records of one fetch.
#[derive(Debug)]
pub struct Rejects {
    config: BadRecordsConfig,
    most_kept_bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    count: u64,
    /// Those that never became a row.
    undecoded: u64,
    /// A query may read the input twice.
    positions: HashSet<u64>,
    /// The first in the order of the input.
    samples: Vec<Sample>,
    kept: Vec<Rejected>,
    kept_bytes: usize,
    /// There are more than were counted.
    stopped: bool,
    /// There is no room to keep more aside.
    full: bool,
}

impl Rejects {
    /// None yet.
    pub fn new(config: &BadRecordsConfig) -> Rejects {
        Rejects { config: config.clone(), most_kept_bytes: MOST_KEPT_BYTES, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is done with bad records.
    pub fn policy(&self) -> BadRecordPolicy {
        self.config.policy
    }

    /// Takes note of a bad record. An error, which is [`Error::EnoughBadRecords`], ends the reading: the round has failed, and
    /// [`Rejects::verdict`] tells why.
    pub fn refuse(&self, rejected: Rejected) -> Result<(), Error> {
        let mut state = self.state();
        if rejected.position.is_some_and(|position| !state.positions.insert(position)) {
            return Ok(());
        }
        state.count += 1;
        state.undecoded += u64::from(rejected.reason.is_undecoded());
        let order = Sample::order(rejected.position);
        let at = state.samples.partition_point(|s| Sample::order(s.position) <= order);
        if at < SHOWN_RECORDS {
            state.samples.truncate(SHOWN_RECORDS - 1);
            state.samples.insert(at, Sample::new(&rejected));
        }
        let enough = match self.config.policy {
            BadRecordPolicy::Fail => Some(ENOUGH),
            _ => self.config.max_rows.map(|most| ENOUGH.max(most.saturating_add(1))),
        };
        if enough.is_some_and(|enough| state.count >= enough) {
            state.stopped = true;
            return Err(Error::EnoughBadRecords);
        }
        if self.config.policy == BadRecordPolicy::Quarantine {
            state.kept_bytes += rejected.bytes();
            if state.kept_bytes > self.most_kept_bytes {
                state.full = true;
                return Err(Error::EnoughBadRecords);
            }
            state.kept.push(rejected);
        }
        Ok(())
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.state().count
    }

    /// Takes out those that were kept aside, in the order of the input.
    pub fn take_kept(&self) -> Vec<Rejected> {
        let mut kept = std::mem::take(&mut self.state().kept);
        kept.sort_by_key(|rejected| Sample::order(rejected.position));
        kept
    }

    /// Whether a round may be committed that has read `rows_read` rows, those included that were refused as rows.
    pub async fn verdict(&self, source: &dyn Source, rows_read: u64) -> Result<(), Error> {
        let (count, undecoded, stopped, first) = {
            let state = self.state();
            if state.full {
                return Err(Error::QuarantineFull { records: state.count, bytes: state.kept_bytes as u64 });
            }
            (state.count, state.undecoded, state.stopped, state.samples.first().cloned())
        };
        let Some(first) = first else { return Ok(()) };
        let Some(advice) = self.objection(count, rows_read.saturating_add(undecoded)) else { return Ok(()) };
        Err(Error::BadRecords(Box::new(BadRecords {
            place: first.place(source).await,
            why: first.why,
            text: first.text,
            count,
            more: stopped,
            code: first.code,
            advice,
        })))
    }

    /// Why `count` bad records of `rows` are too many, and what can be done.
    fn objection(&self, count: u64, rows: u64) -> Option<String> {
        let config = &self.config;
        if config.policy == BadRecordPolicy::Fail {
            return Some(
                "correct it, or leave such records out with hoodie.streamer.source.bad.records.policy=skip, or keep them \
                 aside with quarantine"
                    .into(),
            );
        }
        if let Some(most) = config.max_rows.filter(|most| count > *most) {
            return Some(format!(
                "hoodie.streamer.source.bad.records.max.rows={most} lets no more be left out of a round"
            ));
        }
        let percent = count as f64 * 100.0 / rows.max(1) as f64;
        let most = config.max_percent.filter(|most| percent > *most)?;
        Some(format!(
            "that is {percent:.2} percent of the round's {rows} records, and \
             hoodie.streamer.source.bad.records.max.percent={most} lets no more be left out"
        ))
    }

    /// Warns of those that a round leaves out: the first with their places, then how many there are.
    pub async fn warn(&self, source: &dyn Source) {
        let (count, samples) = {
            let state = self.state();
            (state.count, state.samples.clone())
        };
        let done = match &self.config.quarantine {
            Some(QuarantineTarget::Table { base_path, .. }) => format!("quarantined in {base_path}"),
            Some(QuarantineTarget::Topic { name }) => format!("quarantined in topic {name}"),
            None => "skipped".to_string(),
        };
        for sample in &samples {
            let place = sample.place(source).await;
            tracing::warn!(place, cause = sample.why, record = sample.text, "record {done}");
        }
        if count > samples.len() as u64 {
            tracing::warn!(count, "{count} records {done}, the first {} of which are shown", samples.len());
        }
    }
}

/// The beginning of a record, as text on one line: line ends and other control characters are escaped.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_CHARACTERS * 4)]);
    let mut line = String::with_capacity(text.len());
    for (count, c) in text.chars().enumerate() {
        match c {
            _ if count == SHOWN_CHARACTERS => {
                line.push('…');
                break;
            }
            c if c.is_control() => line.extend(c.escape_default()),
            c => line.push(c),
        }
    }
    line
}

#[cfg(test)]
mod tests;
