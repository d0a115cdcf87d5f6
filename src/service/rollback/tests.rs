//! Failures that Hudi on Spark has left, and crashes of a rollback between any two of its steps.

mod lost;
mod merge_on_read;

use super::*;
use crate::table::FileSystemView;
use crate::table::tests::{golden, open};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A table of Hudi's with a failed write, its metadata table disabled.
async fn failed(name: &str) -> (tempfile::TempDir, PathBuf, Table) {
    let (folder, path) = golden(name);
    let mut table = open(&path).await;
    table.disable_metadata_table().await.expect("disabled");
    (folder, path, table)
}

/// All files but Hadoop's side files, relative to the table.
fn files(path: &Path) -> BTreeSet<String> {
    fn walk(folder: &Path, root: &Path, into: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, root, into);
            } else if path.extension().is_none_or(|e| e != "crc") {
                into.insert(path.strip_prefix(root).expect("below").to_str().expect("utf-8").to_string());
            }
        }
    }
    let mut all = BTreeSet::new();
    walk(path, path, &mut all);
    all
}

fn of_instant(all: &BTreeSet<String>, instant: &InstantTime) -> Vec<String> {
    all.iter().filter(|f| f.contains(instant.as_str())).cloned().collect()
}

async fn pending(table: &Table) -> Instant {
    table.timeline().await.expect("timeline").pending_writes().next_back().expect("a failed write").clone()
}

async fn leftovers(table: &Table, write: &Instant) -> Leftovers {
    let timeline = table.timeline().await.expect("timeline");
    Leftovers::of(table, &timeline, write).await.expect("leftovers")
}

#[tokio::test]
async fn failures_of_hudi_are_rolled_back_as_hudi_does_it() {
    for name in ["v6_cow_inflight", "v6_cow_inflight_direct_markers"] {
        let (_folder, path, table) = failed(name).await;
        let before = table.timeline().await.expect("timeline");
        let view = FileSystemView::load(&table, &before, None).await.expect("view");
        let write = pending(&table).await;
        let data: Vec<String> =
            of_instant(&files(&path), &write.time).into_iter().filter(|f| !f.starts_with(".hoodie")).collect();
        assert_eq!(data.len(), 2, "{name}");
        // As if the writer had died in its last step: the commit has its bytes, and not its name.
        let completed = write.in_state(State::Completed).path();
        std::fs::write(path.join(format!("{completed}#1")), "{}").expect("half a commit");

        let done = rollback_failed_writes(&table, &Writers::none()).await.expect(name);
        let want = RolledBack { instant: write.clone(), files_deleted: 2, log_files_written: 0 };
        assert_eq!(done, [want], "{name}");
        assert_eq!(of_instant(&files(&path), &write.time), [""; 0], "{name}");

        let after = table.timeline().await.expect("timeline");
        let rollback = after.instants.last().expect("the rollback");
        assert_eq!((rollback.action, rollback.state), (Action::Rollback, State::Completed), "{name}");
        assert!(rollback.time > write.time && Some(&rollback.time) > before.newest(), "{name}");
        let plan = table.read_instant(&rollback.in_state(State::Requested)).await.expect("plan");
        let plan = RollbackPlan::from_file(&plan).expect("plan");
        assert_eq!(plan.instant_to_rollback, Some(InstantInfo::from(&write)));
        let metadata =
            RollbackMetadata::from_file(&table.read_instant(rollback).await.expect("read")).expect("metadata");
        assert_eq!(metadata.commits_rollback, [write.time.to_string()]);
        let mut deleted: Vec<_> = metadata.partition_metadata.values().flat_map(|p| &p.success_delete_files).collect();
        deleted.sort();
        let mut want: Vec<_> = data.iter().map(|f| path.join(f).to_str().expect("utf-8").to_string()).collect();
        want.sort();
        assert_eq!(deleted, want.iter().collect::<Vec<_>>(), "{name}");
        let same = FileSystemView::load(&table, &after, None).await.expect("view");
        assert_eq!(same.partitions, view.partitions, "{name}: readers see no difference");
        assert_eq!(
            rollback_failed_writes(&table, &Writers::none()).await.expect(name),
            [],
            "{name}: nothing is left to do"
        );
    }
}

