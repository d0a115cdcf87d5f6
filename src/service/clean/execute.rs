//! A plan made true (`CleanActionExecutor`, Hudi 0.15).
//!
//! ```text
//! K.clean.inflight   the plan once more
//!   its files        those that are still unneeded: deleted, several at a time; those that are gone count as not deleted
//!   folders          of partitions that have become empty
//! K.clean            what has gone, and from which write on the next clean is to look
//! ```

use super::{Cleaner, Files, Job};
use crate::observe::CleanReport;
use crate::service::metadata_table::without_metadata_table;
use crate::service::{Error, Result};
use crate::storage::fault_point;
use crate::table::{self, Action, CleanMetadata, CleanedPartition, PARTITION_METAFILE, TimelineRecord, in_folder};
use crate::write;
use futures::stream::{StreamExt, TryStreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// `CleanerUtils.LATEST_CLEAN_METADATA_VERSION`, Hudi 0.15
const METADATA_VERSION: i32 = 2;

impl Cleaner {
    /// `None`: somebody else has completed it meanwhile.
    pub(super) async fn execute(&self, job: Job) -> Result<Option<CleanReport>> {
        let started = Instant::now();
        let table = &self.table;
        if job.is_resumed {
            let held = self.writers.locks.lock("begin a clean").await?;
            without_metadata_table(table, &self.writers, &held, "clean", &job.time).await?;
            held.release().await?;
        }
        match table.mark_inflight(&job.time, Action::Clean, job.content.clone()).await {
            Err(table::Error::InstantExists { .. }) => {}
            marked => marked?,
        }
        let Some(job) = self.look_again(job).await? else { return Ok(None) };
        self.delete(&job.partitions).await?;
        let gone = self.delete_folders(&job).await?;
        let metadata = metadata(&job, &gone, started);
        fault_point("before-clean-complete");
        let held = self.writers.locks.lock("complete a clean").await?;
        held.check().await?;
        let completed = table.complete(&job.time, Action::Clean, metadata.to_file()).await;
        held.release().await?;
        match completed {
            Err(table::Error::InstantExists { .. }) => return Ok(None),
            completed => completed?,
        }
        Ok(Some(CleanReport {
            instant: job.time.to_string(),
            policy: job.plan.policy,
            files_deleted: metadata.total_files_deleted.unsigned_abs().into(),
            partitions: metadata.partition_metadata.len() as u64,
            partitions_deleted: gone.len() as u64,
            earliest_retained: metadata.earliest_commit_to_retain,
            took: started.elapsed(),
        }))
    }

    async fn delete(&self, partitions: &BTreeMap<String, Files>) -> Result<()> {
        let paths = partitions
            .iter()
            .flat_map(|(partition, files)| files.there.iter().map(move |name| in_folder(partition, name)));
        let deletes = paths.map(|path| async move {
            if self.cancel.is_cancelled() {
                return Err(Error::Write(write::Error::Cancelled));
            }
            fault_point("in-clean");
            Ok(self.table.storage.delete(&path).await?)
        });
        futures::stream::iter(deletes).buffer_unordered(self.config.parallelism).try_collect().await
    }

    /// Those of the plan in which nothing is left, and nobody is about to write.
    async fn delete_folders(&self, job: &Job) -> Result<BTreeSet<String>> {
        let planned = job.plan.partitions_to_be_deleted.iter().flatten().filter(|folder| !folder.is_empty());
        let planned: Vec<&String> = planned.filter(|folder| job.partitions.contains_key(*folder)).collect();
        let mut gone = BTreeSet::new();
        if planned.is_empty() || !self.may_delete_partitions(&self.table.timeline().await?) {
            return Ok(gone);
        }
        for folder in planned {
            let left = self.table.storage.list(folder).await?;
            let is_metafile = |path: &str| table::name_of(path) == PARTITION_METAFILE;
            if left.folders.is_empty() && left.files.iter().all(|file| is_metafile(&file.path)) {
                self.table.storage.delete_folder(folder).await?;
                gone.insert(folder.clone());
            }
        }
        Ok(gone)
    }
}

fn metadata(job: &Job, folders_gone: &BTreeSet<String>, started: Instant) -> CleanMetadata {
    let partition = |(partition, files): (&String, &Files)| {
        let cleaned = CleanedPartition {
            partition_path: partition.clone(),
            policy: job.plan.policy.clone(),
            delete_path_patterns: files.there.iter().chain(&files.gone).cloned().collect(),
            success_delete_files: files.there.clone(),
            failed_delete_files: files.gone.clone(),
            is_partition_deleted: Some(folders_gone.contains(partition)),
        };
        (partition.clone(), cleaned)
    };
    let deleted: usize = job.partitions.values().map(|files| files.there.len()).sum();
    let earliest = job.plan.earliest_instant_to_retain.as_ref();
    CleanMetadata {
        start_clean_time: job.time.to_string(),
        time_taken_in_millis: i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX),
        total_files_deleted: i32::try_from(deleted).unwrap_or(i32::MAX),
        earliest_commit_to_retain: earliest.map(|instant| instant.timestamp.clone()).unwrap_or_default(),
        last_completed_commit_timestamp: job.plan.last_completed_commit_timestamp.clone(),
        partition_metadata: job.partitions.iter().map(partition).collect(),
        version: Some(METADATA_VERSION),
        bootstrap_partition_metadata: Some(BTreeMap::new()),
        extra_metadata: Some(job.plan.extra_metadata.clone().unwrap_or_default()),
    }
}
