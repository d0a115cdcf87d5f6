use super::*;
use crate::config::PayloadClass;
use crate::index::{Move, TaggedRow};
use crate::table::{BaseFile, InstantTime, LogFile, LogFileName};
use crate::write::testing::{self, slice, view};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};

const AVERAGE: u64 = 100;

fn base_file(partition: &str, file_id: &str, size: u64) -> BaseFile {
    let instant = InstantTime::parse("20240101000000000").unwrap();
    let name = format!("{file_id}_0-0-0_{instant}.parquet");
    BaseFile { partition: partition.to_string(), name, file_id: file_id.to_string(), instant, size }
}

/// Max file size 1,000 and small file limit 500, of records of 100 bytes.
fn context(operation: Operation) -> WriteContext {
    let mut context = testing::context_without_table(operation);
    context.average_record_size = AVERAGE;
    context.config.parquet.max_file_size = 1000;
    context.config.small_file_limit = 500;
    context
}

fn row(row: u32) -> RowRef {
    RowRef { batch: 0, row }
}

fn new_rows(partition: &str, count: u32) -> Tagged {
    let keys: Vec<String> = (0..count).map(|i| format!("k{i}")).collect();
    let rows: Vec<_> = keys.iter().map(|key| (key.as_str(), partition, 0)).collect();
    Tagged::untagged(vec![testing::keyed(&rows)], (0..count).map(row).collect())
}

/// `c <rows>` for a new group, `<file id> <rows>` for a merge.
fn summary(plan: &Plan) -> Vec<String> {
    let of = |task: &Task| match task {
        Task::Create { partition, bucket: None, rows } => format!("new {partition} {}", rows.len()),
        Task::Create { partition, bucket: Some(bucket), rows } => format!("new {partition}/{bucket} {}", rows.len()),
        Task::Merge(task) => format!("{} +{} -{}", task.slice.file_id, task.rows.len(), task.moved_away.len()),
        Task::Append(task) => format!("log of {} +{} -{}", task.slice.file_id, task.rows.len(), task.moved_away.len()),
    };
    plan.tasks.iter().map(of).collect()
}

#[test]
fn inserts_fill_small_files_in_listing_order_then_new_groups() {
    let small = |id: &str, size| base_file("p", id, size);
    let cases: &[(&str, Vec<BaseFile>, u32, &[&str])] = &[
        ("no file: full groups, then the rest", vec![], 25, &["new p 10", "new p 10", "new p 5"]),
        ("no more than there is", vec![small("a", 100)], 3, &["a +3 -0"]),
        ("what fits of (max − size) / average", vec![small("a", 499)], 7, &["a +5 -0", "new p 2"]),
        ("listing order", vec![small("a", 400), small("b", 300)], 14, &["a +6 -0", "b +7 -0", "new p 1"]),
        ("not small", vec![small("a", 500)], 1, &["new p 1"]),
        ("small, but of another partition", vec![base_file("q", "a", 1)], 1, &["new p 1"]),
    ];
    for (name, files, count, want) in cases {
        let plan = assign(&context(Operation::Upsert), new_rows("p", *count), &view(files)).unwrap();
        assert_eq!(summary(&plan), *want, "{name}");
    }
}

#[test]
fn every_insert_goes_to_exactly_one_file() {
    let plan = assign(&context(Operation::Upsert), new_rows("p", 37), &view(&[base_file("p", "a", 300)])).unwrap();
    let mut rows: Vec<RowRef> = plan
        .tasks
        .into_iter()
        .flat_map(|task| match task {
            Task::Create { rows, .. } => rows,
            Task::Merge(task) => task.rows,
            Task::Append(task) => task.rows,
        })
        .collect();
    rows.sort();
    assert_eq!(rows, (0..37).map(row).collect::<Vec<_>>());
}

#[test]
fn packing_and_splitting_follow_their_settings() {
    let mut off = context(Operation::Insert);
    off.config.small_file_limit = 0;
    let files = view(&[base_file("p", "a", 1)]);
    assert_eq!(summary(&assign(&off, new_rows("p", 1), &files).unwrap()), ["new p 1"], "limit 0 turns packing off");

    let mut split = context(Operation::Insert);
    split.config.insert_auto_split = false;
    split.config.insert_split_size = 2;
    let plan = assign(&split, new_rows("p", 3), &view(&[])).unwrap();
    assert_eq!(summary(&plan), ["new p 2", "new p 1"], "split size in rows");
}

