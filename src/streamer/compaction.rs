//! Compaction by the job that writes the table: behind the commit of a one-shot job (here), or beside the rounds of a
//! continuous one (`beside.rs`).

use super::round::Streamer;
use super::{Error, Result};
use crate::config::CompactionMode;
use crate::observe::Metrics;
use crate::service::{self, Compactor};
use crate::table::{Action, InstantTime, Timeline};
use tokio_util::sync::CancellationToken;

/// What became of an attempt at a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The plan is not pending any more.
    Done,
    /// Another process is at it.
    Elsewhere,
}

impl Streamer {
    /// For the table as it is known now; `None` where there is none yet. `cancel` ends what it executes.
    pub(super) fn compactor(&self, cancel: CancellationToken) -> Option<Compactor> {
        let table = self.table.clone().filter(|table| table.properties.is_merge_on_read())?;
        Some(Compactor {
            ordering_field: table.properties.precombine_field().map(str::to_string),
            table,
            config: self.config.compaction.clone(),
            write: self.config.write.clone(),
            index: self.config.index.clone(),
            rule: self.rule,
            cancel,
            rows_written: self.rows_compacted.clone(),
            key_cache: self.key_cache.clone(),
            looked: self.looked.clone(),
            writers: self.writers.clone(),
        })
    }

    /// `--retry-last-pending-inline-compaction`: the newest plan is executed before the round writes.
    pub(super) async fn retry_last_compaction(&self, timeline: Timeline) -> Result<Timeline> {
        let config = &self.config.compaction;
        let only_looks = self.config.run.dry_run || self.config.run.explain;
        let wanted = config.mode == CompactionMode::Inline && config.retry_last_pending && !only_looks;
        let last = timeline.pending(Action::Compaction).next_back().map(|instant| instant.time.clone());
        let (Some(last), Some(compactor)) = (last.filter(|_| wanted), self.compactor(self.cancel.clone())) else {
            return Ok(timeline);
        };
        self.metrics.stage("compact");
        self.metrics.watch(vec![compactor.rows_written.clone()]);
        execute(&compactor, &last, &self.metrics).await.map_err(Error::in_compaction)?;
        Ok(compactor.table.timeline().await?)
    }

    /// After a commit of a one-shot job, in Hudi's order: what waits is executed, then a plan is made if one is due, and
    /// executed. A failure leaves the commit as it is.
    pub(super) async fn compact_behind_commit(&self) -> Result<()> {
        let Some(compactor) = self.compactor(self.cancel.clone()) else { return Ok(()) };
        self.metrics.stage("compact");
        self.metrics.watch(vec![compactor.rows_written.clone()]);
        let done = match self.config.compaction.mode {
            CompactionMode::Off | CompactionMode::Beside => Ok(()),
            CompactionMode::Schedule => self.plan_where_none_waits(&compactor).await,
            CompactionMode::Inline => self.execute_and_plan(&compactor).await,
        };
        match done {
            Err(Error::Interrupted) => {
                tracing::warn!("interrupted in a compaction: the commit stands, and the next run executes the plan");
                Ok(())
            }
            Err(e) if !self.config.compaction.fails_the_job => {
                tracing::warn!(code = e.code(), error = %e, "the compaction behind the commit failed; the next run tries again");
                Ok(())
            }
            done => done.map_err(Error::in_compaction),
        }
    }

    async fn execute_and_plan(&self, compactor: &Compactor) -> Result<()> {
        for waiting in compactor.pending().await? {
            execute(compactor, &waiting, &self.metrics).await?;
        }
        if let Some(planned) = self.plan(compactor).await? {
            execute(compactor, &planned, &self.metrics).await?;
        }
        Ok(())
    }

    /// Somebody else executes plans: one at a time is enough (`runTableServicesInline`, Hudi 0.15).
    pub(super) async fn plan_where_none_waits(&self, compactor: &Compactor) -> Result<()> {
        if compactor.pending().await?.is_empty() {
            self.plan(compactor).await?;
        }
        Ok(())
    }

    /// Makes a plan behind a commit, if one is due. In the way of another writer, or where trying again may help a job that
    /// goes on, it is put off to the next commit.
    pub(super) async fn plan(&self, compactor: &Compactor) -> Result<Option<InstantTime>> {
        if self.written_on.as_ref().is_some_and(|timeline| !compactor.may_be_due(timeline)) {
            return Ok(None);
        }
        let planned = match compactor.schedule(None).await.map_err(Error::from) {
            Err(e) if is_in_the_way(&e) || (self.config.run.continuous && e.is_retryable()) => {
                tracing::warn!(code = e.code(), error = %e, "no compaction is planned; tried again behind the next commit");
                None
            }
            planned => planned?,
        };
        planned.iter().for_each(|_| self.metrics.compaction_planned());
        Ok(planned)
    }
}

/// Another writer is at work.
fn is_in_the_way(error: &Error) -> bool {
    let Error::Room(e) = error else { return false };
    use service::Error::{CompactionBegun, CompactionOvertaken, WriteOpen};
    matches!(&**e, crate::Error::Service(WriteOpen { .. } | CompactionOvertaken { .. } | CompactionBegun { .. }))
}

/// Another process is at the plan: at executing it, or at taking it back.
pub(super) fn is_elsewhere(error: &service::Error) -> bool {
    use service::Error::{CompactionTaken, CompactionTakenBack, CompactorAlive, CompactorMayBeAlive};
    matches!(
        error,
        CompactorAlive { .. } | CompactorMayBeAlive { .. } | CompactionTaken { .. } | CompactionTakenBack { .. }
    )
}

/// Executes a plan and tells of it; one that another process is at is left to it.
pub(super) async fn execute(compactor: &Compactor, plan: &InstantTime, metrics: &Metrics) -> Result<Attempt> {
    match compactor.execute(plan).await {
        Ok(Some(report)) => {
            report.emit(metrics);
            Ok(Attempt::Done)
        }
        Ok(None) | Err(service::Error::NoSuchCompaction { .. }) => Ok(Attempt::Done),
        Err(e) if is_elsewhere(&e) => {
            tracing::info!(instant = %plan, reason = %e, "a compaction is left to another process");
            Ok(Attempt::Elsewhere)
        }
        Err(e) => {
            let e = Error::from(e);
            if !matches!(e, Error::Interrupted) {
                metrics.compaction_failed(e.code());
            }
            Err(e)
        }
    }
}
