//! Rollback of failed writes and compactions, marker based, file by file as Hudi does it (table-services.md §6).
//!
//! ```text
//! R.rollback.requested   the plan: what to undo         from here on a crash is taken up by the plan alone
//! R.rollback.inflight
//!   files of T alone     deleted
//!   slices with its log files: a rollback block each, in a new log file, its marker under R before it
//!   T's state files, inflight before requested, then T's markers and heartbeat
//! R.rollback             what was done                  then R's markers
//! ```
//!
//! Hudi removes T's markers after the last step; nobody reads them once there is a plan, and so no crash leaves them. A
//! group that T has opened with log files is deleted, as `ListingBasedRollbackStrategy` 0.15 does it and the marker-based
//! one does not: a rollback block alone would leave a group without rows, which comes to be one of the table when the
//! timeline's start has passed T.
//!
//! A compaction keeps its plan, since log files may be on its instant already: only its base files go, and its inflight
//! file after the rollback has completed.

mod dead;
mod leftovers;
mod log_blocks;
mod lost;
mod newest;
mod plan;
mod undo;

#[cfg(test)]
mod tests;

use super::concurrency::{Life, Lives, Writers, path_of};
use super::{Error, Result};
use crate::config::FailedWritesPolicy;
use crate::table::{self, Action, Instant, InstantInfo, InstantTime, Markers, RollbackMetadata, RollbackPartition};
use crate::table::{PARTITION_METAFILE, RollbackPlan, State, Table, Timeline, TimelineRecord, in_folder};
use bytes::Bytes;
pub(super) use dead::refuse_young;
use futures::stream::{StreamExt, TryStreamExt};
use leftovers::{Leftovers, Scope};
use log_blocks::Appended;
pub(super) use lost::earliest_lost;
pub use lost::{Lost, remove_lost};
pub(super) use newest::{being_taken_back, without};
pub use newest::{find_newest, finish_rollbacks, newest_before, rollback_newest};
use std::collections::{BTreeMap, BTreeSet};
pub(super) use undo::{resume_undo, target_of, undo};

/// Files deleted, or looked at, at a time.
const CONCURRENCY: usize = 16;

/// What was rolled back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolledBack {
    /// The failed write, or compaction.
    pub instant: Instant,
    /// Files that the plan named; some may never have come to exist.
    pub files_deleted: usize,
    /// Log files with a rollback block that were written (merge-on-read).
    pub log_files_written: usize,
}

/// At the start of a write, by the policy for failed ones (`hoodie.cleaner.policy.failed.writes`). Compaction and clustering
/// that wait or run, maybe in another process, are left alone, and so are their rollbacks. To be called before the instant of
/// the write is drawn: a reader stops at blocks that are newer than the newest commit, rollback blocks too.
pub async fn rollback_failed_writes(table: &Table, writers: &Writers) -> Result<Vec<RolledBack>> {
    match writers.failed_writes {
        FailedWritesPolicy::Eager => roll_back_all(table, writers).await,
        FailedWritesPolicy::Lazy => dead::roll_back(table, writers).await,
        FailedWritesPolicy::Never => Ok(Vec::new()),
    }
}

/// Nobody else writes: resumes pending rollbacks, then rolls back every pending write, newest first.
async fn roll_back_all(table: &Table, writers: &Writers) -> Result<Vec<RolledBack>> {
    let mut timeline = table.timeline().await?;
    table.remove_stale_markers(&timeline).await?;
    let mut rolled_back = Vec::new();
    for pending in timeline.pending(Action::Rollback) {
        let Some((target, plan)) = planned(table, pending).await? else { continue };
        if target.action != Action::Compaction && !is_clustering(table, &target).await? {
            rolled_back.push(resume(table, &timeline, pending, target, &plan).await?);
        }
    }
    if timeline.pending(Action::Rollback).next().is_some() {
        timeline = table.timeline().await?;
    }
    for instant in timeline.pending_writes().rev() {
        if !is_clustering(table, instant).await? {
            check_nobody_needs_it(table, &timeline, instant, writers).await?;
            rolled_back.push(begin(table, &timeline, instant).await?);
        }
    }
    Ok(rolled_back)
}

/// Rolls back a write of one's own that has failed. Where somebody else has taken its writer for dead and has done so already,
/// what was written since goes too. `None`: there is nothing to undo; a commit that seemed to fail may still have gone through.
pub async fn rollback(table: &Table, instant: &Instant, writers: &Writers) -> Result<Option<RolledBack>> {
    let held = writers.locks.lock("roll back a write").await?;
    let timeline = table.timeline().await?;
    // As it is now: the caller may have drawn it before it became inflight.
    let rolled_back = match timeline.write_at(&instant.time) {
        Some(now) if now.is_pending() => {
            if !writers.are_several() {
                check_no_commits_after(&timeline, now)?;
            }
            held.check().await?;
            Some(begin(table, &timeline, now).await?)
        }
        Some(_) => None,
        None if Markers::new(&table.storage, &instant.time).files().await?.is_empty() => None,
        None => {
            held.check().await?;
            Some(begin(table, &timeline, instant).await?)
        }
    };
    held.release().await?;
    Ok(rolled_back)
}

