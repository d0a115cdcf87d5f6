//! The error table: an ordinary copy-on-write table, upserted by a streamer of its own whose source is the kept records.
//!
//! Not partitioned: bad records are few, and a replay must find the ones it wrote before, whatever day it is.

use super::super::round::{Streamer, Tokens};
use super::super::{Error, Result};
use super::Quarantined;
use crate::config::{
    BadRecordsConfig, CheckpointConfig, IndexConfig, IndexType, KeyConfig, KeyGeneratorClass, LockProvider, Operation,
    PayloadClass, SchemaProviderConfig, StreamerConfig, TableType,
};
use crate::observe::Metrics;
use crate::schema::{ProvidedSchemas, SchemaProvider, TableSchema};
use crate::source::{Batches, Fetch, FetchRequest, FetchStats, Origin, Rejects, Source};
use arrow::array::{
    ArrayRef, BinaryArray, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::SchemaRef;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use std::collections::HashMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const SCHEMA: &str = include_str!("error_table.avsc");
/// Other jobs may keep their bad records in the same table.
const TRIES: u32 = 3;
const KEY: &str = "record_key";
const ORDERING: &str = "quarantined_at";

/// The job that writes the error table: storage, sizes and workers are those of the data's job.
pub(super) fn config(data: &StreamerConfig, base_path: &str, table_name: &str) -> StreamerConfig {
    let mut config = data.clone();
    config.table.base_path = base_path.to_string();
    config.table.name = table_name.to_string();
    config.table.table_type = TableType::CopyOnWrite;
    config.table.allow_empty_commit = true;
    config.operation = Operation::Upsert;
    (config.payload, config.payload_explicit) = (PayloadClass::OverwriteWithLatest, false);
    (config.ordering_field, config.ordering_field_explicit) = (Some(ORDERING.to_string()), true);
    config.filter_dupes = false;
    config.keys = KeyConfig {
        generator: KeyGeneratorClass::NonPartitioned,
        record_key_fields: vec![KEY.to_string()],
        partition_fields: Vec::new(),
        hive_style: false,
        url_encode: false,
        consistent_logical_timestamp: false,
        timestamp: None,
    };
    config.source.limit = None;
    config.source.bad_records = BadRecordsConfig::default();
    config.source.kafka = None;
    config.schema = SchemaProviderConfig::None;
    config.transformers = Vec::new();
    config.index =
        IndexConfig { index_type: IndexType::Bloom, update_partition_path: false, cache_bytes: 0, buckets: None };
    // Columns that somebody has added stay.
    (config.write.reconcile_schema, config.write.set_null_for_missing_columns) = (false, true);
    config.write.allow_column_drop = false;
    // The position of the data is carried along for the reader; nobody resumes from it.
    config.checkpoint = CheckpointConfig { allow_commit_on_no_change: true, ..CheckpointConfig::default() };
    config.run.no_progress = true;
    // Another table, another lock: the data's may be held.
    if let Some(lock) = &mut config.concurrency.lock {
        match &mut lock.provider {
            LockProvider::ZooKeeper(zookeeper) => zookeeper.lock_key = None,
            LockProvider::FileSystem(file) => file.folder = None,
            LockProvider::InProcess | LockProvider::Storage(_) => {}
        }
    }
    config.concurrency.retries_on_conflict = config.concurrency.retries_on_conflict.max(TRIES);
    config
}

/// Commits the records, with the checkpoint of the data's round.
pub(super) async fn write(
    config: StreamerConfig,
    cancel: CancellationToken,
    records: &[Quarantined],
    table: &str,
    checkpoint: &str,
) -> Result<()> {
    let schema = TableSchema::from_avro(SCHEMA)?;
    let rows = rows(&schema, records, table, checkpoint)?;
    let provided = ProvidedSchemas { source: schema, target: None };
    let source = Arc::new(Kept { rows, checkpoint: checkpoint.to_string() });
    // A round that is asked to stop ends with its commit, and this is part of it.
    let tokens = Tokens { stop: cancel.clone(), cancel };
    let mut streamer = Streamer::over(config, source, SchemaProvider::of(provided), tokens, Metrics::off()).await?;
    streamer.sync_once().await?;
    if let Err(e) = streamer.services_behind_commit().await {
        tracing::warn!(code = e.code(), error = %e, "the error table's services failed; tried again with the next bad records");
    }
    Ok(())
}

fn rows(schema: &TableSchema, records: &[Quarantined], table: &str, checkpoint: &str) -> Result<RecordBatch> {
    let now = chrono::Utc::now().timestamp_micros();
    let mut seen = HashMap::new();
    let text = |of: &dyn Fn(&Quarantined) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(records.iter().map(of)))
    };
    let bytes = |of: fn(&Quarantined) -> Option<&[u8]>| -> ArrayRef {
        Arc::new(BinaryArray::from_iter(records.iter().map(of)))
    };
    let micros = |of: &dyn Fn(&Quarantined) -> Option<i64>| -> ArrayRef {
        Arc::new(TimestampMicrosecondArray::from_iter(records.iter().map(of)).with_timezone("UTC"))
    };
    let origin = |r: &Quarantined| r.origin.clone().unwrap_or_default();
    let keys = StringArray::from_iter_values(records.iter().map(|r| key(r, &mut seen)));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(keys),
        text(&|r| r.reason.name().to_string()),
        text(&|r| r.code.to_string()),
        text(&|r| r.message.clone()),
        Arc::new(StringArray::from_iter(records.iter().map(|r| r.origin.as_ref().map(|o| o.source.as_str())))),
        Arc::new(Int32Array::from_iter(records.iter().map(|r| origin(r).partition))),
        Arc::new(Int64Array::from_iter(records.iter().map(|r| r.origin.as_ref().map(|o| o.offset)))),
        micros(&|r| r.timestamp_ms.and_then(|ms| ms.checked_mul(1000))),
        bytes(|r| r.key.as_deref()),
        bytes(|r| r.value.as_deref()),
        text(&|_| table.to_string()),
        text(&|_| checkpoint.to_string()),
        micros(&|_| Some(now)),
    ];
    RecordBatch::try_new(schema.arrow.clone(), columns)
        .map_err(|e| Error::Worker { what: "put bad records into columns", why: e.to_string() })
}