/// A plan of Hudi's own is taken up wherever the table lies now.
#[tokio::test]
async fn a_rollback_that_hudi_has_planned_is_finished() {
    let (_folder, path, table) = failed("v6_cow_rollback").await;
    let timeline = table.timeline().await.expect("timeline");
    let rollback = timeline.instants.last().expect("the rollback").clone();
    let metadata = table.read_instant(&rollback).await.expect("metadata");
    let theirs = RollbackMetadata::from_file(&metadata).expect("metadata");
    std::fs::remove_file(path.join(rollback.path())).expect("reopened");
    // As if its first deletes had not been done.
    for (partition, deleted) in &theirs.partition_metadata {
        for file in &deleted.success_delete_files {
            let name = Path::new(file).file_name().expect("a name");
            std::fs::write(path.join(partition).join(name), "x").expect("written");
        }
    }
    let done = rollback_failed_writes(&table, &Writers::none()).await.expect("resumed");
    assert_eq!(done.len(), 1);
    let ours = RollbackMetadata::from_file(&table.read_instant(&rollback).await.expect("read")).expect("metadata");
    assert_eq!(ours.commits_rollback, theirs.commits_rollback);
    assert_eq!(ours.total_files_deleted, theirs.total_files_deleted);
    assert_eq!(ours.instants_rollback, theirs.instants_rollback);
    let failed = InstantTime::parse(&theirs.commits_rollback[0]).expect("digits");
    assert_eq!(of_instant(&files(&path), &failed), [""; 0]);
}

/// Goes through the steps of a rollback one by one, stops after each, and starts again.
#[tokio::test]
async fn a_crash_between_any_two_steps_is_taken_up() {
    let mut ends = BTreeSet::new();
    for steps in 0..=8 {
        let (_folder, path, table) = failed("v6_cow_inflight_direct_markers").await;
        let write = pending(&table).await;
        let left = leftovers(&table, &write).await;
        let time = table.new_instant(&table.timeline().await.expect("timeline"));
        let plan = plan::make(&table, &write, &left).to_file();
        let meta = path.join(".hoodie");
        let state_file = |state| path.join(write.in_state(state).path());
        let rollback_file = |state| path.join(Instant::new(time.clone(), Action::Rollback, state).path());
        let markers = meta.join(".temp").join(write.time.as_str());
        let remove = |path: PathBuf| std::fs::remove_file(path).expect("removed");
        let all: [&dyn Fn(); 8] = [
            &|| std::fs::write(rollback_file(State::Requested), &plan).expect("written"),
            &|| std::fs::write(rollback_file(State::Inflight), "").expect("written"),
            &|| remove(path.join(left.files[0].path())),
            &|| remove(path.join(left.files[1].path())),
            &|| remove(state_file(State::Inflight)),
            &|| remove(state_file(State::Requested)),
            &|| std::fs::remove_dir_all(&markers).expect("removed"),
            &|| std::fs::create_dir_all(&markers).expect("Hudi's order: markers last"),
        ];
        all.iter().take(steps).for_each(|step| step());

        let done = rollback_failed_writes(&table, &Writers::none())
            .await
            .unwrap_or_else(|e| panic!("after {steps} steps: {e}"));
        assert_eq!(done.len(), 1, "after {steps} steps");
        assert_eq!(of_instant(&files(&path), &write.time), [""; 0], "after {steps} steps");
        let after = table.timeline().await.expect("timeline");
        let rollbacks: Vec<_> = after.instants.iter().filter(|i| i.action == Action::Rollback).collect();
        assert_eq!(rollbacks.len(), 1, "after {steps} steps");
        assert_eq!(rollbacks[0].state, State::Completed);
        assert_eq!(rollbacks[0].time == time, steps > 0, "the same rollback goes on");
        let data: Vec<String> = files(&path).into_iter().filter(|f| !f.starts_with(".hoodie/")).collect();
        ends.insert(data);
    }
    assert_eq!(ends.len(), 1, "every crash ends in the same data files");
}

