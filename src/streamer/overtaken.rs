//! Compactions that another process has planned, or taken back, while a round wrote (table-services.md §2.2).
//!
//! A log file counts in the slice whose base instant it names: that of the base file, or that of the pending compaction whose
//! plan has the file group. Written on the wrong one, its rows are gone with the compaction.

use super::{Error, Result};
use crate::storage;
use crate::table::{self, Action, CompactionPlan, Instant, InstantTime, State, Table, Timeline};
use crate::write::WriteStatus;
use std::collections::{BTreeMap, BTreeSet};

/// The last look before a commit: fails it, so that it can be done again, where files went beside what is planned by now.
/// `timeline`: what the round knew when it chose its files. Costs one listing, and one read a new compaction.
pub(super) async fn check(table: &Table, timeline: &Timeline, statuses: &[WriteStatus]) -> Result<()> {
    // By group, the base instant that its file was written on.
    let written: BTreeMap<(&str, &str), &str> = statuses
        .iter()
        .map(|status| &status.stat)
        .filter(|stat| stat.prev_commit != "null")
        .map(|stat| ((stat.partition_path.as_str(), stat.file_id.as_str()), stat.prev_commit.as_str()))
        .collect();
    if written.is_empty() || table.write_action() != Action::DeltaCommit {
        return Ok(());
    }
    let now = table.timeline().await?;
    let there: BTreeSet<&InstantTime> = compactions(&now).map(|instant| &instant.time).collect();
    for gone in timeline.pending(Action::Compaction).filter(|known| !there.contains(&known.time)) {
        if let Some(((partition, file_id), _)) = written.iter().find(|(_, on)| **on == gone.time.as_str()) {
            return Err(overtaken(gone, "was taken back", partition, file_id));
        }
    }
    let known: BTreeSet<&InstantTime> = compactions(timeline).map(|instant| &instant.time).collect();
    for new in compactions(&now).filter(|instant| !known.contains(&instant.time)) {
        for operation in plan(table, new).await?.and_then(|plan| plan.operations).unwrap_or_default() {
            let group = (operation.partition_path.unwrap_or_default(), operation.file_id.unwrap_or_default());
            let group = (group.0.as_str(), group.1.as_str());
            if written.get(&group).is_some_and(|on| *on != new.time.as_str()) {
                return Err(overtaken(new, "was planned", group.0, group.1));
            }
        }
    }
    Ok(())
}

/// Compactions, pending and completed: on a merge-on-read table a commit is one.
fn compactions(timeline: &Timeline) -> impl Iterator<Item = &Instant> {
    timeline.instants.iter().filter(|instant| matches!(instant.action, Action::Commit | Action::Compaction))
}

/// `None`: no compaction after all.
async fn plan(table: &Table, instant: &Instant) -> Result<Option<CompactionPlan>> {
    let requested = Instant::new(instant.time.clone(), Action::Compaction, State::Requested);
    match table.compaction_plan(&requested).await {
        Ok(plan) => Ok(Some(plan)),
        Err(table::Error::Storage(storage::Error::NotFound { .. })) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

fn overtaken(compaction: &Instant, what: &'static str, partition: &str, file_id: &str) -> Error {
    let (partition, file_id) = (partition.to_string(), file_id.to_string());
    Error::Overtaken { compaction: compaction.time.to_string(), what, partition, file_id }
}
