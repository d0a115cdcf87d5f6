//! What processes leave that die between two steps, and that no rollback speaks of.

use super::marker::TEMP_FOLDER;
use super::{InstantTime, META_FOLDER, Result, Table, Timeline, name_of};
use std::time::Duration;

/// Nobody takes as long to write a file of the timeline.
pub(super) const STALE: Duration = Duration::from_secs(600);

impl Table {
    /// Removes the markers of instants that are over, completed or rolled back, and files of the timeline that were never
    /// finished. Markers of instants that the timeline does not have, and that cannot be archived ones, stay: they are all that
    /// tells of their files.
    pub async fn sweep(&self) -> Result<()> {
        self.storage.discard_stale(META_FOLDER, STALE).await?;
        // The folders first: an instant is on the timeline before it has markers.
        let marked = self.marked().await?;
        if marked.is_empty() {
            return Ok(());
        }
        let timeline = self.timeline().await?;
        for time in marked.iter().filter(|time| is_over(&timeline, time)) {
            self.storage.delete_folder(&format!("{TEMP_FOLDER}/{time}")).await?;
        }
        Ok(())
    }

    /// The instants that have markers.
    pub async fn marked(&self) -> Result<Vec<InstantTime>> {
        let folders = self.storage.folders(TEMP_FOLDER).await?;
        Ok(folders.iter().filter_map(|folder| InstantTime::parse(name_of(folder))).collect())
    }
}

fn is_over(timeline: &Timeline, time: &InstantTime) -> bool {
    match timeline.has(time) {
        true => !timeline.instants.iter().any(|instant| instant.time == *time && instant.is_pending()),
        false => timeline.is_valid(time),
    }
}

#[cfg(test)]
mod tests {
    use crate::table::tests::{golden, open};
    use crate::table::{Action, Marker, MarkerType, Markers};
    use bytes::Bytes;

    #[tokio::test]
    async fn only_markers_of_what_is_over_go() {
        let (_folder, path) = golden("v6_cow_inflight");
        let table = open(&path).await;
        let timeline = table.timeline().await.expect("timeline");
        let pending = timeline.pending_writes().next().expect("a failed write").time.clone();
        let completed = timeline.completed_writes().next().expect("one").time.clone();
        let archived = completed.millis_before(1).expect("an instant");
        let (absent, running) = (table.new_instant(&timeline), table.new_instant(&timeline));
        table.request(&running, Action::Commit).await.expect("requested");
        table.mark_inflight(&running, Action::Commit, Bytes::new()).await.expect("inflight");
        for time in [&completed, &archived, &absent, &running] {
            let marker = Marker { path: "eu/f.parquet".to_string(), marker_type: MarkerType::Create };
            Markers::new(&table.storage, time).create(&marker).await.expect("marked");
        }
        table.sweep().await.expect("swept");
        let mut left = table.marked().await.expect("listed");
        left.sort();
        assert_eq!(left, [pending, absent, running]);
    }
}
