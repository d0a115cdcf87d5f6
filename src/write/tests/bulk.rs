use crate::config::{BulkInsertSortMode, KeyConfig, KeyGeneratorClass, Operation};
use crate::index::testing::arrow_schema;
use crate::record::{KeyGenerator, RecordOptions};
use crate::schema::TableSchema;
use crate::table::Table;
use crate::write::testing::{self, Stored};
use crate::write::{Error, WriteContext, WriteStatus, bulk_insert};
use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const MODES: [BulkInsertSortMode; 3] =
    [BulkInsertSortMode::None, BulkInsertSortMode::PartitionSort, BulkInsertSortMode::GlobalSort];

fn context(table: &Table, mode: BulkInsertSortMode, workers: usize) -> WriteContext {
    let mut context = testing::context(table.clone(), "20240102000000000", Operation::BulkInsert);
    context.config.bulk_insert_sort_mode = mode;
    context.config.workers = workers;
    context
}

fn keys(schema: &TableSchema) -> KeyGenerator {
    let config = KeyConfig {
        generator: KeyGeneratorClass::Simple,
        record_key_fields: vec!["id".to_string()],
        partition_fields: vec!["region".to_string()],
        hive_style: false,
        url_encode: false,
        consistent_logical_timestamp: false,
        timestamp: None,
    };
    KeyGenerator::new(&config, RecordOptions::default(), &schema.arrow).unwrap()
}

/// `count` rows of value `from`, `from` + 1, …; keys in no order, partition by value.
fn batch(from: i64, count: i64, partitions: i64) -> RecordBatch {
    let values: Vec<i64> = (from..from + count).collect();
    let ids = StringArray::from_iter_values(values.iter().map(|v| format!("k{:05}", v * 7919 % 100_003)));
    let regions = StringArray::from_iter_values(values.iter().map(|v| format!("p{}", v % partitions)));
    let columns: Vec<ArrayRef> = vec![Arc::new(ids), Arc::new(regions), Arc::new(Int64Array::from(values))];
    RecordBatch::try_new(arrow_schema(), columns).unwrap()
}

fn piece(batches: Vec<Result<RecordBatch, DataFusionError>>) -> SendableRecordBatchStream {
    Box::pin(RecordBatchStreamAdapter::new(arrow_schema(), futures::stream::iter(batches)))
}

fn written(context: &WriteContext, pieces: Vec<SendableRecordBatchStream>) -> Result<Vec<WriteStatus>, Error> {
    let keys = keys(&context.schema);
    testing::runtime().block_on(bulk_insert(Arc::new(context.clone()), pieces, keys))
}

fn rows(table: &Table, statuses: &[WriteStatus]) -> Vec<Vec<Stored>> {
    statuses.iter().map(|status| testing::read(table, &testing::file(status))).collect()
}

#[test]
fn every_row_is_written_once_into_its_partition() {
    for mode in MODES {
        let (_folder, table) = testing::table();
        let context = context(&table, mode, 2);
        let pieces = (0..3).map(|at| piece(vec![Ok(batch(at * 40, 20, 5)), Ok(batch(at * 40 + 20, 20, 5))])).collect();
        let statuses = written(&context, pieces).unwrap();
        let files = rows(&table, &statuses);
        let mut values: Vec<i64> = files.iter().flatten().map(|row| row.value.unwrap()).collect();
        values.sort();
        assert_eq!(values, (0..120).collect::<Vec<_>>(), "{mode:?}");
        for (status, rows) in statuses.iter().zip(&files) {
            let stat = &status.stat;
            assert_eq!((stat.num_writes, stat.num_inserts), (rows.len() as u64, rows.len() as u64), "{mode:?}");
            for row in rows {
                assert_eq!(row.partition, format!("p{}", row.value.unwrap() % 5), "{mode:?}");
                assert_eq!(row.partition, stat.partition_path, "{mode:?}");
            }
        }
        assert_eq!(context.rows_written.load(Ordering::Relaxed), 120, "{mode:?}");
    }
}

#[test]
fn a_worker_makes_one_file_a_partition_and_sort_modes_sort_it() {
    for mode in MODES {
        let (_folder, table) = testing::table();
        let pieces = (0..4).map(|at| piece(vec![Ok(batch(at * 50, 50, 3))])).collect();
        let statuses = written(&context(&table, mode, 1), pieces).unwrap();
        let partitions: Vec<&str> = statuses.iter().map(|status| status.stat.partition_path.as_str()).collect();
        assert_eq!(partitions, ["p0", "p1", "p2"], "{mode:?}");
        let sorted = rows(&table, &statuses).iter().all(|rows| rows.is_sorted_by_key(|row| row.key.clone()));
        assert_eq!(sorted, mode != BulkInsertSortMode::None, "{mode:?}");
    }
}

#[test]
fn global_sort_writes_a_partition_by_one_worker() {
    let (_folder, table) = testing::table();
    let pieces = (0..4).map(|at| piece(vec![Ok(batch(at * 50, 50, 7))])).collect();
    let statuses = written(&context(&table, BulkInsertSortMode::GlobalSort, 3), pieces).unwrap();
    let partitions: BTreeSet<&str> = statuses.iter().map(|status| status.stat.partition_path.as_str()).collect();
    assert_eq!((statuses.len(), partitions.len()), (7, 7));
}

