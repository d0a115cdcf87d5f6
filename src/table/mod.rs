//! The Hudi table on storage, table version 6: what the bytes mean.
//!
//! Sees [`crate::storage`] alone, and could be a crate of its own. Look at [`Table`] first, then [`Timeline`] and
//! [`FileSystemView`]. Invariants: a completed instant file appears atomically with its full content; an instant that is
//! drawn is greater than every instant on the timeline; a file is part of the table only if its instant is completed (or
//! older than the timeline's start).

mod archived;
mod avro;
pub mod base_file;
mod commit_metadata;
mod error;
mod file_name;
mod instant;
pub mod log_file;
mod marker;
mod open;
mod partition_files;
mod properties;
mod schema;
mod summary;
mod sweep;
mod timeline;
mod view;
mod walk;

#[cfg(test)]
pub(crate) mod tests;

pub use archived::{ArchiveEntry, ArchiveRecords, ArchiveTail, ArchivedCommit, ArchivedInstant};
pub use avro::{
    ActionInstant, CleanFile, CleanMetadata, CleanPlan, CleanedPartition, ClusteringGroup, ClusteringPlan,
    ClusteringStrategy, CompactionOperation, CompactionPlan, CompactionStrategy, InstantInfo, RequestedReplace,
    RestoreMetadata, RestorePlan, RollbackMetadata, RollbackPartition, RollbackPlan, RollbackRequest,
    SavepointMetadata, SavepointPartition, SliceInfo, TimelineRecord,
};
pub use commit_metadata::{CommitMetadata, CompactionTotals, LogStat, WriteStat};
pub use error::{Error, Result};
pub use file_name::{LogFileName, parse_base_file};
pub use instant::{Action, Instant, InstantTime, State, TimelineZone};
pub use marker::{Marker, MarkerType, Markers};
pub use partition_files::{PartitionFiles, SliceFiles};
pub use properties::{COPY_ON_WRITE, MERGE_ON_READ, NewTable, TableProperties, keys};
pub use summary::{CommitSummary, Summaries};
pub use timeline::Timeline;
pub use view::{BaseFile, FileGroupId, FileSlice, FileSystemView, KeptView, LogFile, Slicer};
pub use walk::Folder;

use crate::storage::{self, Storage};
use bytes::Bytes;

/// Names of the five meta columns, in file order.
pub const META_COLUMNS: [&str; 5] = [
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
];

/// Folder of all that is not data.
const META_FOLDER: &str = ".hoodie";
/// The table's own settings: what makes a folder a table.
const PROPERTIES: &str = ".hoodie/hoodie.properties";
/// Folder of the metadata table.
const METADATA_TABLE: &str = ".hoodie/metadata";
/// Marks a folder as a partition.
pub(crate) const PARTITION_METAFILE: &str = ".hoodie_partition_metadata";

/// A table that exists: its storage and its `hoodie.properties`. The timeline is loaded by [`Table::timeline`].
#[derive(Debug, Clone)]
pub struct Table {
    pub storage: Storage,
    pub properties: TableProperties,
    /// Zone of new instants in place of the one that `hoodie.properties` says: for tables of zone `LOCAL`, where the
    /// other writers' machines may stand in another zone than ours.
    pub zone_override: Option<TimelineZone>,
    /// What is known of commits, and of file groups: see [`Table::remember_as`].
    pub summaries: Summaries,
    pub kept: KeptView,
}

impl Table {
    /// The active timeline, by one listing. Refuses while a restore is pending: what it undoes must not grow; and while a
    /// log compaction is, which this program would not know to finish or roll back.
    pub async fn timeline(&self) -> Result<Timeline> {
        let timeline = self.timeline_as_it_is().await?;
        if let Some(restore) = timeline.pending(Action::Restore).next() {
            let instant = restore.time.to_string();
            return Err(Error::RestorePending { path: self.storage.display(""), instant });
        }
        if let Some(pending) = timeline.pending(Action::LogCompaction).next() {
            let instant = pending.time.to_string();
            return Err(Error::LogCompactionPending { path: self.storage.display(""), instant });
        }
        Ok(timeline)
    }

