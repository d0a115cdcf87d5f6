//! Avro files of the timeline: one object container with one record (timeline.md §9–10).
//!
//! The schemas beside this file are Hudi's, names and union order kept, without Java's string hints.

use super::{Action, Instant, InstantTime};
use apache_avro::{Reader, Schema, Writer};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A record that is a timeline file of its own.
pub trait TimelineRecord: Serialize + DeserializeOwned {
    /// Hudi's schema.
    fn schema() -> &'static Schema;

    /// The whole file.
    fn to_file(&self) -> Bytes {
        let written = || {
            let mut writer = Writer::new(Self::schema(), Vec::new())?;
            writer.append_ser(self)?;
            writer.into_inner()
        };
        Bytes::from(written().expect("the struct has the fields of its schema, which a test proves"))
    }

    /// Reads a whole file, written by any version of Hudi. The error says what is wrong, not where.
    fn from_file(bytes: &[u8]) -> Result<Self, String> {
        let read = || {
            let mut records = Reader::builder(bytes).reader_schema(Self::schema()).build()?;
            records.next().map(|record| apache_avro::from_value(&record?)).transpose()
        };
        read().map_err(|e: apache_avro::Error| e.to_string())?.ok_or_else(|| "it has no record".to_string())
    }
}

macro_rules! timeline_record {
    ($record:ty, $file:literal) => {
        impl TimelineRecord for $record {
            fn schema() -> &'static Schema {
                static SCHEMA: LazyLock<Schema> =
                    LazyLock::new(|| Schema::parse_str(include_str!($file)).expect("a schema of ours"));
                &SCHEMA
            }
        }
    };
}

mod savepoint;

pub use savepoint::{RestoreMetadata, RestorePlan, SavepointMetadata, SavepointPartition};
mod clean;

pub use clean::{ActionInstant, CleanFile, CleanMetadata, CleanPlan, CleanedPartition};

timeline_record!(RollbackPlan, "avro/HoodieRollbackPlan.avsc");
timeline_record!(RollbackMetadata, "avro/HoodieRollbackMetadata.avsc");
timeline_record!(CompactionPlan, "avro/HoodieCompactionPlan.avsc");
timeline_record!(RequestedReplace, "avro/HoodieRequestedReplaceMetadata.avsc");

/// `HoodieInstantInfo`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstantInfo {
    pub commit_time: String,
    pub action: String,
}

impl InstantInfo {
    /// Time and action; `None` when they are not Hudi's.
    pub fn parse(&self) -> Option<(InstantTime, Action)> {
        Some((InstantTime::parse(&self.commit_time)?, Action::parse(&self.action)?))
    }
}

impl From<&Instant> for InstantInfo {
    fn from(instant: &Instant) -> InstantInfo {
        InstantInfo { commit_time: instant.time.to_string(), action: instant.action.to_string() }
    }
}

/// `HoodieRollbackPlan`, `R.rollback.requested`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollbackPlan {
    pub instant_to_rollback: Option<InstantInfo>,
    #[serde(rename = "RollbackRequests")]
    pub rollback_requests: Option<Vec<RollbackRequest>>,
    pub version: Option<i32>,
}

/// `HoodieRollbackRequest`: what to take away of one file group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollbackRequest {
    pub partition_path: String,
    pub file_id: Option<String>,
    pub latest_base_instant: Option<String>,
    /// Absolute paths.
    pub files_to_be_deleted: Vec<String>,
    /// Log files whose blocks a rollback block is to cancel (merge-on-read).
    pub log_blocks_to_be_deleted: Option<BTreeMap<String, i64>>,
}

/// `HoodieRollbackMetadata`, `R.rollback`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollbackMetadata {
    pub start_rollback_time: String,
    pub time_taken_in_millis: i64,
    pub total_files_deleted: i32,
    pub commits_rollback: Vec<String>,
    pub partition_metadata: BTreeMap<String, RollbackPartition>,
    pub version: Option<i32>,
    pub instants_rollback: Vec<InstantInfo>,
}

/// `HoodieRollbackPartitionMetadata`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollbackPartition {
    pub partition_path: String,
    pub success_delete_files: Vec<String>,
    pub failed_delete_files: Vec<String>,
    pub rollback_log_files: Option<BTreeMap<String, i64>>,
    pub log_files_from_failed_commit: Option<BTreeMap<String, i64>>,
}

/// `HoodieCompactionPlan`, `C.compaction.requested`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionPlan {
    pub operations: Option<Vec<CompactionOperation>>,
    pub extra_metadata: Option<BTreeMap<String, String>>,
    /// 2 since Hudi 0.6: then paths of operations are names of files in the partition.
    pub version: Option<i32>,
    /// Of Hudi's own making (log compaction); null in plans of version 6 tables.
    pub strategy: Option<CompactionStrategy>,
    pub preserve_hoodie_metadata: Option<bool>,
}

