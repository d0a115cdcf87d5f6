//! Rollback of failed writes, marker based, file by file as Hudi does it (table-services.md §6).
//!
//! ```text
//! R.rollback.requested   the plan: what to delete        from here on a crash is taken up by the plan alone
//! R.rollback.inflight
//!   data files of T      then T's state files, inflight before requested, then T's markers and heartbeat
//! R.rollback             what was deleted
//! ```
//!
//! Hudi removes the markers after the last step; nobody reads them once there is a plan, and so no crash leaves them.

mod plan;

#[cfg(test)]
mod tests;

use super::{Error, Result};
use crate::table::{self, Action, Instant, InstantInfo, InstantTime, Markers, RollbackMetadata, RollbackPartition};
use crate::table::{RollbackPlan, State, Table, Timeline, TimelineRecord};
use bytes::Bytes;
use futures::stream::{StreamExt, TryStreamExt};
use plan::DataFile;
use std::collections::BTreeMap;

/// Files deleted at a time.
const CONCURRENCY: usize = 16;

/// A heartbeat this old is a dead writer's: `hoodie.client.heartbeat.interval_in_ms` × `….tolerable.misses` of Hudi 0.15.
pub(super) const HEARTBEAT_EXPIRES_MS: i64 = 2 * 60_000;

pub(super) const HEARTBEATS: &str = ".hoodie/.heartbeat";

/// What was rolled back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolledBack {
    /// The failed write.
    pub instant: Instant,
    /// Files that the plan named; some may never have come to exist.
    pub files_deleted: usize,
}

/// At the start of a write: resumes pending rollbacks, then rolls back every pending write, newest first. Clustering that
/// waits or runs is left alone. To be called before the instant of the write is drawn, so that it is the greater one.
pub async fn rollback_failed_writes(table: &Table) -> Result<Vec<RolledBack>> {
    let mut timeline = table.timeline().await?;
    table.remove_stale_markers(&timeline).await?;
    let mut rolled_back = Vec::new();
    for pending in timeline.pending(Action::Rollback) {
        rolled_back.extend(resume(table, &timeline, pending).await?);
    }
    if timeline.pending(Action::Rollback).next().is_some() {
        timeline = table.timeline().await?;
    }
    for instant in timeline.pending_writes().rev() {
        if !is_clustering(table, instant).await? {
            rolled_back.push(rollback_on(table, &timeline, instant).await?);
        }
    }
    Ok(rolled_back)
}

/// Rolls back one pending write.
pub async fn rollback(table: &Table, instant: &Instant) -> Result<RolledBack> {
    let timeline = table.timeline().await?;
    // As it is now: the caller may have drawn it before it became inflight.
    let instant = timeline.write_at(&instant.time).unwrap_or(instant);
    rollback_on(table, &timeline, instant).await
}

async fn rollback_on(table: &Table, timeline: &Timeline, instant: &Instant) -> Result<RolledBack> {
    check_kind(table, instant)?;
    check_nobody_needs_it(table, timeline, instant).await?;
    let files = plan::files_of(table, instant).await?;
    let plan = plan::make(table, instant, &files);
    let time = table.new_instant(timeline);
    let requested = Instant::new(time.clone(), Action::Rollback, State::Requested);
    table.create_instant(&requested, plan.to_file()).await?;
    execute(table, &time, instant, &files).await
}

/// Goes on with a rollback that we, or Hudi, could not finish. `None`: it had no plan yet, and is forgotten, as in Hudi.
async fn resume(table: &Table, timeline: &Timeline, pending: &Instant) -> Result<Option<RolledBack>> {
    let requested = pending.in_state(State::Requested);
    let path = || table.storage.display(&requested.path());
    let plan = match RollbackPlan::from_file(&table.read_instant(&requested).await?) {
        Ok(plan) => plan,
        Err(_) if pending.state == State::Requested => {
            table.storage.delete(&requested.path()).await?;
            return Ok(None);
        }
        Err(why) => return Err(Error::RollbackPlan { path: path(), why }),
    };
    let target = plan.instant_to_rollback.as_ref().and_then(InstantInfo::parse);
    let Some((time, action)) = target else {
        return Err(Error::RollbackPlan { path: path(), why: "it names no instant".to_string() });
    };
    let target = Instant::new(time, action, State::Inflight);
    check_kind(table, &target)?;
    if timeline.write_at(&target.time).is_some_and(|write| !write.is_pending()) {
        return Err(Error::CompletedWrite { rollback: pending.time.to_string(), instant: target.time.to_string() });
    }
    let files = plan::read(&plan, &target, &path())?;
    execute(table, &pending.time, &target, &files).await.map(Some)
}

