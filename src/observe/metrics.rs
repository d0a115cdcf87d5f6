//! What is counted, in one place: the streamer says what happened, this says what that means in numbers.

use super::health::{Answer, Health, epoch_ms};
use super::names::{self, Kind, Metric};
use super::round::{RoundReport, Stages};
use super::{ArchiveReport, CleanReport, CompactionReport};
use ::metrics::{Key, KeyName, Label, Level, Metadata, Recorder, SharedString};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use serde_json::json;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bounds of the stage histogram, in seconds: from a look at a warm timeline to a first load of a large topic.
const SECONDS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0];

const METADATA: Metadata<'static> = Metadata::new("hudi-streamer", Level::INFO, None);

/// Counts, and keeps the job's health. When it is off every call costs one branch.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    inner: Option<Arc<Inner>>,
}

struct Inner {
    /// Sanitised; empty, or ending in `_`.
    prefix: String,
    /// What a commit is called on the table's timeline: the group of what is told of one, as Hudi has it.
    commit_action: &'static str,
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    health: Mutex<Health>,
    clock: Mutex<Clock>,
}

/// When this round began and the last one ended.
#[derive(Debug)]
struct Clock {
    began: Instant,
    last_end: Instant,
    failed: u64,
    succeeded: u64,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Metrics {
    /// Counts nothing.
    pub fn off() -> Metrics {
        Metrics::default()
    }

    /// Counts under `prefix`; a commit is a `commit_action` (`commit` or `deltacommit`); a round may be quiet for `patience`
    /// before it counts as stuck.
    pub fn on(prefix: &str, commit_action: &'static str, patience: Duration) -> Metrics {
        let builder = PrometheusBuilder::new().set_buckets(SECONDS);
        let recorder = builder.unwrap_or_else(|_| PrometheusBuilder::new()).build_recorder();
        let prefix = if prefix.is_empty() { String::new() } else { format!("{}_", sanitized(prefix)) };
        let now = Instant::now();
        let inner = Inner {
            prefix,
            commit_action,
            handle: recorder.handle(),
            recorder,
            health: Mutex::new(Health::new(patience)),
            clock: Mutex::new(Clock { began: now, last_end: now, failed: 0, succeeded: 0 }),
        };
        inner.declare();
        Metrics { inner: Some(Arc::new(inner)) }
    }

    /// A round begins.
    pub fn round_started(&self) {
        let Some(m) = &self.inner else { return };
        m.clock().began = Instant::now();
        m.health().sign("round", Duration::ZERO);
        m.gauge(&names::HEARTBEAT, epoch_ms() as f64);
    }

    /// A stage of the round begins: a sign of life.
    pub fn stage(&self, name: &'static str) {
        let Some(m) = &self.inner else { return };
        m.health().sign(name, Duration::ZERO);
    }

    /// The round is long, and these move while it works: bytes read, rows written.
    pub fn watch(&self, moving: Vec<Arc<AtomicU64>>) {
        let Some(m) = &self.inner else { return };
        m.health().watch(moving);
    }

    /// Nothing is done for `wait`, on purpose.
    pub fn waiting(&self, wait: Duration) {
        let Some(m) = &self.inner else { return };
        m.health().sign("waiting", wait);
    }

    /// Where this round goes on from.
    pub fn resumes(&self, checkpoint: Option<&str>) {
        let Some(m) = &self.inner else { return };
        m.health().resumes(checkpoint);
    }

    /// What the source is about to give: pieces, and bytes as far as it knows.
    pub fn fetched(&self, pieces: usize, bytes: u64) {
        let Some(m) = &self.inner else { return };
        m.gauge(&names::PARALLELISM, pieces as f64);
        m.gauge(&names::BYTES_TO_INGEST, bytes as f64);
    }

    /// How many messages each partition of the topic holds after the checkpoint, and how many of all this round takes.
    pub fn kafka(&self, topic: &str, lag: &[(i32, i64)], messages: u64) {
        let Some(m) = &self.inner else { return };
        for (partition, behind) in lag {
            let labels = [("topic", topic), ("partition", &partition.to_string())];
            m.labelled_gauge(&names::KAFKA_LAG, &labels, *behind as f64);
        }
        m.gauge(&names::KAFKA_DELAY, lag.iter().map(|(_, behind)| *behind).sum::<i64>() as f64);
        m.gauge(&names::KAFKA_IN, messages as f64);
    }

    /// A round was committed.
    pub(super) fn committed(&self, report: &RoundReport, stages: &Stages) {
        let Some(m) = &self.inner else { return };
        m.commit(report);
        for (counter, count) in [
            (&names::ROWS_READ, report.rows_read),
            (&names::ROWS_COMBINED, report.rows_combined),
            (&names::ROWS_FILTERED, report.rows_filtered),
            (&names::BYTES_READ, report.bytes_read),
            (&names::OFFSETS_LOST, report.offsets_lost),
        ] {
            m.count(counter, &[], count);
        }
        for (outcome, records) in [("skipped", report.rows_skipped), ("quarantined", report.rows_quarantined)] {
            m.count(&names::BAD_RECORDS, &[("outcome", outcome)], records);
        }
        for (kind, rows) in [("insert", report.inserted), ("update", report.updated), ("delete", report.deleted)] {
            m.count(&names::ROWS_WRITTEN, &[("kind", kind)], rows);
        }
        for (stage, time) in stages.times() {
            m.observe(&names::STAGE_SECONDS, &[("stage", stage)], time.as_secs_f64());
        }
        m.went_through("committed");
        m.health().succeeded(Some((&report.instant, &report.checkpoint)));
        // Histogram samples wait in memory until somebody scrapes, if nobody drains them.
        m.handle.run_upkeep();
    }

    /// A round found nothing new, or nothing to commit.
    pub fn idle(&self) {
        let Some(m) = &self.inner else { return };
        // As Hudi: what the last commit wrote is not what this round wrote (`updateMetricsForEmptyData`).
        COMMIT_COUNTS.iter().for_each(|gauge| m.gauge(gauge, 0.0));
        m.went_through("idle");
        m.health().succeeded(None);
    }

    /// A try inside a round failed and is made again after `wait`. `text` must hold no secrets.
    pub fn retrying(&self, code: &'static str, text: &str, wait: Duration) {
        let Some(m) = &self.inner else { return };
        m.count(&names::FAILURES, &[("code", code)], 1);
        let mut health = m.health();
        health.failed(code, text.to_string(), false);
        health.sign("waiting to try again", wait);
    }

    /// A round failed, for so many bad records if for any. `text` must hold no secrets.
    pub fn failed(&self, code: &'static str, text: &str, bad_records: u64) {
        let Some(m) = &self.inner else { return };
        m.count(&names::FAILURES, &[("code", code)], 1);
        m.count(&names::BAD_RECORDS, &[("outcome", "failed")], bad_records);
        m.count(&names::ROUNDS, &[("outcome", "failed")], 1);
        m.health().failed(code, text.to_string(), true);
        m.ended();
        let failed = {
            let mut clock = m.clock();
            clock.failed += 1;
            clock.failed
        };
        m.gauge(&names::FAILED, failed as f64);
        m.gauge(&names::CONSECUTIVE, m.health().consecutive_failures() as f64);
    }

    /// A round was stopped by the user.
    pub fn interrupted(&self) {
        let Some(m) = &self.inner else { return };
        m.count(&names::ROUNDS, &[("outcome", "interrupted")], 1);
        m.ended();
    }

    /// Failed writes were rolled back.
    pub fn rolled_back(&self, took: Duration, files_deleted: usize) {
        let Some(m) = &self.inner else { return };
        m.gauge(&names::ROLLBACK_DURATION, millis(took));
        m.gauge(&names::ROLLBACK_FILES, files_deleted as f64);
    }

    /// Instants were archived.
    pub(super) fn archived(&self, report: &ArchiveReport) {
        let Some(m) = &self.inner else { return };
        m.gauge(&names::ARCHIVE_DURATION, millis(report.took));
        m.gauge(&names::ARCHIVE_INSTANTS, report.instants as f64);
    }

    /// Archiving failed; the next run goes on where it ended.
    pub fn archive_failed(&self, code: &'static str) {
        let Some(m) = &self.inner else { return };
        m.count(&names::ARCHIVES_FAILED, &[("code", code)], 1);
    }

    /// A clean was completed.
    pub(super) fn cleaned(&self, report: &CleanReport) {
        let Some(m) = &self.inner else { return };
        m.gauge(&names::CLEAN_DURATION, millis(report.took));
        m.gauge(&names::CLEAN_FILES, report.files_deleted as f64);
    }

    /// A clean failed; its plan stays, if it had got to one.
    pub fn clean_failed(&self, code: &'static str) {
        let Some(m) = &self.inner else { return };
        m.count(&names::CLEANS_FAILED, &[("code", code)], 1);
    }

    /// A compaction was planned.
    pub fn compaction_planned(&self) {
        let Some(m) = &self.inner else { return };
        m.raise(&names::COMPACTIONS_REQUESTED);
    }

    /// So many are planned and not completed.
    pub fn compactions_pending(&self, count: usize) {
        let Some(m) = &self.inner else { return };
        m.gauge(&names::COMPACTIONS_PENDING, count as f64);
    }

    /// A compaction was completed.
    pub(super) fn compacted(&self, report: &CompactionReport) {
        let Some(m) = &self.inner else { return };
        m.raise(&names::COMPACTIONS_COMPLETED);
        m.gauge(&names::COMPACTION_DURATION, millis(report.took));
        for (gauge, value) in [
            (&names::COMPACTION_RECORDS, report.rows),
            (&names::COMPACTION_BYTES, report.bytes_written),
            (&names::COMPACTION_UPDATED, report.updated_records),
            (&names::COMPACTION_LOG_FILES, report.log_files),
            (&names::COMPACTION_LOG_BYTES, report.log_bytes),
            (&names::COMPACTION_SCAN_TIME, report.scan_ms),
        ] {
            m.gauge(gauge, value as f64);
        }
    }

    /// A compaction failed; its plan stays.
    pub fn compaction_failed(&self, code: &'static str) {
        let Some(m) = &self.inner else { return };
        m.count(&names::COMPACTIONS_FAILED, &[("code", code)], 1);
    }

    /// All metrics in the text format of Prometheus; empty when off.
    pub(super) fn render(&self) -> String {
        self.inner.as_ref().map(|m| m.handle.render()).unwrap_or_default()
    }

    pub(super) fn live(&self) -> Answer {
        self.inner.as_ref().map_or_else(off, |m| m.health().live())
    }

    pub(super) fn ready(&self) -> Answer {
        self.inner.as_ref().map_or_else(off, |m| m.health().ready())
    }
}

fn off() -> Answer {
    Answer { well: true, body: json!({}) }
}

/// Gauges of a commit that say 0 when a round wrote nothing.
const COMMIT_COUNTS: [&Metric; 14] = [
    &names::PARTITIONS_WRITTEN,
    &names::FILES_INSERT,
    &names::FILES_UPDATE,
    &names::RECORDS_WRITTEN,
    &names::RECORDS_UPDATE,
    &names::RECORDS_INSERT,
    &names::RECORDS_DELETED,
    &names::BYTES_WRITTEN,
    &names::SCAN_TIME,
    &names::CREATE_TIME,
    &names::UPSERT_TIME,
    &names::COMPACTED_RECORDS,
    &names::LOG_FILES_COMPACTED,
    &names::LOG_FILES_SIZE,
];

impl Inner {
    /// Describes everything, and sets to 0 what can be: a rate over a counter that appears late misses its first step.
    fn declare(&self) {
        for metric in names::ALL {
            let (name, help) = (KeyName::from(self.name(metric)), SharedString::from(metric.help));
            match metric.kind {
                Kind::Gauge => self.recorder.describe_gauge(name, None, help),
                Kind::Counter => self.recorder.describe_counter(name, None, help),
                Kind::Histogram => self.recorder.describe_histogram(name, None, help),
            }
        }
        for counter in
            [&names::ROWS_READ, &names::ROWS_COMBINED, &names::ROWS_FILTERED, &names::BYTES_READ, &names::OFFSETS_LOST]
        {
            self.count(counter, &[], 0);
        }
        for outcome in ["committed", "idle", "failed", "interrupted"] {
            self.count(&names::ROUNDS, &[("outcome", outcome)], 0);
        }
        for outcome in ["skipped", "quarantined", "failed"] {
            self.count(&names::BAD_RECORDS, &[("outcome", outcome)], 0);
        }
        for kind in ["insert", "update", "delete"] {
            self.count(&names::ROWS_WRITTEN, &[("kind", kind)], 0);
        }
        let compactions = [&names::COMPACTIONS_REQUESTED, &names::COMPACTIONS_COMPLETED, &names::COMPACTIONS_PENDING];
        for gauge in [&names::SUCCESSFUL, &names::FAILED, &names::CONSECUTIVE].into_iter().chain(compactions) {
            self.gauge(gauge, 0.0);
        }
    }

