//! One record: a state of an instant, and the content of its file (`MetadataConversionUtils`, Hudi 0.15).

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value;
use apache_avro::writer::datum::GenericDatumWriter;
use apache_avro::{Reader, Schema};
use serde::Deserialize;

use super::{ArchivedCommit, ArchivedInstant};
use crate::table::{Action, CommitMetadata, Instant, InstantTime, State, WriteStat};

/// Hudi's archiver has this key in the metadata of every commit (`HoodieRollingStatMetadata`).
const ROLLING_STAT: &str = "ROLLING_STAT";

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::parse_str(schema_text()).expect("a schema of ours"));
static WRITER: LazyLock<GenericDatumWriter<'static>> = LazyLock::new(|| {
    GenericDatumWriter::builder(&SCHEMA).human_readable(false).build().expect("a schema that holds all its names")
});

/// `HoodieArchivedMetaEntry`, as blocks carry it.
pub(super) fn schema_text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let parsed: serde_json::Value =
            serde_json::from_str(include_str!("../avro/HoodieArchivedMetaEntry.avsc")).expect("a schema of ours");
        parsed.to_string()
    });
    &TEXT
}

/// A file of the active timeline on its way to the archived one.
#[derive(Debug, Clone)]
pub struct ArchiveEntry {
    pub instant: Instant,
    /// When the file was written.
    pub since: InstantTime,
    pub content: bytes::Bytes,
}

impl ArchiveEntry {
    /// The instant as it is archived: a completed one by its file's action, which of a compaction is `commit`.
    pub fn as_archived(&self) -> Instant {
        let Instant { time, action, state } = self.instant.clone();
        Instant::new(time, if state == State::Completed { action.comparable() } else { action }, state)
    }

    /// The record. The error says what is wrong with the content.
    pub(super) fn to_datum(&self) -> Result<Vec<u8>, String> {
        let (field, content) = match self.payload()? {
            Some((field, content)) => (field, content),
            None => ("", null()),
        };
        let instant = self.as_archived();
        let plain = |name: &str| match name {
            "commitTime" => some(text(self.instant.time.as_str())),
            "actionType" => some(text(instant.action.as_str())),
            "actionState" => some(text(state_name(self.instant.state))),
            "stateTransitionTime" => some(text(self.since.as_str())),
            // Alone among them with its null last, and left null by Hudi.
            "version" => Value::Union(1, Box::new(Value::Null)),
            _ => null(),
        };
        let Schema::Record(record) = &*SCHEMA else { return Err("the schema is no record".into()) };
        let mut content = Some(content);
        let fields = record.fields.iter().map(|f| {
            let value = if f.name == field { content.take().unwrap_or_else(null) } else { plain(&f.name) };
            (f.name.clone(), value)
        });
        WRITER.write_value_to_vec(Value::Record(fields.collect())).map_err(cut)
    }

    /// The field that holds the content, and the content in its schema; `None` where Hudi stores nothing.
    fn payload(&self) -> Result<Option<(&'static str, Value)>, String> {
        use Action::*;
        use State::*;
        let field = match (self.instant.action, self.instant.state) {
            (Commit | DeltaCommit, _) | (Compaction | LogCompaction, Completed) => {
                return self.commit().map(|commit| Some(("hoodieCommitMetadata", commit)));
            }
            (ReplaceCommit, Completed) => {
                return self.commit().map(|commit| Some(("hoodieReplaceCommitMetadata", commit)));
            }
            // Clustering leaves it empty.
            (ReplaceCommit, Inflight) if self.content.is_empty() => return Ok(None),
            (ReplaceCommit, Inflight) => {
                return self.commit().map(|commit| Some(("HoodieInflightReplaceMetadata", commit)));
            }
            (ReplaceCommit, Requested) => "hoodieRequestedReplaceMetadata",
            (Compaction, Requested) => "hoodieCompactionPlan",
            (Clean, Completed) => "hoodieCleanMetadata",
            (Clean, _) => "hoodieCleanerPlan",
            (Rollback, Completed) => "hoodieRollbackMetadata",
            (Savepoint, Completed) => "hoodieSavePointMetadata",
            (Indexing, Completed) => "hoodieIndexCommitMetadata",
            (Compaction | LogCompaction | Rollback | Restore | Savepoint | Indexing, _) => return Ok(None),
        };
        if self.content.is_empty() && self.instant.is_pending() {
            return Ok(None);
        }
        let read = || -> apache_avro::AvroResult<_> {
            let mut records = Reader::builder(&self.content[..]).reader_schema(nested(field)).build()?;
            records.next().transpose()
        };
        let record = read().map_err(cut)?;
        Ok(Some((field, some(record.ok_or("it has no record")?))))
    }

