use crate::config::{LogBlockFormat, Operation, PayloadClass};
use crate::index::testing::arrow_schema;
use crate::record::{KeyedBatch, MergeRule, RowRef};
use crate::table::log_file::{BlockKind, LogReader, OrderingValue, avro_records, decode_deletes};
use crate::table::{BaseFile, FileSlice, InstantTime, LogFile, LogFileName, MarkerType, Markers, Table};
use crate::write::append::{AppendTask, append};
use crate::write::testing::{self, blocking, keyed, merge_on_read};
use crate::write::{WriteContext, WriteStatus};
use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use std::sync::Arc;

const BASE: &str = "20240101000000000";
const NOW: &str = "20240103000000000";

fn instant(text: &str) -> InstantTime {
    InstantTime::parse(text).unwrap()
}

fn table() -> (tempfile::TempDir, Table) {
    let (folder, mut table) = testing::table();
    table.properties = merge_on_read();
    (folder, table)
}

fn context(table: &Table, rule: PayloadClass) -> WriteContext {
    let mut context = testing::context(table.clone(), NOW, Operation::Upsert);
    context.rule = MergeRule(rule);
    context
}

fn log(on: &str, version: u32) -> LogFile {
    let token = Some("0-0-0".to_string());
    let name = LogFileName { file_id: "f-0".into(), base_instant: instant(on), version, token, cdc: false };
    LogFile { name, size: 1 }
}

/// Group `f-0` of partition `p`, with a base file.
fn slice(log_files: Vec<LogFile>) -> FileSlice {
    let base = BaseFile {
        partition: "p".into(),
        name: format!("f-0_0-0-0_{BASE}.parquet"),
        file_id: "f-0".into(),
        instant: instant(BASE),
        size: 1,
    };
    FileSlice { log_files, ..testing::slice(&base) }
}

/// Appends all rows of the batch, the last `moved` as such that have left for another partition.
fn appended(context: &WriteContext, slice: FileSlice, batch: KeyedBatch, moved: usize) -> Vec<WriteStatus> {
    let mut rows: Vec<RowRef> = (0..batch.keys.len() as u32).map(|row| RowRef { batch: 0, row }).collect();
    let moved_away = rows.split_off(rows.len() - moved);
    let context = context.clone();
    let task = AppendTask { slice: slice.into(), rows, moved_away };
    blocking(move || append(&testing::run(context), &[batch], &task)).unwrap()
}

/// A block in short.
#[derive(Debug, PartialEq)]
enum Read {
    Records(usize),
    Parquet,
    Deletes(Vec<(&'static str, OrderingValue)>),
}

/// The blocks of the file that a status speaks of. Keys are among `keys`.
fn blocks(table: &Table, status: &WriteStatus, keys: &[&'static str]) -> Vec<Read> {
    let (table, stat, keys) = (table.clone(), status.stat.clone(), keys.to_vec());
    blocking(move || {
        let mut reader = LogReader::open(&table.storage, stat.path.as_ref().unwrap(), stat.file_size_in_bytes);
        let blocks: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        let mut read = Vec::new();
        for block in &blocks {
            assert_eq!(block.header.instant(), Some(&instant(NOW)));
            assert!(block.header.schema().unwrap().contains("_hoodie_record_key"));
            let content = reader.content(block).unwrap();
            read.push(match block.kind {
                BlockKind::AvroData => Read::Records(avro_records(&content).unwrap().count()),
                BlockKind::ParquetData if content.starts_with(b"PAR1") && content.ends_with(b"PAR1") => Read::Parquet,
                BlockKind::Delete => Read::Deletes(
                    decode_deletes(&content)
                        .unwrap()
                        .map(|delete| {
                            let delete = delete.unwrap();
                            assert_eq!(delete.partition, "p", "where the stored record is");
                            (*keys.iter().find(|key| **key == delete.key).unwrap(), delete.ordering)
                        })
                        .collect(),
                ),
                other => panic!("a block of kind {other:?}"),
            });
        }
        read
    })
}

/// Rows `a` (an update), `b` (reborn: without ordering value), `c` (says that it is deleted), `d` (a tombstone) and `e`.
fn changes() -> KeyedBatch {
    let mut batch = keyed(&[("a", "p", 1), ("b", "p", 2), ("c", "p", 3), ("d", "elsewhere", 4), ("e", "elsewhere", 5)]);
    let ordering: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3), None, Some(5)]));
    batch.ordering = Some(ordering);
    batch.deleted = Some(vec![false, false, true, true, false].into());
    batch
}

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];

