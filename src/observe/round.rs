//! One structured line a round: what was read and written, how long each stage took, where the job stands.

use super::Metrics;
use std::time::{Duration, Instant};

/// Clock of a round's stages, in order.
#[derive(Debug)]
pub struct Stages {
    /// Hears of every stage, and of the end.
    metrics: Metrics,
    started: Instant,
    current: Option<(&'static str, Instant)>,
    done: Vec<(&'static str, Duration)>,
}

impl Stages {
    /// Starts the round's clock.
    pub fn start(metrics: Metrics) -> Stages {
        Stages { metrics, started: Instant::now(), current: None, done: Vec::new() }
    }

    /// Ends the stage that runs and begins the next.
    pub fn enter(&mut self, name: &'static str) {
        self.leave();
        self.metrics.stage(name);
        self.current = Some((name, Instant::now()));
    }

    /// Ends the stage that runs.
    pub fn leave(&mut self) {
        if let Some((name, since)) = self.current.take() {
            self.done.push((name, since.elapsed()));
        }
    }

    /// How long each stage took.
    pub(super) fn times(&self) -> impl Iterator<Item = (&'static str, Duration)> {
        self.done.iter().copied()
    }

    /// `fetch=12ms write=1034ms`
    fn summary(&self) -> String {
        let parts: Vec<String> =
            self.done.iter().map(|(name, time)| format!("{name}={}ms", time.as_millis())).collect();
        parts.join(" ")
    }
}

/// What a round did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoundReport {
    /// The completed instant; empty in a dry run.
    pub instant: String,
    /// Name of the table.
    pub table: String,
    /// Name of the write operation.
    pub operation: &'static str,
    pub files_read: u64,
    pub bytes_read: u64,
    pub rows_read: u64,
    /// Records left out because they could not be decoded or keyed.
    pub rows_skipped: u64,
    /// The same, kept in an error table or a topic.
    pub rows_quarantined: u64,
    /// Offsets of a topic that expired before they were read.
    pub offsets_lost: u64,
    /// Rows of the batch that lost to a row of the same key.
    pub rows_combined: u64,
    /// Rows of the batch dropped because their key is stored already (`--filter-dupes`).
    pub rows_filtered: u64,
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
    pub files_written: u64,
    /// Of these the first of a new file group.
    pub files_inserted: u64,
    pub partitions_written: u64,
    /// Rows in the written files, with those that a merge copied.
    pub rows_in_files: u64,
    pub bytes_written: u64,
    /// Summed over files.
    pub create_time_ms: u64,
    pub upsert_time_ms: u64,
    pub checkpoint: String,
    /// Epoch milliseconds at which the instant was drawn, and at which it was completed.
    pub begun_ms: i64,
    pub completed_ms: i64,
    /// Oldest and newest event time of the batch, epoch milliseconds, where the source knows them.
    pub event_times_ms: Option<(i64, i64)>,
}

impl RoundReport {
    /// Writes the line of a completed round, and counts it.
    pub fn emit(&self, stages: &Stages) {
        self.line("round committed", stages);
        stages.metrics.committed(self, stages);
    }

    /// Writes the line of a dry run: nothing was written.
    pub fn emit_dry_run(&self, stages: &Stages) {
        self.line("dry run: nothing was written", stages);
    }

    fn line(&self, message: &'static str, stages: &Stages) {
        tracing::info!(
            instant = self.instant,
            table = self.table,
            operation = self.operation,
            files_read = self.files_read,
            bytes_read = self.bytes_read,
            rows_read = self.rows_read,
            rows_skipped = self.rows_skipped,
            rows_quarantined = self.rows_quarantined,
            rows_combined = self.rows_combined,
            rows_filtered = self.rows_filtered,
            inserted = self.inserted,
            updated = self.updated,
            deleted = self.deleted,
            files_written = self.files_written,
            bytes_written = self.bytes_written,
            checkpoint = self.checkpoint,
            duration_ms = stages.started.elapsed().as_millis() as u64,
            stages = stages.summary(),
            "{message}"
        );
    }
}
