//! How the timeline of a table is kept short: old instants go to the archived timeline.

/// When instants are archived, and how many stay (`HoodieArchivalConfig`, Hudi 0.15).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveConfig {
    /// `hoodie.archive.automatic`: behind commits, unless `hoodie.table.services.enabled=false`.
    pub automatic: bool,
    /// `hoodie.keep.min.commits`: completed commits that stay, and as many cleans, and as many rollbacks. Above 0.
    pub min_commits: usize,
    /// `hoodie.keep.max.commits`: with more of them, the oldest are archived. Above `min_commits`.
    pub max_commits: usize,
    /// `hoodie.commits.archival.batch`: records of a block, each a state of an instant. Above 0.
    pub batch: usize,
    /// Bytes up to which the newest file of the archived timeline grows before another is begun
    /// (`hoodie.archive.merge.small.file.limit.bytes`); 0: each run writes a file of its own
    /// (`hoodie.archive.merge.enable=false`).
    pub file_bytes: u64,
}
