//! `HoodieCommitMetadata` as JSON (timeline.md §7).

mod json;

use std::collections::BTreeMap;
use std::sync::Arc;

/// Content of a completed (or, as workload profile, inflight) write instant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommitMetadata {
    pub partition_to_write_stats: BTreeMap<String, Vec<WriteStat>>,
    pub compacted: bool,
    pub extra_metadata: BTreeMap<String, String>,
    /// Name of the `WriteOperationType` constant: `UPSERT`, …
    pub operation_type: String,
    /// Replace commits only.
    pub partition_to_replace_file_ids: Option<BTreeMap<String, Vec<String>>>,
}

/// `HoodieWriteStat` (timeline.md §7.2).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WriteStat {
    pub file_id: String,
    /// `<partition>/<file name>`; `None` in workload profiles.
    pub path: Option<String>,
    /// Instant of the base file merged from; `"null"` for a new file group.
    pub prev_commit: String,
    /// Empty in workload profiles, which Hudi writes as `null`.
    pub partition_path: String,
    pub num_writes: u64,
    pub num_deletes: u64,
    pub num_update_writes: u64,
    pub num_inserts: u64,
    pub total_write_bytes: u64,
    pub total_write_errors: u64,
    pub file_size_in_bytes: u64,
    /// Milliseconds, `runtimeStats`.
    pub total_create_time: u64,
    pub total_upsert_time: u64,
    /// Of a log file that was written (merge-on-read); `None` for base files.
    pub log: Option<LogStat>,
    /// What a compaction has read to make the base file.
    pub compaction: Option<CompactionTotals>,
    /// Fields of the stat that this program does not compute (event times, column ranges), as they were read; written
    /// back in their place. Empty for our own stats: then they are Hudi's defaults.
    pub others: serde_json::Map<String, serde_json::Value>,
}

/// What `HoodieDeltaWriteStat` says beyond other stats (timeline.md §7.3).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogStat {
    pub version: u32,
    /// Where this write began in the file: 0 in a file of its own.
    pub offset: u64,
    /// Name of the slice's base file, empty where there is none.
    pub base_file: String,
    /// Names of all log files of the slice so far, this one among them.
    pub log_files: Arc<[String]>,
}

/// `totalLogRecords` and its neighbours (timeline.md §7.5).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompactionTotals {
    pub log_records: u64,
    pub log_files: u64,
    /// Bytes of the log files, as the plan has them.
    pub log_bytes: u64,
    /// Keys that the log files have come down to.
    pub updated_records: u64,
    pub log_blocks: u64,
    pub corrupt_blocks: u64,
    pub rollback_blocks: u64,
    /// Milliseconds.
    pub scan_ms: u64,
}

impl WriteStat {
    /// Says the size of a log file rather than of a base file.
    pub fn is_log(&self) -> bool {
        self.log.is_some()
    }
}

impl CommitMetadata {
    /// The file's bytes, laid out as Hudi's Jackson lays them out.
    pub fn to_json(&self) -> bytes::Bytes {
        json::write(self)
    }

    /// Reads a file. Empty is a commit without stats and schema, as Hudi reads it; unknown fields are passed over.
    /// The error says what is wrong, not where: the caller knows the file.
    pub fn from_json(bytes: &[u8]) -> Result<CommitMetadata, String> {
        json::read(bytes)
    }

    /// An extra-metadata value, an empty string counting as absent.
    pub fn extra(&self, key: &str) -> Option<&str> {
        self.extra_metadata.get(key).map(String::as_str).filter(|v| !v.is_empty())
    }

    /// All stats, by partition.
    pub fn stats(&self) -> impl Iterator<Item = &WriteStat> {
        self.partition_to_write_stats.values().flatten()
    }
}