#[tokio::test]
async fn data_is_found_by_listing_where_markers_are_gone_or_torn() {
    for (name, torn) in [("markers gone", None), ("a torn marker file", Some("eu/half.parq"))] {
        let (_folder, path, table) = failed("v6_cow_inflight").await;
        let write = pending(&table).await;
        let markers = path.join(".hoodie/.temp").join(write.time.as_str());
        match torn {
            None => std::fs::remove_dir_all(&markers).expect("removed"),
            Some(text) => std::fs::write(markers.join("MARKERS0"), text).expect("written"),
        }
        let done = rollback_failed_writes(&table, &Writers::none()).await.expect(name);
        assert_eq!(done[0].files_deleted, 2, "{name}");
        assert_eq!(of_instant(&files(&path), &write.time), [""; 0], "{name}");
    }
}

#[tokio::test]
async fn what_was_only_requested_leaves_an_empty_plan() {
    let (_folder, path, table) = failed("v6_cow_no_mdt").await;
    let time = table.new_instant(&table.timeline().await.expect("timeline"));
    table.request(&time, Action::Commit).await.expect("requested");
    let done = rollback(&table, &Instant::new(time.clone(), Action::Commit, State::Requested), &Writers::none())
        .await
        .expect("rolled back");
    assert_eq!(done.expect("something to undo").files_deleted, 0);
    assert_eq!(of_instant(&files(&path), &time), [""; 0]);
}

#[tokio::test]
async fn several_failures_go_newest_first_and_insert_overwrite_goes_too() {
    let (_folder, path, table) = failed("v6_cow_inflight").await;
    let older = pending(&table).await;
    let newer = table.new_instant(&table.timeline().await.expect("timeline"));
    table.request(&newer, Action::ReplaceCommit).await.expect("requested");
    table.mark_inflight(&newer, Action::ReplaceCommit, Bytes::new()).await.expect("inflight");
    let done = rollback_failed_writes(&table, &Writers::none()).await.expect("rolled back");
    let order: Vec<_> = done.iter().map(|d| (&d.instant.time, d.instant.action)).collect();
    assert_eq!(order, [(&newer, Action::ReplaceCommit), (&older.time, Action::Commit)]);
    assert_eq!(of_instant(&files(&path), &newer), [""; 0]);
}

#[tokio::test]
async fn clustering_that_waits_is_left_alone() {
    let (_folder, path, table) = failed("v6_cow_clustering").await;
    let timeline = table.timeline().await.expect("timeline");
    let clustering = timeline.completed_replacements().next().expect("one").clone();
    let plan = table.requested_replace(&clustering).await.expect("read").expect("a plan");
    for later in timeline.instants.iter().filter(|i| i.time >= clustering.time) {
        std::fs::remove_file(path.join(later.path())).expect("removed");
    }
    assert_eq!(pending(&table).await.action, Action::Commit, "the write after it is inflight again");
    rollback_failed_writes(&table, &Writers::none()).await.expect("rolled back");
    let left = table.timeline().await.expect("timeline");
    let left: Vec<_> = left.pending_writes().collect();
    assert_eq!(left, [&clustering.in_state(State::Inflight)]);
    assert_eq!(table.requested_replace(left[0]).await.expect("read"), Some(plan));
}

#[tokio::test]
async fn what_we_must_not_roll_back_is_refused_by_name() {
    // A commit after the failed one.
    let (_folder, path, table) = failed("v6_cow_inflight").await;
    let write = pending(&table).await;
    let later = table.new_instant(&table.timeline().await.expect("timeline"));
    std::fs::write(path.join(format!(".hoodie/{later}.commit")), "{}").expect("written");
    let before = files(&path);
    let error = rollback_failed_writes(&table, &Writers::none()).await.expect_err("a later commit");
    assert_eq!(error.code(), "service-rollback-commits-after");
    assert!(error.to_string().contains(write.time.as_str()) && error.to_string().contains(later.as_str()), "{error}");
    assert_eq!(files(&path), before, "nothing has changed");

    // The same, left by a concurrent writer: alive, then silent for long.
    let heartbeat = path.join(".hoodie/.heartbeat").join(write.time.as_str());
    std::fs::create_dir_all(heartbeat.parent().expect("a folder")).expect("made");
    std::fs::write(&heartbeat, "").expect("written");
    let error = rollback_failed_writes(&table, &Writers::none()).await.expect_err("alive");
    assert_eq!(error.code(), "service-rollback-writer-alive");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(121);
    let file = std::fs::File::options().write(true).open(&heartbeat).expect("opened");
    file.set_modified(long_ago).expect("aged");
    assert_eq!(rollback_failed_writes(&table, &Writers::none()).await.expect("rolled back").len(), 1);
    assert!(!heartbeat.exists());

    // The metadata table is still on.
    let (_folder, path) = golden("v6_cow_inflight");
    let error = rollback_failed_writes(&open(&path).await, &Writers::none()).await.expect_err("metadata table");
    assert_eq!(error.code(), "service-rollback-metadata-table");
}

