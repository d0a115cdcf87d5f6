//! Reading the archived timeline, a block at a time.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use super::entry::Decoder;
use super::{ArchiveFile, ArchivedCommit, ArchivedInstant};
use crate::storage::Storage;
use crate::table::log_file::{BlockKind, LogReader, avro_records};
use crate::table::{Action, Error, InstantTime, Result, Table, Timeline};

impl Table {
    /// The newest `most` instants of the archived timeline, oldest first, each once and in its highest state. Reads all of
    /// it, but holds no more than is asked for.
    pub async fn archived_timeline(&self, most: usize) -> Result<Vec<ArchivedInstant>> {
        let (files, storage) = (self.archive_files().await?, self.storage.clone());
        on_blocking_thread(move || {
            let mut newest = BTreeMap::new();
            for file in &files {
                read(&storage, file, &mut |found| keep(&mut newest, most, found))?;
            }
            Ok(newest.into_values().collect())
        })
        .await
    }

    /// The newest archived instant that is wanted, from the newest file that has any: commits are archived in the order of
    /// their times.
    pub async fn find_archived(
        &self,
        is_wanted: impl Fn(&ArchivedInstant) -> bool + Send + 'static,
    ) -> Result<Option<ArchivedInstant>> {
        let (files, storage) = (self.archive_files().await?, self.storage.clone());
        on_blocking_thread(move || {
            for file in files.iter().rev() {
                let mut best: Option<ArchivedInstant> = None;
                read(&storage, file, &mut |found| {
                    let is_newer = best.as_ref().is_none_or(|best| best.instant.time < found.instant.time);
                    if is_newer && is_wanted(&found) {
                        best = Some(found);
                    }
                })?;
                if best.is_some() {
                    return Ok(best);
                }
            }
            Ok(None)
        })
        .await
    }
}

impl Table {
    /// The newest archived commit that says something under one of `keys`. Searched in vain, it is not searched again while
    /// `timeline` begins where it did, in the life of [`Table::summaries`].
    pub async fn archived_with(&self, timeline: &Timeline, keys: &[String]) -> Result<Option<ArchivedInstant>> {
        let start = timeline.completed_writes().next().map(|write| write.time.clone());
        let search = (start, keys.to_vec());
        let in_vain = || self.summaries.1.lock().unwrap_or_else(PoisonError::into_inner);
        if in_vain().as_ref() == Some(&search) {
            return Ok(None);
        }
        let keys = keys.to_vec();
        let says = move |commit: &ArchivedCommit| {
            keys.iter().any(|key| commit.extra_metadata.get(key).is_some_and(|value| !value.is_empty()))
        };
        let found = self.find_archived(move |found| found.commit.as_ref().is_some_and(&says)).await?;
        if found.is_none() {
            *in_vain() = Some(search);
        }
        Ok(found)
    }
}

fn keep(newest: &mut BTreeMap<(InstantTime, Action), ArchivedInstant>, most: usize, found: ArchivedInstant) {
    let key = (found.instant.time.clone(), found.instant.action.comparable());
    match newest.get_mut(&key) {
        Some(known) if known.instant.state >= found.instant.state => {}
        Some(known) => *known = found,
        None => {
            newest.insert(key, found);
            if newest.len() > most {
                newest.pop_first();
            }
        }
    }
}

async fn on_blocking_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(e) => std::panic::resume_unwind(e.into_panic()),
    }
}

/// Every record of a file, to `see`.
fn read(storage: &Storage, file: &ArchiveFile, see: &mut dyn FnMut(ArchivedInstant)) -> Result<()> {
    read_blocks(LogReader::open(storage, &file.path, file.size), see)
}

/// What is no data block is passed over: a torn write of a store that appends, as Hudi's readers do.
pub(super) fn read_blocks(mut blocks: LogReader, see: &mut dyn FnMut(ArchivedInstant)) -> Result<()> {
    let mut decoder = None;
    while let Some(block) = blocks.next().transpose()? {
        if block.kind != BlockKind::AvroData {
            continue;
        }
        let malformed = |why: String| {
            let why = format!("the block at byte {} holds no archived instants: {why}", block.offset());
            Error::TimelineFile { path: blocks.place(), why }
        };
        let schema = block.header.schema().ok_or_else(|| malformed("it says no schema".into()))?;
        let decoder = match &mut decoder {
            Some(decoder) if Decoder::reads(decoder, schema) => decoder,
            other => other.insert(Decoder::new(schema).map_err(malformed)?),
        };
        let content = blocks.content(&block)?;
        for datum in avro_records(&content).map_err(|e| blocks.in_block(&block, e))? {
            let datum = datum.map_err(|e| blocks.in_block(&block, e))?;
            if let Some(found) = decoder.decode(datum).map_err(malformed)? {
                see(found);
            }
        }
    }
    Ok(())
}
