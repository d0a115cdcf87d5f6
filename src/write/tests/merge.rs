use crate::config::{Operation, ParquetCodec, PayloadClass};
use crate::record::{KeyedBatch, MergeRule, RowRef};
use crate::schema::TableSchema;
use crate::table::base_file::{KeyFooter, Reader};
use crate::table::{BaseFile, InstantTime, MarkerType, Table};
use crate::write::create::create;
use crate::write::data_file::DataFile;
use crate::write::merge::{MergeTask, merge};
use crate::write::testing::{self, Stored, blocking, keyed};
use crate::write::{Error, WriteContext, WriteStatus, finalize};
use arrow::array::Array;
use parquet::basic::Compression;
use parquet::file::metadata::RowGroupMetaData;
use proptest::prelude::*;
use std::sync::Arc;

const OLD: &str = "20240101000000000";
const NEW: &str = "20240102000000000";

fn rows(count: usize) -> Vec<RowRef> {
    (0..count as u32).map(|row| RowRef { batch: 0, row }).collect()
}

/// Writes one file of new records.
fn stored(context: WriteContext, batch: KeyedBatch) -> BaseFile {
    let count = batch.keys.len();
    let statuses = blocking(move || create(testing::run(context), &[batch], "p", None, &rows(count))).unwrap();
    assert_eq!(statuses.len(), 1);
    testing::file(&statuses[0])
}

/// Writes one file of new records, each of `groups` as a row group.
fn stored_groups(context: WriteContext, groups: &[Vec<(&str, i64)>]) -> BaseFile {
    let batch =
        |group: &Vec<(&str, i64)>| keyed(&group.iter().map(|(key, value)| (*key, "p", *value)).collect::<Vec<_>>());
    let batches: Vec<KeyedBatch> = groups.iter().map(batch).collect();
    let status = blocking(move || {
        let mut file = DataFile::create(&testing::run(context), "p", "group", MarkerType::Create).unwrap();
        for batch in batches {
            file.append(batch.keys.clone(), batch.rows.columns()).unwrap();
            file.flush_row_group().unwrap();
        }
        file.finish().unwrap()
    });
    testing::file(&status)
}

fn stored_rows(table: &Table, rows: &[(&str, i64)]) -> BaseFile {
    let rows: Vec<_> = rows.iter().map(|(key, value)| (*key, "p", *value)).collect();
    stored(testing::context(table.clone(), OLD, Operation::Insert), keyed(&rows))
}

/// Merges all rows of `batch` except the last `moved`, which only delete.
fn merged(
    context: WriteContext,
    base: &BaseFile,
    batch: KeyedBatch,
    moved: usize,
    keeps_duplicates: bool,
) -> Result<WriteStatus, Error> {
    merged_with_new(context, base, batch, 0, moved, keeps_duplicates)
}

/// The same; the index has looked for the `new` rows before those.
fn merged_with_new(
    context: WriteContext,
    base: &BaseFile,
    batch: KeyedBatch,
    new: usize,
    moved: usize,
    keeps_duplicates: bool,
) -> Result<WriteStatus, Error> {
    let mut task = MergeTask::new(testing::slice(base).into(), keeps_duplicates);
    task.rows = rows(batch.keys.len());
    task.moved_away = task.rows.split_off(batch.keys.len() - moved);
    task.new_rows = new;
    blocking(move || merge(&testing::run(context), &Arc::new(vec![batch]), task))
}

fn context(table: &Table, payload: PayloadClass) -> WriteContext {
    let mut context = testing::context(table.clone(), NEW, Operation::Upsert);
    context.rule = MergeRule(payload);
    context
}

