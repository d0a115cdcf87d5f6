//! Compaction of merge-on-read tables: log files folded into base files (table-services.md §2).
//!
//! ```text
//! trigger ─▶ candidates ─▶ strategy ─▶ plan ┊ C.compaction.requested ─▶ execute ─▶ C.commit
//! ```
//!
//! Two halves, which two processes may do: [`Compactor::schedule`] makes a plan, which needs a table that nobody is writing
//! to at that moment; [`Compactor::execute`] makes a plan true, beside whoever writes. `trigger` and `strategy` are pure.
//! Knows no sources and no rounds. Invariants: a plan that has been seen is executed, never forgotten, because log files on
//! its instant rest on the base files that it makes; an attempt that died is rolled back and begun anew.

mod execute;
mod guard;
mod heartbeat;
mod looked;
mod plan;
mod schedule;
mod strategy;
#[cfg(test)]
mod tests;
mod trigger;

pub use looked::Looked;

use crate::config::{CompactionConfig, IndexConfig, WriteConfig};
use crate::index::KeyCache;
use crate::observe::CompactionReport;
use crate::record::MergeRule;
use crate::service::Writers;
use crate::table::{Action, Instant, InstantTime, Table, Timeline};
use crate::write::WriteStatus;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Plans and executes the compactions of one table.
#[derive(Clone)]
pub struct Compactor {
    pub table: Table,
    pub config: CompactionConfig,
    pub write: WriteConfig,
    pub index: IndexConfig,
    pub rule: MergeRule,
    /// `hoodie.table.precombine.field`
    pub ordering_field: Option<String>,
    /// Ends an execution between two batches; what it leaves is rolled back by the next one.
    pub cancel: CancellationToken,
    /// Rows given to file writers so far, for signs of life.
    pub rows_written: Arc<AtomicU64>,
    /// Told of the keys of the new base files, where there is one.
    pub key_cache: Option<Arc<KeyCache>>,
    /// Of a job that plans again and again.
    pub looked: Looked,
    pub writers: Writers,
}

impl Compactor {
    /// Instants of the plans that wait or run, oldest first.
    pub async fn pending(&self) -> super::Result<Vec<InstantTime>> {
        let timeline = self.table.timeline().await?;
        Ok(timeline.pending(Action::Compaction).map(|instant| instant.time.clone()).collect())
    }

    /// Whether it is worth while to call [`Compactor::schedule`] for the timeline as it is known. Reads nothing.
    pub fn may_be_due(&self, timeline: &Timeline) -> bool {
        trigger::is_due(&self.config.trigger, timeline, &self.table.instant_at(chrono::Utc::now()))
    }
}

/// Refuses while another process executes the compaction.
pub(super) async fn check_nobody_executes(table: &Table, instant: &Instant) -> super::Result<()> {
    heartbeat::Heartbeat::begin(&table.storage, &instant.time, CancellationToken::new()).await?.end().await
}

/// What it has done, but for how long it took.
fn report(instant: &InstantTime, statuses: &[WriteStatus]) -> CompactionReport {
    let totals = || statuses.iter().filter_map(|status| status.stat.compaction.as_ref());
    CompactionReport {
        instant: instant.to_string(),
        groups: statuses.len() as u64,
        log_files: totals().map(|t| t.log_files).sum(),
        log_bytes: totals().map(|t| t.log_bytes).sum(),
        log_records: totals().map(|t| t.log_records).sum(),
        updated_records: totals().map(|t| t.updated_records).sum(),
        rows: statuses.iter().map(|s| s.stat.num_writes).sum(),
        bytes_written: statuses.iter().map(|s| s.stat.total_write_bytes).sum(),
        corrupt_blocks: totals().map(|t| t.corrupt_blocks).sum(),
        scan_ms: totals().map(|t| t.scan_ms).sum(),
        took: Duration::ZERO,
    }
}
