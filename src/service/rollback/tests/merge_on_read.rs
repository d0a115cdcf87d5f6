//! Delta commits and compactions that have failed: rollback blocks in log files, plans that stay.

use super::*;
use crate::table::log_file::{Block, BlockKind, LogReader};
use crate::table::{FileGroupId, FileSlice, LogFileName, Marker, MarkerType};

async fn view(table: &Table) -> FileSystemView {
    let timeline = table.timeline().await.expect("timeline");
    FileSystemView::load(table, &timeline, None).await.expect("view")
}

/// The slices that have log files, by group, and their log files.
async fn logs(table: &Table) -> BTreeMap<FileGroupId, Vec<String>> {
    let slices = view(table).await.partitions.into_values().flatten().filter(|s| !s.log_files.is_empty());
    let names = |s: &FileSlice| s.log_files.iter().map(|log| log.name.to_string()).collect();
    slices.map(|s| ((s.partition.clone(), s.file_id.clone()), names(&s))).collect()
}

async fn blocks(table: &Table, path: String) -> Vec<Block> {
    let size = table.storage.size(&path).await.expect("looked").expect("there");
    let storage = table.storage.clone();
    let read = move || LogReader::open(&storage, &path, size).collect::<table::Result<Vec<_>>>();
    tokio::task::spawn_blocking(read).await.expect("read").expect("blocks")
}

/// That a log file is a rollback block of `target` and nothing else, as Hudi writes it: 105 bytes for instants of 17 digits.
async fn assert_cancels(table: &Table, path: String, time: &InstantTime, target: &InstantTime) {
    assert_eq!(table.storage.size(&path).await.expect("looked"), Some(105), "{path}");
    let blocks = blocks(table, path).await;
    assert_eq!((blocks.len(), blocks[0].kind), (1, BlockKind::Command));
    assert!(blocks[0].header.is_rollback());
    assert_eq!((blocks[0].header.instant(), blocks[0].header.target_instant()), (Some(time), Some(target)));
}

async fn metadata(table: &Table, rollback: &Instant) -> RollbackMetadata {
    RollbackMetadata::from_file(&table.read_instant(rollback).await.expect("read")).expect("metadata")
}

async fn last_rollback(table: &Table) -> Instant {
    let timeline = table.timeline().await.expect("timeline");
    timeline.instants.iter().rfind(|i| i.action == Action::Rollback).expect("a rollback").clone()
}

#[tokio::test]
async fn a_failed_delta_commit_loses_its_base_files_and_its_blocks_count_no_more() {
    let (_folder, path, table) = failed("v6_mor_inflight").await;
    let write = pending(&table).await;
    let before = view(&table).await;
    let logs_before = logs(&table).await;
    let (group, failed) = logs_before.first_key_value().expect("a log file of the failed write");
    assert_eq!((logs_before.len(), failed.len()), (1, 1));

    let done = rollback_failed_writes(&table, &Writers::none()).await.expect("rolled back");
    assert_eq!(done, [RolledBack { instant: write.clone(), files_deleted: 1, log_files_written: 1 }]);
    assert_eq!(of_instant(&files(&path), &write.time), [""; 0]);

    let rollback = last_rollback(&table).await;
    let after = logs(&table).await;
    let written =
        LogFileName { version: 2, token: Some("1-0-1".to_string()), ..LogFileName::parse(&failed[0]).expect("a log") };
    assert_eq!(after, [(group.clone(), vec![failed[0].clone(), written.to_string()])].into());
    let written = format!("{}/{written}", group.0);
    assert_cancels(&table, written.clone(), &rollback.time, &write.time).await;
    assert!(!path.join(".hoodie/.temp").join(rollback.time.as_str()).exists(), "its markers are gone");

    let metadata = metadata(&table, &rollback).await;
    assert_eq!((metadata.total_files_deleted, metadata.instants_rollback), (1, vec![InstantInfo::from(&write)]));
    let partition = &metadata.partition_metadata[&group.0];
    let absolute = format!("file:{}", path.join(written).to_str().expect("utf-8"));
    assert_eq!(partition.rollback_log_files, Some([(absolute, 105)].into()));
    assert_eq!(partition.log_files_from_failed_commit, Some([(failed[0].clone(), 1)].into()));
    assert_eq!(partition.success_delete_files, [""; 0]);
    let bases = |view: &FileSystemView| view.latest_base_files().cloned().collect::<Vec<_>>();
    assert_eq!(bases(&view(&table).await), bases(&before), "base files are as before");
    assert_eq!(rollback_failed_writes(&table, &Writers::none()).await.expect("again"), [], "nothing is left to do");
}

