//! Slices of merge-on-read tables: Hudi's own, and files made up around a pending compaction.

use super::*;
use crate::table::tests::{golden, open};
use crate::table::{COPY_ON_WRITE, CompactionOperation, CompactionPlan, Instant, NewTable, TableProperties};
use std::path::Path;

async fn view(table: &Table) -> FileSystemView {
    let timeline = table.timeline().await.expect("timeline");
    FileSystemView::load(table, &timeline, None).await.expect("view")
}

/// `<file id>@<base instant> <base file's instant or -> [<log's base instant>.<version> …] <append instant>+<next version>`,
/// instants by their last two digits.
fn show(slice: &FileSlice) -> String {
    let short = |time: &InstantTime| time.as_str()[15..].to_string();
    let base = slice.base_file.as_ref().map_or("-".to_string(), |base| short(&base.instant));
    let logs: Vec<String> =
        slice.log_files.iter().map(|l| format!("{}.{}", short(&l.name.base_instant), l.name.version)).collect();
    let (at, next) = (short(slice.append_instant()), slice.next_log_version());
    format!("{}@{} {base} {logs:?} {at}+{next}", slice.file_id, short(&slice.base_instant)).replace('"', "")
}

/// A table of these timeline files and data files in partition `p`, instants by their last two digits.
async fn table(timeline: &[&str], files: &[&str]) -> (tempfile::TempDir, Table) {
    let folder = tempfile::tempdir().expect("a folder");
    let new = NewTable { name: "t".into(), table_type: COPY_ON_WRITE.into(), ..NewTable::default() };
    let storage = crate::table::tests::storage(folder.path());
    let table = Table::create(storage, TableProperties::for_new_table(&new)).await.expect("created");
    let write = |path: String, text: &[u8]| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    };
    timeline.iter().for_each(|name| write(format!(".hoodie/202601010000000{name}"), b""));
    files.iter().for_each(|name| write(format!("p/{}", name.replace('@', "202601010000000")), b"12345"));
    write("p/.hoodie_partition_metadata".to_string(), b"");
    (folder, table)
}

fn plan_of(folder: &Path, time: &str, file_ids: &[&str]) {
    let operation = |file_id: &&str| CompactionOperation {
        base_instant_time: None,
        delta_file_paths: None,
        data_file_path: None,
        file_id: Some(file_id.to_string()),
        partition_path: Some("p".to_string()),
        metrics: None,
        bootstrap_file_path: None,
    };
    let plan = CompactionPlan {
        operations: Some(file_ids.iter().map(operation).collect()),
        extra_metadata: None,
        version: Some(2),
        strategy: None,
        preserve_hoodie_metadata: Some(false),
    };
    let path = folder.join(format!(".hoodie/202601010000000{time}.compaction.requested"));
    std::fs::write(path, plan.to_file()).expect("written");
}

#[tokio::test]
async fn a_slice_on_a_pending_compaction_is_one_with_the_slice_before_it() {
    for (state, why) in [("10.compaction.requested", "requested"), ("10.compaction.inflight", "inflight")] {
        let (folder, table) = table(
            &["01.deltacommit", "02.deltacommit", "11.deltacommit", "12.deltacommit.inflight", state],
            &[
                // In the plan, with log files on both slices, and what the compaction has made so far.
                "a-0_0-0-0_@01.parquet",
                "a-0_0-9-9_@10.parquet",
                ".a-0_@01.log.1_0-0-0",
                ".a-0_@01.log.10_0-0-0",
                ".a-0_@01.log.2_0-0-0",
                ".a-0_@10.log.1_0-0-0",
                ".a-0_@10.log.2_0-0-0",
                ".a-0_@10.log.2_0-0-0.cdc",
                // In the plan, nothing written since.
                "b-0_0-0-0_@02.parquet",
                ".b-0_@02.log.3_0-0-0",
                // In the plan, of log files alone.
                ".c-0_@02.log.1_0-0-0",
                ".c-0_@10.log.7_1-0-1",
                // Not in the plan.
                "d-0_0-0-0_@01.parquet",
                ".d-0_@01.log.1_0-0-0",
                // Of writes that have failed, or run, or are of a time when there was none.
                ".e-0_@12.log.1_0-0-0",
                ".f-0_@05.log.1_0-0-0",
                "g-0_0-0-0_@12.parquet",
            ],
        )
        .await;
        plan_of(folder.path(), "10", &["a-0", "b-0", "c-0"]);
        let seen = view(&table).await;
        assert_eq!(
            seen.partitions["p"].iter().map(|slice| show(slice)).collect::<Vec<_>>(),
            [
                "a-0@01 01 [01.1, 01.2, 01.10, 10.1, 10.2] 10+3",
                "b-0@02 02 [02.3] 10+1",
                "c-0@02 - [02.1, 10.7] 10+8",
                "d-0@01 01 [01.1] 01+2",
            ],
            "{why}"
        );
        assert!(seen.partitions["p"].iter().flat_map(|s| &s.log_files).all(|log| log.size == 5));
        let groups: Vec<_> =
            seen.pending_compactions.iter().map(|((p, id), at)| (&p[..], &id[..], at.as_str())).collect();
        let at = "20260101000000010";
        assert_eq!(groups, [("p", "a-0", at), ("p", "b-0", at), ("p", "c-0", at)]);

        // The compaction completes: what it has folded is gone, its base file counts.
        std::fs::write(folder.path().join(".hoodie/20260101000000010.commit"), "").expect("written");
        let seen = view(&table).await;
        let slices: Vec<_> = seen.partitions["p"].iter().map(|slice| show(slice)).collect();
        assert_eq!(slices[..2], ["a-0@10 10 [10.1, 10.2] 10+3", "b-0@02 02 [02.3] 02+4"], "{why}");
        assert!(seen.pending_compactions.is_empty());
    }
}