#[test]
fn blocks_stand_in_the_order_in_which_they_must_be_read() {
    let (long, arrival) = (OrderingValue::Long, OrderingValue::Int(0));
    let delete = |key, value: &OrderingValue| Read::Deletes(vec![(key, value.clone())]);
    // Where arrival decides, what moves away goes however new it is; a delete is a delete.
    let by_arrival = vec![
        delete("b", &arrival),
        Read::Records(2),
        delete("c", &long(3)),
        Read::Deletes(vec![("d", arrival.clone()), ("e", arrival.clone())]),
    ];
    // Where ordering values decide, a row that says it is deleted is compared like any other.
    let by_value = vec![delete("b", &arrival), Read::Records(3), delete("e", &long(5)), delete("d", &arrival)];
    for (rule, want, counts) in [
        (PayloadClass::OverwriteWithLatest, by_arrival, (2, 2, 4)),
        (PayloadClass::DefaultHoodieRecord, by_value, (3, 2, 4)),
    ] {
        let (_folder, table) = table();
        let statuses = appended(&context(&table, rule), slice(vec![]), changes(), 1);
        let [status] = &statuses[..] else { panic!("{statuses:?}") };
        assert_eq!(blocks(&table, status, &KEYS), want, "{rule:?}");
        let stat = &status.stat;
        assert_eq!((stat.num_writes, stat.num_update_writes, stat.num_deletes), counts, "{rule:?}");
    }
}

#[test]
fn a_table_without_an_ordering_field_deletes_by_arrival() {
    let (_folder, mut table) = table();
    table.properties = crate::table::TableProperties::default();
    let statuses = appended(&context(&table, PayloadClass::OverwriteWithLatest), slice(vec![]), changes(), 0);
    let deletes: Vec<Read> = blocks(&table, &statuses[0], &KEYS).into_iter().skip(2).collect();
    assert_eq!(deletes, [Read::Deletes(vec![("c", OrderingValue::Int(0)), ("d", OrderingValue::Int(0))])]);
}

#[test]
fn a_log_file_is_marked_and_told_of_as_hudi_tells_of_its_own() {
    let (_folder, table) = table();
    let context = context(&table, PayloadClass::OverwriteWithLatest);
    let before = vec![log(BASE, 1), log(BASE, 4)];
    let names: Vec<String> = before.iter().map(|log| log.name.to_string()).collect();
    let statuses = appended(&context, slice(before), keyed(&[("a", "p", 1), ("b", "p", 2)]), 0);
    let [WriteStatus { stat }] = &statuses[..] else { panic!("{statuses:?}") };
    let name = format!(".f-0_{BASE}.log.5_0-0-0");
    assert_eq!((stat.path.as_deref(), stat.partition_path.as_str()), (Some(&*format!("p/{name}")), "p"));
    assert_eq!((stat.file_id.as_str(), stat.prev_commit.as_str()), ("f-0", BASE));
    assert_eq!((stat.num_writes, stat.num_update_writes, stat.num_inserts, stat.num_deletes), (2, 2, 0, 0));
    assert!(stat.file_size_in_bytes > 0 && stat.total_write_bytes == stat.file_size_in_bytes);
    let told = stat.log.as_ref().expect("it is a log file");
    assert_eq!((told.version, told.offset, &told.base_file), (5, 0, &format!("f-0_0-0-0_{BASE}.parquet")));
    assert_eq!(*told.log_files, [names, vec![name]].concat());
    let markers = testing::runtime().block_on(Markers::new(&table.storage, &context.instant).list()).unwrap();
    assert_eq!(markers.len(), 1);
    assert_eq!((Some(&markers[0].path), markers[0].marker_type), (stat.path.as_ref(), MarkerType::Append));
    assert!(testing::runtime().block_on(table.storage.size("p/.hoodie_partition_metadata")).unwrap().is_some());
}

#[test]
fn a_group_that_waits_for_its_compaction_gets_a_slice_on_the_compactions_instant() {
    const COMPACTION: &str = "20240102000000000";
    let (_folder, table) = table();
    let context = context(&table, PayloadClass::OverwriteWithLatest);
    for (on_it, version) in [(vec![], 1), (vec![log(COMPACTION, 1)], 2)] {
        let earlier: Vec<String> = on_it.iter().map(|log| log.name.to_string()).collect();
        let log_files = [vec![log(BASE, 1), log(BASE, 2)], on_it].concat();
        let pending = FileSlice { pending_compaction: Some(instant(COMPACTION)), ..slice(log_files) };
        let statuses = appended(&context, pending, keyed(&[("a", "p", 1)]), 0);
        let stat = &statuses[0].stat;
        let name = format!(".f-0_{COMPACTION}.log.{version}_0-0-0");
        assert_eq!((stat.path.as_deref(), stat.prev_commit.as_str()), (Some(&*format!("p/{name}")), COMPACTION));
        let told = stat.log.as_ref().expect("it is a log file");
        assert_eq!((told.version, told.base_file.as_str()), (version, ""), "its base file is still to come");
        assert_eq!(*told.log_files, [earlier, vec![name]].concat());
    }
}

