//! What a job remembers of its last look for something to compact, so that the next one costs what has come since and not
//! the table's size again: the default trigger is due behind every commit while a plan waits, and for ever in a table that
//! is only inserted into.

use crate::service::Result;
use crate::table::{Action, FileSlice, Instant, InstantTime, Table, Timeline};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The memory of a job, empty in a new process.
#[derive(Debug, Clone, Default)]
pub struct Looked(Arc<Mutex<Option<Look>>>);

#[derive(Debug, Clone, Default)]
struct Look {
    /// Writes that were complete by then.
    writes: BTreeSet<(InstantTime, Action)>,
    /// Partitions that have log files which no plan takes: the strategy did not want them yet, or clustering has them.
    open: BTreeSet<String>,
    /// By pending compaction, the partitions of its groups: what comes to these meanwhile may be planned when it is done.
    planned: BTreeMap<InstantTime, BTreeSet<String>>,
}

impl Looked {
    /// The partitions in which there may be something to compact. `None`: in any.
    pub(super) async fn partitions(&self, table: &Table, timeline: &Timeline) -> Result<Option<Vec<String>>> {
        let Some(Look { writes, mut open, planned }) = self.lock().clone() else { return Ok(None) };
        // Gone with a restore, or with an archival: then everything is looked at once more.
        if writes.last().is_some_and(|last| !timeline.completed_writes().any(|write| key(write) == *last)) {
            return Ok(None);
        }
        for (instant, partitions) in planned {
            if !timeline.pending(Action::Compaction).any(|pending| pending.time == instant) {
                open.extend(partitions);
            }
        }
        for write in timeline.completed_writes().filter(|write| !writes.contains(&key(write))) {
            // A compaction leaves no log files but those that `planned` knows.
            if write.action == Action::Commit {
                continue;
            }
            let stats = table.commit_metadata(write).await?.partition_to_write_stats;
            let with_logs = stats.into_iter().filter(|(_, stats)| stats.iter().any(|stat| stat.is_log()));
            open.extend(with_logs.map(|(partition, _)| partition));
        }
        Ok(Some(open.into_iter().collect()))
    }

    /// What a look at `slices`, all of those [partitions](Looked::partitions), has found. `chosen`: for a plan at this instant.
    pub(super) fn remember<'a>(
        &self,
        timeline: &Timeline,
        slices: impl Iterator<Item = &'a FileSlice>,
        chosen: Option<(&InstantTime, &BTreeSet<(String, String)>)>,
    ) {
        let mut known = self.lock();
        let mut look = Look { writes: timeline.completed_writes().map(key).collect(), ..Look::default() };
        // Of partitions that were not looked at this time.
        let still =
            |instant: &InstantTime| timeline.pending(Action::Compaction).any(|pending| pending.time == *instant);
        look.planned = known.take().map(|known| known.planned).unwrap_or_default();
        look.planned.retain(|instant, _| still(instant));
        for slice in slices.filter(|slice| !slice.log_files.is_empty()) {
            let group = (slice.partition.clone(), slice.file_id.clone());
            let planned_at = chosen.filter(|(_, groups)| groups.contains(&group)).map(|(instant, _)| instant);
            match planned_at.or(slice.pending_compaction.as_ref()) {
                Some(instant) => look.planned.entry(instant.clone()).or_default().insert(slice.partition.clone()),
                None => look.open.insert(slice.partition.clone()),
            };
        }
        *known = Some(look);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Look>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(write: &Instant) -> (InstantTime, Action) {
    (write.time.clone(), write.action)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{CommitMetadata, LogFile, LogFileName, LogStat, State, WriteStat};
    use crate::write::testing;
    use bytes::Bytes;

    fn time(text: &str) -> InstantTime {
        InstantTime::parse(text).expect("digits")
    }

    async fn put(table: &Table, name: &str, content: Bytes) {
        table.storage.put(&format!(".hoodie/{name}"), content).await.expect("put");
    }

    /// A delta commit with a log file in each of `logs`, and a base file in `r`.
    async fn delta(table: &Table, instant: &str, logs: &[&str]) {
        let log = || LogStat { version: 1, offset: 0, base_file: String::new(), log_files: [].into() };
        let stats = |log| vec![WriteStat { log, ..WriteStat::default() }];
        let mut metadata = CommitMetadata::default();
        metadata.partition_to_write_stats.insert("r".to_string(), stats(None));
        for partition in logs {
            metadata.partition_to_write_stats.insert(partition.to_string(), stats(Some(log())));
        }
        put(table, &format!("{instant}.deltacommit"), metadata.to_json()).await;
    }

    fn slice(partition: &str, pending: Option<&str>) -> FileSlice {
        let name = LogFileName::parse(".f-0_20260101000000001.log.1_0-0-0").expect("a name");
        FileSlice {
            partition: partition.to_string(),
            file_id: "f-0".to_string(),
            base_instant: time("20260101000000001"),
            base_file: None,
            log_files: vec![LogFile { name, size: 1 }],
            pending_compaction: pending.map(time),
        }
    }

    #[tokio::test]
    async fn only_what_has_come_since_and_what_was_left_is_looked_at() {
        let (_folder, table) = testing::table();
        let looked = Looked::default();
        let partitions = async || {
            let timeline = table.timeline().await.expect("a timeline");
            (looked.partitions(&table, &timeline).await.expect("partitions"), timeline)
        };
        delta(&table, "20260101000000001", &["p"]).await;
        let (first, timeline) = partitions().await;
        assert_eq!(first, None, "a new process knows nothing");
        looked.remember(&timeline, [].iter(), None);
        delta(&table, "20260101000000002", &[]).await;
        assert_eq!(partitions().await.0, Some(vec![]), "base files alone are nothing to compact");
        delta(&table, "20260101000000003", &["q"]).await;
        let (new, timeline) = partitions().await;
        assert_eq!(new, Some(vec!["q".to_string()]));

        let plan = time("20260101000000004");
        let chosen = [("q".to_string(), "f-0".to_string())].into();
        looked.remember(&timeline, [slice("p", None), slice("q", None)].iter(), Some((&plan, &chosen)));
        put(&table, "20260101000000004.compaction.requested", Bytes::new()).await;
        let (left, timeline) = partitions().await;
        assert_eq!(left, Some(vec!["p".to_string()]), "the strategy has left it");
        looked.remember(&timeline, [].iter(), None);
        assert_eq!(partitions().await.0, Some(vec![]));
        put(&table, "20260101000000004.commit", Bytes::new()).await;
        assert_eq!(
            partitions().await.0,
            Some(vec!["q".to_string()]),
            "the plan is done, and what came meanwhile counts"
        );

        let gone = Instant::new(time("20260101000000003"), Action::DeltaCommit, State::Completed);
        table.storage.delete(&gone.path()).await.expect("deleted");
        assert_eq!(partitions().await.0, None, "a restore, maybe");
    }
}
