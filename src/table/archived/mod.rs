//! The archived timeline: where instants go that are old enough (table-services.md §5).
//!
//! Log files `.commits_.archive.N_1-0-1` in a folder of their own, whose blocks hold one Avro record a state of an instant.
//! Knows the format; which instants are old enough is the business of whoever archives. Invariants: a file becomes visible
//! whole, and what is in one is never taken out of it; the archived timeline may hold a state twice (a run that died
//! between archiving and deleting), and whoever reads it here gets it once.

mod entry;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;

use super::{Instant, InstantTime, META_FOLDER, Result, Table, in_folder, keys, name_of};
use crate::storage::FileInfo;

pub use entry::ArchiveEntry;
pub use write::{ArchiveRecords, ArchiveTail};

/// `HoodieTableConfig.ARCHIVELOG_FOLDER` of Hudi 0.15, where the table does not say.
const DEFAULT_FOLDER: &str = "archived";
/// `HoodieArchivedTimeline` of Hudi 0.15 knows its files by this.
const PREFIX: &str = ".commits_.archive.";
/// `HoodieLogFormat.UNKNOWN_WRITE_TOKEN`, with which Hudi's archiver writes.
const TOKEN: &str = "1-0-1";

/// An instant of the archived timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedInstant {
    /// In its highest state, by its file's action: a compaction that has completed is a commit.
    pub instant: Instant,
    /// When it came to that state; archives of old releases do not say.
    pub since: Option<InstantTime>,
    /// Of a completed commit, deltacommit or replacecommit.
    pub commit: Option<ArchivedCommit>,
}

/// What the archived timeline is asked for of a commit: not its files, which may be thousands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchivedCommit {
    pub operation_type: String,
    pub extra_metadata: BTreeMap<String, String>,
    pub files: u64,
    pub bytes: u64,
    pub rows: u64,
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
}

/// One of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ArchiveFile {
    version: u32,
    path: String,
    size: u64,
}

impl ArchiveFile {
    fn parse(file: FileInfo) -> Option<ArchiveFile> {
        let rest = name_of(&file.path).strip_prefix(PREFIX)?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let version = rest[..digits].parse().ok()?;
        Some(ArchiveFile { version, path: file.path, size: file.size })
    }
}

impl Table {
    /// The newest last. A table whose timeline was never archived has none.
    async fn archive_files(&self) -> Result<Vec<ArchiveFile>> {
        let listing = self.storage.list(&self.archive_folder()).await?;
        let mut files: Vec<_> = listing.files.into_iter().filter_map(ArchiveFile::parse).collect();
        files.sort_by(|a, b| (a.version, &a.path).cmp(&(b.version, &b.path)));
        Ok(files)
    }

    /// The files of the active timeline, and when each was written, on the clock of the table's instants.
    pub async fn timeline_files(&self) -> Result<Vec<(Instant, InstantTime)>> {
        let listing = self.storage.list(META_FOLDER).await?;
        let file = |file: FileInfo| {
            let instant = Instant::parse(name_of(&file.path))?;
            let moment = chrono::DateTime::from_timestamp_millis(file.modified_ms).unwrap_or_default();
            Some((instant, self.instant_at(moment)))
        };
        Ok(listing.files.into_iter().filter_map(file).collect())
    }

    /// Relative to the table.
    pub fn archive_folder(&self) -> String {
        match self.properties.get(keys::ARCHIVE_FOLDER).unwrap_or(DEFAULT_FOLDER) {
            "" => META_FOLDER.to_string(),
            name => in_folder(META_FOLDER, name),
        }
    }
}