/// Takes back what a compaction that died has made, so that its plan can be run again. For its runner alone, whose
/// heartbeat says that nobody else is at it; one that has not begun is left as it is.
pub async fn rollback_compaction(table: &Table, instant: &Instant) -> Result<RolledBack> {
    let timeline = table.timeline().await?;
    let Some(instant) = timeline.pending(Action::Compaction).find(|pending| pending.time == instant.time) else {
        return Err(Error::NoSuchCompaction { instant: instant.time.to_string() });
    };
    for pending in timeline.pending(Action::Rollback) {
        if let Some((target, plan)) = planned(table, pending).await?
            && (target.action, &target.time) == (Action::Compaction, &instant.time)
        {
            return resume(table, &timeline, pending, target, &plan).await;
        }
    }
    if instant.state == State::Requested {
        return Ok(RolledBack { instant: instant.clone(), files_deleted: 0, log_files_written: 0 });
    }
    begin(table, &timeline, instant).await
}

async fn begin(table: &Table, timeline: &Timeline, instant: &Instant) -> Result<RolledBack> {
    check_metadata_table(table, instant)?;
    let leftovers = Leftovers::of(table, timeline, instant).await?;
    let time = table.new_instant(timeline);
    request(table, &time, instant, &leftovers).await?;
    Ok(execute(table, &time, instant, Scope::of_rollback(instant), &leftovers).await?.0)
}

async fn request(table: &Table, time: &InstantTime, instant: &Instant, leftovers: &Leftovers) -> Result<()> {
    let plan = plan::make(table, instant, leftovers);
    let requested = Instant::new(time.clone(), Action::Rollback, State::Requested);
    Ok(table.create_instant(&requested, plan.to_file()).await?)
}

/// What a rollback that we, or Hudi, could not finish is to undo. `None`: it had no plan yet, and is forgotten, as in Hudi.
async fn planned(table: &Table, pending: &Instant) -> Result<Option<(Instant, RollbackPlan)>> {
    let requested = pending.in_state(State::Requested);
    let malformed = |why| Error::RollbackPlan { path: table.storage.display(&requested.path()), why };
    let plan = match RollbackPlan::from_file(&table.read_instant(&requested).await?) {
        Ok(plan) => plan,
        Err(_) if pending.state == State::Requested => {
            table.storage.delete(&requested.path()).await?;
            return Ok(None);
        }
        Err(why) => return Err(malformed(why)),
    };
    let target = plan.instant_to_rollback.as_ref().and_then(InstantInfo::parse);
    match target {
        None => Err(malformed("it names no instant".to_string())),
        Some((_, action)) if !action.is_write() && action != Action::Compaction => {
            Err(malformed(format!("rollback of a {action} is not done by writers")))
        }
        Some((time, action)) => Ok(Some((Instant::new(time, action, State::Inflight), plan))),
    }
}

/// Goes on with a rollback that has a plan.
async fn resume(
    table: &Table,
    timeline: &Timeline,
    pending: &Instant,
    target: Instant,
    plan: &RollbackPlan,
) -> Result<RolledBack> {
    check_metadata_table(table, &target)?;
    let mut target = target;
    // Somebody has asked for it, and has died before the write was taken off the timeline.
    if let Some(completed) = timeline.write_at(&target.time).filter(|write| !write.is_pending()) {
        newest::check_newest(table, timeline, completed).await?;
        newest::check_files(table, timeline, pending, completed).await?;
        target.state = State::Completed;
    }
    let path = table.storage.display(&pending.in_state(State::Requested).path());
    let scope = Scope::of_rollback(&target);
    let leftovers = plan::read(plan, &target, scope, &path)?;
    Ok(execute(table, &pending.time, &target, scope, &leftovers).await?.0)
}

