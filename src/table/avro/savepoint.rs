//! Records of savepoints and of restores to them.

use super::{InstantInfo, RollbackMetadata, TimelineRecord};
use apache_avro::Schema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

timeline_record!(SavepointMetadata, "HoodieSavepointMetadata.avsc");
timeline_record!(RestorePlan, "HoodieRestorePlan.avsc");
timeline_record!(RestoreMetadata, "HoodieRestoreMetadata.avsc");

/// `HoodieSavepointMetadata`, `S.savepoint`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavepointMetadata {
    pub savepointed_by: String,
    /// Milliseconds since 1970.
    pub savepointed_at: i64,
    pub comments: String,
    pub partition_metadata: BTreeMap<String, SavepointPartition>,
    pub version: Option<i32>,
}

/// `HoodieSavepointPartitionMetadata`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavepointPartition {
    pub partition_path: String,
    /// Names of the files of the slices that were the newest then: base files, and log files.
    pub savepoint_data_file: Vec<String>,
}

impl SavepointMetadata {
    /// Names of all files that the savepoint keeps, which are unique in a table.
    pub fn file_names(&self) -> impl Iterator<Item = &String> {
        self.partition_metadata.values().flat_map(|partition| &partition.savepoint_data_file)
    }
}

/// `HoodieRestorePlan`, `R.restore.requested`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestorePlan {
    /// In the order in which they are undone. A pending compaction is a `compaction` here, a completed one a `commit`.
    pub instants_to_rollback: Vec<InstantInfo>,
    pub version: Option<i32>,
    /// Since version 2 of the plan (Hudi 0.13).
    pub savepoint_to_restore_timestamp: Option<String>,
}

/// `HoodieRestoreMetadata`, `R.restore`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoreMetadata {
    pub start_restore_time: String,
    pub time_taken_in_millis: i64,
    /// Instants alone.
    pub instants_to_rollback: Vec<String>,
    /// By the instant that was undone.
    pub hoodie_restore_metadata: BTreeMap<String, Vec<Option<RollbackMetadata>>>,
    pub version: Option<i32>,
    pub restore_instant_info: Vec<InstantInfo>,
}
