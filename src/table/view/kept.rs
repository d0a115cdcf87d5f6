//! The latest slices as a job of many rounds keeps them, so that a round costs what it writes, not what the table holds.
//!
//! Never the truth: the timeline is, which every round reads. What it says that this job has not done itself is taken from
//! the table: partitions that another writer has written to are listed again, and all of them after whatever is more than
//! a write (a plan, a rollback, a replacement).

use super::{BaseFile, FileSlice, FileSystemView, LogFile, in_folder, name_of, parse_base_file};
use crate::table::{
    Action, CommitMetadata, Instant, InstantTime, LogFileName, Result, State, Table, Timeline, WriteStat,
};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Slices and log files that are kept: some 30 MB. A larger table is listed in every round.
const MOST: usize = 60_000;

/// Of one table, handed on from one opening to the next; empty until [`FileSystemView::load_kept`] is asked.
#[derive(Debug, Clone, Default)]
pub struct KeptView(Arc<Mutex<Option<Kept>>>);

#[derive(Debug)]
struct Kept {
    /// The timeline that the slices stand on.
    timeline: Timeline,
    /// The view is of every partition, not of some.
    whole: bool,
    view: FileSystemView,
}

impl FileSystemView {
    /// As [`FileSystemView::load`], with what [`Table::kept`] knows from earlier calls: nothing is listed where this job alone
    /// has written since.
    pub async fn load_kept(
        table: &Table,
        timeline: &Timeline,
        partitions: Option<&[String]>,
    ) -> Result<FileSystemView> {
        let known = table.kept.lock().take().filter(|kept| kept.whole == partitions.is_none());
        let kept = match known {
            Some(mut kept) => kept.follow(table, timeline).await?.then_some(kept),
            None => None,
        };
        let mut kept = kept.unwrap_or_else(|| Kept::nothing(timeline, partitions.is_none()));
        let unknown = kept.unknown(partitions);
        if unknown.as_ref().is_none_or(|unknown| !unknown.is_empty()) {
            let listed = FileSystemView::load(table, timeline, unknown.as_deref()).await?;
            kept.view.partitions.extend(listed.partitions);
            kept.view.pending_clustering = listed.pending_clustering;
            kept.view.pending_compactions = listed.pending_compactions;
        }
        let asked = match partitions {
            None => kept.view.clone(),
            Some(partitions) => kept.view.of(partitions),
        };
        if kept.view.files() > MOST {
            kept.view.partitions.retain(|partition, _| asked.partitions.contains_key(partition));
        }
        if kept.view.files() <= MOST {
            *table.kept.lock() = Some(kept);
        }
        Ok(asked)
    }

    fn of(&self, partitions: &[String]) -> FileSystemView {
        let slices = |partition: &String| Some((partition.clone(), self.partitions.get(partition)?.clone()));
        FileSystemView {
            partitions: partitions.iter().filter_map(slices).collect(),
            pending_clustering: self.pending_clustering.clone(),
            pending_compactions: self.pending_compactions.clone(),
        }
    }

    fn files(&self) -> usize {
        self.partitions.values().flatten().map(|slice| 1 + slice.log_files.len()).sum()
    }
}

impl KeptView {
    /// A write of this job has been completed: what it has made is added.
    pub fn wrote(&self, instant: &Instant, metadata: &CommitMetadata) {
        let mut kept = self.lock();
        if kept.as_mut().is_some_and(|kept| kept.wrote(instant, metadata).is_none()) {
            *kept = None;
        }
    }

    /// A round has failed: the next one does not rest on what this one took for true.
    pub fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn nothing(timeline: &Timeline, whole: bool) -> Kept {
        Kept { timeline: timeline.clone(), whole, view: FileSystemView::default() }
    }

    /// Partitions that are to be listed; `None`: all.
    fn unknown(&self, partitions: Option<&[String]>) -> Option<Vec<String>> {
        match partitions {
            None => (!self.view.partitions.is_empty()).then(Vec::new),
            Some(asked) => {
                Some(asked.iter().filter(|path| !self.view.partitions.contains_key(*path)).cloned().collect())
            }
        }
    }

