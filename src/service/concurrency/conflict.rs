//! What has happened since a write began, held against what it has written (`SimpleConcurrentFileWritesConflictResolutionStrategy`
//! and `TransactionUtils`, Hudi 0.15).
//!
//! Hudi takes for news what is greater than the newest instant that was complete when the write began, and what was open then.
//! Here it is whatever is complete now and was not then: an instant may be drawn early and put on the timeline late.

use super::keys::Inserted;
use super::masked;
use crate::config::IndexConfig;
use crate::service::{Error, Result};
use crate::table::{
    Action, CommitMetadata, FileGroupId, Instant, InstantTime, RollbackPlan, State, Table, Timeline, TimelineRecord,
    WriteStat,
};
use std::collections::{BTreeMap, BTreeSet};

/// A write that is about to be committed, and how to look for what stands in its way.
pub struct Conflicts<'a> {
    pub table: &'a Table,
    pub instant: &'a InstantTime,
    /// What the write is based on.
    pub based_on: &'a Timeline,
    pub stats: Vec<&'a WriteStat>,
    /// Keys that were looked up and found nowhere; `None` where nobody looks (INSERT, bulk insert).
    pub inserted: Option<&'a Inserted>,
    pub index: &'a IndexConfig,
    /// Files looked into at a time.
    pub workers: usize,
}

impl Conflicts<'_> {
    /// Under the lock, with the timeline as it is now: fails where the write must not be committed, and is to be done again.
    pub async fn check(&self, now: &Timeline) -> Result<()> {
        self.check_still_open(now).await?;
        check_history(self.instant, self.based_on, now, &self.undone_since(now).await?)?;
        let written = Written::of(&self.stats, self.index.buckets.is_some());
        let mut others = Vec::new();
        for instant in completed_since(self.based_on, now) {
            let metadata = self.table.commit_metadata(instant).await?;
            if let Some(group) = written.clash(instant, &metadata) {
                return Err(self.conflict(instant, format!("has written to {group}")));
            }
            others.push((instant, metadata));
        }
        for instant in pending_clustering_since(self.based_on, now) {
            let plan = self.table.requested_replace(instant).await?.and_then(|replace| replace.clustering_plan);
            let slices = plan.into_iter().flat_map(|plan| plan.input_groups.unwrap_or_default());
            let slices = slices.flat_map(|group| group.slices.unwrap_or_default());
            for slice in slices {
                let group = (slice.partition_path.unwrap_or_default(), slice.file_id.unwrap_or_default());
                if let Some(group) = written.holds(&group.0, &group.1) {
                    return Err(self.conflict(instant, format!("is going to replace {group}")));
                }
            }
        }
        masked::check(self.table, self.instant, now, &self.stats).await?;
        match self.inserted {
            Some(inserted) => inserted.check(self.table, self.instant, &others, self.index, self.workers).await,
            None => Ok(()),
        }
    }

    /// Somebody who takes us for dead says so by a rollback, and in the end by removing our instant.
    async fn check_still_open(&self, now: &Timeline) -> Result<()> {
        let taken = || Error::WriteTaken { instant: self.instant.to_string() };
        if !now.pending_writes().any(|write| write.time == *self.instant) {
            return Err(taken());
        }
        for rollback in now.pending(Action::Rollback) {
            // One without a plan yet has not begun, and will find us completed.
            let Some(plan) = self.table.storage.get_opt(&rollback.in_state(State::Requested).path()).await? else {
                continue;
            };
            let plan = RollbackPlan::from_file(&plan).ok().and_then(|plan| plan.instant_to_rollback);
            if plan.is_some_and(|target| target.commit_time == self.instant.as_str()) {
                return Err(taken());
            }
        }
        Ok(())
    }

    /// What was open when the write began and was rolled back since.
    async fn undone_since(&self, now: &Timeline) -> Result<BTreeSet<String>> {
        let known: BTreeSet<&InstantTime> =
            completed(self.based_on, Action::Rollback).map(|rollback| &rollback.time).collect();
        let mut undone = BTreeSet::new();
        for rollback in completed(now, Action::Rollback).filter(|rollback| !known.contains(&rollback.time)) {
            let plan = self.table.storage.get_opt(&rollback.in_state(State::Requested).path()).await?;
            let plan = plan.and_then(|plan| RollbackPlan::from_file(&plan).ok());
            undone.extend(plan.and_then(|plan| plan.instant_to_rollback).map(|target| target.commit_time));
        }
        Ok(undone)
    }

    fn conflict(&self, other: &Instant, what: String) -> Error {
        Error::WriteConflict {
            instant: self.instant.to_string(),
            other: other.time.to_string(),
            action: other.action.to_string(),
            what,
        }
    }
}

/// The groups of a write.
struct Written {
    /// Each with the instants of the slices that it was written on; none for new groups.
    groups: BTreeMap<FileGroupId, BTreeSet<String>>,
    bucketed: bool,
}

