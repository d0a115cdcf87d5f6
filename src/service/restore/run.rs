//! The steps of a restore.

use super::plan::{Restore, check_files, is_undone, log_compaction};
use crate::service::lock::Held;
use crate::service::rollback::{resume_undo, target_of, undo};
use crate::service::{Error, Result};
use crate::table::{self, Action, Instant, InstantInfo, InstantTime, Markers, RestoreMetadata, RestorePlan};
use crate::table::{RollbackMetadata, State, Table, Timeline, TimelineRecord};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Files of the plan's version in Hudi 0.15 (`RestorePlanActionExecutor.LATEST_RESTORE_PLAN_VERSION`).
const PLAN_VERSION: i32 = 2;

/// What a restore has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// In the order in which they were undone; of a restore that was begun by another process, its part included.
    pub undone: Vec<InstantInfo>,
    pub files_deleted: usize,
    /// Log files with a rollback block that were written (merge-on-read).
    pub log_files_written: usize,
}

/// Does what was planned. Nothing is done where nothing was written since.
pub async fn restore(table: &Table, held: &Held, planned: &Restore) -> Result<Restored> {
    if table.has_metadata_table() {
        return Err(Error::MetadataTable { instant: planned.to.to_string() });
    }
    held.check().await?;
    if planned.pending.is_none() && planned.undo.is_empty() {
        forget_rollbacks(table, &planned.to, None).await?;
        return Ok(Restored::default());
    }
    let started = std::time::Instant::now();
    let mut run = Run::begin(table, planned).await?;
    run.all(&planned.undo).await?;
    // What came in between rests on rows that are gone.
    while let Some(late) = run.begun_meanwhile().await? {
        tracing::warn!(instant = %late.time, "a write began before the restore was to be seen: it is undone, too");
        run.all(&[late]).await?;
    }
    held.check().await?;
    run.complete(started.elapsed()).await
}

struct Run<'a> {
    table: &'a Table,
    to: &'a InstantTime,
    restore: InstantTime,
    /// Instants for rollbacks, the next one last; when they are used up, new ones are drawn.
    times: Vec<InstantTime>,
    done: Vec<(InstantInfo, RollbackMetadata)>,
}

impl<'a> Run<'a> {
    async fn begin(table: &'a Table, planned: &'a Restore) -> Result<Run<'a>> {
        let timeline = table.timeline_as_it_is().await?;
        let restore = match &planned.pending {
            Some(pending) => pending.time.clone(),
            None => {
                // Greater than the newest by a millisecond for each rollback, at least.
                planned.undo.iter().for_each(|_| drop(table.new_instant(&timeline)));
                let restore = table.new_instant(&timeline);
                let plan = RestorePlan {
                    instants_to_rollback: planned.undo.iter().map(InstantInfo::from).collect(),
                    version: Some(PLAN_VERSION),
                    savepoint_to_restore_timestamp: Some(planned.to.to_string()),
                };
                let requested = Instant::new(restore.clone(), Action::Restore, State::Requested);
                table.create_instant(&requested, plan.to_file()).await?;
                restore
            }
        };
        let requested = Instant::new(restore.clone(), Action::Restore, State::Requested);
        if planned.pending.as_ref().is_none_or(|pending| pending.state == State::Requested) {
            // Nothing is undone yet. A clean that does not see this plan before it deletes is seen here.
            let now = table.timeline_as_it_is().await?;
            let later: Vec<Instant> = now.completed_writes().filter(|write| write.time > planned.to).cloned().collect();
            if let Err(e) = check_files(table, &now, &planned.to, &later).await {
                table.storage.delete(&requested.path()).await?;
                return Err(e);
            }
        }
        let times = times_before(&restore, &timeline, planned.undo.len());
        match table.mark_inflight(&restore, Action::Restore, Bytes::new()).await {
            Err(table::Error::InstantExists { .. }) => {}
            other => other?,
        }
        let done = match &planned.pending {
            Some(_) => done_before(table, &timeline, &planned.to).await?,
            None => Vec::new(),
        };
        Ok(Run { table, to: &planned.to, restore, times, done })
    }

    async fn all(&mut self, instants: &[Instant]) -> Result<()> {
        for instant in instants {
            let timeline = self.table.timeline_as_it_is().await?;
            let metadata = match self.begun(&timeline, instant).await? {
                Some(metadata) => metadata,
                None => {
                    let time = self.times.pop().unwrap_or_else(|| self.table.new_instant(&timeline));
                    undo(self.table, &timeline, instant, &time, self.to).await?
                }
            };
            tracing::info!(instant = %instant.time, action = %instant.action, "undone");
            self.done.push((InstantInfo::from(instant), metadata));
        }
        Ok(())
    }

    /// Finishes the rollback of an instant that a restore has begun: its plan knows what the timeline does not say any more.
    async fn begun(&self, timeline: &Timeline, instant: &Instant) -> Result<Option<RollbackMetadata>> {
        for pending in timeline.pending(Action::Rollback).rev().filter(|rollback| rollback.time > *self.to) {
            if target_of(self.table, pending).await?.is_some_and(|target| target.time == instant.time) {
                return resume_undo(self.table, pending, instant).await;
            }
        }
        Ok(None)
    }

    /// Between the look at the timeline and the restore's own instant, whether it has completed or not: the newest.
    async fn begun_meanwhile(&self) -> Result<Option<Instant>> {
        let timeline = self.table.timeline_as_it_is().await?;
        let newest = timeline.instants.iter().rfind(|i| is_undone(i) && i.time > *self.to);
        match newest.filter(|newest| newest.action == Action::LogCompaction) {
            Some(pending) => Err(log_compaction(self.table, pending)),
            None => Ok(newest.cloned()),
        }
    }

    async fn complete(self, took: std::time::Duration) -> Result<Restored> {
        let (table, undone) = (self.table, self.done.iter().map(|(info, _)| info.clone()).collect::<Vec<_>>());
        let (mut files_deleted, mut log_files_written) = (0, 0);
        for partition in self.done.iter().flat_map(|(_, metadata)| metadata.partition_metadata.values()) {
            files_deleted += partition.success_delete_files.len();
            log_files_written += partition.rollback_log_files.as_ref().map_or(0, BTreeMap::len);
        }
        let metadata = RestoreMetadata {
            start_restore_time: self.restore.to_string(),
            time_taken_in_millis: i64::try_from(took.as_millis()).unwrap_or(i64::MAX),
            instants_to_rollback: undone.iter().map(|info| info.commit_time.clone()).collect(),
            hoodie_restore_metadata: self
                .done
                .into_iter()
                .map(|(info, metadata)| (info.commit_time, vec![Some(metadata)]))
                .collect(),
            version: Some(1),
            restore_instant_info: undone.clone(),
        };
        table.complete(&self.restore, Action::Restore, metadata.to_file()).await?;
        forget_rollbacks(table, self.to, Some(&self.restore)).await?;
        Ok(Restored { undone, files_deleted, log_files_written })
    }
}