    /// The active timeline for those who only look, and for who finishes a restore: whatever is pending on it.
    pub async fn timeline_as_it_is(&self) -> Result<Timeline> {
        let names = self.storage.names(META_FOLDER).await?;
        Ok(Timeline::from_file_names(names.iter().map(String::as_str)))
    }

    /// A new instant, greater than any on `timeline` and than any this process has drawn for the table.
    pub fn new_instant(&self, timeline: &Timeline) -> InstantTime {
        instant::draw(&self.storage.absolute(""), self.zone(), timeline.newest())
    }

    /// A moment as the table's instants say it, to compare them by time.
    pub fn instant_at(&self, moment: chrono::DateTime<chrono::Utc>) -> InstantTime {
        instant::at(self.zone(), moment)
    }

    fn zone(&self) -> TimelineZone {
        self.zone_override.unwrap_or_else(|| self.properties.timeline_zone())
    }

    /// What a write of rows is on this table's timeline.
    pub fn write_action(&self) -> Action {
        if self.properties.is_merge_on_read() { Action::DeltaCommit } else { Action::Commit }
    }

    /// Creates `T.commit.requested`: empty, but for a replacecommit, where it is the plan without clustering that Hudi
    /// writes for insert_overwrite and delete_partition.
    pub async fn request(&self, time: &InstantTime, action: Action) -> Result<()> {
        debug_assert!(action.is_write(), "services request with a plan, by create_instant");
        let content = match action {
            Action::ReplaceCommit => RequestedReplace::default().to_file(),
            _ => Bytes::new(),
        };
        self.create_instant(&Instant::new(time.clone(), action, State::Requested), content).await
    }

    /// Creates the inflight file; checks that the requested one is there.
    pub async fn mark_inflight(&self, time: &InstantTime, action: Action, content: Bytes) -> Result<()> {
        self.create_instant(&Instant::new(time.clone(), action, State::Inflight), content).await
    }

    /// The commit point: creates the completed file, atomically; checks that the inflight one is there.
    pub async fn complete(&self, time: &InstantTime, action: Action, content: Bytes) -> Result<()> {
        self.create_instant(&Instant::new(time.clone(), action, State::Completed), content).await
    }

    /// Creates the file of an instant in its state, once the file of the state before it is there. A file that exists
    /// already is the fence between two writers, and an error.
    pub async fn create_instant(&self, instant: &Instant, content: Bytes) -> Result<()> {
        let before = match instant.state {
            State::Requested => None,
            State::Inflight => Some(instant.in_state(State::Requested)),
            State::Completed => Some(instant.in_state(State::Inflight)),
        };
        let path = instant.path();
        if let Some(before) = before
            && self.storage.size(&before.path()).await?.is_none()
        {
            let (path, missing) = (self.storage.display(&path), before.file_name());
            return Err(Error::StateMissing { doing: "create", path, missing });
        }
        let created = match instant.state {
            State::Inflight => self.storage.create_ahead(&path, content).await,
            State::Requested | State::Completed => self.storage.create(&path, content).await,
        };
        match created {
            Err(storage::Error::AlreadyExists { path, .. }) => Err(Error::InstantExists { path }),
            other => Ok(other?),
        }
    }

    /// Content of a timeline file.
    pub async fn read_instant(&self, instant: &Instant) -> Result<Bytes> {
        Ok(self.storage.get(&instant.path()).await?)
    }

    /// Metadata of a completed commit, deltacommit or replacecommit.
    pub async fn commit_metadata(&self, instant: &Instant) -> Result<CommitMetadata> {
        let bytes = self.read_instant(instant).await?;
        CommitMetadata::from_json(&bytes).map_err(|why| self.malformed(instant, why))
    }