/// `HoodieCompactionOperation`: a file slice to fold into a base file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionOperation {
    pub base_instant_time: Option<String>,
    /// Names, in Hudi's order.
    pub delta_file_paths: Option<Vec<String>>,
    /// Name of the base file; null for a slice of log files alone.
    pub data_file_path: Option<String>,
    pub file_id: Option<String>,
    pub partition_path: Option<String>,
    /// Hudi's executor reads `TOTAL_LOG_FILES_SIZE`: it must be there.
    pub metrics: Option<BTreeMap<String, f64>>,
    pub bootstrap_file_path: Option<String>,
}

impl CompactionOperation {
    /// The file group; `None` when the plan does not name it.
    pub fn group(&self) -> Option<(String, String)> {
        Some((self.partition_path.clone().unwrap_or_default(), self.file_id.clone()?))
    }
}

/// `HoodieCompactionStrategy`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionStrategy {
    pub compactor_class_name: Option<String>,
    pub strategy_params: Option<BTreeMap<String, String>>,
    pub version: Option<i32>,
}

/// `HoodieRequestedReplaceMetadata`, `T.replacecommit.requested`; all null but for clustering.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestedReplace {
    pub operation_type: Option<String>,
    pub clustering_plan: Option<ClusteringPlan>,
    pub extra_metadata: Option<BTreeMap<String, String>>,
    pub version: Option<i32>,
}

/// `HoodieClusteringPlan`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusteringPlan {
    pub input_groups: Option<Vec<ClusteringGroup>>,
    pub strategy: Option<ClusteringStrategy>,
    pub extra_metadata: Option<BTreeMap<String, String>>,
    pub version: Option<i32>,
    pub preserve_hoodie_metadata: Option<bool>,
}

/// `HoodieClusteringGroup`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusteringGroup {
    pub slices: Option<Vec<SliceInfo>>,
    pub metrics: Option<BTreeMap<String, f64>>,
    pub num_output_file_groups: Option<i32>,
    pub extra_metadata: Option<BTreeMap<String, String>>,
    pub version: Option<i32>,
}

/// `HoodieSliceInfo`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SliceInfo {
    pub data_file_path: Option<String>,
    pub delta_file_paths: Option<Vec<String>>,
    pub file_id: Option<String>,
    pub partition_path: Option<String>,
    pub bootstrap_file_path: Option<String>,
    pub version: Option<i32>,
}

/// `HoodieClusteringStrategy`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusteringStrategy {
    pub strategy_class_name: Option<String>,
    pub strategy_params: Option<BTreeMap<String, String>>,
    pub version: Option<i32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use serde_json::Value;

    /// JSON, datum and file; the datum is empty where Java has put more than one key into a map, in an order of its own.
    fn vector(class: &str) -> (Value, Vec<u8>, Vec<u8>) {
        let vectors: Value = serde_json::from_str(include_str!("../../tests/vectors/timeline_avro.json")).unwrap();
        let case = vectors["cases"].as_array().unwrap().iter().find(|c| c["class"] == class).unwrap().clone();
        let bytes = |field: &str| {
            base64::engine::general_purpose::STANDARD.decode(case[field].as_str().unwrap_or_default()).unwrap()
        };
        (case["json"].clone(), bytes("datum_base64"), bytes("file_base64"))
    }

    /// Hudi's file is read, has Hudi's JSON, and our file holds the same datum.
    fn check<R: TimelineRecord + PartialEq + std::fmt::Debug>(class: &str) {
        let (json, datum, file) = vector(class);
        let record = R::from_file(&file).unwrap();
        assert_eq!(serde_json::to_value(&record).unwrap(), json, "{class}");
        let ours = record.to_file();
        assert_eq!(R::from_file(&ours), Ok(record), "{class}");
        let same = datum.is_empty() || ours.windows(datum.len()).any(|w| w == datum);
        assert!(same, "{class}: the datum differs from Hudi's");
        assert!(R::from_file(b"Obj").is_err() && R::from_file(b"").is_err());
    }

    #[test]
    fn files_are_hudis() {
        check::<RollbackPlan>("HoodieRollbackPlan");
        check::<RollbackMetadata>("HoodieRollbackMetadata");
        check::<RequestedReplace>("HoodieRequestedReplaceMetadata");
        check::<CompactionPlan>("HoodieCompactionPlan");
        check::<SavepointMetadata>("HoodieSavepointMetadata");
        check::<RestorePlan>("HoodieRestorePlan");
        check::<RestoreMetadata>("HoodieRestoreMetadata");
        check::<CleanPlan>("HoodieCleanerPlan");
        check::<CleanMetadata>("HoodieCleanMetadata");
    }
}
