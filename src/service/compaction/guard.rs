//! What an executor looks at before it begins, and once more before it completes: that it is alone, that its plan stands,
//! and that readers will find what it makes.

use super::Compactor;
use crate::service::lock::Held;
use crate::service::metadata_table::without_metadata_table;
use crate::service::{Error, Result};
use crate::table::{self, CompactionOperation, CompactionPlan, Instant, Markers, State, Table};
use std::collections::BTreeSet;

/// An attempt without a heartbeat, of Spark or Flink, that has not touched a file for so long is believed dead. No file of a
/// sound one is written for longer.
const SILENT_MS: i64 = 10 * 60_000;

impl Compactor {
    pub(super) async fn without_metadata_table(&self, instant: &Instant) -> Result<Table> {
        let held = self.writers.locks.lock("begin a compaction").await?;
        let table = self.without_metadata_table_under(&held, instant).await?;
        held.release().await?;
        Ok(table)
    }

    /// The same under the lock. Other writers look once more under it, right before they commit; a writer without it would
    /// not.
    pub(super) async fn without_metadata_table_under(&self, held: &Held, instant: &Instant) -> Result<Table> {
        without_metadata_table(&self.table, &self.writers, held, "execute compaction", &instant.time).await
    }
}

/// Fails where whoever has made the plan has taken it back.
pub(super) async fn check_plan(table: &Table, instant: &Instant) -> Result<()> {
    match table.storage.size(&instant.in_state(State::Requested).path()).await? {
        Some(_) => Ok(()),
        None => Err(taken_back(instant)),
    }
}

pub(super) fn taken_back(instant: &Instant) -> Error {
    Error::CompactionTakenBack { instant: instant.time.to_string() }
}

/// When the attempt at an inflight compaction began, in milliseconds since 1970. `None`: it is not inflight any more.
pub(super) async fn began_ms(table: &Table, inflight: &Instant) -> table::Result<Option<i64>> {
    let path = inflight.in_state(State::Inflight).path();
    let files = table.storage.list(".hoodie").await?.files;
    Ok(files.iter().find(|file| file.path == path).map(|file| file.modified_ms))
}

/// Refuses an attempt of an executor that has no heartbeat, such as Spark's, as long as its files are young.
pub(super) async fn refuse_young(
    table: &Table,
    inflight: &Instant,
    began_ms: i64,
    plan: &CompactionPlan,
) -> Result<()> {
    let now = chrono::Utc::now().timestamp_millis();
    let mut newest = began_ms;
    for marker in Markers::new(&table.storage, &inflight.time).files().await? {
        newest = newest.max(marker.modified_ms);
    }
    // A file grows for long after its marker.
    let suffix = format!("_{}.parquet", inflight.time);
    for partition in partitions(plan.operations.iter().flatten()) {
        let files = table.storage.list(&partition).await?.files;
        newest = files.iter().filter(|f| f.path.ends_with(&suffix)).map(|f| f.modified_ms).fold(newest, i64::max);
    }
    match now.saturating_sub(newest) {
        SILENT_MS.. => Ok(()),
        silent => Err(young(inflight, silent)),
    }
}

/// Another process has begun between two looks.
pub(super) fn just_begun(instant: &Instant) -> Error {
    young(instant, 0)
}

fn young(instant: &Instant, silent_ms: i64) -> Error {
    let (seconds, left) = (silent_ms / 1000, (SILENT_MS - silent_ms) / 1000 + 1);
    Error::CompactorMayBeAlive { instant: instant.time.to_string(), seconds, left }
}

/// Removes the base files of an attempt that somebody else has taken over: he does not know those that came late.
pub(super) async fn remove_attempt(
    table: &Table,
    instant: &Instant,
    attempt: u32,
    partitions: &BTreeSet<String>,
) -> Result<()> {
    let suffix = format!("-{attempt}_{}.parquet", instant.time);
    for partition in partitions {
        for file in table.storage.list(partition).await?.files {
            if file.path.ends_with(&suffix) {
                table.storage.delete(&file.path).await?;
            }
        }
    }
    Ok(())
}

pub(super) fn partitions<'a>(operations: impl Iterator<Item = &'a CompactionOperation>) -> BTreeSet<String> {
    operations.map(|operation| operation.partition_path.clone().unwrap_or_default()).collect()
}
