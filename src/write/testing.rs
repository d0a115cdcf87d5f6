//! What the tests of this room stand on.

use super::WriteContext;
use crate::config::{
    BloomConfig, BulkInsertSortMode, IndexConfig, IndexType, Operation, ParquetCodec, ParquetConfig, PayloadClass,
    WriteConfig,
};
use crate::index::testing::arrow_schema;
use crate::record::MergeRule;
use crate::schema::TableSchema;
use crate::storage::Storage;
use crate::table::{InstantTime, Table, TableProperties};

pub(crate) use crate::index::testing::keyed;

/// The writer schema: `id` and `region` (text), `value` (long).
pub(crate) fn schema() -> TableSchema {
    let field = |name: &str, avro: &str| format!(r#"{{"name":"{name}","type":["null","{avro}"],"default":null}}"#);
    TableSchema {
        avro: format!(
            r#"{{"type":"record","name":"row","fields":[{},{},{}]}}"#,
            field("id", "string"),
            field("region", "string"),
            field("value", "long")
        ),
        arrow: arrow_schema(),
    }
}

pub(crate) fn context(table: Table, instant: &str, operation: Operation) -> WriteContext {
    WriteContext {
        table,
        instant: InstantTime::parse(instant).unwrap(),
        config: WriteConfig {
            parquet: ParquetConfig {
                codec: ParquetCodec::Snappy,
                max_file_size: 120 << 20,
                block_size: 120 << 20,
                page_size: 1 << 20,
                dictionary_enabled: true,
                compression_ratio: 0.1,
            },
            bloom: BloomConfig { num_entries: 100, fpp: 0.001, dynamic: true, dynamic_max_entries: 1000 },
            small_file_limit: 100 << 20,
            record_size_estimate: 1024,
            record_size_estimation_threshold: 1.0,
            insert_auto_split: true,
            insert_split_size: 500_000,
            bulk_insert_sort_mode: BulkInsertSortMode::None,
            allow_duplicate_on_inserts: true,
            reconcile_schema: false,
            set_null_for_missing_columns: false,
            allow_column_drop: false,
            workers: 2,
        },
        index: IndexConfig { index_type: IndexType::Simple, update_partition_path: true },
        operation,
        rule: MergeRule(PayloadClass::OverwriteWithLatest),
        ordering_field: Some("value".to_string()),
        schema: schema(),
        average_record_size: 1024,
        cancel: Default::default(),
        rows_written: Default::default(),
    }
}

/// For what touches no files.
pub(crate) fn context_without_table(operation: Operation) -> WriteContext {
    let storage = Storage::open(&std::env::temp_dir().to_string_lossy()).unwrap();
    let table = Table { storage, properties: TableProperties::default(), zone_override: None };
    context(table, "20240102000000000", operation)
}