    /// Takes up what is new on the timeline; false: all is to be listed again.
    async fn follow(&mut self, table: &Table, now: &Timeline) -> Result<bool> {
        // What is older than the start counts without being on the timeline: that may come to be more, by archiving.
        if self.timeline.start() > now.start() {
            return Ok(false);
        }
        // No archiver takes them all: it is another table.
        if self.timeline.last_completed_write().is_some_and(|newest| now.write_at(&newest.time) != Some(newest)) {
            return Ok(false);
        }
        let Some(new) = news(&self.timeline, now) else { return Ok(false) };
        let mut touched = BTreeSet::new();
        for instant in new {
            match (instant.action, instant.state) {
                // Whatever is removed is older than the latest slices.
                (Action::Clean | Action::Savepoint | Action::Indexing, _) => {}
                // Its files do not count yet.
                (Action::Commit | Action::DeltaCommit, State::Requested | State::Inflight) => {}
                (Action::Commit | Action::DeltaCommit, State::Completed) => {
                    touched.extend(table.commit_summary(instant).await?.partitions.iter().cloned());
                }
                _ => return Ok(false),
            }
        }
        if self.whole && !touched.is_empty() {
            return Ok(false);
        }
        self.view.partitions.retain(|partition, _| !touched.contains(partition));
        if self.timeline.instants != now.instants {
            self.timeline = now.clone();
        }
        Ok(true)
    }

    /// `None`: it cannot be told what the slices are now.
    fn wrote(&mut self, instant: &Instant, metadata: &CommitMetadata) -> Option<()> {
        self.timeline.put(instant.clone());
        metadata.stats().try_for_each(|stat| self.add(stat))
    }

    fn add(&mut self, stat: &WriteStat) -> Option<()> {
        let FileSystemView { partitions, pending_compactions, .. } = &mut self.view;
        let slices = match self.whole {
            true => partitions.entry(stat.partition_path.clone()).or_default(),
            false => match partitions.get_mut(&stat.partition_path) {
                Some(slices) => slices,
                None => return Some(()),
            },
        };
        let (path, size) = (stat.path.as_ref()?, stat.file_size_in_bytes);
        let (partition, name) = (stat.partition_path.clone(), name_of(path).to_string());
        debug_assert_eq!(*path, in_folder(&partition, &name));
        if let Some((file_id, instant)) = parse_base_file(&name) {
            let file_id = file_id.to_string();
            if !pending_compactions.is_empty()
                && pending_compactions.contains_key(&(partition.clone(), file_id.clone()))
            {
                return None;
            }
            let base_file = BaseFile { partition: partition.clone(), file_id: file_id.clone(), instant, size, name };
            let at = slices.binary_search_by(|slice| slice.file_id.cmp(&file_id));
            let slice = Arc::new(FileSlice {
                partition,
                file_id,
                base_instant: base_file.instant.clone(),
                base_file: Some(base_file),
                log_files: Vec::new(),
                pending_compaction: None,
            });
            match at {
                Ok(at) => slices[at] = slice,
                Err(at) => slices.insert(at, slice),
            }
            return Some(());
        }
        let name = LogFileName::parse(&name)?;
        let at = slices.binary_search_by(|slice| slice.file_id.cmp(&name.file_id)).ok()?;
        if name.base_instant != *slices[at].append_instant() {
            return None;
        }
        let logs = &mut Arc::make_mut(&mut slices[at]).log_files;
        let place = logs.partition_point(|log| log.name < name);
        logs.insert(place, LogFile { name, size });
        Some(())
    }
}

/// Instants of `now` that `before` does not have in this state; `None`: one has gone that is not archived, or is another's
/// now.
fn news<'a>(before: &Timeline, now: &'a Timeline) -> Option<Vec<&'a Instant>> {
    fn key(instant: &Instant) -> (&InstantTime, Action) {
        (&instant.time, instant.action.comparable())
    }
    let is_archived = |gone: &Instant| !gone.is_pending() && Some(&gone.time) < now.start();
    let mut new = Vec::new();
    let mut before = before.instants.iter().peekable();
    for instant in &now.instants {
        while before.next_if(|known| key(known) < key(instant) && is_archived(known)).is_some() {}
        if before.next_if_eq(&instant).is_some() {
            continue;
        }
        if let Some(known) = before.next_if(|known| key(known) <= key(instant)) {
            // A pending compaction and the commit that it has become are two actions of one key.
            if known.time != instant.time || known.action != instant.action || known.state > instant.state {
                return None;
            }
        }
        new.push(instant);
    }
    before.all(is_archived).then_some(new)
}

#[cfg(test)]
mod tests;