/// The steps after the plan. Each may have been done before; a second rollback block does no harm.
async fn execute(
    table: &Table,
    time: &InstantTime,
    target: &Instant,
    scope: Scope,
    leftovers: &Leftovers,
) -> Result<(RolledBack, RollbackMetadata)> {
    let started = std::time::Instant::now();
    let leftovers = &leftovers.settled(table, target).await?;
    match table.mark_inflight(time, Action::Rollback, Bytes::new()).await {
        Err(table::Error::InstantExists { .. }) => {}
        other => other?,
    }
    undo::take_off_the_timeline(table, target).await?;
    let deletes = leftovers.files.iter().map(|file| async move { table.storage.delete(&file.path()).await });
    futures::stream::iter(deletes).buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
    discard_partition_metafiles(table, leftovers).await?;
    let appended = log_blocks::append(table, time, target, &leftovers.slices).await?;
    if scope == Scope::Whole {
        for state in undo::pending_states(table, target) {
            table.storage.delete(&state.path()).await?;
        }
        table.storage.delete(&path_of(&target.time)).await?;
    }
    // Who dies while an instant completes leaves it without its name: the failed write, and an earlier try of this rollback.
    let rollback = Instant::new(time.clone(), Action::Rollback, State::Completed);
    for completed in [target.in_state(State::Completed), rollback] {
        table.storage.discard_uploads(&completed.path()).await?;
    }
    Markers::new(&table.storage, &target.time).remove_all().await?;

    let (files_deleted, log_files_written) = (leftovers.files.len(), appended.len());
    let metadata = RollbackMetadata {
        start_rollback_time: time.to_string(),
        time_taken_in_millis: i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX),
        total_files_deleted: i32::try_from(files_deleted).unwrap_or(i32::MAX),
        commits_rollback: vec![target.time.to_string()],
        partition_metadata: by_partition(table, leftovers, &appended),
        version: Some(1),
        instants_rollback: vec![InstantInfo::from(target)],
    };
    table.complete(time, Action::Rollback, metadata.to_file()).await?;
    Markers::new(&table.storage, time).remove_all().await?;
    if scope == Scope::Failed {
        table.storage.delete(&target.in_state(State::Inflight).path()).await?;
    }
    Ok((RolledBack { instant: target.clone(), files_deleted, log_files_written }, metadata))
}

/// Those that were never finished: the next write makes them anew, and a later one has no reason to.
async fn discard_partition_metafiles(table: &Table, leftovers: &Leftovers) -> Result<()> {
    let partitions: BTreeSet<&str> = leftovers.files.iter().map(|file| file.partition.as_str()).collect();
    let discards = partitions
        .into_iter()
        .map(|partition| async move { table.storage.discard_uploads(&in_folder(partition, PARTITION_METAFILE)).await });
    futures::stream::iter(discards).buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
    Ok(())
}

fn by_partition(table: &Table, leftovers: &Leftovers, appended: &[Appended]) -> BTreeMap<String, RollbackPartition> {
    fn of<'a>(all: &'a mut BTreeMap<String, RollbackPartition>, partition: &str) -> &'a mut RollbackPartition {
        all.entry(partition.to_string()).or_insert_with(|| RollbackPartition {
            partition_path: partition.to_string(),
            ..RollbackPartition::default()
        })
    }
    let mut partitions = BTreeMap::new();
    for file in &leftovers.files {
        of(&mut partitions, &file.partition).success_delete_files.push(plan::absolute(table, file));
    }
    for slice in &leftovers.slices {
        let logs = &mut of(&mut partitions, &slice.partition).log_files_from_failed_commit;
        logs.get_or_insert_default().extend(plan::log_blocks(slice));
    }
    for log in appended {
        let size = i64::try_from(log.size).unwrap_or(i64::MAX);
        let logs = &mut of(&mut partitions, &log.partition).rollback_log_files;
        logs.get_or_insert_default().insert(table.storage.absolute(&log.path()), size);
    }
    for partition in partitions.values_mut() {
        partition.rollback_log_files.get_or_insert_default();
        partition.log_files_from_failed_commit.get_or_insert_default();
    }
    partitions
}

/// It may hold a deltacommit of the failed instant, which only a rollback inside it would cancel.
fn check_metadata_table(table: &Table, instant: &Instant) -> Result<()> {
    match table.has_metadata_table() {
        true => Err(Error::MetadataTable { instant: instant.time.to_string() }),
        false => Ok(()),
    }
}

/// What `BaseRollbackActionExecutor` 0.15 checks for a single writer, and that no other writer is at work on it.
async fn check_nobody_needs_it(table: &Table, timeline: &Timeline, instant: &Instant, writers: &Writers) -> Result<()> {
    match check_nobody_writes(table, instant, writers).await? {
        Life::None => check_no_commits_after(timeline, instant),
        _ => Ok(()),
    }
}

/// Refuses while the writer of a pending write gives signs of life.
pub(super) async fn check_nobody_writes(table: &Table, instant: &Instant, writers: &Writers) -> Result<Life> {
    match Lives::look(&table.storage, &writers.heartbeat).await?.of(&instant.time).await? {
        Life::Alive { silent_ms } => {
            Err(Error::WriterAlive { instant: instant.time.to_string(), seconds: silent_ms / 1000 })
        }
        life => Ok(life),
    }
}

fn check_no_commits_after(timeline: &Timeline, instant: &Instant) -> Result<()> {
    match timeline.completed_writes().find(|write| write.time > instant.time) {
        Some(later) => Err(Error::CommitsAfter { instant: instant.time.to_string(), later: later.time.to_string() }),
        None => Ok(()),
    }
}

/// Clustering keeps its plan when it fails, and is run again (`hoodie.clustering.plan…`); other replacecommits are writes.
pub(super) async fn is_clustering(table: &Table, instant: &Instant) -> Result<bool> {
    if instant.action != Action::ReplaceCommit {
        return Ok(false);
    }
    Ok(table.requested_replace(instant).await?.is_some_and(|plan| plan.clustering_plan.is_some()))
}
