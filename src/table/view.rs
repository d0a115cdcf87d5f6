//! File groups and their latest slices, from a listing and the timeline.

mod kept;
#[cfg(test)]
mod tests;

pub use kept::KeptView;

use super::file_name::{LogFileName, parse_base_file};
use super::{Action, CompactionOperation, InstantTime, RequestedReplace, Result, SliceInfo, State, Table, Timeline};
use super::{Error, TimelineRecord, in_folder, name_of};
use crate::storage::{self, FileInfo};
use futures::stream::{StreamExt, TryStreamExt};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Folders listed, or timeline files read, at a time.
pub(super) const CONCURRENCY: usize = 32;

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
        in_folder(&self.partition, &self.name)
    }
}

/// A log file of a slice (merge-on-read).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    pub name: LogFileName,
    pub size: u64,
}

/// The newest slice of a file group; with the slice before it while a compaction is to make one of both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSlice {
    pub partition: String,
    pub file_id: String,
    /// Instant of the base file; of a group without one, of its first log files.
    pub base_instant: InstantTime,
    /// Never the file of a compaction that has not completed.
    pub base_file: Option<BaseFile>,
    /// All that a reader merges, in Hudi's order: the slice's, then those on a pending compaction. Log files of failed
    /// writes are among them: their blocks do not count.
    pub log_files: Vec<LogFile>,
    /// The pending compaction (requested or inflight) whose plan has the group: new log files go on its instant.
    pub pending_compaction: Option<InstantTime>,
}

impl FileSlice {
    /// The base instant of new log files.
    pub fn append_instant(&self) -> &InstantTime {
        self.pending_compaction.as_ref().unwrap_or(&self.base_instant)
    }

    /// The first version of a new log file that is not taken, by failed writes either, as far as the listing goes.
    pub fn next_log_version(&self) -> u32 {
        let on_instant = self.log_files.iter().filter(|log| log.name.base_instant == *self.append_instant());
        on_instant.map(|log| log.name.version).max().map_or(1, |version| version.saturating_add(1))
    }

    /// Where a log file of the slice is, relative to the table's base path.
    pub fn log_path(&self, log: &LogFile) -> String {
        self.path_of(&log.name)
    }

    /// The same of a log file that may not exist yet.
    pub fn path_of(&self, name: &LogFileName) -> String {
        in_folder(&self.partition, &name.to_string())
    }
}

/// A file group: partition and file id.
pub type FileGroupId = (String, String);

/// Latest slices by partition; replaced and uncommitted files left out.
#[derive(Debug, Clone, Default)]
pub struct FileSystemView {
    /// Slices in the order of their file ids.
    pub partitions: BTreeMap<String, Vec<Arc<FileSlice>>>,
    /// File groups that clustering which waits or runs is going to replace: they take no inserts (and an update of one
    /// would be lost when the clustering completes).
    pub pending_clustering: BTreeSet<FileGroupId>,
    /// File groups that a compaction which waits or runs is going to give a new base file, and its instant.
    pub pending_compactions: BTreeMap<FileGroupId, InstantTime>,
}

impl FileSystemView {
    /// `partitions`: only these (those that do not exist are empty); `None`: every partition of the table.
    ///
    /// Costs one listing a partition (and one a folder above them for `None`), and one read a replacecommit and a pending
    /// compaction.
    pub async fn load(table: &Table, timeline: &Timeline, partitions: Option<&[String]>) -> Result<FileSystemView> {
        FileSystemView::load_until(table, timeline, partitions, None).await
    }

    /// As the table was at the time of `last`, a completed write, as far as cleaning has left it; with the log files that
    /// have come to these slices since (`getLatestFileSlicesBeforeOrOn` of Hudi 0.15).
    pub async fn load_at(
        table: &Table,
        timeline: &Timeline,
        last: &InstantTime,
        partitions: Option<&[String]>,
    ) -> Result<FileSystemView> {
        FileSystemView::load_until(table, timeline, partitions, Some(last)).await
    }

    async fn load_until(
        table: &Table,
        timeline: &Timeline,
        partitions: Option<&[String]>,
        last: Option<&InstantTime>,
    ) -> Result<FileSystemView> {
        let listed = async {
            match partitions {
                Some(partitions) => list_these(table, partitions).await,
                None => list_all(table).await,
            }
        };
        let (listed, slicer) = tokio::try_join!(listed, Slicer::load_until(table, timeline, last))?;
        let partitions = listed.into_iter().map(|(partition, files)| {
            let slices = slicer.latest(&partition, files);
            (partition, slices.into_iter().map(Arc::new).collect())
        });
        let partitions = partitions.collect();
        let Slicer { pending_clustering, pending_compactions, .. } = slicer;
        Ok(FileSystemView { partitions, pending_clustering, pending_compactions })
    }

    /// The base file of every slice that has one.
    pub fn latest_base_files(&self) -> impl Iterator<Item = &BaseFile> {
        self.partitions.values().flatten().filter_map(|s| s.base_file.as_ref())
    }

