//! A plan: the files that are to go.

use super::memory::{Look, SAVEPOINTED};
use super::slices::{Group, Keep, unneeded};
use super::{Cleaner, Files, Job, retain};
use crate::config::CleanPolicy;
use crate::service::Result;
use crate::service::lock::Held;
use crate::service::metadata_table::without_metadata_table;
use crate::service::rollback::{being_taken_back, without};
use crate::storage::fault_point;
use crate::table::{Action, ActionInstant, CleanFile, CleanPlan, FileGroupId, Instant, InstantTime, PartitionFiles};
use crate::table::{State, Timeline, TimelineRecord, in_folder, name_of};
use std::collections::{BTreeMap, HashSet};

/// `CleanPlanner.LATEST_CLEAN_PLAN_VERSION`, Hudi 0.15: paths of files, not names.
const PLAN_VERSION: i32 = 2;

/// What there is to do, not written down yet.
pub(super) struct Draft {
    pub plan: CleanPlan,
    pub partitions: BTreeMap<String, Files>,
    look: Look,
}

impl Cleaner {
    /// Makes a plan, if one is due and something is old. From here on it is to be executed.
    pub(super) async fn plan(&self, timeline: &Timeline) -> Result<Option<Job>> {
        let Some(draft) = self.draft(timeline).await? else { return Ok(None) };
        let held = self.writers.locks.lock("plan a clean").await?;
        let planned = match self.writers.are_several() {
            false => Some(self.write_down(draft, timeline, &held).await?),
            // What others have done meanwhile counts.
            true => {
                let timeline = self.table.timeline().await?;
                match self.draft(&timeline).await? {
                    Some(draft) => Some(self.write_down(draft, &timeline, &held).await?),
                    None => None,
                }
            }
        };
        held.release().await?;
        Ok(planned)
    }

    /// What a plan would say. Where the timeline alone says that nothing is old enough, nothing is read.
    pub(super) async fn draft(&self, timeline: &Timeline) -> Result<Option<Draft>> {
        if !self.config.allow_multiple && timeline.pending(Action::Clean).next().is_some() {
            return Ok(None);
        }
        let timeline = &without(timeline, &being_taken_back(&self.table, timeline).await?);
        let policy = self.config.policy;
        let earliest = retain::earliest_to_retain(&self.table, policy, timeline);
        let keep = match (policy, earliest) {
            (CleanPolicy::KeepLatestFileVersions { versions }, _) => Keep::Newest(versions),
            (_, Some(earliest)) => Keep::ReadersSince(&earliest.time),
            (_, None) => return Ok(None),
        };
        let last = self.memory.last_clean(&self.table, timeline).await?;
        if !retain::is_due(self.config.max_commits, timeline, last.as_ref().map(|last| last.up_to.as_str())) {
            return Ok(None);
        }
        let look = Look::of(timeline, earliest);
        let where_to_look = self.partitions_since(timeline, earliest, last.as_deref()).await?;
        if where_to_look.as_ref().is_some_and(Vec::is_empty) {
            self.memory.looked(look);
            return Ok(None);
        }
        let needs = Needs::load(self, timeline).await?;
        let mut partitions = BTreeMap::new();
        let mut to_be_deleted = Vec::new();
        for (partition, files) in PartitionFiles::load(&self.table, timeline, where_to_look.as_deref()).await? {
            let names = needs.unneeded(&partition, &files, keep);
            if names.is_empty() {
                continue;
            }
            let data_files = files.groups.values().flatten().map(|slice| slice.names.len()).sum::<usize>();
            if names.len() == data_files && files.uncommitted.is_empty() && self.may_delete_partitions(timeline) {
                to_be_deleted.push(partition.clone());
            }
            partitions.insert(partition, Files { there: names, gone: Vec::new() });
        }
        if partitions.is_empty() {
            self.memory.looked(look);
            return Ok(None);
        }
        let plan = self.clean_plan(timeline, earliest, &partitions, to_be_deleted);
        Ok(Some(Draft { plan, partitions, look }))
    }

    /// The folder of a partition is the partition of whoever writes to it next.
    pub(super) fn may_delete_partitions(&self, timeline: &Timeline) -> bool {
        let is_partitioned = !self.table.properties.partition_fields().is_empty();
        is_partitioned && self.alone && timeline.pending_writes().next().is_none()
    }