#[tokio::test]
async fn a_plan_of_ours_is_what_hudi_makes_and_hudis_is_taken_up() {
    let (_folder, path, table) = failed("v6_mor_rollback").await;
    let rollback = last_rollback(&table).await;
    let theirs = metadata(&table, &rollback).await;
    let requested = rollback.in_state(State::Requested);
    let mut plan = RollbackPlan::from_file(&table.read_instant(&requested).await.expect("read")).expect("a plan");
    let (time, action) = plan.instant_to_rollback.as_ref().and_then(InstantInfo::parse).expect("an instant");
    let target = Instant::new(time, action, State::Inflight);
    let mut ours = plan::make(&table, &target, &plan::read(&plan, &target, Scope::Whole, "its plan").expect("read"));
    for file in ours.rollback_requests.iter_mut().flatten().flat_map(|r| &mut r.files_to_be_deleted) {
        *file = file.replace(path.to_str().expect("utf-8"), "/tmp/hudi-golden/v6_mor_rollback");
    }
    // Hudi's order is that of a hash map.
    for plan in [&mut ours, &mut plan] {
        plan.rollback_requests.iter_mut().for_each(|requests| requests.sort_by_key(|r| r.file_id.clone()));
    }
    assert_eq!(ours, plan);

    // As if it had just begun. Its own rollback blocks stay, as those of a crash do.
    std::fs::remove_file(path.join(rollback.path())).expect("reopened");
    for (partition, deleted) in &theirs.partition_metadata {
        for file in &deleted.success_delete_files {
            let name = Path::new(file).file_name().expect("a name");
            std::fs::write(path.join(partition).join(name), "x").expect("written");
        }
    }
    let before = logs(&table).await;
    let done = rollback_failed_writes(&table, &Writers::none()).await.expect("resumed");
    assert_eq!(done, [RolledBack { instant: target.clone(), files_deleted: 1, log_files_written: 2 }]);
    assert_eq!(of_instant(&files(&path), &target.time), [""; 0]);
    let ours = metadata(&table, &rollback).await;
    assert_eq!(
        (ours.total_files_deleted, &ours.commits_rollback, &ours.instants_rollback),
        (theirs.total_files_deleted, &theirs.commits_rollback, &theirs.instants_rollback)
    );
    let failed = |m: &RollbackMetadata| -> Vec<_> {
        m.partition_metadata.iter().map(|(p, m)| (p.clone(), m.log_files_from_failed_commit.clone())).collect()
    };
    assert_eq!(failed(&ours), failed(&theirs));
    for ((partition, file_id), names) in logs(&table).await {
        let Some(before) = before.get(&(partition.clone(), file_id)).filter(|before| **before != names) else {
            continue;
        };
        assert_eq!(names[..before.len()], before[..]);
        let written = names.last().expect("one more");
        assert!(written.ends_with(&format!(".log.{}_1-0-1", names.len())), "{written}");
        assert_cancels(&table, format!("{partition}/{written}"), &rollback.time, &target.time).await;
    }
}

/// Goes through the steps of a rollback one by one, stops after each, and starts again.
#[tokio::test]
async fn a_crash_between_any_two_steps_is_taken_up_with_rollback_blocks_too() {
    for steps in 0..=8 {
        let (_folder, path, table) = failed("v6_mor_inflight").await;
        let write = pending(&table).await;
        let left = leftovers(&table, &write).await;
        let slice = left.slices[0].clone();
        let time = table.new_instant(&table.timeline().await.expect("timeline"));
        let plan = plan::make(&table, &write, &left).to_file();
        let rollback_file = |state| path.join(Instant::new(time.clone(), Action::Rollback, state).path());
        let remove = |path: PathBuf| std::fs::remove_file(path).expect("removed");
        let logs = LogFileName::parse(slice.logs.first().expect("one")).expect("a log");
        let block = LogFileName { version: 2, token: Some("1-0-1".to_string()), ..logs };
        let markers = path.join(".hoodie/.temp").join(time.as_str()).join(&slice.partition);
        let all: [&dyn Fn(); 8] = [
            &|| std::fs::write(rollback_file(State::Requested), &plan).expect("written"),
            &|| std::fs::write(rollback_file(State::Inflight), "").expect("written"),
            &|| remove(path.join(left.files[0].path())),
            &|| {
                std::fs::create_dir_all(&markers).expect("made");
                std::fs::write(markers.join(format!("{block}.marker.APPEND")), "").expect("written");
            },
            &|| std::fs::write(path.join(&slice.partition).join(block.to_string()), "").expect("torn"),
            &|| remove(path.join(write.in_state(State::Inflight).path())),
            &|| remove(path.join(write.in_state(State::Requested).path())),
            &|| std::fs::remove_dir_all(path.join(".hoodie/.temp").join(write.time.as_str())).expect("removed"),
        ];
        all.iter().take(steps).for_each(|step| step());

        let done = rollback_failed_writes(&table, &Writers::none())
            .await
            .unwrap_or_else(|e| panic!("after {steps} steps: {e}"));
        assert_eq!(done.len(), 1, "after {steps} steps");
        assert_eq!(of_instant(&files(&path), &write.time), [""; 0], "after {steps} steps");
        let rollback = last_rollback(&table).await;
        assert_eq!((rollback.state, rollback.time == time), (State::Completed, steps > 0), "after {steps} steps");
        let written = self::logs(&table).await.into_values().next().expect("one group");
        let last = format!("{}/{}", slice.partition, written.last().expect("one"));
        assert_eq!(written.len(), if steps < 5 { 2 } else { 3 }, "after {steps} steps");
        assert_cancels(&table, last, &rollback.time, &write.time).await;
        assert!(!path.join(".hoodie/.temp").join(rollback.time.as_str()).exists(), "after {steps} steps");
    }
}

