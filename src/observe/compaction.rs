//! One structured line a compaction: what was folded, and how long it took.

use super::Metrics;
use std::time::Duration;

/// What a compaction did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompactionReport {
    /// Its instant.
    pub instant: String,
    /// File groups that have a new base file.
    pub groups: u64,
    pub log_files: u64,
    pub log_bytes: u64,
    /// Records in the log files.
    pub log_records: u64,
    /// Keys that these came down to.
    pub updated_records: u64,
    /// Rows of the new base files, copied ones too, and the bytes of the files.
    pub rows: u64,
    pub bytes_written: u64,
    /// Blocks that were no blocks, those of writes that were rolled back too; a warning tells where the others lie.
    pub corrupt_blocks: u64,
    /// Milliseconds of reading logs, summed over file groups.
    pub scan_ms: u64,
    pub took: Duration,
}

impl CompactionReport {
    /// Writes the line, and counts it.
    pub fn emit(&self, metrics: &Metrics) {
        tracing::info!(
            instant = self.instant,
            file_groups = self.groups,
            log_files = self.log_files,
            log_bytes = self.log_bytes,
            log_records = self.log_records,
            updated_records = self.updated_records,
            corrupt_blocks = self.corrupt_blocks,
            rows = self.rows,
            bytes_written = self.bytes_written,
            duration_ms = self.took.as_millis() as u64,
            "compaction completed"
        );
        metrics.compacted(self);
    }
}
