//! Archiving by the job that writes the table, behind its commit, and by an operator's `hudi-streamer archive`.

use super::commands::Answer;
use super::round::Streamer;
use super::{Error, Result};
use crate::config::{ServiceConfig, ServiceOptions};
use crate::observe::{ArchiveReport, Metrics};
use crate::service::lock::Locks;
use crate::service::{Archived, Archiver, Hold};
use crate::table::Table;
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// A timeline that is so many times longer than it is to be is worth a warning.
const TOO_LONG: usize = 2;

/// What a job has told of that keeps its timeline long: once is enough.
#[derive(Debug, Clone, Default)]
pub(super) struct Told(Arc<Mutex<Option<Hold>>>);

impl Streamer {
    /// After a clean, before a compaction, as in Hudi. Without enough instants it reads nothing. A failure leaves the commit as
    /// it is.
    pub(super) async fn archive_behind_commit(&self) -> Result<()> {
        let (Some(table), Some(timeline)) = (&self.table, &self.written_on) else { return Ok(()) };
        let archiver = Archiver {
            table: table.clone(),
            config: self.config.archive.clone(),
            retained: self.config.clean.policy,
            trigger: self.config.compaction.trigger,
            locks: self.writers.locks.clone(),
            cancel: self.cancel.clone(),
        };
        if !archiver.config.automatic || !archiver.may_be_due(timeline) {
            return Ok(());
        }
        self.metrics.stage("archive");
        let started = Instant::now();
        let failure = match archiver.archive().await {
            Ok(archived) => {
                report(&archived, started.elapsed()).iter().for_each(|report| report.emit(&self.metrics));
                self.tell_of_hold(archived.hold, timeline.completed_writes().count());
                return Ok(());
            }
            Err(e) => Error::from(e),
        };
        self.metrics.archive_failed(failure.code());
        if self.config.compaction.fails_the_job && !(self.config.run.continuous && failure.is_retryable()) {
            return Err(Error::Archive { cause: Box::new(failure) });
        }
        let code = failure.code();
        tracing::warn!(code, error = %failure, "archiving behind the commit failed; tried again behind the next one");
        Ok(())
    }

    fn tell_of_hold(&self, hold: Option<Hold>, writes: usize) {
        let mut told = self.archive_told.0.lock().unwrap_or_else(PoisonError::into_inner);
        let long = writes > self.config.archive.max_commits.saturating_mul(TOO_LONG);
        if let Some(why) = hold.as_ref().filter(|_| long && *told != hold) {
            tracing::warn!(writes, held_by = %why, "the timeline grows: old instants cannot be archived");
            *told = hold;
        }
    }
}

/// `None`: nothing was old enough.
fn report(archived: &Archived, took: Duration) -> Option<ArchiveReport> {
    let times = || archived.instants.iter().map(|instant| &instant.time);
    Some(ArchiveReport {
        first: times().min()?.to_string(),
        last: times().max()?.to_string(),
        instants: archived.instants.len() as u64,
        files: archived.files as u64,
        written: archived.written.last().cloned().unwrap_or_default(),
        held_by: archived.hold.as_ref().map(Hold::to_string).unwrap_or_default(),
        took,
    })
}

/// `hudi-streamer archive`.
pub(super) async fn command(config: &ServiceConfig, table: &Table, options: ServiceOptions) -> Result<Answer> {
    let archiver = Archiver {
        table: table.clone(),
        config: config.archive.clone(),
        retained: config.clean.policy,
        trigger: config.trigger,
        locks: locks(config, table)?,
        cancel: CancellationToken::new(),
    };
    let started = Instant::now();
    let archived = if options.dry_run { archiver.plan().await? } else { archiver.archive().await? };
    let report = report(&archived, started.elapsed());
    if let Some(report) = report.as_ref().filter(|_| !options.dry_run) {
        report.emit(&Metrics::off());
    }
    let held = archived.hold.as_ref().map(Hold::to_string);
    let mut text = match &report {
        None => "no instants are old enough to be archived".to_string(),
        Some(ArchiveReport { instants, first, last, .. }) => {
            let done = if options.dry_run { "would be archived" } else { "archived" };
            format!("{instants} instants {done}, {first} to {last}")
        }
    };
    if let Some(held) = &held {
        text.push_str(&format!("\nolder commits stay than are to be kept: {held}"));
    }
    let instants: Vec<_> =
        archived.instants.iter().map(|i| json!({"instant": i.time.as_str(), "action": i.action.as_str()})).collect();
    let json = json!({"dryRun": options.dry_run, "instants": instants, "written": archived.written, "heldBy": held});
    Ok(Answer { text, json })
}

fn locks(config: &ServiceConfig, table: &Table) -> Result<Locks> {
    let name = table.properties.get("hoodie.table.name").unwrap_or_default();
    Ok(Locks::open(&config.concurrency, &table.storage, name).map_err(crate::service::Error::from)?)
}