/// Where markers do not tell, the log files do, whether or not the workload profile is there.
#[tokio::test]
async fn blocks_are_found_in_the_log_files_where_markers_are_gone() {
    for empty in [false, true] {
        let (_folder, path, table) = failed("v6_mor_inflight").await;
        let write = pending(&table).await;
        let marked = leftovers(&table, &write).await;
        std::fs::remove_dir_all(path.join(".hoodie/.temp").join(write.time.as_str())).expect("removed");
        if empty {
            std::fs::write(path.join(write.path()), "").expect("emptied");
        }
        assert_eq!(leftovers(&table, &write).await, marked);
        assert_eq!((marked.files.len(), marked.slices.len()), (1, 1));
    }
}

#[tokio::test]
async fn a_group_that_the_failed_write_has_opened_with_log_files_goes() {
    let (_folder, path, table) = failed("v6_mor_inflight").await;
    let write = pending(&table).await;
    rollback_failed_writes(&table, &Writers::none()).await.expect("rolled back");
    let before = logs(&table).await;
    let ((partition, _), names) = before.first_key_value().expect("one");
    let block = std::fs::read(path.join(partition).join(&names[0])).expect("a log file");
    for with_markers in [true, false] {
        let time = table.new_instant(&table.timeline().await.expect("timeline"));
        table.request(&time, Action::DeltaCommit).await.expect("requested");
        table.mark_inflight(&time, Action::DeltaCommit, Bytes::new()).await.expect("inflight");
        let file = format!("{partition}/.5e1f-0_{time}.log.1_0-1-2");
        if with_markers {
            let marker = Marker { path: file.clone(), marker_type: MarkerType::Append };
            Markers::new(&table.storage, &time).create(&marker).await.expect("marked");
        }
        std::fs::write(path.join(&file), &block).expect("written");
        let done = rollback_failed_writes(&table, &Writers::none()).await.expect("rolled back");
        assert_eq!((done[0].files_deleted, done[0].log_files_written), (1, 0));
        assert!(!path.join(file).exists());
    }
    assert_eq!(logs(&table).await, before);
    assert_eq!(of_instant(&files(&path), &write.time), [""; 0]);
}

/// A compaction of two groups that has died when it was done but for its commit; an append has come since.
async fn compaction() -> (tempfile::TempDir, PathBuf, Table, Instant) {
    let (folder, path, table) = failed("v6_mor_compaction_pending").await;
    let timeline = table.timeline().await.expect("timeline");
    let requested = timeline.pending(Action::Compaction).next().expect("a compaction").clone();
    table.mark_inflight(&requested.time, Action::Compaction, Bytes::new()).await.expect("inflight");
    for (partition, file_id) in view(&table).await.pending_compactions.keys() {
        let base = format!("{partition}/{file_id}_0-1-2_{}.parquet", requested.time);
        std::fs::write(path.join(base), "").expect("written");
    }
    (folder, path, table, requested.in_state(State::Inflight))
}