/// Names the record, and the same again when the same input is read again. A row of a transformer has no place: it is called
/// by its text, and by how many like it the round has had before.
fn key(record: &Quarantined, seen: &mut HashMap<u128, u64>) -> String {
    match &record.origin {
        Some(Origin { source, partition: Some(partition), offset }) => format!("{source}:{partition}:{offset}"),
        Some(Origin { source, partition: None, offset }) => format!("{source}:{offset}"),
        None => {
            let hash = fnv1a(record.value.as_deref().unwrap_or_default());
            let before = seen.entry(hash).and_modify(|n| *n += 1).or_insert(0);
            format!("row:{hash:032x}:{before}")
        }
    }
}

/// FNV-1a of 128 bits: stable over releases and machines, and wide enough that two texts never share it.
fn fnv1a(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

/// The kept records as a source of one batch.
#[derive(Debug, Clone)]
struct Kept {
    rows: RecordBatch,
    checkpoint: String,
}

#[async_trait::async_trait]
impl Source for Kept {
    async fn fetch(&self, _request: FetchRequest) -> crate::source::Result<Fetch> {
        let batches = Batches {
            schema: self.rows.schema(),
            partitions: vec![Arc::new(self.clone())],
            rejects: Arc::new(Rejects::new(&BadRecordsConfig::default())),
            bytes_read: Arc::default(),
            times: Arc::default(),
        };
        let checkpoint = Some(self.checkpoint.clone()).filter(|c| !c.is_empty());
        Ok(Fetch { batches: Some(batches), checkpoint, rest: None, stats: FetchStats::default() })
    }

    async fn describe(&self, _position: u64) -> String {
        "a bad record".to_string()
    }

    fn origin(&self, _position: u64) -> Origin {
        Origin::default()
    }

    async fn on_commit(&self, _checkpoint: &str) -> crate::source::Result<()> {
        Ok(())
    }
}

impl PartitionStream for Kept {
    fn schema(&self) -> &SchemaRef {
        self.rows.schema_ref()
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = futures::stream::iter([Ok(self.rows.clone())]);
        Box::pin(RecordBatchStreamAdapter::new(self.rows.schema(), rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Reason;

    fn record(origin: Option<Origin>, value: &str) -> Quarantined {
        Quarantined {
            origin,
            reason: Reason::RecordCreation,
            code: "record-null-key",
            message: "no key".into(),
            value: Some(value.as_bytes().to_vec().into()),
            key: None,
            timestamp_ms: Some(7),
        }
    }

    #[test]
    fn a_key_is_the_same_when_the_input_is_read_again() {
        let of = |source: &str, partition, offset| Some(Origin { source: source.into(), partition, offset });
        let records = [
            record(of("orders", Some(3), 17), "x"),
            record(of("/in/a.json", None, 120), "x"),
            record(None, "same"),
            record(None, "other"),
            record(None, "same"),
        ];
        let keys = || {
            let mut seen = HashMap::new();
            records.iter().map(|r| key(r, &mut seen)).collect::<Vec<_>>()
        };
        let first = keys();
        assert_eq!(first[..2], ["orders:3:17", "/in/a.json:120"]);
        assert!(first[2].ends_with(":0") && first[4] == first[2].replace(":0", ":1") && first[3] != first[2]);
        assert_eq!(first, keys());
        // Published vector of FNV-1a 128: the empty text and "a".
        assert_eq!(fnv1a(b""), 0x6c62272e07bb014262b821756295c58d);
        assert_eq!(fnv1a(b"a"), 0xd228cb696f1a8caf78912b704e4a8964);
    }

    #[test]
    fn rows_have_the_schema_of_the_table() {
        let schema = TableSchema::from_avro(SCHEMA).expect("our own schema");
        let rows = rows(&schema, &[record(None, "{}")], "trips", "5").expect("columns fit");
        assert_eq!((rows.num_rows(), rows.column(0).null_count(), rows.column(4).null_count()), (1, 0, 1));
        assert!(schema.avro.contains("\"doc\""), "readers of the table are told what its columns are");
    }
}