/// Somebody has asked for it, and died right after.
#[tokio::test]
async fn the_rollback_of_a_completed_write_is_finished_while_nothing_rests_on_it() {
    let (_folder, path, table) = failed("v6_cow_no_mdt").await;
    let timeline = table.timeline().await.expect("timeline");
    let writes: Vec<Instant> = timeline.completed_writes().cloned().collect();
    let (first, newest) = (writes.first().expect("one"), writes.last().expect("one"));
    let time = table.new_instant(&timeline);
    let plan = async |target: &Instant| {
        let left = Leftovers::whole(&table, &timeline, target, &target.time).await.expect("leftovers");
        let path = path.join(Instant::new(time.clone(), Action::Rollback, State::Requested).path());
        std::fs::write(path, plan::make(&table, target, &left).to_file()).expect("written");
    };
    plan(first).await;
    let before = files(&path);
    let error = rollback_failed_writes(&table, &Writers::none()).await.expect_err("others rest on it");
    assert_eq!((error.code(), files(&path)), ("service-rollback-not-newest", before));

    plan(newest).await;
    let done = rollback_failed_writes(&table, &Writers::none()).await.expect("finished");
    assert_eq!(done.iter().map(|done| &done.instant).collect::<Vec<_>>(), [newest]);
    assert_eq!(of_instant(&files(&path), &newest.time), [""; 0]);
    let after = table.timeline().await.expect("timeline");
    assert_eq!(after.completed_writes().cloned().collect::<Vec<_>>(), writes[..writes.len() - 1]);
}

#[tokio::test]
async fn a_plan_that_names_other_files_deletes_nothing() {
    let (_folder, path, table) = failed("v6_cow_inflight").await;
    let write = pending(&table).await;
    let mut plan = plan::make(&table, &write, &leftovers(&table, &write).await);
    let victim = files(&path).into_iter().find(|f| f.ends_with(".parquet") && !f.contains(write.time.as_str()));
    let requests = plan.rollback_requests.as_mut().expect("requests");
    requests[1].files_to_be_deleted = vec![format!("/t/{}", victim.expect("a file of the earlier commit"))];
    let time = table.new_instant(&table.timeline().await.expect("timeline"));
    let requested = Instant::new(time, Action::Rollback, State::Requested);
    table.create_instant(&requested, plan.to_file()).await.expect("requested");
    let before = files(&path);
    assert_eq!(
        rollback_failed_writes(&table, &Writers::none()).await.expect_err("refused").code(),
        "service-rollback-plan"
    );
    assert_eq!(files(&path), before);
}

#[tokio::test]
async fn markers_of_a_completed_write_go() {
    let (_folder, path, table) = failed("v6_cow_no_mdt").await;
    let timeline = table.timeline().await.expect("timeline");
    let temp = path.join(".hoodie/.temp");
    let done = temp.join(timeline.last_completed_write().expect("one").time.as_str());
    let running = temp.join(table.new_instant(&timeline).as_str());
    for folder in [&done, &running] {
        std::fs::create_dir_all(folder.join("eu")).expect("made");
        std::fs::write(folder.join("eu/f.parquet.marker.CREATE"), "").expect("written");
    }
    rollback_failed_writes(&table, &Writers::none()).await.expect("nothing to roll back");
    assert!(!done.exists() && running.exists());
}