#[tokio::test]
async fn a_compaction_that_died_keeps_its_plan_and_the_log_files_on_it() {
    for marked in [true, false] {
        let (_folder, path, table, compaction) = compaction().await;
        let before = view(&table).await;
        let bases: Vec<String> =
            of_instant(&files(&path), &compaction.time).into_iter().filter(|f| f.ends_with(".parquet")).collect();
        assert_eq!(bases.len(), 2);
        for base in bases.iter().filter(|_| marked) {
            let marker = Marker { path: base.clone(), marker_type: MarkerType::Merge };
            Markers::new(&table.storage, &compaction.time).create(&marker).await.expect("marked");
        }
        let logs = of_instant(&files(&path), &compaction.time).into_iter().filter(|f| f.contains(".log."));
        let logs: Vec<String> = logs.collect();
        assert_eq!(logs.len(), 1);
        assert_eq!(
            rollback_failed_writes(&table, &Writers::none()).await.expect("nothing failed"),
            [],
            "it may be running"
        );
        let done = rollback_compaction(&table, &compaction).await.expect("rolled back");
        assert_eq!(done, RolledBack { instant: compaction.clone(), files_deleted: 2, log_files_written: 0 });
        let requested = compaction.in_state(State::Requested);
        assert_eq!(of_instant(&files(&path), &compaction.time), [requested.path(), logs[0].clone()]);
        let rollback = last_rollback(&table).await;
        let metadata = metadata(&table, &rollback).await;
        assert_eq!(metadata.instants_rollback, [InstantInfo::from(&compaction)]);
        assert_eq!((rollback.state, metadata.total_files_deleted), (State::Completed, 2));
        assert_eq!(view(&table).await.partitions, before.partitions, "readers see no difference");

        let again = rollback_compaction(&table, &compaction).await.expect("waits");
        assert_eq!((again.instant.state, again.files_deleted), (State::Requested, 0));
    }
    let (_folder, _path, table) = failed("v6_mor_compacted").await;
    let timeline = table.timeline().await.expect("timeline");
    let completed = timeline.completed_writes().find(|i| i.action == Action::Commit).expect("a compaction");
    let error = rollback_compaction(&table, completed).await.expect_err("completed");
    assert_eq!(error.code(), "service-compaction-unknown");
}

#[tokio::test]
async fn a_crash_in_the_rollback_of_a_compaction_is_taken_up_by_the_next_one_alone() {
    for steps in 1..=4 {
        let (_folder, path, table, compaction) = compaction().await;
        let left = leftovers(&table, &compaction).await;
        let time = table.new_instant(&table.timeline().await.expect("timeline"));
        let mut plan = plan::make(&table, &compaction, &left);
        // As Hudi's listing has it: log files on the compaction's instant among the files.
        let requests = plan.rollback_requests.as_mut().expect("requests");
        let logs: Vec<_> =
            of_instant(&files(&path), &compaction.time).into_iter().filter(|f| f.contains(".log.")).collect();
        requests[0].files_to_be_deleted.push(format!("/t/{}", logs[0]));
        let rollback = |state| Instant::new(time.clone(), Action::Rollback, state);
        let all: [&dyn Fn(); 4] = [
            &|| std::fs::write(path.join(rollback(State::Requested).path()), plan.to_file()).expect("written"),
            &|| std::fs::write(path.join(rollback(State::Inflight).path()), "").expect("written"),
            &|| std::fs::remove_file(path.join(left.files[0].path())).expect("removed"),
            &|| std::fs::write(path.join(rollback(State::Completed).path()), "").expect("written"),
        ];
        all.iter().take(steps).for_each(|step| step());
        assert_eq!(
            rollback_failed_writes(&table, &Writers::none()).await.expect("nothing failed"),
            [],
            "after {steps} steps"
        );
        rollback_compaction(&table, &compaction).await.unwrap_or_else(|e| panic!("after {steps} steps: {e}"));
        let rest = of_instant(&files(&path), &compaction.time);
        assert_eq!(rest, [compaction.in_state(State::Requested).path(), logs[0].clone()], "after {steps} steps");
        assert_eq!(last_rollback(&table).await.time == time, steps < 4, "after {steps} steps");
    }
}

#[tokio::test]
async fn blocks_on_a_pending_compaction_are_cancelled_there() {
    let (_folder, path, table, compaction) = compaction().await;
    let (partition, file_id) = view(&table).await.pending_compactions.last_key_value().expect("one").0.clone();
    let time = table.new_instant(&table.timeline().await.expect("timeline"));
    table.request(&time, Action::DeltaCommit).await.expect("requested");
    table.mark_inflight(&time, Action::DeltaCommit, Bytes::new()).await.expect("inflight");
    // The marker of a file that never came to be, and one in the way.
    let file = |n: u32| format!("{partition}/.{file_id}_{}.log.{n}_0-1-2", compaction.time);
    let marker = Marker { path: file(1), marker_type: MarkerType::Append };
    Markers::new(&table.storage, &time).create(&marker).await.expect("marked");
    std::fs::write(path.join(file(4)), "").expect("written");
    let done = rollback_failed_writes(&table, &Writers::none()).await.expect("rolled back");
    assert_eq!((done[0].files_deleted, done[0].log_files_written), (0, 1));
    let written = format!("{partition}/.{file_id}_{}.log.5_1-0-1", compaction.time);
    assert_cancels(&table, written, &last_rollback(&table).await.time, &time).await;
}
