//! Brokers that fail, move and lag, while a continuous job reads: it goes on by itself, and nothing is lost or twice.
//!
//! The cluster is librdkafka's, inside this process, which does what it is told. Without the peers the rows of commits are
//! counted; with them they are read.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::bindings::rd_kafka_resp_err_t as Fault;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};
use rdkafka::types::RDKafkaApiKey as Request;

use crate::support::*;

const TOPIC: &str = "events";
const PARTITIONS: usize = 2;

/// A topic on a cluster of two, and a job that inserts what comes.
struct Fixture {
    cluster: MockCluster<'static, DefaultProducerContext>,
    producer: BaseProducer,
    job: Job,
    /// Messages of each partition.
    sent: [i64; PARTITIONS],
}

impl Fixture {
    fn new(with: impl FnOnce(Streamer) -> Streamer) -> Fixture {
        let cluster = MockCluster::new(2).expect("a cluster");
        cluster.create_topic(TOPIC, PARTITIONS as i32, 2).expect("a topic");
        (0..PARTITIONS as i32).for_each(|p| cluster.partition_leader(TOPIC, p, Some(1)).expect("a leader"));
        let mut config = ClientConfig::new();
        // The cluster's own faults are for the job: the producer tries on.
        config.set("bootstrap.servers", cluster.bootstrap_servers()).set("retry.backoff.ms", "20");
        config.set("reconnect.backoff.max.ms", "500");
        config.set("topic.metadata.refresh.fast.interval.ms", "20").set("topic.metadata.refresh.interval.ms", "200");
        // A replica has batches or has them not.
        config.set("batch.num.messages", "1");
        let producer = config.create().expect("a producer");
        let job = Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| {
            let call = call.flag("--source-class", "JsonKafkaSource").without("hoodie.streamer.source.dfs.root");
            let call = call.op("INSERT").switch("--continuous").conf("bootstrap.servers", cluster.bootstrap_servers());
            let call = call.conf("hoodie.streamer.source.kafka.topic", TOPIC).conf("auto.offset.reset", "earliest");
            with(call.conf("topic.metadata.refresh.interval.ms", "1000"))
        });
        Fixture { cluster, producer, job, sent: [0; PARTITIONS] }
    }

    /// Puts so many messages into each partition.
    fn send(&mut self, count: i64) {
        for partition in 0..PARTITIONS {
            for offset in self.sent[partition]..self.sent[partition] + count {
                let value = json!({"id": format!("{partition}-{offset}"), "ts": offset}).to_string();
                let record = BaseRecord::<(), _>::to(TOPIC).partition(partition as i32).payload(&value);
                self.producer.send(record).map_err(|(e, _)| e).expect("queue a message");
            }
            self.sent[partition] += count;
        }
        self.producer.flush(Duration::from_secs(60)).expect("the brokers take them");
    }

    fn at_the_end(&self) -> bool {
        let end = format!("{TOPIC},0:{},1:{}", self.sent[0], self.sent[1]);
        !self.job.table.commits().is_empty() && self.job.table.checkpoint() == end
    }

    /// Everything that was sent is in the table, once.
    fn check(&self) {
        let table = &self.job.table;
        let rows = |instant: &String| {
            let metadata = table.commit_metadata(instant);
            let partitions = metadata["partitionToWriteStats"].as_object().expect("partitions").values();
            partitions
                .flat_map(|p| p.as_array().expect("stats"))
                .map(|s| s["numInserts"].as_i64().expect("a count"))
                .sum::<i64>()
        };
        assert_eq!(table.commits().iter().map(rows).sum::<i64>(), self.sent.iter().sum::<i64>(), "rows inserted");
        if peers_enabled() {
            let rows = oracle(HUDI_RS).read(table.str());
            let mut got: Vec<_> = rows.iter().map(|row| row["id"].as_str().expect("text").to_owned()).collect();
            let ids = |p: usize| (0..self.sent[p]).map(move |offset| format!("{p}-{offset}"));
            let mut want: Vec<_> = (0..PARTITIONS).flat_map(ids).collect();
            got.sort();
            want.sort();
            assert_eq!(got, want);
        }
    }
}

#[test]
fn a_job_goes_on_when_requests_fail_and_leaders_move() {
    let mut fixture = Fixture::new(|call| call.conf("default.api.timeout.ms", "5000"));
    fixture.send(10);
    let running = fixture.job.call.start();
    wait_for("the first commit", || fixture.at_the_end());
    let fetch_errors = [
        Fault::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        Fault::RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
        Fault::RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH,
        Fault::RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
        Fault::RD_KAFKA_RESP_ERR_UNKNOWN,
        Fault::RD_KAFKA_RESP_ERR__TRANSPORT,
    ];
    let list_errors = [
        Fault::RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE,
        Fault::RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
        Fault::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        Fault::RD_KAFKA_RESP_ERR__TRANSPORT,
    ];
    for error in fetch_errors {
        fixture.cluster.request_errors(Request::Fetch, &[error, error]);
        fixture.send(20);
        wait_for(&format!("a commit after {error:?} of fetches"), || fixture.at_the_end());
    }
    for error in list_errors {
        fixture.cluster.request_errors(Request::ListOffsets, &[error, error]);
        fixture.send(20);
        wait_for(&format!("a commit after {error:?} of offsets"), || fixture.at_the_end());
    }
    for leader in [2, 1, 2] {
        fixture.cluster.partition_leader(TOPIC, 0, Some(leader)).expect("a leader");
        fixture.send(20);
        wait_for("a commit after the leader moved", || fixture.at_the_end());
    }
    running.signal("TERM");
    running.finish().ok();
    fixture.check();
}

/// Consumers may be sent to a replica that has not yet what the leader told us of: its end is not the range's.
#[test]
fn a_replica_that_lags_costs_no_message() {
    let mut fixture = Fixture::new(|call| call.conf("default.api.timeout.ms", "2000").conf("client.rack", "a"));
    fixture.cluster.partition_follower(TOPIC, 0, 2).expect("a follower");
    fixture.send(10);
    fixture.cluster.follower_watermarks(TOPIC, 0, Some(0), Some(6)).expect("a follower that lags");
    let running = fixture.job.call.start();
    wait_for("a round that waits for the rest", || {
        running.said().contains("round failed; trying again") || fixture.at_the_end()
    });
    fixture.cluster.follower_watermarks(TOPIC, 0, Some(0), None).expect("a follower that has caught up");
    wait_for("the end", || fixture.at_the_end());
    running.signal("TERM");
    running.finish().ok();
    fixture.check();
}