/// The steps after the plan. Each may have been done before.
async fn execute(table: &Table, time: &InstantTime, target: &Instant, files: &[DataFile]) -> Result<RolledBack> {
    let started = std::time::Instant::now();
    match table.mark_inflight(time, Action::Rollback, Bytes::new()).await {
        Err(table::Error::InstantExists { .. }) => {}
        other => other?,
    }
    let deletes = files.iter().map(|file| async move { table.storage.delete(&file.path()).await });
    futures::stream::iter(deletes).buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
    for state in [State::Inflight, State::Requested] {
        table.storage.delete(&target.in_state(state).path()).await?;
    }
    Markers::new(&table.storage, &target.time).remove_all().await?;
    table.storage.delete(&format!("{HEARTBEATS}/{}", target.time)).await?;

    let metadata = RollbackMetadata {
        start_rollback_time: time.to_string(),
        time_taken_in_millis: i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX),
        total_files_deleted: i32::try_from(files.len()).unwrap_or(i32::MAX),
        commits_rollback: vec![target.time.to_string()],
        partition_metadata: deleted_by_partition(table, files),
        version: Some(1),
        instants_rollback: vec![InstantInfo::from(target)],
    };
    table.complete(time, Action::Rollback, metadata.to_file()).await?;
    Ok(RolledBack { instant: target.clone(), files_deleted: files.len() })
}

fn deleted_by_partition(table: &Table, files: &[DataFile]) -> BTreeMap<String, RollbackPartition> {
    let mut partitions = BTreeMap::<String, RollbackPartition>::new();
    for file in files {
        let partition = partitions.entry(file.partition.clone()).or_insert_with(|| RollbackPartition {
            partition_path: file.partition.clone(),
            rollback_log_files: Some(BTreeMap::new()),
            log_files_from_failed_commit: Some(BTreeMap::new()),
            ..RollbackPartition::default()
        });
        partition.success_delete_files.push(plan::absolute(table, file));
    }
    partitions
}

fn check_kind(table: &Table, instant: &Instant) -> Result<()> {
    if table.properties.is_merge_on_read() || !matches!(instant.action, Action::Commit | Action::ReplaceCommit) {
        return Err(Error::MergeOnRead { instant: instant.time.to_string(), action: instant.action.to_string() });
    }
    // It may hold a deltacommit of the failed instant, which only a rollback inside it would cancel.
    if table.has_metadata_table() {
        return Err(Error::MetadataTable { instant: instant.time.to_string() });
    }
    Ok(())
}

/// What `BaseRollbackActionExecutor` 0.15 checks for a single writer, and that no other writer is at work on it.
async fn check_nobody_needs_it(table: &Table, timeline: &Timeline, instant: &Instant) -> Result<()> {
    let time = instant.time.to_string();
    let heartbeats = table.storage.list(HEARTBEATS).await?.files;
    let heartbeat = heartbeats.iter().find(|file| file.path.rsplit('/').next() == Some(&time));
    if let Some(heartbeat) = heartbeat {
        let silent_ms = chrono::Utc::now().timestamp_millis().saturating_sub(heartbeat.modified_ms);
        if silent_ms < HEARTBEAT_EXPIRES_MS {
            return Err(Error::WriterAlive { instant: time, seconds: silent_ms / 1000 });
        }
        return Ok(());
    }
    match timeline.completed_writes().find(|write| write.time > instant.time) {
        Some(later) => Err(Error::CommitsAfter { instant: time, later: later.time.to_string() }),
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
