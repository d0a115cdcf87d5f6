//! File groups and their latest slices, from a listing and the timeline.

use super::{InstantTime, Result, Table, Timeline};
use std::collections::BTreeMap;

/// `<fileId>_<writeToken>_<instant>.parquet`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseFile {
    pub partition: String,
    pub name: String,
    pub file_id: String,
    pub instant: InstantTime,
    pub size: u64,
}

impl BaseFile {
    /// Relative to the table's base path.
    pub fn path(&self) -> String {
        if self.partition.is_empty() { self.name.clone() } else { format!("{}/{}", self.partition, self.name) }
    }
}

/// The newest slice of a file group. (Log files come with merge-on-read.)
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSlice {
    pub partition: String,
    pub file_id: String,
    pub base_instant: InstantTime,
    pub base_file: Option<BaseFile>,
}

/// Latest slices by partition; replaced and uncommitted files left out.
#[derive(Debug, Clone, Default)]
pub struct FileSystemView {
    pub partitions: BTreeMap<String, Vec<FileSlice>>,
}

impl FileSystemView {
    /// `partitions`: only these (those that do not exist are empty); `None`: every partition of the table.
    pub async fn load(_table: &Table, _timeline: &Timeline, _partitions: Option<&[String]>) -> Result<FileSystemView> {
        todo!()
    }
    pub fn latest_base_files(&self) -> impl Iterator<Item = &BaseFile> {
        self.partitions.values().flatten().filter_map(|s| s.base_file.as_ref())
    }
}
