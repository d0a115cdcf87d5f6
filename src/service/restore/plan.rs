//! What a restore is to undo, and whether it can be done.

use crate::service::concurrency::Life;
use crate::service::reach::{self, Undone};
use crate::service::rollback::{check_nobody_writes, is_clustering, refuse_young};
use crate::service::savepoint;
use crate::service::{BackError, Error, Result, Writers, compaction};
use crate::table::{Action, Instant, InstantInfo, InstantTime, RestorePlan, State, Table, Timeline, TimelineRecord};

/// A restore that may begin, or go on.
#[derive(Debug, Clone)]
pub struct Restore {
    /// The write that is the newest afterwards.
    pub to: InstantTime,
    /// Whether it has a savepoint.
    pub is_savepoint: bool,
    /// What is undone, in this order; each in the state in which it is now. Of a restore that was begun, what is left.
    pub undo: Vec<Instant>,
    /// The restore that somebody has begun.
    pub pending: Option<Instant>,
}

/// Finds out what a restore to `wanted`, or to the newest savepoint, has to do. Nothing is written, but a pending restore
/// that has not got as far as to a plan is forgotten.
pub async fn plan_restore(table: &Table, writers: &Writers, wanted: Option<&InstantTime>) -> Result<Restore> {
    let timeline = table.timeline_as_it_is().await?;
    if let Some((pending, plan)) = begun(table, &timeline).await? {
        return go_on(table, &timeline, pending, plan, wanted);
    }
    let to = match wanted {
        Some(wanted) => wanted.clone(),
        None => match timeline.savepoints().next_back() {
            Some(savepoint) => savepoint.time.clone(),
            None => return Err(BackError::NoSavepoint { table: table.storage.display("") }.into()),
        },
    };
    if timeline.write_at(&to).is_none_or(Instant::is_pending) {
        return Err(BackError::NoSuchWrite { instant: to.to_string(), table: table.storage.display("") }.into());
    }
    let undo = later(table, &timeline, &to).await?;
    check(table, writers, &timeline, &to, &undo).await?;
    let is_savepoint = timeline.savepoints().any(|savepoint| savepoint.time == to);
    Ok(Restore { to, is_savepoint, undo, pending: None })
}

/// In Hudi's order: clusterings that wait or run, then all writes and compactions, each newest first
/// (`RestorePlanActionExecutor`, 0.15).
async fn later(table: &Table, timeline: &Timeline, to: &InstantTime) -> Result<Vec<Instant>> {
    let (mut first, mut then) = (Vec::new(), Vec::new());
    for instant in timeline.instants.iter().rev().filter(|i| i.time > *to && is_undone(i)) {
        match instant.is_pending() && is_clustering(table, instant).await? {
            true => first.push(instant.clone()),
            false => then.push(instant.clone()),
        }
    }
    first.append(&mut then);
    Ok(first)
}

pub(super) fn log_compaction(table: &Table, pending: &Instant) -> Error {
    let (path, instant) = (table.storage.display(""), pending.time.to_string());
    crate::table::Error::LogCompactionPending { path, instant }.into()
}

pub(super) fn is_undone(instant: &Instant) -> bool {
    instant.action.is_write() || matches!(instant.action, Action::Compaction | Action::LogCompaction)
}

async fn check(
    table: &Table,
    writers: &Writers,
    timeline: &Timeline,
    to: &InstantTime,
    undo: &[Instant],
) -> Result<()> {
    if let Some(instant) = undo.iter().find(|instant| instant.action == Action::LogCompaction) {
        return Err(log_compaction(table, instant));
    }
    // Where the first write of the timeline has a savepoint, others may have been archived after it.
    if timeline.starts_after(to) {
        let newest = table.find_archived(|found| found.instant.action.is_write()).await?;
        if let Some(archived) = newest.filter(|found| found.instant.time > *to) {
            let (instant, archived) = (to.to_string(), archived.instant.time.to_string());
            return Err(BackError::ArchivedSince { instant, archived }.into());
        }
    }
    if let Some(later) = timeline.savepoints().find(|savepoint| savepoint.time > *to) {
        return Err(BackError::SavepointLater { instant: to.to_string(), savepoint: later.time.to_string() }.into());
    }
    for instant in undo.iter().filter(|instant| instant.is_pending()) {
        match instant.action {
            Action::Compaction => compaction::check_nobody_executes(table, instant).await?,
            _ if check_nobody_writes(table, instant, writers).await? == Life::None => {
                refuse_young(table, instant, writers).await?
            }
            _ => {}
        }
    }
    check_files(table, timeline, to, undo).await
}

