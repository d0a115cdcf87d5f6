//! Metrics and health, as Prometheus and Kubernetes meet them.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use crate::support::*;

/// A continuous job that serves on a free port of the loopback address.
fn job() -> Job {
    Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| {
        call.switch("--continuous")
            .conf("hoodie.metrics.on", "true")
            .conf("hoodie.metrics.reporter.type", "PROMETHEUS")
            .conf("hoodie.metrics.prometheus.host", "127.0.0.1")
            .conf("hoodie.metrics.prometheus.port", "0")
    })
}

/// Where it listens, as its log says.
fn address(running: &Running) -> String {
    let find = || {
        let said = running.said();
        let line = said.lines().find(|l| l.contains("serving /metrics"))?;
        Some(line.split_once("address=")?.1.split_whitespace().next()?.to_string())
    };
    wait_for("the address to be told", || find().is_some());
    find().expect("just found")
}

fn scrape(address: &str) -> Exposition {
    let probe = http_get(address, "/metrics");
    assert_eq!((probe.status, probe.content_type.as_str()), (200, "text/plain; version=0.0.4; charset=utf-8"));
    Exposition::parse(&probe.body)
}

#[test]
fn a_job_tells_how_it_stands() {
    let mut job = job();
    job.feed(&[row! {"id": "a", "ts": 1}, row! {"id": "a", "ts": 2}, row! {"id": "b", "ts": 1}]);
    let running = job.call.clone().conf("hoodie.streamer.source.json.skip.invalid.records", "true").start();
    let address = address(&running);
    wait_for("the first round", || http_get(&address, "/readyz").status == 200);
    let (committed, position) = (job.table.last_commit(), job.position());
    let ready = http_get(&address, "/readyz").json();
    assert_eq!((&ready["state"], &ready["last_error"]), (&json!("ready"), &Value::Null), "{ready}");
    assert_eq!((&ready["last_commit"], &ready["checkpoint"]), (&json!(committed), &json!(position)), "{ready}");
    assert_eq!(http_get(&address, "/healthz").status, 200);
    let first = scrape(&address);
    for (sample, want) in [
        ("trips_deltastreamer_rounds_total{outcome=\"committed\"}", 1.0),
        ("trips_deltastreamer_rowsRead_total", 3.0),
        ("trips_deltastreamer_rowsCombined_total", 1.0),
        ("trips_deltastreamer_rowsWritten_total{kind=\"insert\"}", 2.0),
        ("trips_deltastreamer_numFailedSyncs", 0.0),
        ("trips_deltastreamer_stageSeconds_count{stage=\"write\"}", 1.0),
    ] {
        assert_eq!(first.get(sample), Some(want), "{sample}");
    }

    job.feed_text("{\"id\": \"b\", \"ts\": 9}\n{\"id\": \"c\", \"ts\": \"nine\"}\n");
    let commits = "trips_deltastreamer_rounds_total{outcome=\"committed\"}";
    wait_for("the second commit", || scrape(&address).get(commits) == Some(2.0));
    let second = scrape(&address);
    assert_eq!(second.get("trips_deltastreamer_rowsWritten_total{kind=\"update\"}"), Some(1.0));
    assert_eq!(second.get("trips_deltastreamer_badRecords_total{outcome=\"skipped\"}"), Some(1.0));
    assert!(second.get("trips_deltastreamer_lastSync") > first.get("trips_deltastreamer_lastSync"));
    assert!(second.get("trips_commit_commitTime") > first.get("trips_commit_commitTime"));
    assert_eq!(http_get(&address, "/other").status, 404);
    running.signal("TERM");
    running.finish().ok();
}

/// The file of the statement is a pipe that nobody writes to: a round that hangs.
#[test]
fn a_round_that_hangs_is_neither_ready_nor_live_until_it_goes_on() {
    let mut job = job();
    job.feed(&[row! {"id": "a", "ts": 1}]);
    let statement = job.scratch.path("statement.sql");
    assert!(Command::new("mkfifo").arg(&statement).status().expect("run mkfifo").success());
    let running = job
        .call
        .clone()
        .flag("--transformer-class", "SqlFileBasedTransformer")
        .conf("hoodie.streamer.transformer.sql.file", &statement)
        .conf("hoodie.streamer.health.stall.seconds", "1")
        .start();
    let address = address(&running);
    wait_for("the silence to be noticed", || http_get(&address, "/healthz").status == 503);
    let told = http_get(&address, "/healthz").json();
    assert_eq!((&told["live"], &told["doing"]), (&json!(false), &json!("transform")), "{told}");
    assert!(told["why"].as_str().is_some_and(|w| w.contains("hoodie.streamer.health.stall.seconds")), "{told}");
    let ready = http_get(&address, "/readyz");
    assert_eq!((ready.status, &ready.json()["state"]), (503, &json!("starting")));
    assert_eq!(scrape(&address).get("trips_deltastreamer_numSuccessfulSyncs"), Some(0.0));

    std::fs::write(&statement, "SELECT * FROM <SRC>").expect("somebody reads the pipe");
    wait_for("the round to go on", || http_get(&address, "/readyz").status == 200);
    wait_for("a sign of life", || http_get(&address, "/healthz").status == 200);
    running.signal("TERM");
    running.finish().ok();
}

