//! Cleaning by the job that writes the table, and by an operator's `hudi-streamer clean`.

use super::commands::Answer;
use super::round::Streamer;
use super::{Error, Result};
use crate::config::{CleanMode, FailedWritesPolicy, ServiceConfig, ServiceOptions};
use crate::observe::{CleanReport, Metrics};
use crate::service::{self, Cleaner, Writers};
use crate::table::{Action, Table, Timeline};
use serde_json::json;
use tokio_util::sync::CancellationToken;

impl Streamer {
    pub(super) async fn clean_behind_commit(&self) -> Result<()> {
        let Some(cleaner) = self.due_cleaner(self.cancel.clone()) else { return Ok(()) };
        self.metrics.stage("clean");
        self.verdict(clean(cleaner, &self.metrics).await)
    }

    /// What a clean that died has left is finished by the first round, whether or not it has something to write. With a
    /// metadata table it waits for a write, before which that is disabled.
    pub(super) async fn finish_cleans(&self, timeline: &Timeline) {
        let only_looks = self.config.run.dry_run || self.config.run.explain;
        let Some(cleaner) = self.cleaner(self.cancel.clone()).filter(|_| !only_looks) else { return };
        if timeline.pending(Action::Clean).next().is_none() || cleaner.table.has_metadata_table() {
            return;
        }
        match cleaner.finish(timeline).await {
            Ok(reports) => reports.iter().for_each(|report| report.emit(&self.metrics)),
            Err(e) => {
                tracing::warn!(code = e.code(), error = %e, "a pending clean cannot be finished; tried again behind the next commit");
            }
        }
    }

    /// Of a job that has just committed. `None`: the timeline alone says that nothing is old enough.
    pub(super) fn due_cleaner(&self, cancel: CancellationToken) -> Option<Cleaner> {
        let timeline = self.written_on.as_ref()?;
        self.cleaner(cancel).filter(|cleaner| cleaner.may_be_due(timeline))
    }

    /// `None`: the job does not clean, or there is no table yet.
    fn cleaner(&self, cancel: CancellationToken) -> Option<Cleaner> {
        let table = self.table.clone().filter(|_| self.config.clean.mode != CleanMode::Off)?;
        Some(Cleaner {
            table,
            config: self.config.clean.clone(),
            writers: self.writers.clone(),
            alone: self.config.clean.mode == CleanMode::Inline && !self.writers.are_several(),
            cancel,
            memory: self.clean_memory.clone(),
        })
    }

    /// Of a clean. What may pass by itself does not end a job that goes on.
    pub(super) fn verdict(&self, cleaned: Result<()>) -> Result<()> {
        match cleaned {
            Err(Error::Interrupted) => {
                tracing::warn!("interrupted in a clean: the commit stands, and the next run goes on with its plan");
                Ok(())
            }
            Err(e) => {
                self.metrics.clean_failed(e.code());
                if self.config.compaction.fails_the_job && !(self.config.run.continuous && e.is_retryable()) {
                    return Err(Error::Clean { cause: Box::new(e) });
                }
                tracing::warn!(code = e.code(), error = %e, "the clean behind the commit failed; tried again behind the next one");
                Ok(())
            }
            done => done,
        }
    }
}

pub(super) async fn clean(cleaner: Cleaner, metrics: &Metrics) -> Result<()> {
    let reports = cleaner.clean().await?;
    reports.iter().for_each(|report| report.emit(metrics));
    Ok(())
}

/// `hudi-streamer clean`.
pub(super) async fn command(
    config: &ServiceConfig,
    table: &Table,
    writers: &Writers,
    options: ServiceOptions,
) -> Result<Answer> {
    let cleaner = Cleaner {
        table: table.clone(),
        config: config.clean.clone(),
        writers: writers.clone(),
        // The job that writes the table may be running.
        alone: false,
        cancel: CancellationToken::new(),
        memory: Default::default(),
    };
    if options.dry_run {
        return preview(&cleaner).await;
    }
    if writers.failed_writes == FailedWritesPolicy::Lazy {
        // As in Hudi, whose cleans these writes wait for.
        service::rollback_failed_writes(table, writers).await?;
    }
    let reports = cleaner.clean().await?;
    reports.iter().for_each(|report| report.emit(&Metrics::off()));
    let line = |CleanReport { instant, files_deleted, partitions, earliest_retained, .. }: &CleanReport| {
        let retained = match earliest_retained.as_str() {
            "" => String::new(),
            earliest => format!("; readers as of {earliest} and later find all they need"),
        };
        format!("clean {instant} completed: {files_deleted} files of {partitions} partitions deleted{retained}")
    };
    let text = match reports.is_empty() {
        true => NOTHING.to_string(),
        false => reports.iter().map(line).collect::<Vec<_>>().join("\n"),
    };
    let cleans = reports.iter().map(|report| {
        json!({
            "instant": report.instant,
            "policy": report.policy,
            "filesDeleted": report.files_deleted,
            "partitions": report.partitions,
            "earliestRetained": report.earliest_retained,
        })
    });
    Ok(Answer { text, json: json!({"dryRun": false, "cleans": cleans.collect::<Vec<_>>()}) })
}

const NOTHING: &str = "no clean is due, or no file is old enough";

async fn preview(cleaner: &Cleaner) -> Result<Answer> {
    let preview = cleaner.preview().await?;
    let mut lines: Vec<String> =
        preview.pending.iter().map(|instant| format!("clean {instant} is pending, and would be finished")).collect();
    let count: usize = preview.files.values().map(Vec::len).sum();
    if count > 0 {
        lines.push(format!("{count} files of {} partitions would be deleted:", preview.files.len()));
    }
    for (partition, names) in &preview.files {
        lines.extend(names.iter().map(|name| match partition.as_str() {
            "" => format!("  {name}"),
            partition => format!("  {partition}/{name}"),
        }));
    }
    let text = if lines.is_empty() { NOTHING.to_string() } else { lines.join("\n") };
    let pending: Vec<String> = preview.pending.iter().map(ToString::to_string).collect();
    Ok(Answer { text, json: json!({"dryRun": true, "pending": pending, "files": preview.files}) })
}
