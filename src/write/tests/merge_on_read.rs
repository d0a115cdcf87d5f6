//! Delta commits, read back merged.

use crate::config::{IndexType, Operation, PayloadClass};
use crate::index::{KeyCache, Merging, StoredOrdering, TagOptions, tag};
use crate::record::{KeyedBatch, MergeRule, RowRef};
use crate::slice::{self, SliceOptions};
use crate::table::{CommitMetadata, FileSlice, FileSystemView, InstantTime, Table};
use crate::write::testing::{self, keyed};
use crate::write::{self, WriteContext, assign};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::Int64Type;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Row,
    /// Says that it is deleted, and has an ordering value.
    Deleted,
    Tombstone,
    /// Came after a tombstone of its key.
    Reborn,
}

#[derive(Debug, Clone)]
struct Row {
    key: u8,
    partition: u8,
    value: i64,
    kind: Kind,
}

impl Row {
    fn place(&self) -> (String, String) {
        (format!("p{}", self.partition), format!("k{}", self.key))
    }
}

fn round() -> impl Strategy<Value = Vec<Row>> {
    let kind = prop_oneof![
        4 => Just(Kind::Row), 1 => Just(Kind::Deleted), 2 => Just(Kind::Tombstone), 1 => Just(Kind::Reborn),
    ];
    let row = (0..3u8, 0..2u8, 0..9i64, kind);
    prop::collection::vec(row.prop_map(|(key, partition, value, kind)| Row { key, partition, value, kind }), 1..5)
}

fn batch(rows: &[Row]) -> KeyedBatch {
    let texts: Vec<_> = rows.iter().map(|row| (row.place(), row.value)).collect();
    let texts: Vec<_> = texts.iter().map(|((path, key), value)| (&**key, &**path, *value)).collect();
    let mut batch = keyed(&texts);
    let ordered = |row: &Row| matches!(row.kind, Kind::Row | Kind::Deleted).then_some(row.value);
    let ordering: ArrayRef = Arc::new(Int64Array::from_iter(rows.iter().map(ordered)));
    batch.ordering = Some(ordering);
    let gone = |row: &Row| matches!(row.kind, Kind::Deleted | Kind::Tombstone);
    batch.deleted = Some(rows.iter().map(gone).collect::<Vec<_>>().into());
    batch
}

/// What a copy-on-write table would hold: (partition, key) → value.
#[derive(Default)]
struct Model(BTreeMap<(String, String), i64>);

impl Model {
    fn apply(&mut self, row: &Row, global: bool, by_ordering: bool) {
        let place = row.place();
        let stored = self.0.keys().find(|stored| **stored == place || (global && stored.1 == place.1)).cloned();
        if let Some(stored) = stored {
            let compared = matches!(row.kind, Kind::Row | Kind::Deleted) && by_ordering;
            if compared && self.0[&stored] > row.value {
                return;
            }
            self.0.remove(&stored);
        }
        if matches!(row.kind, Kind::Row | Kind::Reborn) {
            self.0.insert(place, row.value);
        }
    }
}

/// One delta commit.
async fn upsert(context: &WriteContext, batches: Vec<KeyedBatch>) {
    let table = &context.table;
    let timeline = table.timeline().await.unwrap();
    let context = WriteContext { timeline: Arc::new(timeline.clone()), ..context.clone() };
    let view = FileSystemView::load(table, &timeline, None).await.unwrap();
    let ordering = StoredOrdering { rule: context.rule, field: "value".to_string() };
    let merging = Merging { timeline: timeline.clone(), options: slice_options(&context) };
    let options = TagOptions {
        index: context.index.clone(),
        merging: Some(merging),
        stored_ordering: Some(ordering),
        workers: 2,
        cache: context.key_cache.clone(),
    };
    let rows = batches
        .iter()
        .enumerate()
        .flat_map(|(batch, keyed)| (0..keyed.keys.len() as u32).map(move |row| RowRef { batch: batch as u32, row }));
    let rows = rows.collect();
    let tagged = tag(table, &view, options, batches, rows).await.unwrap();
    let action = table.write_action();
    table.request(&context.instant, action).await.unwrap();
    let plan = assign(&context, tagged, &view).unwrap();
    table.mark_inflight(&context.instant, action, plan.workload_profile().to_json()).await.unwrap();
    let statuses = plan.execute(Arc::new(context.clone())).await.unwrap();
    let mut metadata = CommitMetadata { operation_type: "UPSERT".into(), ..CommitMetadata::default() };
    for status in statuses {
        let stats = metadata.partition_to_write_stats.entry(status.stat.partition_path.clone()).or_default();
        stats.push(status.stat);
    }
    table.complete(&context.instant, action, metadata.to_json()).await.unwrap();
}

