//! Bad messages kept elsewhere: in a dead-letter topic, in the error table.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Headers, Message as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::quarantine::error_rows;
use crate::support::*;

const TOPIC: &str = "hoodie.streamer.source.bad.records.topic";
const SCHEMA: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":["null","string"],"default":null},
 {"name":"ts","type":"long"},{"name":"v","type":["null","string"],"default":null}]}"#;

/// Two partitions: one message that cannot be decoded, sent at `sent`, and one that has no key, a millisecond later.
fn job_at(sent: i64) -> KafkaJob {
    let topic = Broker::shared().topic("orders", 2);
    topic.send(0, [r#"{"id":"o0","ts":1,"v":"a"}"#]);
    topic.send(0, [Message::from(r#"{"id":"o1","ts":2,"#).key("k1").at(sent)]);
    topic.send(0, [r#"{"id":"o2","ts":3,"v":"c"}"#]);
    topic.send(1, [r#"{"id":"o3","ts":4,"v":"d"}"#]);
    topic.send(1, [Message::from(r#"{ "id" : null, "ts" : 5 }"#).key("k5").at(sent + 1)]);
    KafkaJob::new(topic, SCHEMA, Model::new(&["id", "ts", "v"]), |call| call)
}

fn job() -> KafkaJob {
    job_at(a_minute_ago())
}

/// Old, and not beyond the broker's retention.
fn a_minute_ago() -> i64 {
    let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970");
    i64::try_from(now.as_millis()).expect("before the year 292277026") - 60_000
}

#[derive(Debug, PartialEq, Eq)]
struct Letter {
    key: String,
    value: String,
    headers: BTreeMap<String, String>,
}

/// The first `count` messages of a topic of one partition.
fn letters(topic: &Topic, count: usize) -> Vec<Letter> {
    let mut client = ClientConfig::new();
    client.set("bootstrap.servers", topic.endpoint()).set("group.id", "letters");
    let consumer: BaseConsumer = client.create().expect("a consumer");
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic.name(), 0, Offset::Beginning).expect("an offset");
    consumer.assign(&list).expect("assigned");
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut found = Vec::new();
    while found.len() < count {
        assert!(Instant::now() < deadline, "{count} messages are not there: {found:?}");
        let Some(message) = consumer.poll(Duration::from_millis(100)) else { continue };
        let message = message.expect("a message");
        let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
        let headers = message.headers().expect("headers").iter();
        found.push(Letter {
            key: text(message.key()),
            value: text(message.payload()),
            headers: headers.map(|h| (h.key.to_owned(), text(h.value))).collect(),
        });
    }
    found
}

#[test]
fn bad_messages_go_to_the_dead_letter_topic_as_they_came() {
    needs_peers!();
    let sent = a_minute_ago();
    let job = job_at(sent);
    let dead = Broker::shared().topic("dead", 1);
    let call = job.call.clone().conf(TOPIC, dead.name());
    job.commits(&call);
    job.stands_at(&[3, 2]);
    let letters = letters(&dead, 2);
    assert_eq!(dead.ends(), [2]);
    let place = |l: &Letter| (l.headers["hudi.error.partition"].clone(), l.headers["hudi.error.offset"].clone());
    assert_eq!((&*letters[0].key, &*letters[0].value), ("k1", r#"{"id":"o1","ts":2,"#));
    assert_eq!((&*letters[1].key, &*letters[1].value), ("k5", r#"{ "id" : null, "ts" : 5 }"#));
    // In a header, since a message of that age would be beyond the topic's retention.
    let times = letters.iter().map(|l| l.headers["hudi.error.timestamp"].as_str());
    assert!(times.eq([sent, sent + 1].map(|ms| ms.to_string())));
    assert_eq!((place(&letters[0]), place(&letters[1])), (("0".into(), "1".into()), ("1".into(), "1".into())));
    for (letter, (reason, code)) in letters
        .iter()
        .zip([("JSON_AVRO_DESERIALIZATION_FAILURE", "json-malformed"), ("RECORD_CREATION", "record-null-key")])
    {
        let header = |name: &str| letter.headers[&format!("hudi.error.{name}")].as_str();
        assert_eq!((header("reason"), header("code"), header("table")), (reason, code, "trips"));
        assert_eq!((header("topic"), header("checkpoint")), (job.topic.name(), &*job.topic.position(&[3, 2])));
        assert!(!header("message").is_empty());
    }
}

/// At least once: what was produced before a crash is produced again.
#[test]
fn a_crash_before_the_commit_may_double_dead_letters_and_loses_none() {
    needs_peers!();
    let job = job();
    let dead = Broker::shared().topic("dead", 1);
    let call = job.call.clone().conf(TOPIC, dead.name());
    call.clone().env("HUDI_STREAMER_FAULT", "after-quarantine").run().killed();
    assert!(job.table.commits().is_empty());
    assert_eq!(dead.ends(), [2]);
    job.commits(&call);
    let letters = letters(&dead, 4);
    assert_eq!(letters[..2], letters[2..]);
    assert_eq!(dead.ends(), [4]);
}

#[test]
fn a_dead_letter_that_no_broker_takes_fails_the_round() {
    needs_peers!();
    let job = job();
    let small = Broker::shared().topic_with("small", 1, &[("max.message.bytes", "10")]);
    job.call.clone().conf(TOPIC, small.name()).run().fails_with(1, &["topic", small.name()]);
    assert!(job.table.commits().is_empty() && job.table.base_files().is_empty());
}

#[test]
fn bad_messages_go_to_the_error_table_once() {
    needs_peers!();
    let job = job();
    let errors = Table::at(job.scratch.path("errors"));
    let call = job.call.clone().conf("hoodie.errortable.enable", "true");
    let call = call.conf("hoodie.errortable.base.path", &errors.path).conf("hoodie.errortable.target.table.name", "e");
    call.clone().env("HUDI_STREAMER_FAULT", "after-quarantine").run().killed();
    assert_eq!(error_rows(&errors).len(), 2);
    job.commits(&call);
    job.stands_at(&[3, 2]);
    let rows = error_rows(&errors);
    let key = |partition: i32, offset: i64| format!("{}:{partition}:{offset}", job.topic.name());
    assert_eq!(rows.keys().cloned().collect::<Vec<_>>(), [key(0, 1), key(1, 1)]);
    let (cut, keyless) = (&rows[&key(0, 1)], &rows[&key(1, 1)]);
    let text = |row: &BTreeMap<String, Option<String>>, name: &str| row[name].clone().unwrap_or_default();
    assert_eq!((text(cut, "value"), text(cut, "message_key")), (r#"{"id":"o1","ts":2,"#.into(), "k1".into()));
    assert_eq!(text(keyless, "value"), r#"{ "id" : null, "ts" : 5 }"#, "the bytes, not the row");
    assert_eq!((text(keyless, "message_key"), text(keyless, "source_partition")), ("k5".into(), "1".into()));
    assert!(text(keyless, "source_timestamp").starts_with("20"), "{keyless:?}");
    assert_eq!(text(cut, "checkpoint"), job.topic.position(&[3, 2]));
}
