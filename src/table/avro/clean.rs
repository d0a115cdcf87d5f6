//! What a clean plans, and what it has done.

use super::TimelineRecord;
use crate::table::{Instant, InstantTime};
use apache_avro::Schema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

timeline_record!(CleanPlan, "HoodieCleanerPlan.avsc");
timeline_record!(CleanMetadata, "HoodieCleanMetadata.avsc");

/// `HoodieCleanerPlan`, `K.clean.requested` and `K.clean.inflight`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CleanPlan {
    /// Null for policies that go by versions.
    pub earliest_instant_to_retain: Option<ActionInstant>,
    pub last_completed_commit_timestamp: String,
    /// Hudi's word for it.
    pub policy: String,
    /// Names of files, in plans of version 1 (before Hudi 0.6).
    pub files_to_be_deleted_per_partition: Option<BTreeMap<String, Vec<String>>>,
    pub version: Option<i32>,
    pub file_paths_to_be_deleted_per_partition: Option<BTreeMap<String, Vec<CleanFile>>>,
    pub partitions_to_be_deleted: Option<Vec<String>>,
    /// `savepointed_timestamps`: the savepoints whose files the plan spares.
    pub extra_metadata: Option<BTreeMap<String, String>>,
}

/// `HoodieActionInstant`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionInstant {
    pub timestamp: String,
    pub action: String,
    /// Name of the state's Java constant.
    pub state: String,
}

impl ActionInstant {
    /// As a plan names a completed write.
    pub fn completed(instant: &Instant) -> ActionInstant {
        let (timestamp, action) = (instant.time.to_string(), instant.action.to_string());
        ActionInstant { timestamp, action, state: "COMPLETED".to_string() }
    }
}

/// `HoodieCleanFileInfo`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CleanFile {
    /// Absolute, with its scheme.
    pub file_path: Option<String>,
    /// Outside of the table; only tables that were bootstrapped have such files.
    pub is_bootstrap_base_file: Option<bool>,
}

/// `HoodieCleanMetadata`, `K.clean`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CleanMetadata {
    pub start_clean_time: String,
    pub time_taken_in_millis: i64,
    pub total_files_deleted: i32,
    /// Empty for policies that go by versions. The next clean looks at what was written from here on.
    pub earliest_commit_to_retain: String,
    pub last_completed_commit_timestamp: String,
    pub partition_metadata: BTreeMap<String, CleanedPartition>,
    pub version: Option<i32>,
    pub bootstrap_partition_metadata: Option<BTreeMap<String, CleanedPartition>>,
    /// Of the plan.
    pub extra_metadata: Option<BTreeMap<String, String>>,
}

impl CleanMetadata {
    /// The earliest write that was kept; `None` for policies that go by versions.
    pub fn earliest_retained(&self) -> Option<InstantTime> {
        InstantTime::parse(&self.earliest_commit_to_retain)
    }
}

/// `HoodieCleanPartitionMetadata`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CleanedPartition {
    pub partition_path: String,
    pub policy: String,
    /// Names of the files that were to go.
    pub delete_path_patterns: Vec<String>,
    pub success_delete_files: Vec<String>,
    /// Those that were gone already, among others.
    pub failed_delete_files: Vec<String>,
    /// Hudi's metadata table fails on null.
    pub is_partition_deleted: Option<bool>,
}
