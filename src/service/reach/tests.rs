//! Ways back, and cleans that come to be known between the look and the plan of each.

use crate::service::lock::{Held, Locks};
use crate::service::{self, Writers};
use crate::table::tests::{golden, open};
use crate::table::{Action, CleanFile, CleanPlan, FileSystemView, Instant, InstantInfo, InstantTime, RestorePlan};
use crate::table::{RollbackPlan, State, Table, Timeline, TimelineRecord};
use std::path::{Path, PathBuf};

/// A table of Hudi's with several commits, and a file that its newest commit has replaced.
struct Messed {
    _folder: tempfile::TempDir,
    path: PathBuf,
    table: Table,
    held: Held,
    before: InstantTime,
    newest: Instant,
    replaced: String,
}

impl Messed {
    async fn new() -> Messed {
        let (folder, path) = golden("v6_cow_no_mdt");
        let table = open(&path).await;
        let timeline = table.timeline().await.expect("a timeline");
        let newest = timeline.last_completed_write().expect("a write").clone();
        let before = service::newest_before(&timeline, &newest.time).expect("one before");
        let view = FileSystemView::load_at(&table, &timeline, &before, None).await.expect("a view");
        let metadata = table.commit_metadata(&newest).await.expect("metadata");
        let updated = metadata.stats().find(|stat| InstantTime::parse(&stat.prev_commit).is_some());
        let updated = updated.expect("a group that it has replaced the file of");
        let mut slices = view.partitions[&updated.partition_path].iter();
        let slice = slices.find(|slice| slice.file_id == updated.file_id).expect("its slice before");
        let replaced = slice.base_file.as_ref().expect("a file").path();
        let held = Locks::none().lock("test").await.expect("none is asked for");
        Messed { _folder: folder, path, table, held, before, newest, replaced }
    }

    fn put(&self, time: &InstantTime, action: Action, content: &[u8]) -> PathBuf {
        let path = self.path.join(Instant::new(time.clone(), action, State::Requested).path());
        std::fs::write(&path, content).expect("written");
        path
    }

    /// A plan on the timeline to delete the replaced file.
    async fn doom(&self) -> PathBuf {
        let (partition, _) = self.replaced.rsplit_once('/').expect("a partition");
        let file =
            CleanFile { file_path: Some(format!("file:/t/{}", self.replaced)), is_bootstrap_base_file: Some(false) };
        let plan = CleanPlan {
            earliest_instant_to_retain: None,
            last_completed_commit_timestamp: self.newest.time.to_string(),
            policy: "KEEP_LATEST_FILE_VERSIONS".to_string(),
            files_to_be_deleted_per_partition: None,
            version: Some(2),
            file_paths_to_be_deleted_per_partition: Some([(partition.to_string(), vec![file])].into()),
            partitions_to_be_deleted: None,
            extra_metadata: None,
        };
        self.put(&self.table.new_instant(&self.timeline().await), Action::Clean, &plan.to_file())
    }

    async fn timeline(&self) -> Timeline {
        self.table.timeline_as_it_is().await.expect("a timeline")
    }

    /// Nothing has been done, and nothing is left on the timeline.
    async fn is_untouched(&self) {
        let timeline = self.timeline().await;
        assert_eq!(timeline.last_completed_write(), Some(&self.newest));
        let left = timeline.instants.iter().find(|i| {
            i.is_pending() && i.action != Action::Clean || matches!(i.action, Action::Savepoint | Action::Restore)
        });
        assert_eq!(left, None);
    }
}

fn remove(path: &Path) {
    std::fs::remove_file(path).expect("removed");
}

#[tokio::test]
async fn a_savepoint_takes_itself_back_where_a_clean_has_been_first() {
    let messed = Messed::new().await;
    let prepared = service::prepare_savepoint(&messed.table, Some(&messed.before), "", "").await.expect("prepared");
    let create = || service::create_savepoint(&messed.table, &messed.held, &prepared);
    let plan = messed.doom().await;
    assert_eq!(create().await.expect_err("a clean is pending").code(), "service-clean-pending");
    messed.is_untouched().await;
    remove(&plan);
    remove(&messed.path.join(&messed.replaced));
    assert_eq!(create().await.expect_err("a clean is over").code(), "service-savepoint-overtaken");
    messed.is_untouched().await;
}