#[test]
fn full_files_are_followed_by_the_next_of_the_same_prefix() {
    for mode in MODES {
        let (_folder, table) = testing::table();
        let mut context = context(&table, mode, 1);
        context.config.parquet.max_file_size = 10_000;
        let statuses = written(&context, vec![piece(vec![Ok(batch(0, 3000, 2))])]).unwrap();
        let mut files: BTreeMap<(&str, &str), Vec<u32>> = BTreeMap::new();
        for status in &statuses {
            let (prefix, number) = status.stat.file_id.rsplit_once('-').unwrap();
            let numbers = files.entry((&status.stat.partition_path, prefix)).or_default();
            numbers.push(number.parse().unwrap());
        }
        assert_eq!(files.len(), 2, "one prefix a partition");
        for numbers in files.values() {
            assert!(numbers.len() > 1, "{mode:?}: {numbers:?}");
            assert_eq!(*numbers, (0..numbers.len() as u32).collect::<Vec<_>>());
        }
        assert_eq!(statuses.iter().map(|status| status.stat.num_writes).sum::<u64>(), 3000, "{mode:?}");
        let mut seqnos: Vec<String> = rows(&table, &statuses).into_iter().flatten().map(|row| row.seqno).collect();
        seqnos.sort();
        seqnos.dedup();
        assert_eq!(seqnos.len(), 3000, "{mode:?}: a seqno is given once");
    }
}

#[test]
fn deleted_rows_are_dropped() {
    let schema = TableSchema::from_avro(
        r#"{"type":"record","name":"row","fields":[
            {"name":"id","type":["null","string"],"default":null},
            {"name":"region","type":["null","string"],"default":null},
            {"name":"value","type":["null","long"],"default":null},
            {"name":"_hoodie_is_deleted","type":["null","boolean"],"default":null}]}"#,
    )
    .unwrap();
    for mode in MODES {
        let (_folder, table) = testing::table();
        let mut context = context(&table, mode, 2);
        context.schema = schema.clone();
        let mut columns = batch(0, 4, 2).columns().to_vec();
        columns.push(Arc::new(BooleanArray::from(vec![Some(false), Some(true), Some(true), None])));
        let rows_in = RecordBatch::try_new(schema.arrow.clone(), columns).unwrap();
        let stream = futures::stream::iter(vec![Ok(rows_in)]);
        let piece: SendableRecordBatchStream = Box::pin(RecordBatchStreamAdapter::new(schema.arrow.clone(), stream));
        let statuses = written(&context, vec![piece]).unwrap();
        let mut values: Vec<_> = rows(&table, &statuses).into_iter().flatten().map(|row| row.value.unwrap()).collect();
        values.sort();
        assert_eq!(values, [0, 3], "{mode:?}");
    }
}

#[test]
fn no_rows_no_files() {
    for mode in MODES {
        let (_folder, table) = testing::table();
        assert_eq!(written(&context(&table, mode, 2), vec![]).unwrap(), [], "{mode:?}");
        assert_eq!(written(&context(&table, mode, 2), vec![piece(vec![])]).unwrap(), [], "{mode:?}");
    }
}

#[test]
fn failures_of_the_rows_are_passed_on() {
    for mode in MODES {
        let (_folder, table) = testing::table();
        let torn = DataFusionError::Execution("torn".to_string());
        let failure = written(&context(&table, mode, 2), vec![piece(vec![Ok(batch(0, 5, 2)), Err(torn)])]).unwrap_err();
        assert_eq!(failure.code(), "write-input", "{mode:?}");
        assert!(failure.to_string().contains("torn"), "{mode:?}: {failure}");

        let mut columns = batch(0, 1, 1).columns().to_vec();
        columns[0] = Arc::new(StringArray::from(vec![None::<&str>]));
        let no_key = RecordBatch::try_new(arrow_schema(), columns).unwrap();
        let failure = written(&context(&table, mode, 2), vec![piece(vec![Ok(no_key)])]).unwrap_err();
        assert_eq!(failure.code(), "record-null-key", "{mode:?}: {failure}");

        let cancelled = context(&table, mode, 2);
        cancelled.cancel.cancel();
        let failure = written(&cancelled, vec![piece(vec![Ok(batch(0, 5, 2))])]).unwrap_err();
        assert_eq!(failure.code(), "write-cancelled", "{mode:?}: {failure}");
    }
}

#[test]
fn a_failure_stops_the_other_workers() {
    for mode in MODES {
        let (_folder, table) = testing::table();
        let endless =
            RecordBatchStreamAdapter::new(arrow_schema(), futures::stream::repeat_with(|| Ok(batch(0, 5, 2))));
        let torn = DataFusionError::Execution("torn".to_string());
        let failure = written(&context(&table, mode, 2), vec![Box::pin(endless), piece(vec![Err(torn)])]).unwrap_err();
        assert!(failure.to_string().contains("torn"), "{mode:?}: {failure}");
    }
}