    /// Of JSON. The fields are those of the Avro record; what it does not have is left out, as by Hudi.
    fn commit(&self) -> Result<Value, String> {
        let metadata = CommitMetadata::from_json(&self.content)?;
        let stats = metadata
            .partition_to_write_stats
            .iter()
            .map(|(partition, stats)| (partition.clone(), Value::Array(stats.iter().map(stat).collect())));
        let mut extra: HashMap<String, Value> =
            metadata.extra_metadata.iter().map(|(key, value)| (key.clone(), text(value))).collect();
        extra.insert(ROLLING_STAT.into(), text(""));
        let operation = if metadata.compacted { "COMPACT" } else { &metadata.operation_type };
        let mut fields = vec![
            ("partitionToWriteStats".into(), some(Value::Map(stats.collect()))),
            ("extraMetadata".into(), some(Value::Map(extra))),
            ("version".into(), Value::Union(1, Box::new(Value::Null))),
            ("operationType".into(), some(text(operation))),
        ];
        if self.instant.action == Action::ReplaceCommit && self.instant.state == State::Completed {
            let replaced = metadata.partition_to_replace_file_ids.unwrap_or_default();
            let ids = |ids: Vec<String>| Value::Array(ids.into_iter().map(Value::String).collect());
            let replaced = replaced.into_iter().map(|(partition, groups)| (partition, ids(groups))).collect();
            fields.push(("partitionToReplaceFileIds".into(), some(Value::Map(replaced))));
        }
        Ok(some(Value::Record(fields)))
    }
}

/// `HoodieWriteStat`
fn stat(stat: &WriteStat) -> Value {
    let compaction = stat.compaction.clone().unwrap_or_default();
    let partition = (!stat.partition_path.is_empty() || stat.path.is_some()).then_some(&stat.partition_path);
    let long = |number: u64| some(Value::Long(i64::try_from(number).unwrap_or(i64::MAX)));
    let fields = [
        ("fileId", some(text(&stat.file_id))),
        ("path", stat.path.as_deref().map_or_else(null, |path| some(text(path)))),
        ("prevCommit", some(text(&stat.prev_commit))),
        ("numWrites", long(stat.num_writes)),
        ("numDeletes", long(stat.num_deletes)),
        ("numUpdateWrites", long(stat.num_update_writes)),
        ("totalWriteBytes", long(stat.total_write_bytes)),
        ("totalWriteErrors", long(stat.total_write_errors)),
        ("partitionPath", partition.map_or_else(null, |partition| some(text(partition)))),
        ("totalLogRecords", long(compaction.log_records)),
        // No field of the stat has this name: Hudi leaves it null.
        ("totalLogFiles", null()),
        ("totalUpdatedRecordsCompacted", long(compaction.updated_records)),
        ("numInserts", long(stat.num_inserts)),
        ("totalLogBlocks", long(compaction.log_blocks)),
        ("totalCorruptLogBlock", long(compaction.corrupt_blocks)),
        ("totalRollbackBlocks", long(compaction.rollback_blocks)),
        ("fileSizeInBytes", long(stat.file_size_in_bytes)),
    ];
    Value::Record(fields.map(|(name, value)| (name.to_string(), value)).into())
}

/// The schema of an optional record among the fields.
fn nested(field: &str) -> &'static Schema {
    let Schema::Record(record) = &*SCHEMA else { return &Schema::Null };
    let found = record.fields.iter().find(|f| f.name == field).map(|f| &f.schema);
    match found {
        Some(Schema::Union(union)) => union.variants().last().unwrap_or(&Schema::Null),
        _ => &Schema::Null,
    }
}

