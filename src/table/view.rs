//! File groups and their latest slices, from a listing and the timeline.

use super::file_name::{parse_base_file, parse_log_file};
use super::{Action, InstantTime, META_FOLDER, PARTITION_METAFILE, RequestedReplace, Result, State, Table, Timeline};
use super::{TimelineRecord, in_folder};
use crate::storage::{FileInfo, Listing};
use futures::stream::{FuturesUnordered, StreamExt, TryStreamExt};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Folders listed, or timeline files read, at a time.
const CONCURRENCY: usize = 32;

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

/// The newest slice of a file group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSlice {
    pub partition: String,
    pub file_id: String,
    pub base_instant: InstantTime,
    pub base_file: Option<BaseFile>,
    /// Names of the log files on top of the base file (merge-on-read), in no order.
    pub log_files: Vec<String>,
}

/// A file group: partition and file id.
pub type FileGroupId = (String, String);

/// Latest slices by partition; replaced and uncommitted files left out.
#[derive(Debug, Clone, Default)]
pub struct FileSystemView {
    /// Slices in the order of their file ids.
    pub partitions: BTreeMap<String, Vec<FileSlice>>,
    /// File groups that clustering which waits or runs is going to replace: they take no inserts (and an update of one
    /// would be lost when the clustering completes).
    pub pending_clustering: BTreeSet<FileGroupId>,
}

impl FileSystemView {
    /// `partitions`: only these (those that do not exist are empty); `None`: every partition of the table.
    ///
    /// Costs one listing a partition (and one a folder above them for `None`), and one read a replacecommit.
    pub async fn load(table: &Table, timeline: &Timeline, partitions: Option<&[String]>) -> Result<FileSystemView> {
        let listed = async {
            match partitions {
                Some(partitions) => list_these(table, partitions).await,
                None => list_all(table).await,
            }
        };
        let (listed, replaced, pending_clustering) =
            tokio::try_join!(listed, replaced_groups(table, timeline), clustering_groups(table, timeline))?;
        let mut view = FileSystemView { pending_clustering, ..FileSystemView::default() };
        for (partition, files) in listed {
            let slices = latest_slices(&partition, files, timeline);
            let slices = slices.into_iter().filter(|s| !replaced.contains(&(partition.clone(), s.file_id.clone())));
            view.partitions.insert(partition.clone(), slices.collect());
        }
        Ok(view)
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

impl Table {
    /// All partitions, in order. A partition is a folder with a partition metafile; it has no partitions below it.
    pub async fn partitions(&self) -> Result<Vec<String>> {
        Ok(list_all(self).await?.into_keys().collect())
    }
}

async fn list_these(table: &Table, partitions: &[String]) -> Result<BTreeMap<String, Vec<FileInfo>>> {
    let listings = partitions
        .iter()
        .map(|p| async move { Ok::<_, super::Error>((p.clone(), table.storage.list(p).await?.files)) });
    futures::stream::iter(listings).buffer_unordered(CONCURRENCY).try_collect().await
}

async fn list_all(table: &Table) -> Result<BTreeMap<String, Vec<FileInfo>>> {
    let mut partitions = BTreeMap::new();
    let mut waiting = vec![String::new()];
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < CONCURRENCY
            && let Some(folder) = waiting.pop()
        {
            running.push(async move {
                let listing = table.storage.list(&folder).await;
                listing.map(|listing| (folder, listing))
            });
        }
        let Some((folder, Listing { files, folders })) = running.next().await.transpose()? else { break };
        if files.iter().any(|f| is_metafile(name_of(&f.path))) {
            partitions.insert(folder, files);
        } else {
            waiting.extend(folders.into_iter().filter(|f| name_of(f) != META_FOLDER));
        }
    }
    Ok(partitions)
}

/// In text, or in the format of the base files.
fn is_metafile(name: &str) -> bool {
    let rest = name.strip_prefix(PARTITION_METAFILE);
    matches!(rest, Some("" | ".parquet" | ".orc"))
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[derive(Default)]
struct Files {
    base: Option<BaseFile>,
    logs: Vec<String>,
}

/// The newest slice of each file group whose base instant counts. (A slice on a pending compaction counts too: its log
/// files are committed.)
fn latest_slices(partition: &str, files: Vec<FileInfo>, timeline: &Timeline) -> Vec<FileSlice> {
    let mut slices: BTreeMap<(String, InstantTime), Files> = BTreeMap::new();
    for file in files {
        let name = name_of(&file.path);
        if let Some((file_id, instant)) = parse_base_file(name) {
            let base = BaseFile {
                partition: partition.to_string(),
                name: name.to_string(),
                file_id: file_id.to_string(),
                instant: instant.clone(),
                size: file.size,
            };
            slices.entry((file_id.to_string(), instant)).or_default().base = Some(base);
        } else if let Some((file_id, instant)) = parse_log_file(name) {
            slices.entry((file_id.to_string(), instant)).or_default().logs.push(name.to_string());
        }
    }
    let compactions: BTreeSet<&InstantTime> = timeline.pending(Action::Compaction).map(|i| &i.time).collect();
    let mut valid: HashMap<InstantTime, bool> = HashMap::new();
    let mut counts = |time: &InstantTime| match valid.get(time) {
        Some(known) => *known,
        None => {
            let is = timeline.is_valid(time) || compactions.contains(time);
            valid.insert(time.clone(), is);
            is
        }
    };
    let mut latest: BTreeMap<String, FileSlice> = BTreeMap::new();
    for ((file_id, base_instant), files) in slices {
        if !counts(&base_instant) {
            continue;
        }
        // In the order of instants: a later one takes the place of an earlier one.
        let slice = FileSlice {
            partition: partition.to_string(),
            file_id: file_id.clone(),
            base_instant,
            base_file: files.base,
            log_files: files.logs,
        };
        latest.insert(file_id, slice);
    }
    latest.into_values().collect()
}

/// What completed replacecommits of the active timeline hide. (Archived ones hide nothing: a replacecommit is archived
/// only when its replaced files are gone.)
async fn replaced_groups(table: &Table, timeline: &Timeline) -> Result<BTreeSet<FileGroupId>> {
    let reads = timeline.completed_replacements().map(|instant| table.commit_metadata(instant));
    let mut replaced = BTreeSet::new();
    let mut reads = futures::stream::iter(reads).buffer_unordered(CONCURRENCY);
    while let Some(metadata) = reads.try_next().await? {
        for (partition, file_ids) in metadata.partition_to_replace_file_ids.unwrap_or_default() {
            replaced.extend(file_ids.into_iter().map(|id| (partition.clone(), id)));
        }
    }
    Ok(replaced)
}

async fn clustering_groups(table: &Table, timeline: &Timeline) -> Result<BTreeSet<FileGroupId>> {
    let mut groups = BTreeSet::new();
    for instant in timeline.pending(Action::ReplaceCommit) {
        let Some(plan) = table.requested_replace(instant).await?.and_then(|r| r.clustering_plan) else { continue };
        let slices = plan.input_groups.into_iter().flatten().flat_map(|g| g.slices.unwrap_or_default());
        groups.extend(slices.filter_map(|s| Some((s.partition_path.unwrap_or_default(), s.file_id?))));
    }
    Ok(groups)
}

impl Table {
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