#[test]
fn a_bucket_has_one_group_whatever_its_size() {
    let mut bucketed = context(Operation::Insert);
    bucketed.index.buckets = Some(BucketConfig { count: 2, hash_fields: vec!["id".into()] });
    let small = view(&[base_file("p", "00000000-a", 1)]);
    let plan = assign(&bucketed, new_rows("p", 40), &small).unwrap();
    let sizes = summary(&plan);
    assert!(sizes.len() == 2 && sizes[0].starts_with("new p/0 ") && sizes[1].starts_with("new p/1 "), "{sizes:?}");
    let rows = plan.tasks.iter().map(|task| match task {
        Task::Create { bucket, rows, .. } => {
            let own =
                |row: &RowRef| Some(bucket_of(&format!("k{}", row.row), bucketed.index.buckets.as_ref().unwrap()));
            assert!(rows.iter().all(|row| own(row) == *bucket), "bucket {bucket:?}: {rows:?}");
            rows.len()
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(rows.sum::<usize>(), 40);
}

#[test]
fn an_insert_into_a_bucket_that_is_there_keeps_equal_keys_as_configured() {
    for (operation, allowed, keeps) in [
        (Operation::Insert, true, true),
        (Operation::BulkInsert, true, true),
        (Operation::Insert, false, false),
        (Operation::Upsert, true, false),
    ] {
        let mut context = context(operation);
        context.config.allow_duplicate_on_inserts = allowed;
        let mut tagged = new_rows("p", 1);
        tagged.groups.push(slice(&base_file("p", "00000000-a", 1)).into());
        tagged.rows[0].group = Some(0);
        let plan = assign(&context, tagged, &view(&[])).unwrap();
        let [Task::Merge(task)] = &plan.tasks[..] else { panic!("{:?}", summary(&plan)) };
        assert_eq!(task.keeps_duplicates, keeps, "{operation:?} {allowed}");
    }
}

#[test]
fn a_group_that_is_being_clustered_takes_no_inserts_and_no_updates() {
    let mut clustering = view(&[base_file("p", "a", 1)]);
    clustering.pending_clustering.insert(("p".to_string(), "a".to_string()));
    let plan = assign(&context(Operation::Upsert), new_rows("p", 1), &clustering).unwrap();
    assert_eq!(summary(&plan), ["new p 1"]);

    let mut update = new_rows("p", 1);
    update.groups.push(slice(&base_file("p", "a", 1)).into());
    update.rows[0].group = Some(0);
    let refused = assign(&context(Operation::Upsert), update, &clustering).unwrap_err();
    assert_eq!(refused.code(), "write-pending-clustering");
}

#[test]
fn updates_moves_and_inserts_of_one_group_are_one_task() {
    let mut batch = testing::keyed(&[("a", "p", 1), ("b", "q", 2), ("c", "p", 3), ("gone", "p", 4), ("d", "p", 5)]);
    batch.deleted = Some(vec![false, false, false, true, false].into());
    let files = [base_file("p", "f0", 100), base_file("p", "f1", 900)];
    let tagged = Tagged {
        batches: vec![batch],
        rows: vec![
            TaggedRow { row: row(0), group: Some(0) },
            TaggedRow { row: row(1), group: None },
            TaggedRow { row: row(2), group: None },
            TaggedRow { row: row(3), group: None },
            TaggedRow { row: row(4), group: Some(1) },
            TaggedRow { row: row(4), group: Some(0) },
        ],
        groups: files.iter().map(|file| slice(file).into()).collect(),
        moves: vec![Move { row: row(1), group: 0 }],
        revived: Default::default(),
    };
    let plan = assign(&context(Operation::Upsert), tagged, &view(&files)).unwrap();
    assert_eq!(summary(&plan), ["f0 +3 -1", "f1 +1 -0", "new q 1"], "a delete of an unknown key is dropped");

    let profile = plan.workload_profile();
    assert_eq!(profile.operation_type, "UPSERT");
    let stats = |partition: &str| -> Vec<(String, String, u64, u64)> {
        let stats = profile.partition_to_write_stats[partition].iter();
        stats.map(|s| (s.file_id.clone(), s.prev_commit.clone(), s.num_inserts, s.num_update_writes)).collect()
    };
    let text = String::from;
    assert_eq!(
        stats("p"),
        [
            (text(""), text("null"), 1, 0),
            (text("f0"), text("20240101000000000"), 0, 3),
            (text("f1"), text("20240101000000000"), 0, 1),
        ]
    );
    assert_eq!(stats("q"), [(text(""), text("null"), 1, 0)]);
}

#[test]
fn inserts_keep_duplicates_in_small_files_unless_told_otherwise() {
    let merges_by_key = |operation, allow| {
        let mut context = context(operation);
        context.config.allow_duplicate_on_inserts = allow;
        let plan = assign(&context, new_rows("p", 1), &view(&[base_file("p", "a", 1)])).unwrap();
        matches!(&plan.tasks[..], [Task::Merge(task)] if !task.keeps_duplicates)
    };
    assert!(!merges_by_key(Operation::Insert, true));
    assert!(merges_by_key(Operation::Insert, false));
    assert!(merges_by_key(Operation::Upsert, true));
}

/// A context of a merge-on-read table, sized as [`context`].
fn merge_on_read(operation: Operation) -> WriteContext {
    let mut context = context(operation);
    context.table.properties = testing::merge_on_read();
    context
}

fn with_log(mut slice: FileSlice) -> FileSlice {
    let name = LogFileName {
        file_id: slice.file_id.clone(),
        base_instant: slice.base_instant.clone(),
        version: 1,
        token: Some("0-0-0".into()),
        cdc: false,
    };
    slice.log_files.push(LogFile { name, size: 1 });
    slice
}

fn arcs(slices: &[FileSlice]) -> Vec<Arc<FileSlice>> {
    slices.iter().cloned().map(Arc::new).collect()
}

fn view_of(slices: Vec<FileSlice>) -> FileSystemView {
    let mut view = FileSystemView::default();
    view.partitions.insert("p".to_string(), arcs(&slices));
    view
}

#[test]
fn merge_on_read_packs_inserts_into_the_smallest_file_without_logs() {
    let file = |id: &str, size| slice(&base_file("p", id, size));
    let pending = |mut slice: FileSlice| {
        slice.pending_compaction = InstantTime::parse("20240102000000000");
        slice
    };
    let cases: &[(&str, usize, Vec<FileSlice>, &[&str])] = &[
        ("the smallest, and no other", 1, vec![file("a", 400), file("b", 300)], &["b +7 -0", "new p 5"]),
        ("as many as are allowed", 2, vec![file("a", 400), file("b", 300)], &["b +7 -0", "a +5 -0"]),
        ("none", 0, vec![file("a", 400)], &["new p 10", "new p 2"]),
        ("a new base file would hide its log", 1, vec![with_log(file("a", 1))], &["new p 10", "new p 2"]),
        ("the next, then", 1, vec![with_log(file("a", 1)), file("b", 400)], &["b +6 -0", "new p 6"]),
        ("it waits for its compaction", 1, vec![pending(file("a", 1))], &["new p 10", "new p 2"]),
    ];
    for (name, candidates, slices, want) in cases {
        let mut context = merge_on_read(Operation::Upsert);
        context.config.small_file_limit_explicit = true;
        context.config.small_file_candidates = *candidates;
        let plan = assign(&context, new_rows("p", 12), &view_of(slices.clone())).unwrap();
        assert_eq!(summary(&plan), *want, "{name}");
    }
}

#[test]
fn without_a_limit_of_the_users_a_file_is_small_beside_what_comes() {
    const MIB: u64 = 1 << 20;
    let cases = [
        ("small whatever comes", MIB - 1, 1, true),
        ("large beside one row", MIB, 1, false),
        ("small beside a sixth of it", 6 * MIB, 10_000, true),
        ("large beside an eighth of it and less", 9 * MIB, 10_000, false),
        ("no smaller than the limit", 100 * MIB, 1_000_000, false),
    ];
    for (name, size, rows, want) in cases {
        for merge_on_read_table in [true, false] {
            let mut context = testing::context_without_table(Operation::Upsert);
            context.average_record_size = AVERAGE;
            if merge_on_read_table {
                context.table.properties = testing::merge_on_read();
            }
            let files = view(&[base_file("p", "a", size)]);
            let plan = assign(&context, new_rows("p", rows), &files).unwrap();
            let packed = plan.tasks.iter().any(|task| matches!(task, Task::Merge(_)));
            let want = if merge_on_read_table { want } else { size < 100 * MIB };
            assert_eq!(packed, want, "{name}, merge-on-read: {merge_on_read_table}");
            context.config.small_file_limit_explicit = true;
            let plan = assign(&context, new_rows("p", rows), &files).unwrap();
            let packed = plan.tasks.iter().any(|task| matches!(task, Task::Merge(_)));
            assert_eq!(packed, size < 100 * MIB, "{name}: the user's own limit is Hudi's rule");
        }
    }
}

#[test]
fn updates_go_to_logs_unless_their_group_is_rewritten_for_inserts() {
    let groups = vec![slice(&base_file("p", "f0", 100)), with_log(slice(&base_file("p", "f1", 100)))];
    let tagged = || {
        let batch = testing::keyed(&[("a", "p", 1), ("b", "p", 2), ("c", "p", 3), ("d", "q", 4)]);
        let to = |at, group| TaggedRow { row: row(at), group };
        let rows = vec![to(0, Some(0)), to(1, Some(1)), to(2, None), to(3, None)];
        let moves = vec![Move { row: row(3), group: 1 }];
        Tagged { batches: vec![batch], rows, groups: arcs(&groups), moves, revived: Default::default() }
    };
    let plan = assign(&merge_on_read(Operation::Upsert), tagged(), &view_of(groups.clone())).unwrap();
    assert_eq!(summary(&plan), ["f0 +2 -0", "log of f1 +1 -1", "new q 1"]);

    let mut compacting = groups.clone();
    compacting[0].pending_compaction = InstantTime::parse("20240102000000000");
    let tagged = Tagged { groups: arcs(&compacting), ..tagged() };
    let plan = assign(&merge_on_read(Operation::Upsert), tagged, &view_of(compacting)).unwrap();
    assert_eq!(summary(&plan), ["log of f0 +1 -0", "log of f1 +1 -1", "new p 1", "new q 1"]);
    let on: Vec<_> = plan.workload_profile().stats().map(|stat| stat.prev_commit.clone()).collect();
    assert_eq!(on, ["null", "20240102000000000", "20240101000000000", "null"], "where a rollback finds the logs");
}

#[test]
fn a_record_after_a_delete_of_its_key_rewrites_the_group_where_the_rule_would_compare_it() {
    use PayloadClass::{DefaultHoodieRecord, OverwriteWithLatest};
    let group = || with_log(slice(&base_file("p", "f0", 100)));
    let compacting = || FileSlice { pending_compaction: InstantTime::parse("20240102000000000"), ..group() };
    for (name, rule, slice, reborn, revived, want) in [
        ("arrival decides", OverwriteWithLatest, group(), true, false, "log of f0 +1 -0"),
        ("deleted in this batch", DefaultHoodieRecord, group(), true, false, "f0 +1 -0"),
        ("deleted in the log", DefaultHoodieRecord, group(), false, true, "f0 +1 -0"),
        ("not deleted", DefaultHoodieRecord, group(), false, false, "log of f0 +1 -0"),
        ("no place for a base file", DefaultHoodieRecord, compacting(), true, true, "log of f0 +1 -0"),
    ] {
        let mut context = merge_on_read(Operation::Upsert);
        context.rule = MergeRule(rule);
        let mut batch = testing::keyed(&[("a", "p", 1)]);
        if reborn {
            batch.ordering = batch.ordering.map(|values| arrow::array::new_null_array(values.data_type(), 1));
        }
        let rows = vec![TaggedRow { row: row(0), group: Some(0) }];
        let revived = revived.then_some(0).into_iter().collect();
        let tagged = Tagged { batches: vec![batch], rows, groups: vec![slice.clone().into()], moves: vec![], revived };
        let plan = assign(&context, tagged, &view_of(vec![slice])).unwrap();
        assert_eq!(summary(&plan), [want], "{name}");
    }
}

/// Readers of logs, Hudi's and ours, fail on such a record, at each query and at each compaction.
#[test]
fn a_record_without_ordering_value_gets_into_no_log() {
    use PayloadClass::{DefaultHoodieRecord, OverwriteWithLatest};
    let group = || with_log(slice(&base_file("p", "f0", 100)));
    // The row's value is null; what the operation made of it; what it says of itself.
    for (name, rule, ordering, deleted, refused) in [
        ("an insert", OverwriteWithLatest, None, false, true),
        ("ordered by another field", DefaultHoodieRecord, Some(Some(1)), false, true),
        ("after a tombstone", OverwriteWithLatest, Some(None), false, true),
        ("a delete block's", OverwriteWithLatest, None, true, false),
        ("a record that deletes", DefaultHoodieRecord, None, true, true),
        ("a tombstone", DefaultHoodieRecord, Some(None), true, false),
    ] {
        let values = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let mut batch = testing::keyed(&[("good", "p", 1), ("bad", "p", 1)]);
        let mut columns = batch.rows.columns().to_vec();
        columns[2] = values(vec![Some(1), None]);
        batch.rows = RecordBatch::try_new(batch.rows.schema(), columns).unwrap();
        batch.ordering = ordering.map(|value| values(vec![Some(1), value]));
        batch.deleted = deleted.then(|| vec![false, true].into());
        let mut context = merge_on_read(Operation::Insert);
        context.rule = MergeRule(rule);
        let tagged = |rows: &[u32]| Tagged {
            batches: vec![batch.clone()],
            rows: rows.iter().map(|at| TaggedRow { row: row(*at), group: Some(0) }).collect(),
            groups: vec![group().into()],
            moves: vec![],
            revived: Default::default(),
        };
        assign(&context, tagged(&[0]), &view_of(vec![group()])).expect(name);
        match assign(&context, tagged(&[0, 1]), &view_of(vec![group()])) {
            Ok(_) => assert!(!refused, "{name}"),
            Err(error) => {
                assert!(refused && error.code() == "write-null-ordering", "{name}: {error}");
                assert!(error.to_string().contains("record \"bad\" into a log file of group f0"), "{error}");
            }
        }
        context.table.properties = Default::default();
        assign(&context, tagged(&[0, 1]), &view_of(vec![group()])).expect("copy-on-write");
    }
}
