//! Savepoints: points of a table that cleaning and archival spare, so that it can be restored to them
//! (table-services.md §4).
//!
//! ```text
//! S.savepoint.inflight   empty
//! S.savepoint            who, when, why, and the files of the slices that were the newest at S
//! ```
//!
//! Hudi leaves out the slice that a pending compaction is going to fold, of which its reader at S needs every file: both
//! are kept here.

use super::lock::Held;
use super::reach::{self, Undone};
use super::rollback::{being_taken_back, without};
use super::{BackError, Error, Result};
use crate::storage;
use crate::table::{self, Action, FileSlice, FileSystemView, Instant, InstantTime, SavepointMetadata};
use crate::table::{SavepointPartition, State, Table, Timeline, TimelineRecord};
use bytes::Bytes;
use futures::stream::{StreamExt, TryStreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Savepoints read, or partitions listed, at a time.
const CONCURRENCY: usize = 16;

/// A point that the table can be restored to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Savepoint {
    /// The write whose state it is.
    pub instant: InstantTime,
    pub metadata: SavepointMetadata,
}

/// The savepoints of a table, newest first.
pub async fn savepoints(table: &Table) -> Result<Vec<Savepoint>> {
    let timeline = table.timeline_as_it_is().await?;
    let reads = timeline.savepoints().rev().map(|instant| read(table, instant));
    futures::stream::iter(reads).buffered(CONCURRENCY).try_collect().await
}

pub(super) async fn read(table: &Table, instant: &Instant) -> Result<Savepoint> {
    Ok(Savepoint { instant: instant.time.clone(), metadata: table.savepoint(instant).await? })
}

/// What a savepoint of `wanted`, or of the newest completed write, would keep. Nothing is written.
pub async fn prepare_savepoint(
    table: &Table,
    wanted: Option<&InstantTime>,
    user: &str,
    comments: &str,
) -> Result<Savepoint> {
    let timeline = table.timeline().await?;
    let instant = savepointable(table, &timeline, wanted)?.time.clone();
    let view = reach::view_at(table, &timeline, &instant, Undone::AllAfter).await?;
    let metadata = SavepointMetadata {
        savepointed_by: user.to_string(),
        savepointed_at: chrono::Utc::now().timestamp_millis(),
        comments: comments.to_string(),
        partition_metadata: partitions(view),
        version: Some(1),
    };
    Ok(Savepoint { instant, metadata })
}

fn savepointable<'a>(table: &Table, timeline: &'a Timeline, wanted: Option<&InstantTime>) -> Result<&'a Instant> {
    let (of_table, instant) = (|| table.storage.display(""), wanted.map(InstantTime::to_string));
    let write = match wanted {
        None => timeline.last_completed_write(),
        Some(time) => timeline.write_at(time).filter(|write| !write.is_pending()),
    };
    let write = write.ok_or_else(|| match instant {
        None => BackError::NothingToSave { table: of_table() },
        Some(instant) => BackError::NoSuchWrite { instant, table: of_table() },
    })?;
    match timeline.savepoints().any(|savepoint| savepoint.time == write.time) {
        true => Err(BackError::SavepointExists { instant: write.time.to_string() }.into()),
        false => Ok(write),
    }
}

fn partitions(view: FileSystemView) -> BTreeMap<String, SavepointPartition> {
    let names = |slice: &Arc<FileSlice>| -> Vec<String> {
        let base = slice.base_file.iter().map(|base| base.name.clone());
        base.chain(slice.log_files.iter().map(|log| log.name.to_string())).collect()
    };
    let partition = |(path, slices): (String, Vec<Arc<FileSlice>>)| {
        let savepoint_data_file = slices.iter().flat_map(names).collect();
        (path.clone(), SavepointPartition { partition_path: path, savepoint_data_file })
    };
    view.partitions.into_iter().map(partition).collect()
}

/// Makes what was prepared. Where cleaning has been faster, it is taken back, and fails.
pub async fn create_savepoint(table: &Table, held: &Held, savepoint: &Savepoint) -> Result<()> {
    held.check().await?;
    let inflight = Instant::new(savepoint.instant.clone(), Action::Savepoint, State::Inflight);
    // One that has not got further than this is begun anew, whoever began it.
    match table.storage.create(&inflight.path(), Bytes::new()).await {
        Err(storage::Error::AlreadyExists { .. }) => {}
        other => other?,
    }
    match table.complete(&savepoint.instant, Action::Savepoint, savepoint.metadata.to_file()).await {
        Err(table::Error::InstantExists { .. }) => {
            return Err(BackError::SavepointExists { instant: savepoint.instant.to_string() }.into());
        }
        other => other?,
    }
    let stands = check_nothing_goes(table, savepoint).await;
    if stands.is_err() {
        delete_files(table, &savepoint.instant).await?;
    }
    stands
}

/// What sees a savepoint that is completed spares its files; what has looked before is seen here, if in this order: a clean
/// that is not pending any more has deleted what it was to delete.
async fn check_nothing_goes(table: &Table, savepoint: &Savepoint) -> Result<()> {
    let (instant, timeline) = (savepoint.instant.to_string(), table.timeline().await?);
    let names = savepoint.metadata.file_names().cloned();
    if let Some((clean, file)) = reach::about_to_go(table, &timeline, names).await? {
        return Err(BackError::CleanPending { instant, clean, file }.into());
    }
    let stays = without(&timeline, &being_taken_back(table, &timeline).await?);
    if stays.write_at(&savepoint.instant).is_none_or(Instant::is_pending) {
        return Err(BackError::NoSuchWrite { instant, table: table.storage.display("") }.into());
    }
    match missing(table, savepoint).await? {
        Some((partition, file)) => Err(BackError::SavepointOvertaken { instant, partition, file }.into()),
        None => Ok(()),
    }
}

/// A file of a savepoint that is not there, with its partition.
pub(super) async fn missing(table: &Table, savepoint: &Savepoint) -> Result<Option<(String, String)>> {
    let looks = savepoint.metadata.partition_metadata.iter().map(|(partition, kept)| async move {
        let there: BTreeSet<String> = table.storage.names(partition).await?.into_iter().collect();
        let gone = kept.savepoint_data_file.iter().find(|name| !there.contains(*name));
        Ok::<_, Error>(gone.map(|name| (partition.clone(), name.clone())))
    });
    let mut looks = futures::stream::iter(looks).buffer_unordered(CONCURRENCY);
    while let Some(found) = looks.try_next().await? {
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The savepoint at `instant`, which must be there.
pub async fn find_savepoint(table: &Table, instant: &InstantTime) -> Result<Savepoint> {
    let timeline = table.timeline_as_it_is().await?;
    match timeline.savepoints().find(|savepoint| savepoint.time == *instant) {
        Some(savepoint) => read(table, savepoint).await,
        None => {
            Err(BackError::NoSuchSavepoint { instant: instant.to_string(), table: table.storage.display("") }.into())
        }
    }
}

/// Its files are cleaning's from now on, and the table cannot be restored to it any more.
pub async fn delete_savepoint(table: &Table, held: &Held, instant: &InstantTime) -> Result<()> {
    // A restore that has begun may need it.
    table.timeline().await?;
    held.check().await?;
    delete_files(table, instant).await
}

/// The completed file first, as Hudi does: an inflight one keeps nothing.
async fn delete_files(table: &Table, instant: &InstantTime) -> Result<()> {
    for state in [State::Completed, State::Inflight] {
        table.storage.delete(&Instant::new(instant.clone(), Action::Savepoint, state).path()).await?;
    }
    Ok(())
}
