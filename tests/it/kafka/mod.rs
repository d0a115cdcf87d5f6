//! Topics into tables: a file a behaviour. All but `faults` want the broker, so they run under `HUDI_PEERS_TESTS=1` only.

mod avro;
mod bad_message;
mod batches;
mod chaos;
mod continuous;
mod deletes;
mod expired;
mod faults;
mod holes;
mod interchange;
mod keys;
mod moments;
mod offsets;
mod peers;
mod positions;
mod quarantine;
mod resume;
mod start;
mod tombstones;
mod volume;

use crate::support::*;

/// A job over a new topic of the shared broker, with the base schema.
fn job(topic: &str, partitions: usize) -> KafkaJob {
    on(Broker::shared().topic(topic, partitions))
}

/// The same over a topic that is there.
fn on(topic: Topic) -> KafkaJob {
    KafkaJob::new(topic, BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| call)
}

fn event(id: impl Into<String>, ts: i64) -> Row {
    row! {"id": id.into(), "ts": ts}
}

/// What an error or a warning calls a message of the topic.
fn place(topic: &Topic, partition: i32, offset: i64) -> String {
    format!("topic {}, partition {partition}, offset {offset}", topic.name())
}

/// The keys in the table as hudi-rs reads it, sorted, each as often as it is there.
fn ids(table: &Table) -> Vec<String> {
    ids_by(HUDI_RS, table)
}

fn ids_by(reader: Reader, table: &Table) -> Vec<String> {
    let rows = oracle(reader).read(table.str());
    let mut ids: Vec<_> = rows.iter().map(|row| row["id"].as_str().expect("text").to_owned()).collect();
    ids.sort();
    ids
}