fn text(value: &str) -> Value {
    Value::String(value.to_string())
}

/// In a union of null and something.
fn some(value: Value) -> Value {
    Value::Union(1, Box::new(value))
}

fn null() -> Value {
    Value::Union(0, Box::new(Value::Null))
}

/// Errors of Avro may hold whole schemas.
fn cut(error: apache_avro::Error) -> String {
    format!("{:.200}", error.to_string())
}

/// Of the Java constant.
fn state_name(state: State) -> &'static str {
    match state {
        State::Requested => "REQUESTED",
        State::Inflight => "INFLIGHT",
        State::Completed => "COMPLETED",
    }
}

/// What is looked at of a record, whichever release has written it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    commit_time: Option<String>,
    action_type: Option<String>,
    action_state: Option<String>,
    state_transition_time: Option<String>,
    hoodie_commit_metadata: Option<Commit>,
    hoodie_replace_commit_metadata: Option<Commit>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Commit {
    partition_to_write_stats: Option<BTreeMap<String, Vec<Stat>>>,
    extra_metadata: Option<BTreeMap<String, String>>,
    operation_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stat {
    num_writes: Option<i64>,
    num_deletes: Option<i64>,
    num_update_writes: Option<i64>,
    num_inserts: Option<i64>,
    total_write_bytes: Option<i64>,
}

/// Reads the records of blocks with one schema.
pub(super) struct Decoder {
    text: String,
    schema: Schema,
}

impl Decoder {
    /// `text`: the schema that a block says. The error says what is wrong with it.
    pub(super) fn new(text: &str) -> Result<Decoder, String> {
        Ok(Decoder { text: text.to_string(), schema: Schema::parse_str(text).map_err(cut)? })
    }

    pub(super) fn reads(&self, text: &str) -> bool {
        self.text == text
    }

    /// `None`: a state of something that this program does not know.
    pub(super) fn decode(&self, datum: &[u8]) -> Result<Option<ArchivedInstant>, String> {
        let reader = GenericDatumReader::builder(&self.schema).human_readable(false).build();
        let value = reader.and_then(|reader| reader.read_value(&mut &datum[..])).map_err(cut)?;
        let record: Record = apache_avro::from_value(&value).map_err(cut)?;
        let time = record.commit_time.as_deref().and_then(InstantTime::parse);
        let action = record.action_type.as_deref().and_then(Action::parse);
        let state = match record.action_state.as_deref() {
            Some("REQUESTED") => State::Requested,
            Some("INFLIGHT") => State::Inflight,
            // Archives of the first releases held nothing else.
            Some("COMPLETED") | None => State::Completed,
            Some(_) => return Ok(None),
        };
        let (Some(time), Some(action)) = (time, action) else { return Ok(None) };
        let commit = record.hoodie_commit_metadata.or(record.hoodie_replace_commit_metadata);
        Ok(Some(ArchivedInstant {
            instant: Instant::new(time, action, state),
            since: record.state_transition_time.as_deref().and_then(InstantTime::parse),
            commit: commit.filter(|_| state == State::Completed).map(Commit::summary),
        }))
    }
}

impl Commit {
    fn summary(self) -> ArchivedCommit {
        let mut extra_metadata = self.extra_metadata.unwrap_or_default();
        extra_metadata.remove(ROLLING_STAT);
        let operation_type = self.operation_type.unwrap_or_else(|| "UNKNOWN".to_string());
        let mut commit = ArchivedCommit { operation_type, extra_metadata, ..ArchivedCommit::default() };
        let add = |sum: &mut u64, number: Option<i64>| {
            *sum = sum.saturating_add(number.and_then(|n| u64::try_from(n).ok()).unwrap_or(0));
        };
        for stat in self.partition_to_write_stats.unwrap_or_default().into_values().flatten() {
            commit.files += 1;
            add(&mut commit.bytes, stat.total_write_bytes);
            add(&mut commit.rows, stat.num_writes);
            add(&mut commit.inserted, stat.num_inserts);
            add(&mut commit.updated, stat.num_update_writes);
            add(&mut commit.deleted, stat.num_deletes);
        }
        commit
    }
}
