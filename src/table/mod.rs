//! The Hudi table on storage, table version 6: what the bytes mean.
//!
//! Sees [`crate::storage`] alone, and could be a crate of its own. Look at [`Table`] first, then [`Timeline`] and
//! [`FileSystemView`]. Invariants: a completed instant file appears atomically with its full content; an instant that is
//! drawn is greater than every instant on the timeline; a file is part of the table only if its instant is completed (or
//! older than the timeline's start).

pub mod base_file;
mod commit_metadata;
mod instant;
mod marker;
mod properties;
mod timeline;
mod view;

pub use commit_metadata::{CommitMetadata, WriteStat};
pub use instant::{Action, Instant, InstantTime, State};
pub use marker::{Marker, MarkerType, Markers};
pub use properties::TableProperties;
pub use timeline::Timeline;
pub use view::{BaseFile, FileSlice, FileSystemView};

use crate::storage::{self, Storage};

/// Names of the five meta columns, in file order.
pub const META_COLUMNS: [&str; 5] = [
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
];

/// A table that exists: its storage and its `hoodie.properties`. The timeline is loaded by [`Table::timeline`].
#[derive(Debug, Clone)]
pub struct Table {
    pub storage: Storage,
    pub properties: TableProperties,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Error::Storage(e) => e.code(),
        }
    }
}

pub type Result<T> = std::result::Result<T, Error>;

impl Table {
    /// `None` if there is no table at the place (no `hoodie.properties`, no backup, empty timeline).
    /// Refuses by name what we cannot write to: another table version or layout, an unknown base file format,
    /// schema-on-read, a pending restore, …
    pub async fn open(_storage: Storage) -> Result<Option<Table>> {
        todo!()
    }
    /// Creates the table's folders and, last, its properties.
    pub async fn create(_storage: Storage, _properties: TableProperties) -> Result<Table> {
        todo!()
    }
    pub async fn timeline(&self) -> Result<Timeline> {
        todo!()
    }
    /// A new instant, greater than any on `timeline` and than any this process has drawn.
    pub fn new_instant(&self, _timeline: &Timeline) -> InstantTime {
        todo!()
    }
    /// Creates `T.commit.requested` (empty).
    pub async fn request(&self, _time: &InstantTime, _action: Action) -> Result<()> {
        todo!()
    }
    /// Creates the inflight file; checks that the requested one is there.
    pub async fn mark_inflight(&self, _time: &InstantTime, _action: Action, _content: bytes::Bytes) -> Result<()> {
        todo!()
    }
    /// The commit point: creates the completed file, atomically; checks that the inflight one is there.
    pub async fn complete(&self, _time: &InstantTime, _action: Action, _content: bytes::Bytes) -> Result<()> {
        todo!()
    }
    /// Content of a timeline file.
    pub async fn read_instant(&self, _instant: &Instant) -> Result<bytes::Bytes> {
        todo!()
    }
    /// Metadata of a completed commit, deltacommit or replacecommit.
    pub async fn commit_metadata(&self, _instant: &Instant) -> Result<CommitMetadata> {
        todo!()
    }
    /// The table schema (Avro JSON text, without meta columns): newest commit whose operation may change it and that has
    /// one, else `hoodie.table.create.schema`; `None` for an empty table.
    pub async fn latest_schema(&self, _timeline: &Timeline) -> Result<Option<String>> {
        todo!()
    }
    /// Writes `.hoodie_partition_metadata` if the partition has none.
    pub async fn ensure_partition_metadata(&self, _partition: &str, _time: &InstantTime) -> Result<()> {
        todo!()
    }
    /// Disables a metadata table the lawful way (see `format/metadata-table.md` §1): clears the two properties, removes the folder.
    pub async fn disable_metadata_table(&mut self) -> Result<()> {
        todo!()
    }
}
