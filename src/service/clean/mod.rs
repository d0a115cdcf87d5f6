//! Removal of files that no reader needs any more (table-services.md §3).
//!
//! ```text
//! retain ─▶ since ─▶ slices ─▶ plan ┊ K.clean.requested ─▶ execute ─▶ K.clean
//! which     where     what
//! writes    to look   goes
//! stay
//! ```
//!
//! `retain` and `slices` are pure. A job that cleans behind each commit remembers how far it has looked (`memory`), so that
//! a look costs what was written since and not the table's size. Knows no sources and no rounds. Invariants: the newest slice
//! of a group stays, and what a savepoint, a pending compaction or clustering, or a reader of a retained write needs; a plan
//! that has been seen is executed, by whoever finds it, and twice does no harm; it looks at the timeline once more before
//! files go, as restores, savepoints and rollbacks of completed writes look for it, so that one sees the other; nothing is
//! deleted but data files of the table that a plan on its timeline names.

mod execute;
mod memory;
mod plan;
pub(super) mod retain;
mod since;
mod slices;
mod stored;
#[cfg(test)]
mod tests;

pub use memory::CleanMemory;
pub(super) use stored::doomed;

use super::{Result, Writers};
use crate::config::{CleanConfig, CleanPolicy};
use crate::observe::CleanReport;
use crate::table::{Action, CleanPlan, InstantTime, Table, Timeline};
use bytes::Bytes;
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// Cleans one table.
#[derive(Clone)]
pub struct Cleaner {
    pub table: Table,
    pub config: CleanConfig,
    pub writers: Writers,
    /// Nobody writes meanwhile, this job neither: folders of partitions that have become empty may go too.
    pub alone: bool,
    /// Ends a clean between two files; the next one goes on with its plan.
    pub cancel: CancellationToken,
    /// Of a job that cleans again and again.
    pub memory: CleanMemory,
}

impl Cleaner {
    /// One step of the service: what others, or we, could not finish is finished, then a plan is made if one is due, and
    /// executed.
    pub async fn clean(&self) -> Result<Vec<CleanReport>> {
        let mut timeline = self.table.timeline().await?;
        let mut reports = self.finish(&timeline).await?;
        if timeline.pending(Action::Clean).next().is_some() {
            timeline = self.table.timeline().await?;
        }
        if let Some(planned) = self.plan(&timeline).await? {
            reports.extend(self.execute(planned).await?);
        }
        Ok(reports)
    }

    /// Whether it is worth while to call [`Cleaner::clean`] for the timeline as it is known. Reads nothing.
    pub fn may_be_due(&self, timeline: &Timeline) -> bool {
        timeline.pending(Action::Clean).next().is_some()
            || matches!(self.config.policy, CleanPolicy::KeepLatestFileVersions { .. })
            || retain::earliest_to_retain(&self.table, self.config.policy, timeline).is_some()
    }

    /// What [`Cleaner::clean`] would do now. (Files of pending plans are not looked at.)
    pub async fn preview(&self) -> Result<CleanPreview> {
        let timeline = self.table.timeline().await?;
        let pending = timeline.pending(Action::Clean).map(|pending| pending.time.clone()).collect();
        let without = Timeline {
            instants: timeline.instants.into_iter().filter(|i| i.action != Action::Clean || !i.is_pending()).collect(),
        };
        let partitions = self.draft(&without).await?.map(|draft| draft.partitions).unwrap_or_default();
        Ok(CleanPreview {
            pending,
            files: partitions.into_iter().map(|(partition, files)| (partition, files.there)).collect(),
        })
    }

    /// Executes every plan that is pending on `timeline`, oldest first.
    pub async fn finish(&self, timeline: &Timeline) -> Result<Vec<CleanReport>> {
        let mut reports = Vec::new();
        for pending in timeline.pending(Action::Clean) {
            // While the one before was executed, the table may have been restored, or got a savepoint.
            let timeline = self.table.timeline().await?;
            let Some(job) = self.stored_job(&timeline, pending).await? else { continue };
            tracing::warn!(instant = %pending.time, "a clean did not complete: going on with its plan");
            reports.extend(self.execute(job).await?);
        }
        Ok(reports)
    }
}

/// What a clean would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanPreview {
    /// Plans that would be finished first.
    pub pending: Vec<InstantTime>,
    /// By partition, names of files that a new plan would delete.
    pub files: BTreeMap<String, Vec<String>>,
}

/// A plan on the timeline, and what of it is to be done.
struct Job {
    time: InstantTime,
    plan: CleanPlan,
    /// The plan's file.
    content: Bytes,
    /// All partitions of the plan.
    partitions: BTreeMap<String, Files>,
    /// The timeline by which these files are unneeded.
    seen: Timeline,
    /// Somebody has begun before.
    is_resumed: bool,
}

/// Names of the files that a plan deletes in a partition.
#[derive(Default)]
struct Files {
    /// Those that are there.
    there: Vec<String>,
    /// Those that had gone before.
    gone: Vec<String>,
}
