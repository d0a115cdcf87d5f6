//! What the tests of this room stand on.

use super::WriteContext;
use super::{WriteStatus, data_file::Run};
use crate::config::{
    BloomConfig, BulkInsertSortMode, IndexConfig, IndexType, LogBlockFormat, LogConfig, Operation, ParquetCodec,
    ParquetConfig, PayloadClass, WriteConfig,
};
use crate::record::MergeRule;
use crate::schema::TableSchema;
use crate::storage::Storage;
use crate::table::base_file::Reader;
use crate::table::{BaseFile, FileSlice, FileSystemView, InstantTime, MERGE_ON_READ, NewTable, Table, TableProperties};
use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use std::sync::Arc;

pub(crate) use crate::index::testing::keyed;

/// The writer schema: `id` and `region` (text), `value` (long).
pub(crate) fn schema() -> TableSchema {
    let field = |name: &str, avro: &str| format!(r#"{{"name":"{name}","type":["null","{avro}"],"default":null}}"#);
    let fields = [field("id", "string"), field("region", "string"), field("value", "long")].join(",");
    TableSchema::from_avro(&format!(r#"{{"type":"record","name":"row","fields":[{fields}]}}"#)).unwrap()
}

pub(crate) fn context(table: Table, instant: &str, operation: Operation) -> WriteContext {
    WriteContext {
        table,
        timeline: Arc::default(),
        instant: InstantTime::parse(instant).unwrap(),
        attempt: 0,
        config: WriteConfig {
            parquet: ParquetConfig {
                codec: ParquetCodec::Snappy,
                max_file_size: 120 << 20,
                block_size: 120 << 20,
                page_size: 1 << 20,
                dictionary_enabled: true,
                compression_ratio: 0.1,
            },
            log: LogConfig { max_file_size: 1 << 30, max_block_size: 256 << 20, block_format: LogBlockFormat::Avro },
            bloom: BloomConfig { num_entries: 100, fpp: 0.001, dynamic: true, dynamic_max_entries: 1000 },
            small_file_limit: 100 << 20,
            small_file_limit_explicit: false,
            small_file_candidates: 1,
            record_size_estimate: 1024,
            record_size_estimation_threshold: 1.0,
            insert_auto_split: true,
            insert_split_size: 500_000,
            memory: crate::config::MemoryConfig::of(512 << 20),
            bulk_insert_sort_mode: BulkInsertSortMode::None,
            allow_duplicate_on_inserts: true,
            reconcile_schema: false,
            set_null_for_missing_columns: false,
            allow_column_drop: false,
            workers: 2,
        },
        index: IndexConfig {
            index_type: IndexType::Simple,
            update_partition_path: true,
            cache_bytes: 0,
            buckets: None,
        },
        operation,
        rule: MergeRule(PayloadClass::OverwriteWithLatest),
        ordering_field: Some("value".to_string()),
        schema: schema(),
        average_record_size: 1024,
        cancel: Default::default(),
        rows_written: Default::default(),
        key_cache: None,
    }
}

/// For what touches no files.
pub(crate) fn context_without_table(operation: Operation) -> WriteContext {
    let storage = Storage::open(&std::env::temp_dir().to_string_lossy()).unwrap();
    let table = Table::new(storage, TableProperties::default());
    context(table, "20240102000000000", operation)
}

/// Of a merge-on-read table ordered by `value`.
pub(crate) fn merge_on_read() -> TableProperties {
    let precombine = Some("value".to_string());
    let table_type = MERGE_ON_READ.to_string();
    TableProperties::for_new_table(&NewTable { name: "t".into(), table_type, precombine, ..NewTable::default() })
}

/// A table in a folder of its own, which goes with the first value.
pub(crate) fn table() -> (tempfile::TempDir, Table) {
    let folder = tempfile::tempdir().unwrap();
    let storage = Storage::open(&folder.path().to_string_lossy()).unwrap();
    (folder, Table::new(storage, TableProperties::default()))
}

/// Runs `work` on a blocking thread of a runtime, as handles are.
pub(crate) fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    runtime().block_on(async { tokio::task::spawn_blocking(work).await.unwrap() })
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

pub(in crate::write) fn run(context: WriteContext) -> Arc<Run> {
    Arc::new(Run::new(Arc::new(context)))
}

/// The file that a status speaks of.
pub(crate) fn file(status: &WriteStatus) -> BaseFile {
    let stat = &status.stat;
    let path = stat.path.clone().unwrap();
    let name = path.rsplit('/').next().unwrap().to_string();
    let instant = InstantTime::parse(name.rsplit('_').next().unwrap().strip_suffix(".parquet").unwrap()).unwrap();
    let (partition, file_id) = (stat.partition_path.clone(), stat.file_id.clone());
    BaseFile { partition, name, file_id, instant, size: stat.file_size_in_bytes }
}

/// A view of these files, a file replacing an earlier one of its group.
pub(crate) fn view<'a>(files: impl IntoIterator<Item = &'a BaseFile>) -> FileSystemView {
    let mut view = FileSystemView::default();
    for file in files {
        let slices = view.partitions.entry(file.partition.clone()).or_default();
        slices.retain(|slice| slice.file_id != file.file_id);
        slices.push(slice(file).into());
    }
    view
}

/// A base file without log files.
pub(crate) fn slice(file: &BaseFile) -> FileSlice {
    FileSlice {
        partition: file.partition.clone(),
        file_id: file.file_id.clone(),
        base_instant: file.instant.clone(),
        base_file: Some(file.clone()),
        log_files: Vec::new(),
        pending_compaction: None,
    }
}

/// A stored row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stored {
    pub commit_time: String,
    pub seqno: String,
    pub key: String,
    pub partition: String,
    pub file_name: String,
    pub value: Option<i64>,
}

/// The rows of a file, in order.
pub(crate) fn read(table: &Table, file: &BaseFile) -> Vec<Stored> {
    let (table, file) = (table.clone(), file.clone());
    blocking(move || {
        let reader = Reader::open(&table.storage, &file.path(), file.size).unwrap();
        let mut rows = Vec::new();
        for batch in reader.batches(None, 3).unwrap() {
            let batch = batch.unwrap();
            let text =
                |name: &str, row: usize| batch.column_by_name(name).unwrap().as_string::<i32>().value(row).to_string();
            let values = batch.column_by_name("value").map(|column| column.as_primitive::<Int64Type>().clone());
            rows.extend((0..batch.num_rows()).map(|row| Stored {
                commit_time: text("_hoodie_commit_time", row),
                seqno: text("_hoodie_commit_seqno", row),
                key: text("_hoodie_record_key", row),
                partition: text("_hoodie_partition_path", row),
                file_name: text("_hoodie_file_name", row),
                value: values.as_ref().filter(|v| v.is_valid(row)).map(|v| v.value(row)),
            }));
        }
        rows
    })
}