    fn clean_plan(
        &self,
        timeline: &Timeline,
        earliest: Option<&Instant>,
        partitions: &BTreeMap<String, Files>,
        to_be_deleted: Vec<String>,
    ) -> CleanPlan {
        let file = |path: String| CleanFile {
            file_path: Some(self.table.storage.absolute(&path)),
            is_bootstrap_base_file: Some(false),
        };
        let files = partitions.iter().map(|(partition, files)| {
            (partition.clone(), files.there.iter().map(|name| file(in_folder(partition, name))).collect())
        });
        let savepoints: Vec<&str> = timeline.savepoints().map(|savepoint| savepoint.time.as_str()).collect();
        let mut extra_metadata = BTreeMap::new();
        if !savepoints.is_empty() && !self.table.properties.partition_fields().is_empty() {
            extra_metadata.insert(SAVEPOINTED.to_string(), savepoints.join(","));
        }
        CleanPlan {
            earliest_instant_to_retain: earliest.map(ActionInstant::completed),
            last_completed_commit_timestamp: timeline
                .last_completed_write()
                .map(|last| last.time.to_string())
                .unwrap_or_default(),
            policy: self.config.policy.as_str().to_string(),
            files_to_be_deleted_per_partition: Some(BTreeMap::new()),
            version: Some(PLAN_VERSION),
            file_paths_to_be_deleted_per_partition: Some(files.collect()),
            partitions_to_be_deleted: Some(to_be_deleted),
            extra_metadata: Some(extra_metadata),
        }
    }

    async fn write_down(&self, draft: Draft, timeline: &Timeline, held: &Held) -> Result<Job> {
        let Draft { plan, partitions, look } = draft;
        let time = self.table.new_instant(timeline);
        let table = without_metadata_table(&self.table, &self.writers, held, "clean", &time).await?;
        let content = plan.to_file();
        let requested = Instant::new(time.clone(), Action::Clean, State::Requested);
        held.check().await?;
        table.create_instant(&requested, content.clone()).await?;
        self.memory.looked(look);
        fault_point("after-clean-plan");
        Ok(Job { time, plan, content, partitions, seen: timeline.clone(), is_resumed: false })
    }
}

/// What others want of the table's files.
pub(super) struct Needs {
    /// Names of files that savepoints keep, or that compaction or clustering is going to read.
    kept: HashSet<String>,
    /// By group, the slice that a pending compaction is going to read.
    compacted_from: BTreeMap<FileGroupId, InstantTime>,
    replaced: BTreeMap<FileGroupId, InstantTime>,
}

impl Needs {
    pub(super) async fn load(cleaner: &Cleaner, timeline: &Timeline) -> Result<Needs> {
        let table = &cleaner.table;
        let mut kept = HashSet::new();
        for names in cleaner.memory.savepointed(table, timeline).await? {
            kept.extend(names.iter().cloned());
        }
        for slice in table.pending_clustering_slices(timeline).await? {
            let paths = slice.data_file_path.into_iter().chain(slice.delta_file_paths.into_iter().flatten());
            kept.extend(paths.map(|path| name_of(&path).to_string()));
        }
        let mut compacted_from = BTreeMap::new();
        for (_, operation) in table.pending_compaction_operations(timeline).await? {
            let from = operation.base_instant_time.as_deref().and_then(InstantTime::parse);
            compacted_from.extend(operation.group().zip(from));
            let paths = operation.data_file_path.into_iter().chain(operation.delta_file_paths.into_iter().flatten());
            kept.extend(paths.map(|path| name_of(&path).to_string()));
        }
        Ok(Needs { kept, compacted_from, replaced: table.replaced_groups(timeline).await? })
    }

    /// Names of the files of a partition that nobody needs.
    pub(super) fn unneeded(&self, partition: &str, files: &PartitionFiles, keep: Keep) -> Vec<String> {
        let mut names = Vec::new();
        for (file_id, slices) in &files.groups {
            let id = (partition.to_string(), file_id.clone());
            let group =
                Group { slices, replaced_at: self.replaced.get(&id), compacted_from: self.compacted_from.get(&id) };
            names.extend(unneeded(group, keep, &self.kept).into_iter().flat_map(|slice| slice.names.iter().cloned()));
        }
        names
    }
}
