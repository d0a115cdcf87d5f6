//! In which partitions something may have become old since somebody last looked.

use super::Cleaner;
use super::memory::{LastClean, key};
use crate::config::CleanPolicy;
use crate::service::Result;
use crate::table::{Instant, Timeline};
use futures::stream::{StreamExt, TryStreamExt};
use std::collections::BTreeSet;

impl Cleaner {
    /// `None`: in any. Costs no listing, and one read a write that this process has not read yet.
    ///
    /// Hudi looks everywhere until a first clean has found something, and in each clean by versions; here a job that goes on
    /// does so once. Where a savepoint has gone, Hudi looks where the savepointed commit has written, here everywhere: the
    /// savepoint has kept files in all partitions.
    pub(super) async fn partitions_since(
        &self,
        timeline: &Timeline,
        earliest: Option<&Instant>,
        last: Option<&LastClean>,
    ) -> Result<Option<Vec<String>>> {
        if !self.config.incremental {
            return Ok(None);
        }
        let look = self.memory.last_look(timeline);
        let (before, savepoints) = match (&look, last) {
            (Some(look), _) => (look.earliest.as_ref(), &look.savepoints),
            (None, Some(last)) => (last.earliest.as_ref(), &last.savepoints),
            (None, None) => return Ok(None),
        };
        let now: BTreeSet<&str> = timeline.savepoints().map(|savepoint| savepoint.time.as_str()).collect();
        if savepoints.iter().any(|savepoint| !now.contains(savepoint.as_str())) {
            return Ok(None);
        }
        let writes: Vec<&Instant> = match (self.config.policy, earliest) {
            (CleanPolicy::KeepLatestFileVersions { .. }, _) | (_, None) => {
                // A compaction may complete behind writes that are younger, so that no instant says what is new.
                let Some(look) = &look else { return Ok(None) };
                timeline.completed_writes().filter(|write| !look.writes.contains(&key(write))).collect()
            }
            (_, Some(earliest)) => {
                let Some(before) = before.filter(|before| !timeline.starts_after(before)) else { return Ok(None) };
                timeline.completed_writes().filter(|w| w.time >= *before && w.time < earliest.time).collect()
            }
        };
        let reads = writes.into_iter().map(|write| self.table.commit_summary(write));
        let mut reads = futures::stream::iter(reads).buffer_unordered(self.config.parallelism);
        let mut partitions = BTreeSet::new();
        while let Some(summary) = reads.try_next().await? {
            partitions.extend(summary.partitions.iter().cloned());
        }
        Ok(Some(partitions.into_iter().collect()))
    }
}
