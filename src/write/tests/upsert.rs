use crate::config::{IndexType, Operation, PayloadClass};
use crate::index::{KeyCache, StoredOrdering, TagOptions, Tagged, filter_dupes, tag};
use crate::record::{KeyedBatch, MergeRule, RowRef};
use crate::table::{BaseFile, Table};
use crate::write::testing::{self, keyed};
use crate::write::{Error, WriteContext, WriteStatus, assign};
use arrow::array::Array;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

fn rows_of(batches: &[KeyedBatch]) -> Vec<RowRef> {
    let of = |(batch, rows): (usize, &KeyedBatch)| {
        (0..rows.keys.len() as u32).map(move |row| RowRef { batch: batch as u32, row })
    };
    batches.iter().enumerate().flat_map(of).collect()
}

async fn tagged(context: &WriteContext, files: &[BaseFile], batches: Vec<KeyedBatch>) -> Tagged {
    let rows = rows_of(&batches);
    let ordering = StoredOrdering { rule: context.rule, field: "value".to_string() };
    let (index, cache) = (context.index.clone(), context.key_cache.clone());
    let options = TagOptions { index, stored_ordering: Some(ordering), merging: None, workers: 2, cache };
    tag(&context.table, &testing::view(files), options, batches, rows).await.unwrap()
}

async fn upsert(context: &WriteContext, files: &mut Vec<BaseFile>, batches: Vec<KeyedBatch>) -> Vec<WriteStatus> {
    let tagged = tagged(context, files, batches).await;
    let plan = assign(context, tagged, &testing::view(&*files)).unwrap();
    let statuses = plan.execute(Arc::new(context.clone())).await.unwrap();
    for file in statuses.iter().map(testing::file) {
        files.retain(|known| known.file_id != file.file_id);
        files.push(file);
    }
    statuses
}

fn context(table: &Table, round: usize, index: IndexType) -> WriteContext {
    let mut context = testing::context(table.clone(), &format!("2024010200000{round:04}"), Operation::Upsert);
    context.index.index_type = index;
    context
}

#[derive(Debug, Clone)]
struct Row {
    key: u8,
    partition: u8,
    value: i64,
    deleted: bool,
}

/// A round of rows, one a key and partition (`global`: one a key), in two batches.
fn round() -> impl Strategy<Value = Vec<Row>> {
    let row = (0..6u8, 0..3u8, 0..5i64, prop::bool::weighted(0.2));
    let row = row.prop_map(|(key, partition, value, deleted)| Row { key, partition, value, deleted });
    prop::collection::vec(row, 1..8)
}

fn batch(rows: &[Row]) -> KeyedBatch {
    let texts: Vec<_> =
        rows.iter().map(|row| (format!("k{}", row.key), format!("p{}", row.partition), row.value)).collect();
    let mut batch = keyed(&texts.iter().map(|(key, path, value)| (&**key, &**path, *value)).collect::<Vec<_>>());
    batch.deleted = Some(rows.iter().map(|row| row.deleted).collect::<Vec<_>>().into());
    batch
}

/// What a table of a local index holds: (partition, key) → value; of a global one: key → (partition, value).
#[derive(Default)]
struct Model(BTreeMap<(String, String), i64>);

