//! Archiving what is chosen: written first, then deleted.

use std::collections::{BTreeMap, HashSet};

use futures::stream::{self, StreamExt, TryStreamExt};

use super::super::lock::Held;
use super::super::{Error, Result};
use super::rules::Chosen;
use super::{Archived, Archiver};
use crate::storage::{self, fault_point};
use crate::table::{self, Action, ArchiveEntry, ArchiveRecords, ArchiveTail, Instant, InstantTime, State, Timeline};

/// Files of the timeline that are read, or deleted, at a time.
const AT_A_TIME: usize = 16;
/// Bytes of instants that are archived at a time: a timeline that was never archived may have thousands of them.
const PORTION: usize = 4 << 20;

/// The files of an instant's states, lowest first, and when they were written.
type Files = BTreeMap<(InstantTime, Action), Vec<(Instant, InstantTime)>>;

/// Where a run writes on, and what one that died has left there.
struct End {
    tail: ArchiveTail,
    archived: HashSet<Instant>,
}

impl Archiver {
    pub(super) async fn execute(&self, timeline: &Timeline, chosen: Chosen, held: &Held) -> Result<Archived> {
        let mut files = Files::new();
        for (instant, since) in self.table.timeline_files().await? {
            files.entry((instant.time.clone(), instant.action.comparable())).or_default().push((instant, since));
        }
        self.table.remove_stale_markers(timeline).await?;
        let mut end = self.end().await?;
        let mut done = Archived { hold: chosen.hold.clone(), ..Archived::default() };
        let mut instants = chosen.instants();
        loop {
            let (mut portion, mut entries, mut size) = (Vec::new(), Vec::new(), 0);
            while size < PORTION
                && let Some(instant) = instants.next()
            {
                let key = (instant.time.clone(), instant.action.comparable());
                let read = self.read(files.get(&key).map_or(&[], Vec::as_slice)).await?;
                size += read.iter().map(|entry| entry.content.len()).sum::<usize>();
                entries.extend(read);
                portion.push(instant.clone());
            }
            if portion.is_empty() || self.cancel.is_cancelled() {
                return Ok(done);
            }
            let states: Vec<Instant> = entries.iter().map(|entry| entry.instant.clone()).collect();
            fault_point("in-archive");
            held.check().await?;
            let written;
            (end, written) = self.write(end, entries).await?;
            fault_point("after-archive-file");
            held.check().await?;
            self.delete(&states).await?;
            done.files += states.len();
            done.written.extend(written.filter(|written| done.written.last() != Some(written)));
            done.instants.extend(portion);
        }
    }

    async fn end(&self) -> Result<End> {
        let mut tail = self.table.archive_tail(self.config.file_bytes).await?;
        on_blocking_thread(move || {
            let archived = tail.archived().unwrap_or_else(|error| {
                let code = error.code();
                tracing::warn!(code, %error, "the newest file of the archived timeline is damaged; another one is begun");
                tail.leave();
                HashSet::new()
            });
            Ok(End { tail, archived })
        })
        .await
    }

    async fn read(&self, files: &[(Instant, InstantTime)]) -> Result<Vec<ArchiveEntry>> {
        let mut states: Vec<_> = files.to_vec();
        states.sort_by_key(|(instant, _)| instant.state);
        let reads = states.into_iter().map(|(instant, since)| async move {
            match self.table.read_instant(&instant).await {
                Ok(content) => Ok(ArchiveEntry { instant, since, content }),
                Err(table::Error::Storage(storage::Error::NotFound { .. })) => {
                    Err(Error::ArchivedElsewhere { instant: instant.file_name() })
                }
                Err(e) => Err(e.into()),
            }
        });
        stream::iter(reads).buffered(AT_A_TIME).try_collect().await
    }

    /// Writes what the archived timeline does not have yet; the file it went to.
    async fn write(&self, end: End, entries: Vec<ArchiveEntry>) -> Result<(End, Option<String>)> {
        let (table, batch) = (self.table.clone(), self.config.batch);
        let (mut end, records) = on_blocking_thread(move || {
            let mut records = ArchiveRecords::new(batch);
            for entry in entries.iter().filter(|entry| !end.archived.contains(&entry.as_archived())) {
                records.push(&table, entry)?;
            }
            Ok((end, records))
        })
        .await?;
        if records.is_empty() {
            return Ok((end, None));
        }
        let file = end.tail.append(records).await?;
        Ok((end, Some(file)))
    }

    /// What is pending first, and then the completed ones, one by one and oldest first, so that no reader takes an archived
    /// instant for a pending one, or finds a hole among the completed.
    async fn delete(&self, states: &[Instant]) -> Result<()> {
        let (pending, completed): (Vec<&Instant>, Vec<&Instant>) = states.iter().partition(|state| state.is_pending());
        let deletes = pending.into_iter().map(|state| async move { self.table.storage.delete(&state.path()).await });
        stream::iter(deletes).buffer_unordered(AT_A_TIME).try_collect::<()>().await?;
        fault_point("in-archive-deletes");
        for state in completed {
            debug_assert_eq!(state.state, State::Completed);
            self.table.storage.delete(&state.path()).await?;
            fault_point("in-archive-deletes");
        }
        Ok(())
    }
}

async fn on_blocking_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|e| Err(Error::Panicked { doing: "archive", why: e.to_string() }))
}
