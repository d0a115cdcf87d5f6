//! What a failed write has made, or was about to make: by its markers, or by looking at the data.

use super::super::{Error, Result};
use super::CONCURRENCY;
use crate::storage::FileInfo;
use crate::table::log_file::{BlockKind, LogReader};
use crate::table::{
    self, Action, CommitMetadata, FileSlice, FileSystemView, Instant, InstantTime, LogFileName, Markers,
};
use crate::table::{State, Table, Timeline, in_folder, parse_base_file};
use futures::stream::{StreamExt, TryStreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How much of an instant goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// What a compaction that died has made: its plan stays, and the log files on it.
    Failed,
    /// All of it.
    Whole,
}

impl Scope {
    /// Of a rollback that is no part of a restore.
    pub(super) fn of_rollback(target: &Instant) -> Scope {
        if target.action == Action::Compaction { Scope::Failed } else { Scope::Whole }
    }
}

/// A file of the failed write alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DataFile {
    pub partition: String,
    pub name: String,
    pub file_id: String,
}

impl DataFile {
    /// `None` unless the name says that the file is of this very instant: nothing else is ever deleted. Log files are so
    /// on an instant that has opened the group with them; those on a compaction's are other writes'.
    pub(super) fn of(instant: &Instant, scope: Scope, partition: &str, name: &str) -> Option<DataFile> {
        let (file_id, time) = match LogFileName::parse(name) {
            Some(_) if scope == Scope::Failed => return None,
            Some(log) => (log.file_id, log.base_instant),
            None => parse_base_file(name).map(|(file_id, time)| (file_id.to_string(), time))?,
        };
        let file = DataFile { partition: partition.to_string(), name: name.to_string(), file_id };
        (time == instant.time).then_some(file)
    }

    /// Relative to the table.
    pub(super) fn path(&self) -> String {
        in_folder(&self.partition, &self.name)
    }
}

/// A slice whose log files may hold blocks of the failed write beside others: a rollback block cancels these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogSlice {
    pub partition: String,
    pub file_id: String,
    pub base_instant: InstantTime,
    /// Names of the files that the write was to make; some may never have come to be.
    pub logs: BTreeSet<String>,
}

/// All that is to be undone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Leftovers {
    pub files: Vec<DataFile>,
    pub slices: Vec<LogSlice>,
}

impl Leftovers {
    /// By the markers; by looking at the data where they cannot be read, or are gone although data may be there.
    pub(super) async fn of(table: &Table, timeline: &Timeline, instant: &Instant) -> Result<Leftovers> {
        if instant.state == State::Requested {
            return Ok(Leftovers::default());
        }
        let markers = match Markers::new(&table.storage, &instant.time).list().await {
            Ok(markers) => markers,
            Err(table::Error::Marker { .. }) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let marked = Leftovers::of_paths(instant, markers.iter().map(|marker| marker.path.as_str()));
        match marked.filter(|marked| *marked != Leftovers::default()) {
            Some(marked) => Ok(marked.without_lost_slices(timeline)),
            None if instant.action == Action::Compaction => of_compaction(table, instant).await,
            None => of_write(table, timeline, instant).await,
        }
    }

    /// `None` when one of them is no file that the instant can have made.
    fn of_paths<'a>(instant: &Instant, paths: impl Iterator<Item = &'a str>) -> Option<Leftovers> {
        let mut leftovers = Leftovers::default();
        for path in paths {
            let (partition, name) = split(path);
            if let Some(file) = DataFile::of(instant, Scope::of_rollback(instant), partition, name) {
                leftovers.files.push(file);
                continue;
            }
            let log = LogFileName::parse(name).filter(|_| instant.action != Action::Compaction)?;
            let partition = partition.to_string();
            let logs = [name.to_string()].into();
            leftovers.add(LogSlice { partition, file_id: log.file_id, base_instant: log.base_instant, logs });
        }
        Some(leftovers)
    }

    /// Where a restore has undone what a slice rests on, or a compaction's plan was taken back, the files go that the write
    /// has put there. A rollback block would be a slice of its own, without rows, that hides those before it as soon as the
    /// timeline's start has passed its instant.
    pub(super) fn without_lost_slices(mut self, timeline: &Timeline) -> Leftovers {
        let (slices, lost): (Vec<_>, Vec<_>) =
            self.slices.into_iter().partition(|slice| timeline.has_slices_on(&slice.base_instant));
        self.slices = slices;
        for LogSlice { partition, file_id, logs, .. } in lost {
            let file = |name| DataFile { partition: partition.clone(), name, file_id: file_id.clone() };
            self.files.extend(logs.into_iter().map(file));
        }
        self
    }

    /// As it can be done now, the plan being of another time. A log file that somebody else has written to stays: markers name
    /// those, too, that were there already under the name that the write had chosen.
    pub(super) async fn settled(&self, table: &Table, target: &Instant) -> Result<Leftovers> {
        let mut settled = self.clone();
        if !settled.slices.is_empty() {
            settled = settled.without_lost_slices(&table.timeline_as_it_is().await?);
        }
        let mut files = Vec::with_capacity(settled.files.len());
        for file in settled.files {
            if DataFile::of(target, Scope::Whole, &file.partition, &file.name).is_some()
                || is_of_alone(table, &file, &target.time).await?
            {
                files.push(file);
            }
        }
        Ok(Leftovers { files, ..settled })
    }