/// Compacts whatever has logs, as a job does beside its rounds.
async fn compact_all(context: &WriteContext) {
    let table = &context.table;
    let timeline = table.timeline().await.unwrap();
    let view = FileSystemView::load(table, &timeline, None).await.unwrap();
    let slices = view.partitions.values().flatten().filter(|slice| !slice.log_files.is_empty());
    let slices: Vec<FileSlice> = slices.map(|slice| (**slice).clone()).collect();
    let context = WriteContext { timeline: Arc::new(timeline), ..context.clone() };
    let commit = format!(".hoodie/{}.commit", context.instant);
    let statuses = write::compact(Arc::new(context), slices, 2, 1 << 20).await.unwrap();
    let mut metadata = CommitMetadata { operation_type: "COMPACT".into(), ..CommitMetadata::default() };
    for status in statuses {
        let stats = metadata.partition_to_write_stats.entry(status.stat.partition_path.clone()).or_default();
        stats.push(status.stat);
    }
    table.storage.put(&commit, metadata.to_json()).await.unwrap();
}

fn slice_options(context: &WriteContext) -> SliceOptions {
    SliceOptions {
        schema: context.schema.with_meta_columns(),
        rule: context.rule,
        ordering_field: Some("value".to_string()),
        memory: 1 << 20,
        batch_rows: 3,
    }
}

/// Every row as a reader has it, sorted.
async fn read(context: &WriteContext) -> Vec<((String, String), i64)> {
    let table = context.table.clone();
    let timeline = table.timeline().await.unwrap();
    let view = FileSystemView::load(&table, &timeline, None).await.unwrap();
    let options = slice_options(context);
    let read = move || {
        let mut rows = Vec::new();
        for slice in view.partitions.values().flatten() {
            for batch in slice::merge(&table, &timeline, slice, &options).unwrap() {
                let batch = batch.unwrap().rows;
                let keys = batch.column_by_name("_hoodie_record_key").unwrap().as_string::<i32>();
                let values = batch.column_by_name("value").unwrap().as_primitive::<Int64Type>();
                rows.extend(
                    (0..keys.len())
                        .map(|row| ((slice.partition.clone(), keys.value(row).to_string()), values.value(row))),
                );
            }
        }
        rows.sort();
        rows
    };
    tokio::task::spawn_blocking(read).await.unwrap()
}

fn instant(number: usize) -> InstantTime {
    InstantTime::parse(&format!("2024010200000{number:04}")).unwrap()
}

fn context(table: &Table, number: usize, rule: PayloadClass) -> WriteContext {
    let mut context = testing::context(table.clone(), instant(number).as_str(), Operation::Upsert);
    context.rule = MergeRule(rule);
    context
}

fn table() -> (tempfile::TempDir, Table) {
    let (folder, mut table) = testing::table();
    table.properties = testing::merge_on_read();
    (folder, table)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Where a merge-on-read table means the same as a copy-on-write one: under a rule that compares, unless rows say
    /// themselves that they are deleted (whose value a log remembers and a base file does not); under the other rule, unless
    /// rows come late (which logs compare with one another, but not with the base file). Rows follow their partition path:
    /// else one that comes again goes where its key was before, as long as the base file there has it.
    #[test]
    fn delta_commits_agree_with_a_map(
        rounds in prop::collection::vec(round(), 2..7),
        index in prop::sample::select(vec![IndexType::Simple, IndexType::Bloom, IndexType::GlobalSimple]),
        by_ordering: bool,
        packing: bool,
        remembers: bool,
        // Behind which rounds.
        compactions in prop::collection::vec(any::<bool>(), 7),
    ) {
        let (_folder, table) = table();
        let cache = remembers.then(|| Arc::new(KeyCache::new(1 << 20)));
        let rule = if by_ordering { PayloadClass::DefaultHoodieRecord } else { PayloadClass::OverwriteWithLatest };
        let mut model = Model::default();
        for (round, mut rows) in rounds.into_iter().enumerate() {
            let identity = |row: &Row| (row.key, if index.is_global() { 0 } else { row.partition });
            rows.sort_by_key(identity);
            rows.dedup_by_key(|row| identity(row));
            for row in &mut rows {
                match by_ordering {
                    true if row.kind == Kind::Deleted => row.kind = Kind::Row,
                    true => {}
                    false => row.value += round as i64 * 10,
                }
            }
            let mut context = context(&table, 2 * round, rule);
            context.index.index_type = index;
            context.key_cache = cache.clone();
            let compaction = WriteContext { instant: instant(2 * round + 1), ..context.clone() };
            context.config.small_file_limit = if packing { 1 << 20 } else { 0 };
            for row in &rows {
                model.apply(row, index.is_global(), by_ordering);
            }
            let (first, second) = rows.split_at(rows.len() / 2);
            let got = testing::runtime().block_on(async {
                upsert(&context, vec![batch(first), batch(second)]).await;
                if compactions[round] {
                    compact_all(&compaction).await;
                }
                read(&context).await
            });
            prop_assert_eq!(got, model.0.clone().into_iter().collect::<Vec<_>>());
        }
    }
}
