//! Archival: old instants leave the timeline for the archived timeline (table-services.md §5).
//!
//! ```text
//! rules ─▶ checkpoint, replaced files ─▶ archived timeline written ┊ requested, inflight deleted ─▶ completed deleted, oldest first
//! ```
//!
//! `rules` is pure. Invariants: what is deleted is in the archived timeline, durably; writes leave oldest first and without
//! holes, so that what is older than the timeline is complete, as every reader takes it to be; no write leaves that
//! something still needs: a savepoint, a pending write or compaction, the next compaction, a replacecommit whose files are
//! not gone, the metadata table, a job that goes on from its checkpoint. A run that dies in between is finished by the next:
//! what it left on the timeline is still old enough, and is not archived a second time.

mod checkpoint;
mod execute;
mod rules;
#[cfg(test)]
mod tests;

pub use rules::Hold;

use super::Result;
use super::clean::retain::earliest_to_retain;
use super::lock::{Held, Locks};
use super::rollback::earliest_lost;
use crate::config::{ArchiveConfig, CleanPolicy, CompactionTrigger, TriggerStrategy};
use crate::table::{Action, CleanMetadata, Instant, LogFileName, Table, Timeline, TimelineRecord, parse_base_file};
use tokio_util::sync::CancellationToken;

use rules::{Chosen, MetadataTable, Replaced, Rules};

/// Archives the instants of one table.
#[derive(Clone)]
pub struct Archiver {
    pub table: Table,
    pub config: ArchiveConfig,
    /// What the cleaner retains is not archived.
    pub retained: CleanPolicy,
    /// When the next compaction comes due.
    pub trigger: CompactionTrigger,
    pub locks: Locks,
    /// Ends a run between two portions; the next one goes on.
    pub cancel: CancellationToken,
}

/// What has been archived, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Archived {
    /// Cleans, rollbacks, then writes; each oldest first.
    pub instants: Vec<Instant>,
    /// Files of the timeline that have gone: one a state.
    pub files: usize,
    /// Files of the archived timeline that have been written.
    pub written: Vec<String>,
    /// Why writes stay that are older than those to be kept.
    pub hold: Option<Hold>,
}

impl Archiver {
    /// Whether it is worth while to call [`Archiver::archive`] for the timeline as it is known. Reads nothing.
    pub fn may_be_due(&self, timeline: &Timeline) -> bool {
        rules::may_be_due(&self.config, timeline)
    }

    /// Archives what is old enough. May be interrupted anywhere.
    pub async fn archive(&self) -> Result<Archived> {
        let held = self.locks.lock("archive old instants").await?;
        let archived = self.archive_locked(&held).await;
        held.release().await?;
        archived
    }

    async fn archive_locked(&self, held: &Held) -> Result<Archived> {
        let timeline = self.table.timeline().await?;
        let chosen = self.choose(&timeline).await?;
        if chosen.is_empty() {
            return Ok(Archived { hold: chosen.hold, ..Archived::default() });
        }
        self.execute(&timeline, chosen, held).await
    }

    /// What [`Archiver::archive`] would do.
    pub async fn plan(&self) -> Result<Archived> {
        let chosen = self.choose(&self.table.timeline().await?).await?;
        let instants = chosen.instants().cloned().collect();
        Ok(Archived { instants, hold: chosen.hold, ..Archived::default() })
    }

    async fn choose(&self, timeline: &Timeline) -> Result<Chosen> {
        if !self.may_be_due(timeline) {
            return Ok(Chosen::default());
        }
        let rules = self.rules(timeline).await?;
        let mut chosen = rules::choose(timeline, &rules);
        self.hold_replaced(&mut chosen).await?;
        checkpoint::hold(&self.table, timeline, &mut chosen, rules.max).await?;
        self.hold_lost(timeline, &mut chosen).await?;
        Ok(chosen)
    }

