//! What a round leaves behind in the text that is served.

use super::*;

fn metrics() -> Metrics {
    Metrics::on("trips", "commit", Duration::from_secs(600))
}

/// The value of a sample, by its name and labels as they are written.
fn value(metrics: &Metrics, sample: &str) -> Option<f64> {
    let text = metrics.render();
    let found = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '))?;
    Some(found.parse().expect("a number"))
}

fn report() -> RoundReport {
    RoundReport {
        instant: "20260101000000000".into(),
        rows_read: 10,
        rows_skipped: 2,
        inserted: 5,
        updated: 3,
        files_written: 3,
        files_inserted: 2,
        begun_ms: 1_000,
        completed_ms: 1_500,
        event_times_ms: Some((300, 1_200)),
        ..RoundReport::default()
    }
}

#[test]
fn a_commit_of_a_merge_on_read_table_is_a_delta_commit() {
    let metrics = Metrics::on("trips", "deltacommit", Duration::from_secs(600));
    report().emit(&Stages::start(metrics.clone()));
    assert_eq!(value(&metrics, "trips_deltacommit_totalInsertRecordsWritten"), Some(5.0));
    assert_eq!(value(&metrics, "trips_commit_totalInsertRecordsWritten"), None);
}

#[test]
fn a_commit_says_what_hudi_says_of_it() {
    let metrics = metrics();
    metrics.round_started();
    report().emit(&Stages::start(metrics.clone()));
    for (sample, want) in [
        ("trips_commit_totalFilesInsert", 2.0),
        ("trips_commit_totalFilesUpdate", 1.0),
        ("trips_commit_totalInsertRecordsWritten", 5.0),
        ("trips_commit_totalUpdateRecordsWritten", 3.0),
        ("trips_commit_commitTime", 1_000.0),
        ("trips_commit_duration", 500.0),
        ("trips_commit_commitLatencyInMs", 1_200.0),
        ("trips_commit_commitFreshnessInMs", 300.0),
        ("trips_deltastreamer_numSuccessfulSyncs", 1.0),
        ("trips_deltastreamer_rounds_total{outcome=\"committed\"}", 1.0),
        ("trips_deltastreamer_rowsWritten_total{kind=\"update\"}", 3.0),
        ("trips_deltastreamer_badRecords_total{outcome=\"skipped\"}", 2.0),
    ] {
        assert_eq!(value(&metrics, sample), Some(want), "{sample}");
    }
    metrics.round_started();
    metrics.idle();
    assert_eq!(value(&metrics, "trips_commit_totalFilesInsert"), Some(0.0), "this round wrote none");
    assert_eq!(value(&metrics, "trips_deltastreamer_rowsRead_total"), Some(10.0), "totals stay");
    assert_eq!(value(&metrics, "trips_deltastreamer_numSuccessfulSyncs"), Some(2.0));
}

#[test]
fn without_event_times_there_is_no_freshness() {
    let metrics = metrics();
    RoundReport { event_times_ms: None, ..report() }.emit(&Stages::start(metrics.clone()));
    assert_eq!(value(&metrics, "trips_commit_commitFreshnessInMs"), None);
}

#[test]
fn failures_are_counted_until_a_round_goes_through() {
    let metrics = metrics();
    for (code, bad_records) in [("storage-io", 0), ("json-value", 3)] {
        metrics.round_started();
        metrics.failed(code, "", bad_records);
    }
    metrics.retrying("storage-io", "", Duration::ZERO);
    for (sample, want) in [
        ("trips_deltastreamer_numFailedSyncs", 2.0),
        ("trips_deltastreamer_numConsecutiveFailures", 2.0),
        ("trips_deltastreamer_failures_total{code=\"storage-io\"}", 2.0),
        ("trips_deltastreamer_badRecords_total{outcome=\"failed\"}", 3.0),
    ] {
        assert_eq!(value(&metrics, sample), Some(want), "{sample}");
    }
    metrics.idle();
    assert_eq!(value(&metrics, "trips_deltastreamer_numConsecutiveFailures"), Some(0.0));
    assert_eq!(value(&metrics, "trips_deltastreamer_numFailedSyncs"), Some(2.0));
}

#[test]
fn lag_is_told_by_partition_and_stays_when_it_is_nothing() {
    let metrics = metrics();
    for (lag, delay) in [([(0, 3), (1, 4)], 7.0), ([(0, 0), (1, 0)], 0.0)] {
        metrics.kafka("t", &lag, 5);
        assert_eq!(value(&metrics, "trips_deltastreamer_kafkaDelayCount"), Some(delay));
        for (partition, behind) in lag {
            let sample = format!("trips_deltastreamer_kafkaPartitionLag{{topic=\"t\",partition=\"{partition}\"}}");
            assert_eq!(value(&metrics, &sample), Some(behind as f64), "{sample}");
        }
    }
    assert_eq!(value(&metrics, "trips_deltastreamer_kafkaMessageInCount"), Some(5.0));
}

#[test]
fn names_are_fit_for_prometheus() {
    for (prefix, want) in [("lake.trips-v2", "lake_trips_v2_"), ("2026", "_2026_"), ("größe", "gr__e_"), ("", "")] {
        let name = format!("{want}deltastreamer_numFailedSyncs");
        assert_eq!(value(&Metrics::on(prefix, "commit", Duration::ZERO), &name), Some(0.0), "{prefix:?}");
    }
    for metric in names::ALL {
        let total = metric.name.ends_with("_total");
        assert_eq!(total, metric.kind == Kind::Counter, "{metric:?}: counters end in _total, and nothing else does");
    }
}

#[test]
fn off_is_silent() {
    let metrics = Metrics::off();
    report().emit(&Stages::start(metrics.clone()));
    assert!(metrics.render().is_empty());
}