    fn commit(&self, report: &RoundReport) {
        let values = [
            report.partitions_written,
            report.files_inserted,
            report.files_written - report.files_inserted,
            report.rows_in_files,
            report.updated,
            report.inserted,
            report.deleted,
            report.bytes_written,
            0,
            report.create_time_ms,
            report.upsert_time_ms,
            0,
            0,
            0,
        ];
        for (gauge, value) in COMMIT_COUNTS.iter().zip(values) {
            self.gauge(gauge, value as f64);
        }
        self.gauge(&names::COMMIT_TIME, report.begun_ms as f64);
        self.gauge(&names::COMMIT_DURATION, (report.completed_ms - report.begun_ms) as f64);
        if let Some((oldest, newest)) = report.event_times_ms {
            self.gauge(&names::COMMIT_LATENCY, (report.completed_ms - oldest) as f64);
            self.gauge(&names::COMMIT_FRESHNESS, (report.completed_ms - newest) as f64);
        }
    }

    fn went_through(&self, outcome: &'static str) {
        self.count(&names::ROUNDS, &[("outcome", outcome)], 1);
        let took = self.ended();
        self.gauge(&names::DURATION, millis(took));
        self.gauge(&names::LAST_SYNC, epoch_ms() as f64);
        let succeeded = {
            let mut clock = self.clock();
            clock.succeeded += 1;
            clock.succeeded
        };
        self.gauge(&names::SUCCESSFUL, succeeded as f64);
        self.gauge(&names::CONSECUTIVE, 0.0);
    }

