//! `hudi-streamer rollback`: the newest write is taken back, completed or not (Hudi: `commit rollback`,
//! `rollback_to_instant`).

use super::super::reach::{self, Undone};
use super::super::{BackError, Error, Result};
use super::leftovers::{Leftovers, Scope};
use super::{RolledBack, begin, check_nobody_needs_it, execute, is_clustering, planned, request, resume};
use crate::service::Writers;
use crate::service::lock::Held;
use crate::table::{Action, Instant, InstantTime, RollbackPlan, State, Table, Timeline, TimelineRecord, keys};
use std::collections::BTreeSet;

/// Finishes rollbacks that somebody has begun, but those of compactions and clusterings, whose runners do.
pub async fn finish_rollbacks(table: &Table) -> Result<Vec<RolledBack>> {
    let timeline = table.timeline().await?;
    let mut finished = Vec::new();
    for pending in timeline.pending(Action::Rollback) {
        let Some((target, plan)) = planned(table, pending).await? else { continue };
        if target.action != Action::Compaction && !is_clustering(table, &target).await? {
            finished.push(resume(table, &timeline, pending, target, &plan).await?);
        }
    }
    Ok(finished)
}

/// The write to take back: `wanted`, or the newest. Fails where that would harm what stays; `None`: there is no write.
pub async fn find_newest(table: &Table, wanted: Option<&InstantTime>) -> Result<Option<Instant>> {
    let timeline = table.timeline().await?;
    let target = match wanted {
        Some(time) => wanted_write(table, &timeline, time)?,
        None => {
            let mut newest = None;
            for write in timeline.instants.iter().rev().filter(|i| i.action.is_write()) {
                if !write.is_pending() || !is_clustering(table, write).await? {
                    newest = Some(write);
                    break;
                }
            }
            match newest {
                Some(newest) => newest,
                None => return Ok(None),
            }
        }
    };
    if target.is_pending() {
        return Ok(Some(target.clone()));
    }
    check_newest(table, &timeline, target).await?;
    check_something_stays(table, &timeline, target).await?;
    check_reach(table, &timeline, target).await?;
    Ok(Some(target.clone()))
}

async fn check_reach(table: &Table, timeline: &Timeline, target: &Instant) -> Result<()> {
    let before = newest_before(timeline, &target.time).unwrap_or_else(InstantTime::least);
    reach::view_at(table, timeline, &before, Undone::Only(std::slice::from_ref(target))).await?;
    Ok(())
}

/// Of a rollback that stands on the timeline, but has not begun. A clean that does not see it before it deletes is seen
/// here: then the rollback is forgotten, and fails.
pub(super) async fn check_files(
    table: &Table,
    timeline: &Timeline,
    rollback: &Instant,
    target: &Instant,
) -> Result<()> {
    let reach = check_reach(table, timeline, target).await;
    if let Err(Error::Back(_)) = reach {
        for state in [State::Inflight, State::Requested] {
            table.storage.delete(&rollback.in_state(state).path()).await?;
        }
    }
    reach
}

/// Completed writes that pending rollbacks are about to take back.
pub(in crate::service) async fn being_taken_back(table: &Table, timeline: &Timeline) -> Result<BTreeSet<InstantTime>> {
    let mut targets = BTreeSet::new();
    for pending in timeline.pending(Action::Rollback) {
        let content = table.storage.get_opt(&pending.in_state(State::Requested).path()).await?.unwrap_or_default();
        // What cannot be read (yet) takes back nothing.
        let target = RollbackPlan::from_file(&content).ok().and_then(|plan| plan.instant_to_rollback?.parse());
        targets.extend(target.map(|(time, _)| time));
    }
    targets.retain(|time| timeline.completed_writes().any(|write| write.time == *time));
    Ok(targets)
}

/// The timeline as if these writes were gone.
pub(in crate::service) fn without(timeline: &Timeline, writes: &BTreeSet<InstantTime>) -> Timeline {
    let stays = |instant: &&Instant| !(instant.action.is_write() && writes.contains(&instant.time));
    Timeline { instants: timeline.instants.iter().filter(stays).cloned().collect() }
}

/// The newest completed write before `time`: what is the newest one once that is taken back.
pub fn newest_before(timeline: &Timeline, time: &InstantTime) -> Option<InstantTime> {
    Some(timeline.completed_writes().rfind(|write| write.time < *time)?.time.clone())
}

fn wanted_write<'a>(table: &Table, timeline: &'a Timeline, time: &InstantTime) -> Result<&'a Instant> {
    if let Some(write) = timeline.write_at(time) {
        return Ok(write);
    }
    let instant = time.to_string();
    match timeline.pending(Action::Compaction).any(|pending| pending.time == *time) {
        true => Err(BackError::CompactionPending { instant }.into()),
        false => Err(BackError::NoSuchWrite { instant, table: table.storage.display("") }.into()),
    }
}

/// Takes back what [`find_newest`] has found.
pub async fn rollback_newest(table: &Table, writers: &Writers, held: &Held, target: &Instant) -> Result<RolledBack> {
    held.check().await?;
    let timeline = table.timeline().await?;
    if target.is_pending() {
        check_nobody_needs_it(table, &timeline, target, writers).await?;
        return begin(table, &timeline, target).await;
    }
    super::check_metadata_table(table, target)?;
    let leftovers = Leftovers::whole(table, &timeline, target, &target.time).await?;
    let time = table.new_instant(&timeline);
    request(table, &time, target, &leftovers).await?;
    // A writer that does not see this plan before it commits is seen here.
    let now = table.timeline().await?;
    let requested = Instant::new(time.clone(), Action::Rollback, State::Requested);
    if let Err(e) = check_newest(table, &now, target).await {
        table.storage.delete(&requested.path()).await?;
        return Err(e);
    }
    check_files(table, &now, &requested, target).await?;
    Ok(execute(table, &time, target, Scope::Whole, &leftovers).await?.0)
}

/// A completed write is taken back only as long as nothing rests on it.
pub(super) async fn check_newest(table: &Table, timeline: &Timeline, target: &Instant) -> Result<()> {
    if timeline.is_savepointed(&target.time) {
        return Err(BackError::Savepointed { instant: target.time.to_string() }.into());
    }
    for newer in timeline.instants.iter().filter(|i| i.time > target.time) {
        let is_above = match newer.action {
            Action::Compaction | Action::LogCompaction => true,
            action if action.is_write() => !newer.is_pending() || !is_clustering(table, newer).await?,
            _ => false,
        };
        if is_above {
            return Err(BackError::NotNewest { instant: target.time.to_string(), newer: newer.file_name() }.into());
        }
    }
    Ok(())
}

/// On a timeline without a write, what was archived would count no more.
async fn check_something_stays(table: &Table, timeline: &Timeline, target: &Instant) -> Result<()> {
    let stays = timeline.completed_writes().any(|write| write.time != target.time);
    let folder = format!(".hoodie/{}", table.properties.get(keys::ARCHIVE_FOLDER).unwrap_or("archived"));
    if stays || table.storage.names(&folder).await?.iter().all(|name| !name.contains(".archive.")) {
        return Ok(());
    }
    Err(BackError::LastOfTimeline { instant: target.time.to_string() }.into())
}
