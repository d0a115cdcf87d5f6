//! `HoodieCommitMetadata` as JSON (timeline.md §7).

use std::collections::BTreeMap;

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
}

impl CommitMetadata {
    pub fn to_json(&self) -> bytes::Bytes {
        todo!()
    }
    pub fn from_json(_bytes: &[u8]) -> super::Result<CommitMetadata> {
        todo!()
    }
    /// An extra-metadata value, an empty string counting as absent.
    pub fn extra(&self, key: &str) -> Option<&str> {
        self.extra_metadata.get(key).map(String::as_str).filter(|v| !v.is_empty())
    }
}