#[tokio::test]
async fn log_files_alone_count_from_their_first_write_on() {
    let (_folder, table) = table(
        &["03.deltacommit", "05.deltacommit.requested", "07.deltacommit"],
        &[".a-0_@01.log.1_0-0-0", ".b-0_@03.log.2_0-0-0", ".c-0_@05.log.1_0-0-0", ".d-0_@06.log.1_0-0-0"],
    )
    .await;
    let slices: Vec<_> = view(&table).await.partitions["p"].iter().map(|slice| show(slice)).collect();
    assert_eq!(
        slices,
        ["a-0@01 - [01.1] 01+2", "b-0@03 - [03.2] 03+3"],
        "archived, completed; pending and unknown not"
    );
}

/// Log files of Hudi's, against what its delta commits say.
#[tokio::test]
async fn slices_of_hudis_tables_have_the_log_files_that_their_commits_name() {
    for (name, groups_with_logs) in
        [("v6_mor_logs", 2), ("v6_mor_compacted", 0), ("v6_mor_rollback", 3), ("v6_mor_compaction_pending", 3)]
    {
        let (_folder, path) = golden(name);
        let table = open(&path).await;
        let timeline = table.timeline().await.expect("timeline");
        let mut slices = 0;
        for slice in view(&table).await.partitions.into_values().flatten().filter(|s| !s.log_files.is_empty()) {
            let mut want = BTreeSet::new();
            for instant in timeline.completed_writes() {
                let metadata = table.commit_metadata(instant).await.expect("metadata");
                let stats = metadata.stats().filter(|s| s.file_id == slice.file_id);
                let bases = [&slice.base_instant, slice.append_instant()];
                let stats = stats.filter(|s| bases.iter().any(|base| s.prev_commit == base.as_str()));
                want.extend(
                    stats.filter_map(|s| Some((s.prev_commit.clone(), s.log.as_ref()?.version, s.file_size_in_bytes))),
                );
            }
            // The failed write of one table and its rollback are no commit's.
            let logs = slice.log_files.iter().map(|l| (l.name.base_instant.to_string(), l.name.version, l.size));
            let logs = logs.collect::<BTreeSet<_>>();
            let others = logs.difference(&want).count();
            assert!(want.is_subset(&logs), "{name}: {}", show(&slice));
            assert!(others == 0 || name == "v6_mor_rollback" && others == 2, "{name}: {}", show(&slice));
            slices += 1;
        }
        assert_eq!(slices, groups_with_logs, "{name}");
    }
}

#[tokio::test]
async fn a_plan_that_is_none_and_a_log_compaction_are_refused() {
    let (folder, table) = table(&["01.deltacommit", "10.compaction.requested"], &[]).await;
    let timeline = table.timeline().await.expect("timeline");
    let error = FileSystemView::load(&table, &timeline, None).await.expect_err("an empty plan");
    assert_eq!(error.code(), "table-timeline-file");
    assert!(error.to_string().contains("20260101000000010.compaction.requested"), "{error}");
    std::fs::remove_file(folder.path().join(".hoodie/20260101000000010.compaction.requested")).expect("taken back");
    let view = FileSystemView::load(&table, &timeline, None).await.expect("no plan any more");
    assert!(view.pending_compactions.is_empty());
    let time = InstantTime::parse("20260101000000011").expect("digits");
    let requested = Instant::new(time, Action::LogCompaction, State::Requested);
    std::fs::write(folder.path().join(requested.path()), "").expect("written");
    assert_eq!(table.timeline().await.expect_err("a log compaction").code(), "table-log-compaction-pending");
}