    /// What writes have left that the timeline does not have would count as soon as its start has passed them.
    async fn hold_lost(&self, timeline: &Timeline, chosen: &mut Chosen) -> Result<()> {
        if chosen.writes.is_empty() || self.table.has_metadata_table() {
            return Ok(());
        }
        let Some(lost) = earliest_lost(&self.table, timeline).await? else { return Ok(()) };
        let before = timeline.completed_writes().rfind(|write| write.time < lost).map(|write| &write.time);
        chosen.stop_before(before.unwrap_or(&lost), Hold::Lost(lost.clone()));
        Ok(())
    }

    async fn rules(&self, timeline: &Timeline) -> Result<Rules> {
        let earliest = earliest_to_retain(&self.table, self.retained, timeline);
        let (min, max) = rules::limits(&self.config, timeline, earliest.map(|instant| &instant.time));
        let delta_commits = self.table.properties.is_merge_on_read().then(|| match self.trigger.strategy {
            TriggerStrategy::NumCommits | TriggerStrategy::NumCommitsAfterLastRequest => {
                usize::try_from(self.trigger.max_delta_commits).unwrap_or(usize::MAX)
            }
            // Time is counted from the last compaction. (Hudi archives it, and then counts from whatever is the oldest: where
            // much is written, no compaction ever comes due.)
            TriggerStrategy::TimeElapsed | TriggerStrategy::NumOrTime | TriggerStrategy::NumAndTime => usize::MAX,
        });
        Ok(Rules {
            min,
            max,
            delta_commits,
            replaced: self.replaced(timeline).await?,
            metadata: self.metadata_table().await?,
        })
    }

    /// Reads the last clean where there are replacecommits, which is rare.
    async fn replaced(&self, timeline: &Timeline) -> Result<Replaced> {
        let mut cleans =
            timeline.instants.iter().filter(|instant| instant.action == Action::Clean && !instant.is_pending());
        let Some(last) = cleans.next_back() else { return Ok(Replaced::Never) };
        if !timeline.instants.iter().any(|instant| instant.action == Action::ReplaceCommit) {
            return Ok(Replaced::Until(last.time.clone()));
        }
        let content = self.table.read_instant(last).await?;
        let clean = CleanMetadata::from_file(&content).map_err(|why| self.table.malformed(last, why))?;
        // By versions, a clean removes what was replaced before it.
        Ok(Replaced::Until(clean.earliest_retained().unwrap_or_else(|| last.time.clone())))
    }

    async fn metadata_table(&self) -> Result<MetadataTable> {
        if !self.table.has_metadata_table() {
            return Ok(MetadataTable::None);
        }
        let timeline = self.table.metadata_table_timeline().await?;
        let compaction = timeline.completed_writes().rfind(|write| write.action == Action::Commit);
        Ok(compaction.map_or(MetadataTable::NeverCompacted, |last| MetadataTable::Compacted(last.time.clone())))
    }

    /// Whatever a clean says of itself: a replacecommit stays as long as a file of a group is there that it has replaced. A
    /// savepoint may keep one, and so may a replacecommit that was pending while a clean ran. (Hudi does not look, and has the
    /// rows twice.)
    async fn hold_replaced(&self, chosen: &mut Chosen) -> Result<()> {
        let replacing: Vec<Instant> =
            chosen.writes.iter().filter(|write| write.action == Action::ReplaceCommit).cloned().collect();
        for write in replacing {
            let summary = self.table.commit_summary(&write).await?;
            for (partition, groups) in summary.metadata.partition_to_replace_file_ids.iter().flatten() {
                if self.has_files_of(partition, groups).await? {
                    chosen.stop_before(&write.time, Hold::Replaced(write.time.clone()));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    async fn has_files_of(&self, partition: &str, groups: &[String]) -> Result<bool> {
        let names = self.table.storage.names(partition).await?;
        let is_theirs = |file_id: &str| groups.iter().any(|group| group == file_id);
        Ok(names.iter().any(|name| {
            parse_base_file(name).is_some_and(|(file_id, _)| is_theirs(file_id))
                || LogFileName::parse(name).is_some_and(|log| is_theirs(&log.file_id))
        }))
    }
}
