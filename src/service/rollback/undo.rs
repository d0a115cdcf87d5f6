//! Undoing an instant altogether, completed or not, with all that rests on it: for a rollback that was asked for, and for
//! restores. (A failed compaction keeps its plan instead, and the log files on it.)

use super::super::Result;
use super::leftovers::{DataFile, Leftovers, LogSlice, Scope, files_of, split};
use super::{CONCURRENCY, check_metadata_table, execute, plan, planned, request};
use crate::storage;
use crate::table::{Action, Instant, InstantTime, LogFileName, RollbackMetadata, State, Table, Timeline};
use bytes::Bytes;
use futures::stream::{StreamExt, TryStreamExt};
use std::collections::BTreeSet;

impl Leftovers {
    /// All that is of the instant, and its blocks in log files of others that stay: those on instants up to `kept`.
    pub(super) async fn whole(
        table: &Table,
        timeline: &Timeline,
        instant: &Instant,
        kept: &InstantTime,
    ) -> Result<Leftovers> {
        let mut leftovers = match (instant.state, instant.action) {
            (State::Completed, _) => of_completed(table, instant).await?.without_lost_slices(timeline),
            // Log files may be on it as soon as there is a plan.
            (_, Action::Compaction) => of_planned(table, instant).await?,
            _ => Leftovers::of(table, timeline, instant).await?,
        };
        leftovers.slices.retain(|slice| slice.base_instant <= *kept);
        Ok(leftovers)
    }
}

/// By the stats, and by what else is there on the instant: later writes put log files on the base files that this one has
/// made.
async fn of_completed(table: &Table, instant: &Instant) -> Result<Leftovers> {
    let metadata = table.commit_metadata(instant).await?;
    let partitions: BTreeSet<String> = metadata.partition_to_write_stats.keys().cloned().collect();
    let mut leftovers = Leftovers { files: on_instant(table, instant, &partitions).await?, slices: Vec::new() };
    for path in metadata.stats().filter_map(|stat| stat.path.as_deref()) {
        let (partition, name) = split(path);
        let Some(log) = LogFileName::parse(name).filter(|log| log.base_instant != instant.time) else { continue };
        let (partition, logs) = (partition.to_string(), [name.to_string()].into());
        leftovers.add(LogSlice { partition, file_id: log.file_id, base_instant: log.base_instant, logs });
    }
    Ok(leftovers)
}

/// Hudi leaves the log files on a compaction that had not begun (`RestorePlanActionExecutor` and what follows, 0.15): groups
/// without a base file, which hide what is before them as soon as the timeline's start has passed the compaction.
async fn of_planned(table: &Table, instant: &Instant) -> Result<Leftovers> {
    let operations = table.compaction_plan(instant).await?.operations.unwrap_or_default();
    let partitions = operations.into_iter().filter_map(|operation| Some(operation.group()?.0)).collect();
    Ok(Leftovers { files: on_instant(table, instant, &partitions).await?, slices: Vec::new() })
}

async fn on_instant(table: &Table, instant: &Instant, partitions: &BTreeSet<String>) -> Result<Vec<DataFile>> {
    let listings = partitions.iter().map(|partition| table.storage.list(partition));
    let listings: Vec<_> = futures::stream::iter(listings).buffered(CONCURRENCY).try_collect().await?;
    Ok(files_of(instant, Scope::Whole, listings.iter().flat_map(|l| &l.files)))
}

/// Undoes an instant under the rollback instant `time`.
pub(in crate::service) async fn undo(
    table: &Table,
    timeline: &Timeline,
    target: &Instant,
    time: &InstantTime,
    kept: &InstantTime,
) -> Result<RollbackMetadata> {
    check_metadata_table(table, target)?;
    let leftovers = Leftovers::whole(table, timeline, target, kept).await?;
    request(table, time, target, &leftovers).await?;
    Ok(execute(table, time, target, Scope::Whole, &leftovers).await?.1)
}

/// The instant that a pending rollback undoes; `None`: it had no plan yet, and is forgotten.
pub(in crate::service) async fn target_of(table: &Table, pending: &Instant) -> Result<Option<Instant>> {
    Ok(planned(table, pending).await?.map(|(target, _)| target))
}

/// Goes on with the rollback of `target`, whatever became of it so far.
pub(in crate::service) async fn resume_undo(
    table: &Table,
    pending: &Instant,
    target: &Instant,
) -> Result<Option<RollbackMetadata>> {
    check_metadata_table(table, target)?;
    let Some((_, plan)) = planned(table, pending).await? else { return Ok(None) };
    let path = table.storage.display(&pending.in_state(State::Requested).path());
    let leftovers = plan::read(&plan, target, Scope::Whole, &path)?;
    Ok(Some(execute(table, &pending.time, target, Scope::Whole, &leftovers).await?.1))
}

/// Readers do not see a completed write any more, and it is a pending one for whoever goes on from here.
pub(super) async fn take_off_the_timeline(table: &Table, target: &Instant) -> Result<()> {
    if target.state != State::Completed {
        return Ok(());
    }
    for state in pending_states(table, target).into_iter().rev() {
        match table.storage.create(&state.path(), Bytes::new()).await {
            Err(storage::Error::AlreadyExists { .. }) => {}
            other => other?,
        }
    }
    Ok(table.storage.delete(&target.path()).await?)
}

/// Inflight and requested. What completes as a commit on a merge-on-read table is a compaction before.
pub(super) fn pending_states(table: &Table, target: &Instant) -> [Instant; 2] {
    let action = match target.action {
        Action::Commit if table.properties.is_merge_on_read() => Action::Compaction,
        action => action,
    };
    [State::Inflight, State::Requested].map(|state| Instant::new(target.time.clone(), action, state))
}
