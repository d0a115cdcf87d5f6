//! What a job does for its table behind a commit, in Hudi's order (`runTableServicesInline`, 0.15): clean, archive, compaction.
//! Nothing of it undoes the commit.

use super::beside::Beside;
use super::clean::clean;
use super::round::Streamer;
use super::{Error, Result};
use crate::config::CleanMode;
use crate::observe::Metrics;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

impl Streamer {
    /// Of a one-shot job.
    pub(super) async fn services_behind_commit(&self) -> Result<()> {
        self.clean_behind_commit().await?;
        self.archive_behind_commit().await?;
        self.compact_behind_commit().await
    }
}

/// The services of a continuous job, some of them in tasks of their own.
pub(super) struct Services {
    compaction: Option<Beside>,
    /// Of a clean beside the rounds.
    cancel: CancellationToken,
    clean: Option<JoinHandle<Result<()>>>,
}

impl Services {
    pub(super) async fn start(streamer: &Streamer, stop: &CancellationToken) -> Result<Services> {
        let compaction = Beside::start(streamer, stop).await?;
        Ok(Services { compaction, cancel: streamer.cancel.child_token(), clean: None })
    }

    /// Before a round.
    pub(super) async fn hold_back(&mut self, metrics: &Metrics, stop: &CancellationToken) -> Result<()> {
        match &mut self.compaction {
            Some(compaction) => compaction.hold_back(metrics, stop).await,
            None => Ok(()),
        }
    }

    /// After a commit.
    pub(super) async fn committed(&mut self, streamer: &Streamer) -> Result<()> {
        match streamer.config.clean.mode {
            CleanMode::Off | CleanMode::Inline => {
                streamer.clean_behind_commit().await?;
                streamer.archive_behind_commit().await?;
            }
            CleanMode::Beside => {
                // A clean reads what was written since the last one: none of it is archived meanwhile.
                if !self.is_cleaning() {
                    streamer.archive_behind_commit().await?;
                }
                self.clean_beside(streamer).await?;
            }
        }
        match &self.compaction {
            Some(compaction) => compaction.committed(streamer).await,
            None => streamer.compact_behind_commit().await,
        }
    }

    /// One at a time: a clean that is still at it is left to it, and the next commit comes back.
    async fn clean_beside(&mut self, streamer: &Streamer) -> Result<()> {
        if self.is_cleaning() {
            return Ok(());
        }
        streamer.verdict(self.cleaned().await)?;
        if let Some(cleaner) = streamer.due_cleaner(self.cancel.clone()) {
            let metrics = streamer.metrics.clone();
            let cleaning = move || Handle::current().block_on(async { clean(cleaner, &metrics).await });
            self.clean = Some(tokio::task::spawn_blocking(cleaning));
        }
        Ok(())
    }

    fn is_cleaning(&self) -> bool {
        self.clean.as_ref().is_some_and(|clean| !clean.is_finished())
    }

    /// How the last clean beside the rounds has ended, told once.
    async fn cleaned(&mut self) -> Result<()> {
        let Some(running) = self.clean.take() else { return Ok(()) };
        running.await.unwrap_or_else(|e| Err(Error::Worker { what: "clean", why: e.to_string() }))
    }

    /// The job ends: what is in hand is waited for (as long as the job's grace goes), or given up at once.
    pub(super) async fn end(mut self, streamer: &Streamer, at_once: bool) -> Result<()> {
        if at_once {
            self.cancel.cancel();
        }
        let cleaned = streamer.verdict(self.cleaned().await);
        if let Some(compaction) = self.compaction {
            compaction.end(at_once).await?;
        }
        cleaned
    }
}