impl Written {
    fn of(stats: &[&WriteStat], bucketed: bool) -> Written {
        let mut groups: BTreeMap<FileGroupId, BTreeSet<String>> = BTreeMap::new();
        for stat in stats {
            let group = (stat.partition_path.clone(), name_in(bucketed, &stat.file_id).to_string());
            groups.entry(group).or_default().insert(stat.prev_commit.clone());
        }
        Written { groups, bucketed }
    }

    /// The first group of another write that is one of ours, for a message.
    fn clash(&self, other: &Instant, metadata: &CommitMetadata) -> Option<String> {
        let compaction = other.action == Action::Commit && metadata.compacted;
        let stats = metadata
            .partition_to_write_stats
            .iter()
            .flat_map(|(partition, stats)| stats.iter().map(move |stat| (partition.as_str(), stat.file_id.as_str())));
        let replaced = metadata.partition_to_replace_file_ids.iter().flatten().flat_map(|(partition, file_ids)| {
            file_ids.iter().map(move |file_id| (partition.as_str(), file_id.as_str()))
        });
        // What was appended on a compaction's instant lies on top of what it has made.
        let on_top = |partition: &str, file_id: &str| {
            let on = self.groups.get(&(partition.to_string(), name_in(self.bucketed, file_id).to_string()));
            compaction && on.is_some_and(|on| on.iter().all(|on| on == other.time.as_str()))
        };
        stats
            .chain(replaced)
            .filter(|(partition, file_id)| !on_top(partition, file_id))
            .find_map(|(partition, file_id)| self.holds(partition, file_id))
    }

    fn holds(&self, partition: &str, file_id: &str) -> Option<String> {
        let group = (partition.to_string(), name_in(self.bucketed, file_id).to_string());
        self.groups.contains_key(&group).then(|| format!("file group {file_id} of partition {partition:?} too"))
    }
}

/// Of a bucket's file id only its number counts: two writers that open a bucket give it names of their own
/// (`BucketIndexConcurrentFileWritesConflictResolutionStrategy`, Hudi 0.15).
fn name_in(bucketed: bool, file_id: &str) -> &str {
    match bucketed {
        true => file_id.get(..8).unwrap_or(file_id),
        false => file_id,
    }
}

/// Writes that are complete now and were not when ours began, whatever their instants.
fn completed_since<'a>(before: &Timeline, now: &'a Timeline) -> impl Iterator<Item = &'a Instant> {
    let known: BTreeSet<(InstantTime, Action)> =
        before.completed_writes().map(|write| (write.time.clone(), write.action)).collect();
    now.completed_writes().filter(move |write| !known.contains(&(write.time.clone(), write.action)))
}

/// Replacecommits that have been requested since. What was there before, the write has kept away from.
fn pending_clustering_since<'a>(before: &Timeline, now: &'a Timeline) -> impl Iterator<Item = &'a Instant> {
    let known: BTreeSet<InstantTime> =
        before.pending(Action::ReplaceCommit).map(|instant| instant.time.clone()).collect();
    now.pending(Action::ReplaceCommit).filter(move |instant| !known.contains(&instant.time))
}

/// Whether what the write is based on is still so, and all that came since can be seen.
fn check_history(own: &InstantTime, before: &Timeline, now: &Timeline, undone: &BTreeSet<String>) -> Result<()> {
    let conflict = |other: &Instant, what: &str| Error::WriteConflict {
        instant: own.to_string(),
        other: other.time.to_string(),
        action: other.action.to_string(),
        what: what.to_string(),
    };
    let restored: BTreeSet<&InstantTime> = completed(before, Action::Restore).map(|instant| &instant.time).collect();
    if let Some(restore) = completed(now, Action::Restore).find(|restore| !restored.contains(&restore.time)) {
        return Err(conflict(restore, "has taken the table back to an earlier state"));
    }
    let newest = before.last_completed_write();
    if now.last_completed_write().is_none() {
        return newest.map_or(Ok(()), |gone| Err(conflict(gone, "is gone from the timeline")));
    }
    if let Some(gone) = before.completed_writes().find(|write| !now.is_valid(&write.time)) {
        return Err(conflict(gone, "was rolled back after it had been completed"));
    }
    // Archival takes the oldest. What was open then may have become complete and be archived already; and so may all.
    let lost = before
        .pending_writes()
        .chain(newest)
        .filter(|write| !undone.contains(write.time.as_str()))
        .find(|write| now.starts_after(&write.time) && now.write_at(&write.time).is_none());
    match lost {
        Some(lost) => {
            Err(conflict(lost, "was archived, and maybe others that came since and cannot be looked at any more"))
        }
        None => Ok(()),
    }
}

fn completed(timeline: &Timeline, action: Action) -> impl Iterator<Item = &Instant> {
    timeline.instants.iter().filter(move |instant| instant.action == action && !instant.is_pending())
}
