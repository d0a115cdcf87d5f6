//! Compaction beside the rounds of a continuous job: plans are made between rounds, and executed by a task of its own, one
//! after the other, while rounds go on. New log files of a group that is being compacted go on the plan's instant.

use super::compaction::{Attempt, execute};
use super::continuous::{FIRST_BACKOFF, LONGEST_BACKOFF};
use super::round::Streamer;
use super::{Error, Result};
use crate::config::CompactionMode;
use crate::observe::Metrics;
use crate::service::Compactor;
use crate::table::Action;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How soon a plan that another process executes is looked at again: it may have died.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// The task, and what it is told.
pub(super) struct Beside {
    /// The table as the last round knew it.
    offers: watch::Sender<Option<Compactor>>,
    /// Plans that are not completed.
    pending: Arc<watch::Sender<usize>>,
    /// No other plan is begun.
    quit: CancellationToken,
    /// The one in hand is given up.
    cancel: CancellationToken,
    rows: Arc<AtomicU64>,
    /// `None` once it has ended, which it was told.
    task: Option<JoinHandle<Result<()>>>,
    max_pending: usize,
}

impl Beside {
    /// Begins with what waits in the table, whoever has planned it. `None` unless the job compacts this way.
    pub(super) async fn start(streamer: &Streamer, stop: &CancellationToken) -> Result<Option<Beside>> {
        if streamer.config().compaction.mode != CompactionMode::Beside {
            return Ok(None);
        }
        let (quit, cancel) = (stop.child_token(), streamer.cancel.child_token());
        let waiting = match &streamer.table {
            Some(table) => table.timeline().await?.pending(Action::Compaction).count(),
            None => 0,
        };
        if waiting > 0 {
            tracing::info!(compactions = waiting, "compactions wait in the table: executing them beside the rounds");
        }
        let first = streamer.compactor(cancel.clone()).filter(|_| waiting > 0);
        let offers = watch::Sender::new(first);
        let pending = Arc::new(watch::Sender::new(waiting));
        let worker = Worker {
            offers: offers.subscribe(),
            pending: pending.clone(),
            quit: quit.clone(),
            metrics: streamer.metrics.clone(),
            most_failures: streamer.config().run.failures_to_give_up,
        };
        Ok(Some(Beside {
            offers,
            pending,
            quit,
            cancel,
            rows: streamer.rows_compacted.clone(),
            // On a thread of its own: the future of a rollback cannot change threads.
            task: Some(tokio::task::spawn_blocking(move || Handle::current().block_on(worker.run()))),
            max_pending: streamer.config().compaction.max_pending,
        }))
    }

    /// Holds the next round back while too many plans wait. Ends early when the job is to stop, and fails when compaction
    /// has.
    pub(super) async fn hold_back(&mut self, metrics: &Metrics, stop: &CancellationToken) -> Result<()> {
        let mut pending = self.pending.subscribe();
        let (waiting, max) = (*pending.borrow(), self.max_pending);
        if waiting > max {
            tracing::warn!(
                pending = waiting,
                max,
                "rounds are held back until compaction has caught up (--max-pending-compactions)"
            );
            metrics.stage("held back by compaction");
            metrics.watch(vec![self.rows.clone()]);
            tokio::select! {
                _ = pending.wait_for(|waiting| *waiting <= max) => {}
                () = stop.cancelled() => {}
                ended = ended(&mut self.task) => return ended,
            }
        }
        match self.task.as_ref().is_some_and(JoinHandle::is_finished) {
            true => ended(&mut self.task).await,
            false => Ok(()),
        }
    }

    /// After a commit: makes a plan if one is due. One that cannot be made now is tried again after the next commit.
    pub(super) async fn committed(&self, streamer: &Streamer) -> Result<()> {
        let Some(compactor) = streamer.compactor(self.cancel.clone()) else { return Ok(()) };
        if streamer.plan(&compactor).await.map_err(Error::in_compaction)?.is_some() {
            self.pending.send_modify(|waiting| *waiting += 1);
            self.offers.send_replace(Some(compactor));
        }
        Ok(())
    }

    /// The job ends: the compaction in hand is waited for (as long as the job's grace goes), or given up at once.
    pub(super) async fn end(mut self, at_once: bool) -> Result<()> {
        self.quit.cancel();
        if at_once {
            self.cancel.cancel();
        }
        ended(&mut self.task).await
    }
}

/// How the task has ended, told once.
async fn ended(task: &mut Option<JoinHandle<Result<()>>>) -> Result<()> {
    let Some(running) = task else { return Ok(()) };
    let ended = running.await.unwrap_or_else(|e| Err(Error::Worker { what: "compact", why: e.to_string() }));
    *task = None;
    ended.map_err(Error::in_compaction)
}

/// The task's side.
struct Worker {
    offers: watch::Receiver<Option<Compactor>>,
    pending: Arc<watch::Sender<usize>>,
    quit: CancellationToken,
    metrics: Metrics,
    /// Failures in a row that end it; `None`: it goes on as long as trying again may help.
    most_failures: Option<u32>,
}

impl Worker {
    async fn run(mut self) -> Result<()> {
        let (mut failures, mut backoff) = (0, FIRST_BACKOFF);
        while !self.quit.is_cancelled() {
            let offered = self.offers.borrow_and_update().clone();
            let wait = match self.execute_all(offered.as_ref()).await {
                Ok(Attempt::Done) => {
                    (failures, backoff) = (0, FIRST_BACKOFF);
                    Duration::MAX
                }
                Ok(Attempt::Elsewhere) => LOOK_AGAIN,
                Err(Error::Interrupted) => {
                    tracing::warn!("a compaction is given up: the next start executes its plan");
                    return Ok(());
                }
                Err(e) if e.is_retryable() && self.most_failures.is_none_or(|most| failures + 1 < most) => {
                    failures += 1;
                    let wait = backoff;
                    backoff = (backoff * 2).min(LONGEST_BACKOFF);
                    let seconds = wait.as_secs();
                    tracing::error!(code = e.code(), error = %e, retry_in_seconds = seconds, "compaction failed; trying again");
                    wait
                }
                Err(e) => return Err(e),
            };
            tokio::select! {
                changed = self.offers.changed() => if changed.is_err() { return Ok(()) },
                () = tokio::time::sleep(wait) => {}
                () = self.quit.cancelled() => {}
            }
        }
        Ok(())
    }

    /// Executes what waits, oldest first, until nothing is left but what other processes are at.
    async fn execute_all(&self, compactor: Option<&Compactor>) -> Result<Attempt> {
        let Some(compactor) = compactor else { return Ok(Attempt::Done) };
        loop {
            let plans = compactor.pending().await?;
            self.tell(plans.len());
            let mut done = 0;
            for plan in &plans {
                if self.quit.is_cancelled() {
                    return Ok(Attempt::Done);
                }
                if execute(compactor, plan, &self.metrics).await? == Attempt::Done {
                    done += 1;
                    self.tell(plans.len() - done);
                }
            }
            match (plans.len(), done) {
                (0, _) => return Ok(Attempt::Done),
                (_, 0) => return Ok(Attempt::Elsewhere),
                _ => {}
            }
        }
    }

    fn tell(&self, pending: usize) {
        self.metrics.compactions_pending(pending);
        self.pending.send_replace(pending);
    }
}
