//! What processes leave that die between two steps, and that no rollback speaks of.

use super::marker::TEMP_FOLDER;
use super::{InstantTime, META_FOLDER, Result, Table, name_of};
use std::time::Duration;

/// Nobody takes as long to write a file of the timeline.
const STALE: Duration = Duration::from_secs(600);

impl Table {
    /// Removes the markers of instants that are over, completed or rolled back, and files of the timeline that were never
    /// finished.
    pub async fn sweep(&self) -> Result<()> {
        self.storage.discard_stale(META_FOLDER, STALE).await?;
        // The folders first: an instant is on the timeline before it has markers.
        let folders = self.storage.folders(TEMP_FOLDER).await?;
        if folders.is_empty() {
            return Ok(());
        }
        let timeline = self.timeline().await?;
        for folder in folders {
            let Some(time) = InstantTime::parse(name_of(&folder)) else { continue };
            if !timeline.instants.iter().any(|instant| instant.time == time && instant.is_pending()) {
                self.storage.delete_folder(&folder).await?;
            }
        }
        Ok(())
    }
}