    /// Whether the group waits to be clustered.
    pub fn is_in_pending_clustering(&self, partition: &str, file_id: &str) -> bool {
        !self.pending_clustering.is_empty()
            && self.pending_clustering.contains(&(partition.to_string(), file_id.to_string()))
    }
}

async fn list_these(table: &Table, partitions: &[String]) -> Result<BTreeMap<String, Vec<FileInfo>>> {
    let listings = partitions
        .iter()
        .map(|p| async move { Ok::<_, super::Error>((p.clone(), table.storage.list(p).await?.files)) });
    futures::stream::iter(listings).buffer_unordered(CONCURRENCY).try_collect().await
}

async fn list_all(table: &Table) -> Result<BTreeMap<String, Vec<FileInfo>>> {
    let partitions = table.folders().try_filter(|folder| std::future::ready(folder.is_partition));
    partitions.map_ok(|folder| (folder.path, folder.files)).try_collect().await
}

/// Makes the latest slices of one partition after the other, by what a timeline says of file groups.
#[derive(Debug, Clone)]
pub struct Slicer {
    timeline: Timeline,
    /// Slices that are newer are left out.
    last: Option<InstantTime>,
    /// What completed replacecommits of the active timeline hide.
    pub replaced: BTreeSet<FileGroupId>,
    /// As [`FileSystemView::pending_clustering`].
    pub pending_clustering: BTreeSet<FileGroupId>,
    /// As [`FileSystemView::pending_compactions`].
    pub pending_compactions: BTreeMap<FileGroupId, InstantTime>,
}

impl Slicer {
    /// Costs one read a replacecommit and a pending compaction or clustering.
    pub async fn load(table: &Table, timeline: &Timeline) -> Result<Slicer> {
        Slicer::load_until(table, timeline, None).await
    }

    async fn load_until(table: &Table, timeline: &Timeline, last: Option<&InstantTime>) -> Result<Slicer> {
        let of_then = last.map(|last| timeline.until(last));
        let then = of_then.as_ref().unwrap_or(timeline);
        let (replaced, pending_clustering, pending_compactions) = tokio::try_join!(
            table.replaced_groups(then),
            clustering_groups(table, then),
            compaction_groups(table, then)
        )?;
        let replaced = replaced.into_keys().collect();
        let (timeline, last) = (timeline.clone(), last.cloned());
        Ok(Slicer { timeline, last, replaced, pending_clustering, pending_compactions })
    }

    /// The newest slice of each file group that is not replaced, of the files of a partition.
    pub fn latest(&self, partition: &str, files: Vec<FileInfo>) -> Vec<FileSlice> {
        let mut slices =
            Slicing::new(&self.timeline, self.last.as_ref()).latest(partition, files, &self.pending_compactions);
        if !self.replaced.is_empty() {
            slices.retain(|slice| !self.replaced.contains(&(partition.to_string(), slice.file_id.clone())));
        }
        slices
    }
}

/// The files on one base instant of a group.
#[derive(Default)]
struct Files {
    base: Option<BaseFile>,
    logs: Vec<LogFile>,
}

/// Makes slices of files, by the instants that count.
pub(super) struct Slicing<'a> {
    timeline: &'a Timeline,
    /// What is newer is no part of the view.
    last: Option<&'a InstantTime>,
    /// Instants of pending compactions: log files on them are committed, base files are not.
    compactions: BTreeSet<&'a InstantTime>,
    valid: HashMap<InstantTime, bool>,
}

impl<'a> Slicing<'a> {
    pub fn new(timeline: &'a Timeline, last: Option<&'a InstantTime>) -> Slicing<'a> {
        let compactions = timeline.pending(Action::Compaction).map(|i| &i.time).collect();
        Slicing { timeline, last, compactions, valid: HashMap::new() }
    }

    /// Whether a slice on this base instant is one. (The blocks of its log files count by their own instants.)
    pub fn counts(&mut self, time: &InstantTime) -> bool {
        if let Some(known) = self.valid.get(time) {
            return *known;
        }
        let is = self.last.is_none_or(|last| time <= last)
            && (self.timeline.is_valid(time) || self.compactions.contains(time));
        self.valid.insert(time.clone(), is);
        is
    }

    /// The newest slice of each file group of a partition, as `getLatestMergedFileSlicesBeforeOrOn` of Hudi 0.15 has it.
    fn latest(
        &mut self,
        partition: &str,
        files: Vec<FileInfo>,
        pending: &BTreeMap<FileGroupId, InstantTime>,
    ) -> Vec<FileSlice> {
        let mut groups: BTreeMap<String, BTreeMap<InstantTime, Files>> = BTreeMap::new();
        for file in files {
            let name = name_of(&file.path);
            if let Some((file_id, instant)) = parse_base_file(name) {
                if !self.counts(&instant) || self.compactions.contains(&instant) {
                    continue;
                }
                let base = BaseFile {
                    partition: partition.to_string(),
                    name: name.to_string(),
                    file_id: file_id.to_string(),
                    instant: instant.clone(),
                    size: file.size,
                };
                let slices = groups.entry(file_id.to_string()).or_default();
                slices.entry(instant).or_default().base = Some(base);
            } else if let Some(name) = LogFileName::parse(name) {
                if name.cdc || !self.counts(&name.base_instant) {
                    continue;
                }
                let slices = groups.entry(name.file_id.clone()).or_default();
                let files = slices.entry(name.base_instant.clone()).or_default();
                files.logs.push(LogFile { name, size: file.size });
            }
        }
        let slices = groups.into_iter().filter_map(|(file_id, slices)| {
            let compaction =
                if pending.is_empty() { None } else { pending.get(&(partition.to_string(), file_id.clone())) };
            slice(partition, file_id, slices, compaction.cloned())
        });
        slices.collect()
    }
}