#[test]
fn untouched_rows_keep_commit_time_and_seqno_and_get_the_new_file_name() {
    let (_folder, table) = testing::table();
    let base = stored_rows(&table, &[("a", 1), ("b", 2), ("c", 3), ("d", 4)]);
    let mut batch = keyed(&[("b", "p", 20), ("c", "p", 30), ("new", "p", 50)]);
    batch.deleted = Some(vec![false, true, false].into());
    let status = merged(context(&table, PayloadClass::OverwriteWithLatest), &base, batch, 0, false).unwrap();

    let file = testing::file(&status);
    assert_eq!((&file.file_id, file.instant.as_str()), (&base.file_id, NEW));
    let row = |commit_time: &str, seqno: &str, key: &str, value| Stored {
        commit_time: commit_time.to_string(),
        seqno: format!("{commit_time}_{seqno}"),
        key: key.to_string(),
        partition: "p".to_string(),
        file_name: file.name.clone(),
        value: Some(value),
    };
    assert_eq!(
        testing::read(&table, &file),
        [row(OLD, "0_0", "a", 1), row(NEW, "0_1", "b", 20), row(OLD, "0_3", "d", 4), row(NEW, "0_3", "new", 50)]
    );
    let stat = &status.stat;
    assert_eq!(stat.prev_commit, OLD);
    assert_eq!((stat.num_writes, stat.num_update_writes, stat.num_inserts, stat.num_deletes), (4, 1, 1, 1));
    assert_eq!(stat.path.as_deref(), Some(file.path().as_str()));
    assert_eq!(stat.total_write_bytes, stat.file_size_in_bytes);
}

#[test]
fn a_group_whose_rows_are_all_deleted_becomes_a_file_without_rows() {
    let (_folder, table) = testing::table();
    let base = stored_rows(&table, &[("a", 1)]);
    let mut batch = keyed(&[("a", "p", 2)]);
    batch.deleted = Some(vec![true].into());
    let status = merged(context(&table, PayloadClass::OverwriteWithLatest), &base, batch, 0, false).unwrap();
    assert_eq!((status.stat.num_writes, status.stat.num_deletes), (0, 1));
    assert!(status.stat.file_size_in_bytes > 0);
    assert_eq!(testing::read(&table, &testing::file(&status)), []);
}

#[test]
fn rows_of_an_older_schema_get_nulls() {
    let (_folder, table) = testing::table();
    let mut old = testing::context(table.clone(), OLD, Operation::Insert);
    old.schema = TableSchema::from_avro(
        r#"{"type":"record","name":"row","fields":[{"name":"id","type":["null","string"],"default":null}]}"#,
    )
    .unwrap();
    let mut batch = keyed(&[("a", "p", 1), ("b", "p", 2)]);
    batch.rows = batch.rows.project(&[0]).unwrap();
    let base = stored(old, batch);
    let status =
        merged(context(&table, PayloadClass::DefaultHoodieRecord), &base, keyed(&[("b", "p", 9)]), 0, false).unwrap();
    let rows = testing::read(&table, &testing::file(&status));
    let values: Vec<_> = rows.iter().map(|row| (row.key.as_str(), row.value)).collect();
    assert_eq!(values, [("a", None), ("b", Some(9))]);
}

#[test]
fn a_lost_base_file_is_named() {
    let (_folder, table) = testing::table();
    let mut base = stored_rows(&table, &[("a", 1)]);
    base.name = format!("gone-0_0-0-0_{OLD}.parquet");
    let failure = merged(context(&table, PayloadClass::OverwriteWithLatest), &base, keyed(&[("a", "p", 2)]), 0, false);
    let message = failure.unwrap_err().to_string();
    assert!(message.contains(&base.path()), "{message}");
}

#[test]
fn files_with_a_marker_and_no_status_are_deleted_before_the_commit() {
    let (folder, table) = testing::table();
    let base = stored_rows(&table, &[("a", 1)]);
    let context = context(&table, PayloadClass::OverwriteWithLatest);
    let run = testing::run(context.clone());
    let old = base.clone();
    let (kept, lost) = blocking(move || {
        let batches = Arc::new(vec![keyed(&[("a", "p", 2)])]);
        let write = || {
            let mut task = MergeTask::new(testing::slice(&old).into(), false);
            task.rows = rows(1);
            merge(&run, &batches, task).unwrap()
        };
        (write(), write())
    });
    testing::runtime().block_on(finalize(&context, std::slice::from_ref(&kept))).unwrap();
    let exists = |file: &BaseFile| folder.path().join(file.path()).exists();
    assert!(exists(&testing::file(&kept)) && exists(&base));
    assert!(!exists(&testing::file(&lost)));
}

