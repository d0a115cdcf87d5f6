//! Completed commits without their files: what rounds ask again and again, and a job of many rounds reads once.

use super::{Action, CommitMetadata, Instant, InstantTime, Result, State, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Commits that are remembered: more than are asked for on any timeline that is archived.
const MOST: usize = 256;

/// A completed commit.
#[derive(Debug)]
pub struct CommitSummary {
    /// All but the stats of the files, which may be thousands.
    pub metadata: CommitMetadata,
    /// Bytes and rows that went into base files.
    pub base_bytes: u64,
    pub base_rows: u64,
    /// Those written to, and those in which file groups were replaced.
    pub partitions: BTreeSet<String>,
}

/// Summaries that have been read. What an instant's completed file says never changes, so that they hold as long as the
/// table does.
#[derive(Debug, Clone, Default)]
pub struct Summaries(Arc<Mutex<Known>>, pub(super) Arc<Mutex<SearchedInVain>>);

/// The first completed write of the timeline when the archived one was last searched for certain keys, which it did not
/// have: what is archived since has moved that.
pub(super) type SearchedInVain = Option<(Option<InstantTime>, Vec<String>)>;

type Known = BTreeMap<(InstantTime, Action), Arc<CommitSummary>>;

impl Table {
    /// As [`Table::commit_metadata`], which is read once in the life of [`Table::summaries`].
    pub async fn commit_summary(&self, instant: &Instant) -> Result<Arc<CommitSummary>> {
        debug_assert_eq!(instant.state, State::Completed);
        let known = &self.summaries.0;
        let key = (instant.time.clone(), instant.action);
        if let Some(summary) = known.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(summary.clone());
        }
        Ok(self.remember(instant, self.commit_metadata(instant).await?))
    }

    /// What the instant's file says is known.
    pub fn remember(&self, instant: &Instant, metadata: CommitMetadata) -> Arc<CommitSummary> {
        let summary = Arc::new(CommitSummary::of(instant.action, metadata));
        let mut known = self.summaries.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert((instant.time.clone(), instant.action), summary.clone());
        if known.len() > MOST {
            known.pop_first();
        }
        summary
    }
}

impl CommitSummary {
    fn of(action: Action, mut metadata: CommitMetadata) -> CommitSummary {
        let in_base_files = metadata.stats().filter(|s| action != Action::DeltaCommit || !s.is_log());
        let sums = in_base_files.fold((0u64, 0u64), |(bytes, rows), stat| {
            (bytes.saturating_add(stat.total_write_bytes), rows.saturating_add(stat.num_writes))
        });
        let written = std::mem::take(&mut metadata.partition_to_write_stats).into_keys();
        let replaced = metadata.partition_to_replace_file_ids.iter().flat_map(|replaced| replaced.keys().cloned());
        let partitions = written.chain(replaced).collect();
        CommitSummary { metadata, base_bytes: sums.0, base_rows: sums.1, partitions }
    }
}

#[cfg(test)]
mod tests {
    use crate::table::tests::{golden, open, storage};

    #[tokio::test]
    async fn a_commit_is_read_once() {
        let (_folder, path) = golden("v6_cow_part");
        let table = open(&path).await;
        let timeline = table.timeline().await.expect("a timeline");
        let newest = timeline.last_completed_write().expect("a commit");
        let whole = table.commit_metadata(newest).await.expect("metadata");
        let summary = table.commit_summary(newest).await.expect("a summary");
        let sum = |of: fn(&crate::table::WriteStat) -> u64| whole.stats().map(of).sum::<u64>();
        assert_eq!((summary.base_bytes, summary.base_rows), (sum(|s| s.total_write_bytes), sum(|s| s.num_writes)));
        assert_eq!(summary.metadata.extra_metadata, whole.extra_metadata);
        assert_eq!(summary.metadata.stats().count(), 0);

        storage(&path).delete(&newest.path()).await.expect("deleted");
        let mut again = open(&path).await;
        assert!(again.commit_summary(newest).await.is_err(), "by itself it knows nothing");
        again.summaries = table.summaries.clone();
        assert_eq!(again.commit_summary(newest).await.expect("known").base_rows, summary.base_rows);
    }
}