    /// Ends the round's clock; how long it worked.
    fn ended(&self) -> Duration {
        let now = Instant::now();
        let (worked, total) = {
            let mut clock = self.clock();
            let total = now - clock.last_end;
            clock.last_end = now;
            (now - clock.began, total)
        };
        self.gauge(&names::ACTUAL_SYNC, millis(worked));
        self.gauge(&names::TOTAL_SYNC, millis(total));
        worked
    }

    fn name(&self, metric: &Metric) -> String {
        let group = if metric.group == names::COMMIT { self.commit_action } else { metric.group };
        format!("{}{}_{}", self.prefix, group, metric.name)
    }

    fn key(&self, metric: &Metric, labels: &[(&'static str, &str)]) -> Key {
        let labels: Vec<Label> = labels.iter().map(|(name, value)| Label::new(*name, value.to_string())).collect();
        Key::from_parts(self.name(metric), labels)
    }

    fn gauge(&self, metric: &Metric, value: f64) {
        self.labelled_gauge(metric, &[], value);
    }

    /// A count that Hudi has as a gauge.
    fn raise(&self, metric: &Metric) {
        self.recorder.register_gauge(&self.key(metric, &[]), &METADATA).increment(1.0);
    }

    fn labelled_gauge(&self, metric: &Metric, labels: &[(&'static str, &str)], value: f64) {
        self.recorder.register_gauge(&self.key(metric, labels), &METADATA).set(value);
    }

    fn count(&self, metric: &Metric, labels: &[(&'static str, &str)], by: u64) {
        self.recorder.register_counter(&self.key(metric, labels), &METADATA).increment(by);
    }

    fn observe(&self, metric: &Metric, labels: &[(&'static str, &str)], value: f64) {
        self.recorder.register_histogram(&self.key(metric, labels), &METADATA).record(value);
    }

    // Neither can be left half changed by a panic.
    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As the Prometheus client of Hudi's reporter does it (`Collector.sanitizeMetricName`).
fn sanitized(name: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let text: String = name.chars().map(|c| if legal(c) { c } else { '_' }).collect();
    if text.starts_with(|c: char| c.is_ascii_digit()) { format!("_{text}") } else { text }
}

fn millis(time: Duration) -> f64 {
    time.as_millis() as f64
}

#[cfg(test)]
mod tests;
