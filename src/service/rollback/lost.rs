//! Writes that the timeline has no more, although files of theirs may be there: a writer that others took for dead, or that a
//! restore has overtaken, writes on until it notices, and may die before it has cleared up.
//!
//! Nobody sees these files until the timeline's start has passed the write, when it counts as an archived one, and its rows
//! are there twice. Only its markers tell of them.

use super::{RolledBack, begin, planned};
use crate::config::{FailedWritesPolicy, HeartbeatConfig};
use crate::service::Result;
use crate::service::concurrency::{Life, Lives, Writers};
use crate::table::{Action, Instant, InstantTime, Markers, State, Table, Timeline};
use std::collections::BTreeSet;

/// Without a heartbeat, whoever has not begun with a file for so long is dead: no file of a sound writer takes longer.
const SILENT_MS: i64 = 10 * 60_000;

/// What became of lost writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lost {
    pub rolled_back: Vec<RolledBack>,
    /// Others, whose writers may be alive.
    pub wait: Vec<InstantTime>,
}

/// Rolls back what is lost, but for what may still be written: to be asked for again then. As for failed writes, it is to be
/// called before the instant of a write is drawn.
pub async fn remove_lost(table: &Table, writers: &Writers) -> Result<Lost> {
    // Where there is a metadata table, Hudi's own writers have to; it is disabled before a write of ours.
    if writers.failed_writes == FailedWritesPolicy::Never || table.has_metadata_table() {
        return Ok(Lost::default());
    }
    let found = Found::look(table, &writers.heartbeat).await?;
    if found.dead.is_empty() {
        return Ok(Lost { wait: found.alive, ..Lost::default() });
    }
    let held = writers.locks.lock("roll back what the timeline has lost").await?;
    let Found { timeline, dead, alive } = Found::look(table, &writers.heartbeat).await?;
    let mut lost = Lost { wait: alive, ..Lost::default() };
    for write in dead {
        held.check().await?;
        lost.rolled_back.push(begin(table, &timeline, &write).await?);
    }
    held.release().await?;
    Ok(lost)
}

/// The earliest of them.
pub(in crate::service) async fn earliest_lost(table: &Table, timeline: &Timeline) -> Result<Option<InstantTime>> {
    // A write that has begun since the timeline was read is newer than all that is on it.
    let newest = timeline.newest();
    let mut lost = lost(table, timeline, table.marked().await?).await?;
    lost.retain(|(time, _)| newest.is_some_and(|newest| time < newest));
    Ok(lost.into_iter().next().map(|(time, _)| time))
}

/// And when their newest marker was made, in milliseconds since 1970. Oldest first.
async fn lost(table: &Table, timeline: &Timeline, marked: Vec<InstantTime>) -> Result<Vec<(InstantTime, i64)>> {
    let mut lost = Vec::new();
    for time in marked.into_iter().filter(|time| !timeline.has(time) && !timeline.is_valid(time)) {
        let files = Markers::new(&table.storage, &time).files().await?;
        // An empty folder says nothing.
        lost.extend(files.iter().map(|file| file.modified_ms).max().map(|newest_ms| (time, newest_ms)));
    }
    lost.sort();
    Ok(lost)
}

struct Found {
    timeline: Timeline,
    dead: Vec<Instant>,
    alive: Vec<InstantTime>,
}

impl Found {
    async fn look(table: &Table, heartbeat: &HeartbeatConfig) -> Result<Found> {
        // The markers first: an instant is on the timeline before it has any.
        let marked = table.marked().await?;
        if marked.is_empty() {
            return Ok(Found { timeline: Timeline::default(), dead: Vec::new(), alive: Vec::new() });
        }
        let mut found = Found { timeline: table.timeline().await?, dead: Vec::new(), alive: Vec::new() };
        let lost = lost(table, &found.timeline, marked).await?;
        if lost.is_empty() {
            return Ok(found);
        }
        let mut being_undone = BTreeSet::new();
        for pending in found.timeline.pending(Action::Rollback) {
            being_undone.extend(planned(table, pending).await?.map(|(target, _)| target.time));
        }
        let lives = Lives::look(&table.storage, heartbeat).await?;
        let now_ms = chrono::Utc::now().timestamp_millis();
        for (time, newest_ms) in lost.into_iter().rev().filter(|(time, _)| !being_undone.contains(time)) {
            let is_dead = match lives.of(&time).await? {
                Life::Alive { .. } => false,
                Life::Expired => true,
                Life::None => now_ms.saturating_sub(newest_ms) > SILENT_MS,
            };
            match is_dead {
                true => found.dead.push(Instant::new(time, table.write_action(), State::Inflight)),
                false => found.alive.push(time),
            }
        }
        Ok(found)
    }
}