/// `count` rows of a thousand bytes.
fn wide(count: usize) -> KeyedBatch {
    let keys: Vec<String> = (0..count).map(|i| format!("k{i}")).collect();
    let mut batch = keyed(&keys.iter().map(|key| (&**key, "p", 1)).collect::<Vec<_>>());
    let mut columns = batch.rows.columns().to_vec();
    columns[1] = Arc::new(StringArray::from_iter_values((0..count).map(|_| "x".repeat(1000))));
    batch.rows = RecordBatch::try_new(arrow_schema(), columns).unwrap();
    batch
}

#[test]
fn blocks_and_files_end_at_their_sizes() {
    let (_folder, table) = table();
    let mut context = context(&table, PayloadClass::OverwriteWithLatest);
    context.config.log.max_block_size = 20_000;
    context.config.log.max_file_size = 50_000;
    let statuses = appended(&context, slice(vec![log(BASE, 1)]), wide(200), 0);
    let versions: Vec<u32> = statuses.iter().map(|status| status.stat.log.as_ref().unwrap().version).collect();
    assert_eq!(versions, (2..2 + statuses.len() as u32).collect::<Vec<_>>(), "each the next version");
    assert!(statuses.len() >= 3, "{} files of 200 kB", statuses.len());
    let mut records = 0;
    for status in &statuses {
        let read = blocks(&table, status, &[]);
        assert!(read.len() >= 2, "several blocks a file: {read:?}");
        let here = read.iter().map(|block| if let Read::Records(count) = block { *count } else { 0 }).sum::<usize>();
        assert_eq!(status.stat.num_update_writes, here as u64, "each file tells of its own records");
        assert!(status.stat.file_size_in_bytes < 90_000, "{}", status.stat.file_size_in_bytes);
        records += here;
    }
    assert_eq!(records, 200);
    let last = statuses.last().unwrap().stat.log.as_ref().unwrap();
    assert_eq!(last.log_files.len(), 1 + statuses.len(), "all of the slice so far");
}

#[test]
fn deletes_fill_blocks_to_their_size() {
    let (_folder, table) = table();
    let mut context = context(&table, PayloadClass::OverwriteWithLatest);
    // A delete takes 51 bytes at most: its key, its partition, and what is around them.
    context.config.log.max_block_size = 120;
    let mut batch = keyed(&[("a", "p", 1), ("b", "p", 2), ("c", "p", 3), ("d", "p", 4), ("e", "p", 5)]);
    batch.deleted = Some(vec![true; 5].into());
    let statuses = appended(&context, slice(vec![]), batch, 0);
    let long = |key, value| (key, OrderingValue::Long(value));
    let want = [vec![long("a", 1), long("b", 2)], vec![long("c", 3), long("d", 4)], vec![long("e", 5)]];
    assert_eq!(blocks(&table, &statuses[0], &KEYS), want.map(Read::Deletes));
    assert_eq!((statuses.len(), statuses[0].stat.num_deletes), (1, 5));
}

#[test]
fn records_may_be_parquet() {
    let (_folder, table) = table();
    let mut context = context(&table, PayloadClass::OverwriteWithLatest);
    context.config.log.block_format = LogBlockFormat::Parquet;
    let statuses = appended(&context, slice(vec![]), changes(), 0);
    let read = blocks(&table, &statuses[0], &KEYS);
    assert!(matches!(read[..], [Read::Deletes(_), Read::Parquet, Read::Deletes(_), Read::Deletes(_)]), "{read:?}");
    assert_eq!(statuses[0].stat.num_writes, 3);
}

#[test]
fn a_version_that_another_writer_has_just_taken_is_passed_over() {
    let (_folder, table) = table();
    let context = context(&table, PayloadClass::OverwriteWithLatest);
    let taken = format!("p/.f-0_{BASE}.log.1_0-0-0");
    testing::runtime().block_on(table.storage.put(&taken, "theirs".into())).unwrap();
    let statuses = appended(&context, slice(vec![]), keyed(&[("a", "p", 1)]), 0);
    assert_eq!(statuses[0].stat.path, Some(format!("p/.f-0_{BASE}.log.2_0-0-0")));
    assert_eq!(testing::runtime().block_on(table.storage.get(&taken)).unwrap(), "theirs");
}