/// Instants right before the restore's, the first one last, as far as they are free and greater than all others: also where a
/// restore goes on that has died.
fn times_before(restore: &InstantTime, timeline: &Timeline, count: usize) -> Vec<InstantTime> {
    let others = timeline.instants.iter().filter(|i| i.time < *restore && i.action != Action::Rollback);
    let newest = others.map(|i| &i.time).max();
    let is_free = |time: &InstantTime| newest.is_none_or(|newest| time > newest) && !timeline.has(time);
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    (1..=count).map_while(|millis| restore.millis_before(millis)).filter(is_free).collect()
}

/// What rollbacks of a restore that died have done, in their order.
async fn done_before(
    table: &Table,
    timeline: &Timeline,
    to: &InstantTime,
) -> Result<Vec<(InstantInfo, RollbackMetadata)>> {
    let mut done = Vec::new();
    let rollbacks = timeline.instants.iter().filter(|i| i.action == Action::Rollback && i.time > *to);
    for rollback in rollbacks.filter(|rollback| !rollback.is_pending()) {
        let bytes = table.read_instant(rollback).await?;
        let metadata = RollbackMetadata::from_file(&bytes)
            .map_err(|why| Error::RollbackPlan { path: table.storage.display(&rollback.path()), why })?;
        let info = metadata.instants_rollback.first().cloned();
        // One of a failed write, from before the restore, is none of its own.
        if let Some(info) = info.filter(|info| info.commit_time.as_str() > to.as_str()) {
            done.push((info, metadata));
        }
    }
    Ok(done)
}

/// Rollbacks of what is no more. The completed file goes last, lest one be pending again; and one that is newer than the
/// restore, as Spark makes them, stays: it keeps the instants of later writes above its rollback blocks.
async fn forget_rollbacks(table: &Table, to: &InstantTime, restore: Option<&InstantTime>) -> Result<()> {
    let timeline = table.timeline_as_it_is().await?;
    let newest_other = timeline.instants.iter().rfind(|i| i.action != Action::Rollback).map(|i| &i.time);
    let rollbacks: Vec<&Instant> =
        timeline.instants.iter().filter(|i| i.action == Action::Rollback && i.time > *to).collect();
    let floor = restore.or(newest_other);
    let stays = rollbacks.last().filter(|newest| Some(&newest.time) > floor && !newest.is_pending());
    for rollback in rollbacks.iter().filter(|rollback| Some(*rollback) != stays) {
        // A restore that died may have left those of its rollback blocks.
        Markers::new(&table.storage, &rollback.time).remove_all().await?;
        for state in [State::Inflight, State::Requested, State::Completed] {
            table.storage.delete(&rollback.in_state(state).path()).await?;
        }
    }
    Ok(())
}
