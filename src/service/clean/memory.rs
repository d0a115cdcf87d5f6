//! What a job remembers of its cleans, so that the next look costs what was written since.

use crate::service::Result;
use crate::table::{Action, CleanMetadata, Instant, InstantTime, Table, Timeline, TimelineRecord};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Key of a plan's extra metadata: savepoints whose files it spares, a comma list (`CleanPlanner.SAVEPOINTED_TIMESTAMPS`).
pub(super) const SAVEPOINTED: &str = "savepointed_timestamps";

/// The memory of a job, empty in a new process.
#[derive(Debug, Clone, Default)]
pub struct CleanMemory(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// The newest completed clean; `None` within: it says nothing.
    last: Option<(InstantTime, Option<Arc<LastClean>>)>,
    look: Option<Arc<Look>>,
    /// Names of the files of each savepoint.
    savepoints: BTreeMap<InstantTime, Arc<HashSet<String>>>,
}

/// A completed clean, as far as the next one asks.
#[derive(Debug)]
pub(super) struct LastClean {
    pub earliest: Option<InstantTime>,
    /// The newest write that it knew.
    pub up_to: String,
    /// Whose files it spared.
    pub savepoints: BTreeSet<String>,
}

/// A look at all that may have become old until then: what was old is gone, or in a plan.
#[derive(Debug)]
pub(super) struct Look {
    pub earliest: Option<InstantTime>,
    pub writes: BTreeSet<(InstantTime, Action)>,
    pub savepoints: BTreeSet<String>,
}

impl Look {
    pub(super) fn of(timeline: &Timeline, earliest: Option<&Instant>) -> Look {
        Look {
            earliest: earliest.map(|instant| instant.time.clone()),
            writes: timeline.completed_writes().map(key).collect(),
            savepoints: timeline.savepoints().map(|savepoint| savepoint.time.to_string()).collect(),
        }
    }
}

pub(super) fn key(write: &Instant) -> (InstantTime, Action) {
    (write.time.clone(), write.action)
}

impl CleanMemory {
    /// The newest completed clean, read once. An empty file, which old writers may leave, says nothing.
    pub(super) async fn last_clean(&self, table: &Table, timeline: &Timeline) -> Result<Option<Arc<LastClean>>> {
        let mut cleans = timeline.instants.iter().filter(|i| i.action == Action::Clean && !i.is_pending());
        let Some(last) = cleans.next_back() else { return Ok(None) };
        if let Some((_, known)) = self.lock().last.as_ref().filter(|(time, _)| *time == last.time) {
            return Ok(known.clone());
        }
        let bytes = table.read_instant(last).await?;
        let clean = match bytes.is_empty() {
            true => None,
            false => Some(Arc::new(LastClean::of(&CleanMetadata::from_file(&bytes).map_err(|why| {
                let path = table.storage.display(&last.path());
                crate::table::Error::TimelineFile { path, why }
            })?))),
        };
        self.lock().last = Some((last.time.clone(), clean.clone()));
        Ok(clean)
    }

    /// Names of the files that savepoints keep, each savepoint read once.
    pub(super) async fn savepointed(&self, table: &Table, timeline: &Timeline) -> Result<Vec<Arc<HashSet<String>>>> {
        let mut all = Vec::new();
        for savepoint in timeline.savepoints() {
            let known = self.lock().savepoints.get(&savepoint.time).cloned();
            let names = match known {
                Some(names) => names,
                None => Arc::new(table.savepoint(savepoint).await?.file_names().cloned().collect()),
            };
            self.lock().savepoints.insert(savepoint.time.clone(), names.clone());
            all.push(names);
        }
        self.lock().savepoints.retain(|time, _| timeline.savepoints().any(|savepoint| savepoint.time == *time));
        Ok(all)
    }

    /// `None` where what it knew is no longer there, after a restore.
    pub(super) fn last_look(&self, timeline: &Timeline) -> Option<Arc<Look>> {
        let look = self.lock().look.clone()?;
        let stands = look.writes.last().is_none_or(|last| timeline.completed_writes().any(|write| key(write) == *last));
        stands.then_some(look)
    }

    pub(super) fn looked(&self, look: Look) {
        self.lock().look = Some(Arc::new(look));
    }

    /// What was old then may be there still.
    pub(super) fn forget_look(&self) {
        self.lock().look = None;
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LastClean {
    fn of(metadata: &CleanMetadata) -> LastClean {
        let spared = metadata.extra_metadata.as_ref().and_then(|extra| extra.get(SAVEPOINTED));
        LastClean {
            earliest: metadata.earliest_retained(),
            up_to: metadata.last_completed_commit_timestamp.clone(),
            savepoints: spared
                .iter()
                .flat_map(|list| list.split(','))
                .filter(|s| !s.is_empty())
                .map(str::to_string)
                .collect(),
        }
    }
}