    /// One rollback block is enough for a slice, however many files the write has made there (`RollbackUtils.mergeRollbackRequest`,
    /// Hudi 1.x).
    pub(super) fn add(&mut self, slice: LogSlice) {
        let key = |s: &LogSlice| (s.partition.clone(), s.file_id.clone(), s.base_instant.clone());
        match self.slices.binary_search_by_key(&key(&slice), key) {
            Ok(known) => self.slices[known].logs.extend(slice.logs),
            Err(at) => self.slices.insert(at, slice),
        }
    }
}

/// Base files in the partitions of the plan.
async fn of_compaction(table: &Table, instant: &Instant) -> Result<Leftovers> {
    let operations = table.compaction_plan(instant).await?.operations.unwrap_or_default();
    let partitions: BTreeSet<String> = operations.into_iter().filter_map(|o| Some(o.group()?.0)).collect();
    let listings = partitions.iter().map(|partition| table.storage.list(partition));
    let listings: Vec<_> = futures::stream::iter(listings).buffer_unordered(CONCURRENCY).try_collect().await?;
    let files = files_of(instant, Scope::Failed, listings.iter().flat_map(|l| &l.files));
    Ok(Leftovers { files, slices: Vec::new() })
}

/// Files by their names, which do not tell whose blocks a log file holds: the files are asked.
async fn of_write(table: &Table, timeline: &Timeline, instant: &Instant) -> Result<Leftovers> {
    let all = table.storage.list_recursive("", &|folder| folder != ".hoodie").await?;
    let slices = match table.properties.is_merge_on_read() {
        true => slices_with_blocks(table, timeline, instant).await?,
        false => Vec::new(),
    };
    Ok(Leftovers { files: files_of(instant, Scope::Whole, all.iter()), slices })
}

pub(super) fn files_of<'a>(
    instant: &Instant,
    scope: Scope,
    files: impl Iterator<Item = &'a FileInfo>,
) -> Vec<DataFile> {
    let file = |file: &FileInfo| {
        let (partition, name) = split(&file.path);
        DataFile::of(instant, scope, partition, name)
    };
    files.filter_map(file).collect()
}

/// In the partitions that the inflight file names, where Hudi goes by the groups in it (`ListingBasedRollbackStrategy`
/// 0.15), which leaves out those that an index for log files has given inserts; in all of them where it is empty.
async fn slices_with_blocks(table: &Table, timeline: &Timeline, instant: &Instant) -> Result<Vec<LogSlice>> {
    let inflight = table.storage.get_opt(&instant.in_state(State::Inflight).path()).await?.unwrap_or_default();
    let profile = CommitMetadata::from_json(&inflight).unwrap_or_default();
    let partitions: Vec<String> = profile.partition_to_write_stats.into_keys().collect();
    let partitions = (!partitions.is_empty()).then_some(&partitions[..]);
    let view = FileSystemView::load(table, timeline, partitions).await?;
    let table = Arc::new(table.clone());
    let found = view.partitions.into_values().flatten().filter(|slice| !slice.log_files.is_empty()).map(|slice| {
        let (table, time) = (Arc::clone(&table), instant.time.clone());
        async move {
            let looked = tokio::task::spawn_blocking(move || logs_with_blocks(&table, &slice, &time));
            looked.await.map_err(|e| Error::Panicked { doing: "look at log files", why: e.to_string() })?
        }
    });
    let found: Vec<Vec<LogSlice>> = futures::stream::iter(found).buffer_unordered(CONCURRENCY).try_collect().await?;
    let mut slices: Vec<LogSlice> = found.into_iter().flatten().collect();
    slices.sort_unstable_by(|a, b| (&a.partition, &a.file_id).cmp(&(&b.partition, &b.file_id)));
    Ok(slices)
}

/// On a blocking thread.
fn logs_with_blocks(table: &Table, slice: &FileSlice, time: &InstantTime) -> Result<Vec<LogSlice>> {
    let mut by_base = BTreeMap::<&InstantTime, BTreeSet<String>>::new();
    for log in &slice.log_files {
        for block in LogReader::open(&table.storage, &slice.log_path(log), log.size) {
            let block = block?;
            if block.kind != BlockKind::Command && block.header.instant() == Some(time) {
                by_base.entry(&log.name.base_instant).or_default().insert(log.name.to_string());
                break;
            }
        }
    }
    let slices = by_base.into_iter().map(|(base_instant, logs)| LogSlice {
        partition: slice.partition.clone(),
        file_id: slice.file_id.clone(),
        base_instant: base_instant.clone(),
        logs,
    });
    Ok(slices.collect())
}

/// Whether all blocks of a log file are of one instant; one that is not there, or holds nothing that can be read, is nobody
/// else's.
async fn is_of_alone(table: &Table, file: &DataFile, time: &InstantTime) -> Result<bool> {
    let path = file.path();
    let Some(size) = table.storage.size(&path).await? else { return Ok(true) };
    let (storage, time) = (table.storage.clone(), time.clone());
    let look = move || {
        for block in LogReader::open(&storage, &path, size) {
            let block = block?;
            if block.kind != BlockKind::Corrupt && block.header.instant() != Some(&time) {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let looked = tokio::task::spawn_blocking(look).await;
    looked.map_err(|e| Error::Panicked { doing: "look at log files", why: e.to_string() })?
}

pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}