#[tokio::test]
async fn there_is_no_savepoint_of_a_write_that_is_about_to_be_taken_back() {
    let messed = Messed::new().await;
    let prepared = service::prepare_savepoint(&messed.table, None, "", "").await.expect("prepared");
    let plan = RollbackPlan {
        instant_to_rollback: Some(InstantInfo::from(&messed.newest)),
        rollback_requests: Some(Vec::new()),
        version: Some(1),
    };
    let time = messed.table.new_instant(&messed.timeline().await);
    let requested = messed.put(&time, Action::Rollback, &plan.to_file());
    let error = service::create_savepoint(&messed.table, &messed.held, &prepared).await.expect_err("it goes");
    assert_eq!(error.code(), "service-no-such-write");
    remove(&requested);
    messed.is_untouched().await;
    service::create_savepoint(&messed.table, &messed.held, &prepared).await.expect("it stays");
}

#[tokio::test]
async fn a_rollback_of_a_completed_write_gives_way_to_a_clean() {
    let messed = Messed::new().await;
    let (table, writers) = (&messed.table, Writers::none());
    let target = service::find_newest(table, None).await.expect("a look").expect("a write");
    let take_back = || service::rollback_newest(table, &writers, &messed.held, &target);
    let plan = messed.doom().await;
    assert_eq!(take_back().await.expect_err("a clean is pending").code(), "service-clean-pending");
    messed.is_untouched().await;

    // One that was left before its first step.
    let left = RollbackPlan {
        instant_to_rollback: Some(InstantInfo::from(&target)),
        rollback_requests: Some(Vec::new()),
        version: Some(1),
    };
    messed.put(&table.new_instant(&messed.timeline().await), Action::Rollback, &left.to_file());
    let error = service::rollback_failed_writes(table, &writers).await.expect_err("a clean is pending");
    assert_eq!(error.code(), "service-clean-pending");
    messed.is_untouched().await;

    remove(&plan);
    let file = messed.path.join(&messed.replaced);
    let content = std::fs::read(&file).expect("read");
    remove(&file);
    assert_eq!(take_back().await.expect_err("a clean is over").code(), "service-cleaned");
    messed.is_untouched().await;

    std::fs::write(&file, content).expect("written");
    assert_eq!(take_back().await.expect("taken back").instant, target);
}

#[tokio::test]
async fn a_restore_gives_way_to_a_clean_until_it_has_begun() {
    let messed = Messed::new().await;
    let (table, writers) = (&messed.table, Writers::none());
    let planned = service::plan_restore(table, &writers, Some(&messed.before)).await.expect("planned");
    let plan = messed.doom().await;
    let error = service::restore(table, &messed.held, &planned).await.expect_err("a clean is pending");
    assert_eq!(error.code(), "service-clean-pending");
    messed.is_untouched().await;

    // One that was left before its first step.
    let left = RestorePlan {
        instants_to_rollback: vec![InstantInfo::from(&messed.newest)],
        version: Some(2),
        savepoint_to_restore_timestamp: Some(messed.before.to_string()),
    };
    messed.put(&table.new_instant(&messed.timeline().await), Action::Restore, &left.to_file());
    let begun = service::plan_restore(table, &writers, None).await.expect("it goes on");
    assert!(begun.pending.is_some());
    let error = service::restore(table, &messed.held, &begun).await.expect_err("a clean is pending");
    assert_eq!(error.code(), "service-clean-pending");
    messed.is_untouched().await;

    remove(&plan);
    let done = service::restore(table, &messed.held, &planned).await.expect("restored");
    assert_eq!(done.undone, [InstantInfo::from(&messed.newest)]);
    assert_eq!(messed.timeline().await.last_completed_write().map(|write| &write.time), Some(&messed.before));
}