    /// The plan of a compaction, whatever state it has got to.
    pub async fn compaction_plan(&self, instant: &Instant) -> Result<CompactionPlan> {
        let requested = Instant::new(instant.time.clone(), Action::Compaction, State::Requested);
        let bytes = self.read_instant(&requested).await?;
        CompactionPlan::from_file(&bytes).map_err(|why| self.malformed(&requested, why))
    }

    /// Writes `.hoodie_partition_metadata` if the partition has none. To be called before the commit completes: Hudi
    /// does not see a partition without it.
    pub async fn ensure_partition_metadata(&self, partition: &str, time: &InstantTime) -> Result<()> {
        let depth = partition.split('/').filter(|level| !level.is_empty()).count();
        let date = java_date(chrono::Utc::now());
        let text = format!("#partition metadata\n#{date}\ncommitTime={time}\npartitionDepth={depth}\n");
        let path = in_folder(partition, PARTITION_METAFILE);
        if self.storage.size(&path).await?.is_some() {
            return Ok(());
        }
        match self.storage.create(&path, Bytes::from(text)).await {
            Err(storage::Error::AlreadyExists { .. }) => Ok(()),
            other => Ok(other?),
        }
    }

    /// Disables a metadata table the way Hudi does (`format/metadata-table.md` §1): readers learn first that it is off,
    /// then its folder goes. Finishes what a crash has left; nothing is done where there is none. Only for a single
    /// writer, before it writes: what a metadata table does not say, readers and Spark writers do not see.
    pub async fn disable_metadata_table(&mut self) -> Result<()> {
        if self.has_metadata_table() {
            let off = [(keys::METADATA_PARTITIONS, ""), (keys::METADATA_PARTITIONS_INFLIGHT, "")];
            self.properties.update(&self.storage, &off).await?;
        }
        Ok(self.storage.delete_folder(METADATA_TABLE).await?)
    }

    /// Whether readers take the list of files from a metadata table.
    pub fn has_metadata_table(&self) -> bool {
        !self.properties.metadata_partitions().is_empty()
    }

    /// The active timeline of the metadata table.
    pub async fn metadata_table_timeline(&self) -> Result<Timeline> {
        let names = self.storage.names(&in_folder(METADATA_TABLE, META_FOLDER)).await?;
        Ok(Timeline::from_file_names(names.iter().map(String::as_str)))
    }

    /// Marker folders that completed writes and rollbacks have left behind (a crash right after): nobody needs them.
    pub async fn remove_stale_markers(&self, timeline: &Timeline) -> Result<()> {
        for folder in self.storage.list(marker::TEMP_FOLDER).await?.folders {
            let name = folder.rsplit('/').next().unwrap_or(&folder);
            let is_done =
                |i: &Instant| i.state == State::Completed && (i.action.is_write() || i.action == Action::Rollback);
            if timeline.instants.iter().any(|i| i.time.as_str() == name && is_done(i)) {
                self.storage.delete_folder(&folder).await?;
            }
        }
        Ok(())
    }

    /// What a completed savepoint keeps.
    pub async fn savepoint(&self, instant: &Instant) -> Result<SavepointMetadata> {
        let bytes = self.read_instant(instant).await?;
        SavepointMetadata::from_file(&bytes).map_err(|why| self.malformed(instant, why))
    }

    pub(crate) fn malformed(&self, instant: &Instant, why: String) -> Error {
        Error::TimelineFile { path: self.storage.display(&instant.path()), why }
    }
}

/// `name` in `folder`, which may be the root.
pub(crate) fn in_folder(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") }
}

/// The name of the file at `path`.
pub(crate) fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// As `java.util.Date` prints itself, in the second line of properties files.
fn java_date(time: chrono::DateTime<chrono::Utc>) -> impl std::fmt::Display {
    time.format("%a %b %d %H:%M:%S UTC %Y")
}
