//! A topic as a test uses it: what goes in, what vanishes, where it ends.

use std::sync::Mutex;
use std::time::Duration;

use rdkafka::admin::{AdminOptions, NewPartitions};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::{ClientContext, Message as _, Offset, TopicPartitionList};

use super::super::{Row, Value, wait_for};
use super::peers::{admin, block_on, client, create};

const PATIENCE: Duration = Duration::from_secs(30);

/// What a test sends.
#[derive(Clone, Default, Debug)]
pub struct Message {
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    timestamp_ms: Option<i64>,
}

impl Message {
    /// A null value.
    pub fn tombstone(key: &str) -> Message {
        Message::default().key(key)
    }

    pub fn key(mut self, key: &str) -> Message {
        self.key = Some(key.into());
        self
    }

    /// Its time, in milliseconds since 1970; otherwise that of sending.
    pub fn at(mut self, timestamp_ms: i64) -> Message {
        self.timestamp_ms = Some(timestamp_ms);
        self
    }
}

impl From<Vec<u8>> for Message {
    fn from(value: Vec<u8>) -> Message {
        Message { value: Some(value), ..Message::default() }
    }
}

impl From<&str> for Message {
    fn from(value: &str) -> Message {
        value.as_bytes().to_vec().into()
    }
}

impl From<String> for Message {
    fn from(value: String) -> Message {
        value.into_bytes().into()
    }
}

impl From<&Row> for Message {
    fn from(row: &Row) -> Message {
        Value::Object(row.clone()).to_string().into()
    }
}

/// How a transaction ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    Commit,
    Abort,
}

/// One that is open.
pub struct Transaction(BaseProducer<Deliveries>);

impl Transaction {
    pub fn end(self, end: End) {
        let ended = match end {
            End::Commit => self.0.commit_transaction(PATIENCE),
            End::Abort => self.0.abort_transaction(PATIENCE),
        };
        ended.expect("end a transaction");
    }
}

/// Tells of messages that the broker did not take.
#[derive(Default)]
struct Deliveries(Mutex<Vec<String>>);

impl ClientContext for Deliveries {}
impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            self.0.lock().expect("no panic while held").push(error.to_string());
        }
    }
}

pub struct Topic {
    endpoint: String,
    name: String,
}

impl Topic {
    pub(super) fn new(endpoint: &str, name: String) -> Topic {
        Topic { endpoint: endpoint.to_owned(), name }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// A checkpoint of this topic: the next offset of each partition, from 0 on.
    pub fn position(&self, next: &[i64]) -> String {
        let parts = next.iter().enumerate().map(|(partition, offset)| format!(",{partition}:{offset}"));
        self.name.clone() + &parts.collect::<String>()
    }

    /// Sends messages to one partition, in order; returns when the broker has them.
    #[track_caller]
    pub fn send<M: Into<Message>>(&self, partition: i32, messages: impl IntoIterator<Item = M>) {
        let producer: BaseProducer<Deliveries> = client(&self.endpoint)
            .set("linger.ms", "1")
            .create_with_context(Deliveries::default())
            .expect("a producer");
        self.put(&producer, partition, messages);
    }

    /// The same within a transaction of its own. Its end takes an offset too.
    #[track_caller]
    pub fn send_in_transaction<M: Into<Message>>(
        &self,
        partition: i32,
        messages: impl IntoIterator<Item = M>,
        end: End,
    ) {
        self.begin(partition, messages).end(end);
    }

    /// The same, of a transaction that stays open.
    #[track_caller]
    pub fn begin<M: Into<Message>>(&self, partition: i32, messages: impl IntoIterator<Item = M>) -> Transaction {
        let producer: BaseProducer<Deliveries> = client(&self.endpoint)
            .set("transactional.id", format!("{}-{partition}", self.name))
            .create_with_context(Deliveries::default())
            .expect("a producer");
        producer.init_transactions(PATIENCE).expect("the broker knows transactions");
        producer.begin_transaction().expect("begin a transaction");
        // Flushed before its end: messages of an aborted transaction would otherwise never reach the broker.
        self.put(&producer, partition, messages);
        Transaction(producer)
    }

    #[track_caller]
    fn put<M: Into<Message>>(
        &self,
        producer: &BaseProducer<Deliveries>,
        partition: i32,
        messages: impl IntoIterator<Item = M>,
    ) {
        for message in messages {
            let Message { key, value, timestamp_ms } = message.into();
            let mut record = BaseRecord::<[u8], [u8]>::to(&self.name).partition(partition);
            record.key = key.as_deref();
            record.payload = value.as_deref();
            record.timestamp = timestamp_ms;
            while let Err((error, unsent)) = producer.send(record) {
                let full = error.rdkafka_error_code() == Some(rdkafka::types::RDKafkaErrorCode::QueueFull);
                assert!(full, "cannot send to {}: {error}", self.name);
                producer.poll(Duration::from_millis(10));
                record = unsent;
            }
        }
        producer.flush(PATIENCE).expect("the broker takes the messages");
        let failed = producer.context().0.lock().expect("no panic while held");
        assert!(failed.is_empty(), "the broker refuses messages: {failed:?}");
    }

    /// The end offset of each partition.
    pub fn ends(&self) -> Vec<i64> {
        let consumer = self.consumer(None);
        let partitions = partitions(&consumer, &self.name);
        let end = |p: usize| {
            let p = i32::try_from(p).expect("a few partitions");
            consumer.fetch_watermarks(&self.name, p, PATIENCE).expect("the broker answers").1
        };
        (0..partitions).map(end).collect()
    }

    /// The values that a partition still holds.
    pub fn kept(&self, partition: i32) -> Vec<Vec<u8>> {
        let consumer = self.consumer(Some("kept"));
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.name, partition, Offset::Beginning).expect("a valid offset");
        consumer.assign(&list).expect("a partition of the topic");
        let mut kept = Vec::new();
        loop {
            match consumer.poll(PATIENCE).expect("the end comes before this") {
                Ok(message) => kept.push(message.payload().unwrap_or_default().to_vec()),
                Err(KafkaError::PartitionEOF(_)) => return kept,
                Err(error) => panic!("cannot read {}: {error}", self.name),
            }
        }
    }