/// The merge as Hudi's sentences have it, row by row.
fn model(stored: &[(String, i64)], incoming: &[Incoming], rule: PayloadClass) -> (Vec<(String, i64, bool)>, [u64; 3]) {
    let (mut rows, mut updates, mut inserts, mut deletes) = (Vec::new(), 0, 0, 0);
    for (key, value) in stored {
        match incoming.iter().find(|row| row.key == *key) {
            None => rows.push((key.clone(), *value, false)),
            Some(new) if new.moved => deletes += 1,
            Some(new) if rule == PayloadClass::DefaultHoodieRecord && *value > new.value => {
                rows.push((key.clone(), *value, false));
            }
            Some(new) if new.deleted => deletes += 1,
            Some(new) => {
                rows.push((key.clone(), new.value, true));
                updates += 1;
            }
        }
    }
    for new in incoming {
        if !new.moved && !new.deleted && !stored.iter().any(|(key, _)| *key == new.key) {
            rows.push((new.key.clone(), new.value, true));
            inserts += 1;
        }
    }
    (rows, [updates, inserts, deletes])
}

#[derive(Debug, Clone)]
struct Incoming {
    key: String,
    value: i64,
    deleted: bool,
    moved: bool,
}

fn incoming() -> impl Strategy<Value = Vec<Incoming>> {
    let row = (0..5i64, prop::bool::weighted(0.3), prop::bool::weighted(0.2));
    prop::collection::btree_map(0..8u8, row, 1..8).prop_map(|rows| {
        let mut rows: Vec<Incoming> = rows
            .into_iter()
            .map(|(key, (value, deleted, moved))| Incoming { key: format!("k{key}"), value, deleted, moved })
            .collect();
        rows.sort_by_key(|row| row.moved);
        rows
    })
}

/// What the stored rows of a case are like.
#[derive(Debug, Clone)]
struct StoredShape {
    sorted: bool,
    rows_in_group: usize,
    /// Row groups of a few hundred bytes are large, small, tiny.
    block_size: u64,
    codecs: [ParquetCodec; 2],
    dynamic_bloom: bool,
}