/// The newest slice of a group. One that a pending compaction has opened is one with the slice before it.
fn slice(
    partition: &str,
    file_id: String,
    mut slices: BTreeMap<InstantTime, Files>,
    pending_compaction: Option<InstantTime>,
) -> Option<FileSlice> {
    let (mut base_instant, mut files) = slices.pop_last()?;
    if pending_compaction.as_ref() == Some(&base_instant)
        && let Some((before, mut merged)) = slices.pop_last()
    {
        merged.logs.append(&mut files.logs);
        (base_instant, files) = (before, merged);
    }
    files.logs.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Some(FileSlice {
        partition: partition.to_string(),
        file_id,
        base_instant,
        base_file: files.base,
        log_files: files.logs,
        pending_compaction,
    })
}

async fn clustering_groups(table: &Table, timeline: &Timeline) -> Result<BTreeSet<FileGroupId>> {
    let slices = table.pending_clustering_slices(timeline).await?.into_iter();
    Ok(slices.filter_map(|s| Some((s.partition_path.unwrap_or_default(), s.file_id?))).collect())
}

async fn compaction_groups(table: &Table, timeline: &Timeline) -> Result<BTreeMap<FileGroupId, InstantTime>> {
    let operations = table.pending_compaction_operations(timeline).await?.into_iter();
    Ok(operations.filter_map(|(instant, operation)| Some((operation.group()?, instant))).collect())
}

impl Table {
    /// What completed replacecommits of the active timeline hide, and since when. (Archived ones hide nothing: a
    /// replacecommit is archived only when its replaced files are gone.)
    pub async fn replaced_groups(&self, timeline: &Timeline) -> Result<BTreeMap<FileGroupId, InstantTime>> {
        let read = |instant: &super::Instant| {
            let instant = instant.clone();
            async move { Ok::<_, Error>((self.commit_summary(&instant).await?, instant.time)) }
        };
        let mut replaced = BTreeMap::new();
        let mut reads = futures::stream::iter(timeline.completed_replacements().map(read)).buffered(CONCURRENCY);
        while let Some((summary, time)) = reads.try_next().await? {
            for (partition, file_ids) in summary.metadata.partition_to_replace_file_ids.iter().flatten() {
                for id in file_ids {
                    replaced.entry((partition.clone(), id.clone())).or_insert_with(|| time.clone());
                }
            }
        }
        Ok(replaced)
    }

    /// What clustering that waits or runs is going to read.
    pub async fn pending_clustering_slices(&self, timeline: &Timeline) -> Result<Vec<SliceInfo>> {
        let mut slices = Vec::new();
        for instant in timeline.pending(Action::ReplaceCommit) {
            let Some(plan) = self.requested_replace(instant).await?.and_then(|r| r.clustering_plan) else { continue };
            slices.extend(plan.input_groups.into_iter().flatten().flat_map(|g| g.slices.unwrap_or_default()));
        }
        Ok(slices)
    }

    /// What compactions that wait or run, which is the same to everybody else, are going to read; with their instants. A plan
    /// that has been taken back since the timeline was read is none.
    pub async fn pending_compaction_operations(
        &self,
        timeline: &Timeline,
    ) -> Result<Vec<(InstantTime, CompactionOperation)>> {
        let mut operations = Vec::new();
        for instant in timeline.pending(Action::Compaction) {
            let plan = match self.compaction_plan(instant).await {
                Err(Error::Storage(storage::Error::NotFound { .. })) if instant.state == State::Requested => continue,
                plan => plan?,
            };
            operations.extend(plan.operations.into_iter().flatten().map(|operation| (instant.time.clone(), operation)));
        }
        Ok(operations)
    }

    /// The plan of a replacecommit; `None` where the file is missing or empty (old writers of insert_overwrite).
    pub async fn requested_replace(&self, instant: &super::Instant) -> Result<Option<RequestedReplace>> {
        let requested = instant.in_state(State::Requested);
        let Some(bytes) = self.storage.get_opt(&requested.path()).await?.filter(|b| !b.is_empty()) else {
            return Ok(None);
        };
        let plan = RequestedReplace::from_file(&bytes).map_err(|why| self.malformed(&requested, why))?;
        Ok(Some(plan))
    }
}