/// The broker is librdkafka's, inside this process: it goes away and comes back when told.
#[test]
fn a_job_is_not_ready_while_its_broker_is_away() {
    let cluster = MockCluster::new(1).expect("a cluster");
    cluster.create_topic("trips", 2, 1).expect("a topic");
    let producer: BaseProducer =
        ClientConfig::new().set("bootstrap.servers", cluster.bootstrap_servers()).create().expect("a producer");
    let send = |partition: i32, text: &str| {
        let record = BaseRecord::<(), str>::to("trips").partition(partition).payload(text);
        producer.send(record).map_err(|(e, _)| e).expect("queue a message");
        producer.flush(Duration::from_secs(60)).expect("the broker takes it");
    };
    send(0, r#"{"id": "a", "ts": 1}"#);
    send(1, r#"{"id": "b", "ts": 1}"#);
    send(1, r#"{"id": "c", "ts": 1}"#);
    cluster.broker_down(-1).expect("end the broker");

    let job = job();
    let running = job
        .call
        .clone()
        .flag("--source-class", "JsonKafkaSource")
        .without("hoodie.streamer.source.dfs.root")
        .conf("bootstrap.servers", cluster.bootstrap_servers())
        .conf("hoodie.streamer.source.kafka.topic", "trips")
        .conf("auto.offset.reset", "earliest")
        .conf("default.api.timeout.ms", "1000")
        .start();
    let address = address(&running);
    let told = || http_get(&address, "/readyz");
    wait_for("a failed round", || told().json()["state"] == "failing");
    let away = told();
    assert_eq!((away.status, &away.json()["last_error"]["code"]), (503, &json!("kafka-broker")), "{}", away.body);
    assert_eq!(http_get(&address, "/healthz").status, 200, "trying again is a sign of life");
    assert!(job.table.timeline().is_empty());

    cluster.broker_up(-1).expect("start the broker");
    wait_for("the first commit", || told().status == 200);
    let back = told().json();
    assert_eq!((&back["consecutive_failures"], &back["checkpoint"]), (&json!(0), &json!("trips,0:1,1:2")), "{back}");
    let exposition = scrape(&address);
    assert!(exposition.get("trips_deltastreamer_numFailedSyncs") > Some(0.0));
    assert_eq!(exposition.get("trips_deltastreamer_numConsecutiveFailures"), Some(0.0));
    let lag = r#"trips_deltastreamer_kafkaPartitionLag{topic="trips",partition="1"}"#;
    wait_for("no lag", || scrape(&address).get(lag) == Some(0.0));
    assert!(exposition.get("trips_commit_commitLatencyInMs") >= exposition.get("trips_commit_commitFreshnessInMs"));
    assert!(exposition.get("trips_commit_commitFreshnessInMs") > Some(0.0));
    running.signal("TERM");
    running.finish().ok();
}

#[test]
fn what_cannot_be_served_is_refused_by_name() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("bind a port");
    let port = taken.local_addr().expect("bound").port().to_string();
    let job = job();
    let call = || job.call.clone();
    let cases: [(Streamer, &[&str]); 7] = [
        (
            call().conf("hoodie.metrics.prometheus.port", &port),
            &["metrics-address", &format!("127.0.0.1:{port}"), "hoodie.metrics.prometheus.port"],
        ),
        (call().conf("hoodie.metrics.prometheus.host", "300.1.1.1"), &["300.1.1.1", "hoodie.metrics.prometheus.host"]),
        (call().conf("hoodie.metrics.prometheus.port", "99999"), &["hoodie.metrics.prometheus.port", "99999"]),
        (call().conf("hoodie.metrics.reporter.type", "GRAPHITE"), &["GRAPHITE", "PROMETHEUS"]),
        (call().conf("hoodie.metrics.reporter.type", "GRAFITE"), &["GRAFITE", "GRAPHITE"]),
        (call().conf("hoodie.metrics.reporter.class", "com.acme.Reporter"), &["hoodie.metrics.reporter.class"]),
        (call().conf("hoodie.streamer.health.stall.seconds", "0"), &["hoodie.streamer.health.stall.seconds"]),
    ];
    for (call, names) in cases {
        call.run().fails_with(2, names);
        assert!(job.table.timeline().is_empty(), "{names:?}");
    }
}

#[test]
fn hudi_s_default_reporter_gives_way_with_a_word() {
    let mut job = job();
    job.feed(&[row! {"id": "a", "ts": 1}]);
    let call = job.call.clone().without("--continuous").without("hoodie.metrics.reporter.type");
    call.run().ok().says(&["WARN", "hoodie.metrics.reporter.type", "GRAPHITE", "PROMETHEUS"]);
    job.call.clone().without("--continuous").conf("hoodie.metrics.graphite.host", "g").run().ok().says(&["GRAPHITE"]);
}