fn stored_shape() -> impl Strategy<Value = StoredShape> {
    let codec = || prop::sample::select(vec![ParquetCodec::Snappy, ParquetCodec::Gzip, ParquetCodec::Uncompressed]);
    let block_size = prop::sample::select(vec![1, 16 << 10, 120 << 20]);
    (any::<bool>(), 1..6usize, block_size, [codec(), codec()], any::<bool>()).prop_map(
        |(sorted, rows_in_group, block_size, codecs, dynamic_bloom)| StoredShape {
            sorted,
            rows_in_group,
            block_size,
            codecs,
            dynamic_bloom,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn merge_agrees_with_the_model(
        stored in prop::collection::vec((0..8u8, 0..5i64), 1..12),
        mut incoming in incoming(),
        shape in stored_shape(),
        looked_for: bool,
        by_ordering: bool,
    ) {
        let rule = if by_ordering { PayloadClass::DefaultHoodieRecord } else { PayloadClass::OverwriteWithLatest };
        let mut stored: Vec<(String, i64)> =
            stored.into_iter().map(|(key, value)| (format!("k{key}"), value)).collect();
        if shape.sorted {
            stored.sort();
        }
        let is_new = |row: &Incoming| !row.moved && !stored.iter().any(|(key, _)| *key == row.key);
        incoming.sort_by_key(|row| (row.moved, is_new(row)));
        let new = if looked_for { incoming.iter().filter(|row| is_new(row)).count() } else { 0 };

        let (_folder, table) = testing::table();
        let [mut old, mut context] =
            [testing::context(table.clone(), OLD, Operation::Insert), context(&table, rule)];
        for (context, codec) in [&mut old, &mut context].into_iter().zip(shape.codecs) {
            context.config.parquet.codec = codec;
            context.config.parquet.block_size = shape.block_size;
            context.config.bloom.dynamic = shape.dynamic_bloom;
        }
        let rows: Vec<_> = stored.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        let groups: Vec<_> = rows.chunks(shape.rows_in_group).map(<[_]>::to_vec).collect();
        let base = stored_groups(old, &groups);
        let mut batch = keyed(&incoming.iter().map(|row| (row.key.as_str(), "p", row.value)).collect::<Vec<_>>());
        batch.deleted = Some(incoming.iter().map(|row| row.deleted).collect::<Vec<_>>().into());
        let moved = incoming.iter().filter(|row| row.moved).count();
        let status = merged_with_new(context.clone(), &base, batch, new, moved, false).unwrap();

        let (want, counts) = model(&stored, &incoming, rule);
        let file = testing::file(&status);
        let got = testing::read(&table, &file);
        let rows: Vec<_> = got.iter().map(|row| (row.key.clone(), row.value.unwrap(), row.commit_time == NEW)).collect();
        prop_assert_eq!(rows, want);
        let stat = status.stat;
        prop_assert_eq!([stat.num_update_writes, stat.num_inserts, stat.num_deletes], counts);
        prop_assert_eq!(stat.num_writes, got.len() as u64);
        for (position, row) in got.iter().enumerate() {
            prop_assert_eq!(&row.file_name, &file.name);
            if row.commit_time == NEW {
                prop_assert_eq!(&row.seqno, &format!("{NEW}_0_{position}"));
            }
        }

        // The index in the footer is that of a file whose rows are all written.
        let rows: Vec<_> = got.iter().map(|row| (row.key.as_str(), row.value.unwrap())).collect();
        context.instant = InstantTime::parse("20240103000000000").unwrap();
        let naive = stored_groups(context, &[rows]);
        let [got, want] = [&file, &naive].map(|file| footer(&table, file));
        prop_assert_eq!((got.min_key, got.max_key), (want.min_key, want.max_key));
        prop_assert!(got.bloom == want.bloom);
    }
}

fn reader<R: Send + 'static>(table: &Table, file: &BaseFile, ask: impl FnOnce(Reader) -> R + Send + 'static) -> R {
    let (storage, file) = (table.storage.clone(), file.clone());
    blocking(move || ask(Reader::open(&storage, &file.path(), file.size).unwrap()))
}

fn footer(table: &Table, file: &BaseFile) -> KeyFooter {
    reader(table, file, |reader| reader.key_footer().unwrap())
}

/// Rows and key range of each row group.
fn row_groups(table: &Table, file: &BaseFile) -> Vec<(u64, String)> {
    let groups = reader(table, file, |reader| reader.row_groups());
    let text = |(min, max): (Vec<u8>, Vec<u8>)| [min, max].map(|key| String::from_utf8(key).unwrap()).join("-");
    groups.into_iter().map(|group| (group.rows, group.keys.map_or_else(String::new, text))).collect()
}

#[test]
fn an_insert_into_a_small_file_adds_rows_whatever_keys_it_holds() {
    let (_folder, table) = testing::table();
    let base = stored_rows(&table, &[("a", 1)]);
    let batch = keyed(&[("a", "p", 2), ("a", "p", 3)]);
    let status = merged(context(&table, PayloadClass::OverwriteWithLatest), &base, batch, 0, true).unwrap();
    let values: Vec<_> = testing::read(&table, &testing::file(&status)).iter().map(|row| row.value).collect();
    assert_eq!(values, [Some(1), Some(2), Some(3)]);
    assert_eq!((status.stat.num_inserts, status.stat.num_update_writes), (2, 0));
}

#[test]
fn without_duplicates_the_last_incoming_row_of_a_key_wins() {
    let (_folder, table) = testing::table();
    let base = stored_rows(&table, &[("a", 1)]);
    let batch = keyed(&[("a", "p", 2), ("b", "p", 3), ("a", "p", 4), ("b", "p", 5)]);
    let status = merged(context(&table, PayloadClass::OverwriteWithLatest), &base, batch, 0, false).unwrap();
    let values: Vec<_> = testing::read(&table, &testing::file(&status)).iter().map(|row| row.value).collect();
    assert_eq!(values, [Some(4), Some(5)]);
    assert_eq!((status.stat.num_inserts, status.stat.num_update_writes), (1, 1));
}

/// Three row groups of sorted keys under a block size by which each is large.
fn three_groups() -> (tempfile::TempDir, Table, BaseFile) {
    let (folder, table) = testing::table();
    let mut old = testing::context(table.clone(), OLD, Operation::Insert);
    old.config.parquet.codec = ParquetCodec::Gzip;
    let base = stored_groups(old, &[vec![("a", 1), ("b", 2)], vec![("c", 3), ("d", 4)], vec![("e", 5), ("f", 6)]]);
    (folder, table, base)
}

#[test]
fn columns_are_copied_where_nothing_of_them_changes() {
    /// Columns that are written anew.
    const NONE: &[&str] = &["_hoodie_file_name"];
    const CHANGED: &[&str] = &["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name", "value"];
    const SAME_VALUE: &[&str] = &["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"];
    const ALL: &[&str] = &["all"];
    for (name, incoming, deleted, new, want) in [
        ("an update", &["d"][..], false, 0, &[(2, "a-b", NONE), (2, "c-d", CHANGED), (2, "e-f", NONE)][..]),
        (
            "an update that changes little",
            &["f"],
            false,
            0,
            &[(2, "a-b", NONE), (2, "c-d", NONE), (2, "e-f", SAME_VALUE)],
        ),
        ("a delete", &["d"], true, 0, &[(2, "a-b", NONE), (1, "c-c", ALL), (2, "e-f", NONE)]),
        (
            "new rows",
            &["bb", "d0"],
            false,
            2,
            &[(2, "a-b", NONE), (2, "c-d", NONE), (2, "e-f", NONE), (2, "bb-d0", ALL)],
        ),
        (
            "a key that is not there",
            &["bb"],
            false,
            0,
            &[(2, "a-b", NONE), (2, "c-d", NONE), (2, "e-f", NONE), (1, "bb-bb", ALL)],
        ),
        ("two", &["a", "c"], false, 0, &[(2, "a-b", CHANGED), (2, "c-d", CHANGED), (2, "e-f", NONE)]),
    ] {
        let (folder, table, base) = three_groups();
        let mut context = context(&table, PayloadClass::OverwriteWithLatest);
        context.config.parquet.block_size = 1;
        let mut batch = keyed(&incoming.iter().map(|key| (*key, "p", 6)).collect::<Vec<_>>());
        batch.deleted = Some(vec![deleted; incoming.len()].into());
        let status = merged_with_new(context, &base, batch, new, 0, false).unwrap();
        let file = testing::file(&status);
        // What is written now is not gzipped.
        let metadata = std::fs::File::open(folder.path().join(file.path())).unwrap();
        let metadata = parquet::file::metadata::ParquetMetaDataReader::new().parse_and_finish(&metadata).unwrap();
        let written = |group: &RowGroupMetaData| -> Vec<String> {
            let columns = group.columns().iter();
            let written: Vec<String> = columns
                .filter(|column| !matches!(column.compression(), Compression::GZIP(_)))
                .map(|column| column.column_path().string())
                .collect();
            if written.len() == group.num_columns() { vec!["all".to_string()] } else { written }
        };
        let groups = row_groups(&table, &file);
        let got: Vec<_> = groups.iter().zip(metadata.row_groups()).map(|((r, k), g)| (*r, &**k, written(g))).collect();
        let want: Vec<_> =
            want.iter().map(|(r, k, columns)| (*r, *k, columns.iter().map(|c| c.to_string()).collect())).collect();
        assert_eq!(got, want, "{name}");
    }
}

#[test]
fn inserts_by_and_by_do_not_pile_up_row_groups() {
    let (_folder, table, mut base) = three_groups();
    for round in 0..20 {
        let context = testing::context(table.clone(), &format!("202401020000000{round:02}"), Operation::Insert);
        let status = merged(context, &base, keyed(&[(&format!("new{round}"), "p", 1)]), 0, true).unwrap();
        base = testing::file(&status);
    }
    assert_eq!(testing::read(&table, &base).len(), 26);
    assert_eq!(row_groups(&table, &base).len(), 1);
}