/// Whether all files are there, and stay, that were read at `to`.
pub(super) async fn check_files(table: &Table, timeline: &Timeline, to: &InstantTime, undo: &[Instant]) -> Result<()> {
    if let Some(savepoint) = timeline.savepoints().find(|savepoint| savepoint.time == *to) {
        let kept = savepoint::read(table, savepoint).await?;
        if let Some((partition, file)) = savepoint::missing(table, &kept).await? {
            return Err(BackError::SavepointFileGone { instant: to.to_string(), partition, file }.into());
        }
    }
    reach::view_at(table, timeline, to, Undone::Only(undo)).await?;
    Ok(())
}

/// The restore that is pending, with its plan.
async fn begun(table: &Table, timeline: &Timeline) -> Result<Option<(Instant, RestorePlan)>> {
    let mut found = None;
    for pending in timeline.pending(Action::Restore) {
        let requested = pending.in_state(State::Requested);
        match RestorePlan::from_file(&table.read_instant(&requested).await?) {
            Ok(plan) if found.is_none() => found = Some((pending.clone(), plan)),
            Ok(_) => return Err(BackError::SeveralRestores { table: table.storage.display("") }.into()),
            Err(_) if pending.state == State::Requested => table.storage.delete(&requested.path()).await?,
            Err(why) => return Err(malformed(table, &requested, why)),
        }
    }
    Ok(found)
}

fn malformed(table: &Table, requested: &Instant, why: String) -> Error {
    BackError::RestorePlan { path: table.storage.display(&requested.path()), why }.into()
}

fn go_on(
    table: &Table,
    timeline: &Timeline,
    pending: Instant,
    plan: RestorePlan,
    wanted: Option<&InstantTime>,
) -> Result<Restore> {
    let requested = pending.in_state(State::Requested);
    let to = plan.savepoint_to_restore_timestamp.as_deref().and_then(InstantTime::parse);
    // Plans of version 1 (Hudi 0.12 and before) do not say it.
    let to = to.ok_or_else(|| malformed(table, &requested, "it does not say to where".to_string()))?;
    if let Some(wanted) = wanted.filter(|wanted| **wanted != to) {
        let (restore, to) = (pending.time.to_string(), to.to_string());
        return Err(BackError::OtherRestore { instant: wanted.to_string(), restore, to }.into());
    }
    let mut undo = Vec::new();
    for info in &plan.instants_to_rollback {
        let (time, action) = info.parse().ok_or_else(|| malformed(table, &requested, told(info)))?;
        if time <= to || action == Action::LogCompaction || !(action.is_write() || action == Action::Compaction) {
            return Err(malformed(table, &requested, told(info)));
        }
        let now = timeline.instants.iter().find(|i| i.time == time && is_undone(i));
        // A completed compaction that is half undone is a pending one now, and is undone as what it was.
        undo.extend(now.map(|now| match action {
            Action::Compaction => now.clone(),
            _ => Instant { action, ..now.clone() },
        }));
    }
    let is_savepoint = timeline.savepoints().any(|savepoint| savepoint.time == to);
    Ok(Restore { to, is_savepoint, undo, pending: Some(pending) })
}

fn told(info: &InstantInfo) -> String {
    format!("`{:.40}` of `{:.40}` is nothing that a restore undoes", info.action, info.commit_time)
}
