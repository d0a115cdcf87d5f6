//! Several writers: what the dead ones have left, told from what the living are at (LAZY, table-services.md §6.1).
//!
//! All of it under the lock, the deletes too, so that of two that find a dead writer one rolls it back. A writer that wakes up
//! finds its heartbeat, or its instant, gone, and does not commit.

use super::{RolledBack, begin, is_clustering, planned, resume};
use crate::service::concurrency::{Life, Lives, Writers, tolerance};
use crate::service::{Error, Result};
use crate::table::{Action, Instant, InstantTime, Markers, State, Table, Timeline};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Rolls back the pending writes whose writers are dead, newest first.
pub(super) async fn roll_back(table: &Table, writers: &Writers) -> Result<Vec<RolledBack>> {
    // The lock is not asked for where nobody is dead, which is in almost every round.
    if Found::look(table, writers).await?.is_nothing() {
        return Ok(Vec::new());
    }
    let held = writers.locks.lock("roll back dead writers").await?;
    let found = Found::look(table, writers).await?;
    let Found { timeline, lives, rollbacks, writes } = &found;
    lives.remove_stale(timeline).await?;
    table.remove_stale_markers(timeline).await?;
    let mut rolled_back = Vec::new();
    for pending in rollbacks {
        let Some((target, plan)) = planned(table, pending).await? else { continue };
        if target.action != Action::Compaction && !is_clustering(table, &target).await? {
            held.check().await?;
            rolled_back.push(resume(table, timeline, pending, target, &plan).await?);
        }
    }
    let done: BTreeSet<InstantTime> = rolled_back.iter().map(|done| done.instant.time.clone()).collect();
    for write in writes.iter().rev().filter(|write| !done.contains(&write.time)) {
        held.check().await?;
        rolled_back.push(begin(table, timeline, write).await?);
    }
    held.release().await?;
    Ok(rolled_back)
}

/// Refuses while a write without a heartbeat may be going on: where its instant, or a marker, is young.
pub(in crate::service) async fn refuse_young(table: &Table, write: &Instant, writers: &Writers) -> Result<()> {
    if write.state == State::Requested && is_clustering(table, write).await? {
        return Ok(());
    }
    let ages = Ages::look(table).await?;
    let markers = Markers::new(&table.storage, &write.time).files().await?;
    let of_markers = markers.iter().map(|file| file.modified_ms).max().map(|newest_ms| ages.since(newest_ms));
    let Some(silent_ms) = ages.of(write).into_iter().chain(of_markers).min() else { return Ok(()) };
    let silence = tolerance(&writers.heartbeat);
    match silence.checked_sub(Duration::from_millis(silent_ms)) {
        None => Ok(()),
        Some(left) => {
            let (instant, seconds, left) = (write.time.to_string(), silent_ms / 1000, left.as_secs() + 1);
            Err(Error::WriterMayBeAlive { instant, seconds, left })
        }
    }
}

/// What nobody is at any more.
struct Found {
    timeline: Timeline,
    lives: Lives,
    rollbacks: Vec<Instant>,
    writes: Vec<Instant>,
}

impl Found {
    async fn look(table: &Table, writers: &Writers) -> Result<Found> {
        let timeline = table.timeline().await?;
        let mut found = Found {
            lives: Lives::look(&table.storage, &writers.heartbeat).await?,
            rollbacks: Vec::new(),
            writes: Vec::new(),
            timeline,
        };
        let is_open = |i: &&Instant| i.is_pending() && (i.action.is_write() || i.action == Action::Rollback);
        if !found.timeline.instants.iter().any(|i| is_open(&i)) {
            return Ok(found);
        }
        let age = Ages::look(table).await?;
        let silence = tolerance(&writers.heartbeat);
        let is_old = |instant: &Instant| age.of(instant).is_none_or(|ms| u128::from(ms) > silence.as_millis());
        // Nobody says whether he is at a rollback: one that is young may be going on.
        let (old, young): (Vec<_>, Vec<_>) = found.timeline.pending(Action::Rollback).cloned().partition(is_old);
        let mut left = BTreeSet::new();
        for rollback in young {
            left.extend(planned(table, &rollback).await?.map(|(target, _)| target.time));
        }
        found.rollbacks = old;
        for write in found.timeline.pending_writes() {
            let is_dead = match found.lives.of(&write.time).await? {
                Life::Alive { .. } => false,
                Life::Expired => true,
                // Of a writer that is not one of several, although there are.
                Life::None => is_old(write),
            };
            if is_dead && !left.contains(&write.time) && !is_clustering(table, write).await? {
                found.writes.push(write.clone());
            }
        }
        Ok(found)
    }

    fn is_nothing(&self) -> bool {
        self.rollbacks.is_empty() && self.writes.is_empty()
    }
}

/// How old the files of the timeline are.
struct Ages {
    modified_ms: BTreeMap<String, i64>,
    now_ms: i64,
}

impl Ages {
    async fn look(table: &Table) -> Result<Ages> {
        let files = table.storage.list(".hoodie").await?.files;
        let modified_ms = files.into_iter().map(|file| (file.path, file.modified_ms)).collect();
        Ok(Ages { modified_ms, now_ms: chrono::Utc::now().timestamp_millis() })
    }

    /// Milliseconds since the last state of an instant came to be; `None`: it is gone.
    fn of(&self, instant: &Instant) -> Option<u64> {
        let states = [State::Requested, State::Inflight].map(|state| instant.in_state(state).path());
        let newest = states.iter().filter_map(|path| self.modified_ms.get(path)).max()?;
        Some(self.since(*newest))
    }

    fn since(&self, ms: i64) -> u64 {
        u64::try_from(self.now_ms.saturating_sub(ms)).unwrap_or(0)
    }
}