impl Model {
    fn apply(&mut self, row: &Row, global: bool, moving: bool, by_ordering: bool) {
        let (key, mut partition) = (format!("k{}", row.key), format!("p{}", row.partition));
        let stored = match global {
            true => self.0.keys().find(|(_, stored)| *stored == key).cloned(),
            false => Some((partition.clone(), key.clone())).filter(|place| self.0.contains_key(place)),
        };
        if let Some(place) = stored {
            if by_ordering && self.0[&place] > row.value {
                return;
            }
            self.0.remove(&place);
            if !moving {
                partition = place.0;
            }
        }
        if !row.deleted {
            self.0.insert((partition, key), row.value);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn rounds_of_upserts_agree_with_a_map(
        rounds in prop::collection::vec(round(), 1..6),
        index in prop::sample::select(vec![
            IndexType::Simple, IndexType::Bloom, IndexType::GlobalSimple, IndexType::GlobalBloom,
        ]),
        moving: bool,
        by_ordering: bool,
        packing: bool,
        // Bytes of the cache: none, too few for all files, enough.
        cache in prop::sample::select(vec![None, Some(100), Some(300), Some(1 << 20)]),
        // Rounds that another writer makes, who does not know of it.
        others in prop::collection::vec(any::<bool>(), 5),
    ) {
        let (_folder, table) = testing::table();
        let cache = cache.map(|bytes| Arc::new(KeyCache::new(bytes)));
        let mut model = Model::default();
        let mut files = Vec::new();
        for (round, mut rows) in rounds.into_iter().enumerate() {
            let identity = |row: &Row| (row.key, if index.is_global() { 0 } else { row.partition });
            rows.sort_by_key(identity);
            rows.dedup_by_key(|row| identity(row));
            let mut context = context(&table, round, index);
            context.index.update_partition_path = moving;
            context.key_cache = cache.clone().filter(|_| !others[round]);
            context.config.small_file_limit = if packing { 1 << 20 } else { 0 };
            if by_ordering {
                context.rule = MergeRule(PayloadClass::DefaultHoodieRecord);
            }
            for row in &rows {
                model.apply(row, index.is_global(), moving, by_ordering);
            }
            let (first, second) = rows.split_at(rows.len() / 2);
            testing::runtime().block_on(upsert(&context, &mut files, vec![batch(first), batch(second)]));
            let mut got: Vec<_> = files
                .iter()
                .flat_map(|file| testing::read(&table, file))
                .map(|row| ((row.partition, row.key), row.value.unwrap()))
                .collect();
            got.sort();
            prop_assert_eq!(got, model.0.clone().into_iter().collect::<Vec<_>>());
        }
    }
}

#[test]
fn filter_dupes_leaves_rows_whose_key_is_not_stored() {
    let (_folder, table) = testing::table();
    let mut files = Vec::new();
    let runtime = testing::runtime();
    runtime.block_on(upsert(&context(&table, 0, IndexType::Simple), &mut files, vec![keyed(&[("a", "p", 1)])]));
    let incoming = || vec![keyed(&[("a", "p", 2), ("a", "q", 3), ("b", "p", 4)])];
    let positions = |index| -> Vec<u32> {
        let tagged = runtime.block_on(tagged(&context(&table, 1, index), &files, incoming()));
        filter_dupes(&tagged).iter().map(|row| row.row).collect()
    };
    assert_eq!(positions(IndexType::Simple), [1, 2], "q may have the key, too");
    assert_eq!(positions(IndexType::GlobalBloom), [2]);
}

#[test]
fn markers_and_partition_metadata_stand_beside_the_files() {
    let (folder, table) = testing::table();
    let mut files = Vec::new();
    let runtime = testing::runtime();
    let rows = vec![keyed(&[("a", "eu/x", 1), ("b", "us", 2)])];
    runtime.block_on(upsert(&context(&table, 0, IndexType::Simple), &mut files, rows));
    let statuses =
        runtime.block_on(upsert(&context(&table, 1, IndexType::Simple), &mut files, vec![keyed(&[("a", "eu/x", 3)])]));
    let path = statuses[0].stat.path.clone().unwrap();
    assert!(folder.path().join(".hoodie/.temp/20240102000000001").join(format!("{path}.marker.MERGE")).is_file());
    assert!(folder.path().join("eu/x/.hoodie_partition_metadata").is_file());
    assert!(folder.path().join("us/.hoodie_partition_metadata").is_file());
    let first = files.iter().find(|file| file.partition == "us").unwrap().path();
    assert!(folder.path().join(".hoodie/.temp/20240102000000000").join(format!("{first}.marker.CREATE")).is_file());
}

#[test]
fn seqnos_of_one_instant_do_not_collide() {
    let (_folder, table) = testing::table();
    let mut files = Vec::new();
    let mut context = context(&table, 0, IndexType::Simple);
    context.config.insert_auto_split = false;
    context.config.insert_split_size = 2;
    let rows = vec![keyed(&[("a", "p", 1), ("b", "p", 2), ("c", "p", 3), ("d", "q", 4)])];
    testing::runtime().block_on(upsert(&context, &mut files, rows));
    assert_eq!(files.len(), 3);
    let mut seqnos: Vec<String> =
        files.iter().flat_map(|file| testing::read(&table, file)).map(|row| row.seqno).collect();
    seqnos.sort();
    seqnos.dedup();
    assert_eq!(seqnos.len(), 4);
}

#[test]
fn a_cancelled_write_makes_no_file() {
    let (folder, table) = testing::table();
    let context = context(&table, 0, IndexType::Simple);
    context.cancel.cancel();
    let result = testing::runtime().block_on(async {
        let tagged = tagged(&context, &[], vec![keyed(&[("a", "p", 1)])]).await;
        assign(&context, tagged, &testing::view([])).unwrap().execute(Arc::new(context.clone())).await
    });
    assert!(matches!(result, Err(Error::Cancelled)), "{result:?}");
    assert!(!folder.path().join("p").exists());
}