    /// Deletes the records of a partition below an offset.
    pub fn delete_before(&self, partition: i32, offset: i64) {
        let list = self.list(&[(partition, offset)]);
        let deleted = block_on(admin(&self.endpoint).delete_records(&list, &AdminOptions::new()));
        for element in deleted.expect("the broker answers").elements() {
            element.error().unwrap_or_else(|e| panic!("records cannot be deleted: {e}"));
        }
    }

    /// Adds partitions up to this number.
    pub fn grow(&self, partitions: usize) {
        let wish = NewPartitions::new(&self.name, partitions);
        let done = block_on(admin(&self.endpoint).create_partitions([&wish], &AdminOptions::new()));
        done.expect("the broker answers")[0].as_ref().unwrap_or_else(|e| panic!("no new partitions: {e:?}"));
        wait_for_partitions(&self.endpoint, &self.name, partitions);
    }

    pub fn delete(&self) {
        let done = block_on(admin(&self.endpoint).delete_topics(&[&self.name], &AdminOptions::new()));
        done.expect("the broker answers")[0].as_ref().unwrap_or_else(|e| panic!("topic cannot be deleted: {e:?}"));
        let consumer = self.consumer(None);
        wait_for("the topic to be gone", || partitions(&consumer, &self.name) == 0);
    }

    /// Deletes the topic and makes it anew, empty.
    pub fn recreate(&self, partitions: usize) {
        self.delete();
        create(&self.endpoint, &self.name, partitions, &[]);
    }

    /// Commits positions for a consumer group.
    pub fn commit_group(&self, group: &str, next: &[(i32, i64)]) {
        self.consumer(Some(group)).commit(&self.list(next), CommitMode::Sync).expect("the broker takes the positions");
    }

    /// What a consumer group has committed, a partition each.
    pub fn group_position(&self, group: &str) -> Vec<Option<i64>> {
        let consumer = self.consumer(Some(group));
        let partitions = partitions(&consumer, &self.name);
        let all: Vec<_> = (0..partitions).map(|p| (i32::try_from(p).expect("a few partitions"), 0)).collect();
        let found = consumer.committed_offsets(self.list(&all), PATIENCE).expect("the broker answers");
        let offset = |offset: Offset| match offset {
            Offset::Offset(offset) => Some(offset),
            _ => None,
        };
        found.elements().iter().map(|e| offset(e.offset())).collect()
    }

    fn list(&self, offsets: &[(i32, i64)]) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        for (partition, offset) in offsets {
            list.add_partition_offset(&self.name, *partition, Offset::Offset(*offset)).expect("a valid offset");
        }
        list
    }

    fn consumer(&self, group: Option<&str>) -> BaseConsumer {
        let mut config = client(&self.endpoint);
        if let Some(group) = group {
            config.set("group.id", group).set("enable.partition.eof", "true");
        }
        config.create().expect("a consumer")
    }
}

/// Number of partitions that the broker tells of.
fn partitions(consumer: &BaseConsumer, topic: &str) -> usize {
    let metadata = consumer.fetch_metadata(None, PATIENCE).expect("the broker answers");
    metadata.topics().iter().find(|t| t.name() == topic).map_or(0, |t| t.partitions().len())
}

pub(super) fn wait_for_partitions(endpoint: &str, topic: &str, count: usize) {
    let consumer: BaseConsumer = client(endpoint).create().expect("a consumer");
    wait_for("the partitions to be there", || partitions(&consumer, topic) == count);
}
