//! A producer for records that could not be taken, with the source's own settings.

use super::super::{Error, Result};
use crate::config::KafkaConfig;
use bytes::Bytes;
use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

/// Overridden by the user's own. A record that could be read can be written: only the broker's limit counts.
const DEFAULTS: &[(&str, &str)] = &[
    ("client.id", "hudi-streamer"),
    ("acks", "all"),
    ("enable.idempotence", "true"),
    ("message.max.bytes", "1000000000"),
    // `delivery.timeout.ms` of a Java producer.
    ("delivery.timeout.ms", "120000"),
];
/// Settings of a consumer that mean something else, or nothing, to a producer.
const CONSUMERS: &[&str] = &["group.id", "isolation.level", "check.crcs", "enable.auto.commit", "auto.offset.reset"];
const CONSUMERS_PREFIXES: &[&str] =
    &["fetch.", "queued.", "max.poll.", "session.", "heartbeat.", "partition.assignment"];
/// How long a full queue is waited for at a time.
const ROOM: Duration = Duration::from_millis(100);
/// Longer than any delivery may take, which fails by itself.
const FLUSH: Duration = Duration::from_secs(600);

/// A record that could not be taken. Its own time is left to the headers: were it the letter's, a letter older than the
/// topic's retention would vanish at once.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    pub headers: Vec<(&'static str, String)>,
}

/// Keeps the first failed delivery.
#[derive(Debug, Default)]
struct Deliveries(Mutex<Option<KafkaError>>);

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| error.clone());
        }
    }
}

/// Writes the letters to `topic` and waits until the brokers have acknowledged every one.
pub async fn produce_dead_letters(config: &KafkaConfig, topic: &str, letters: Vec<DeadLetter>) -> Result<()> {
    let mut settings = ClientConfig::new();
    for (key, value) in DEFAULTS {
        settings.set(*key, *value);
    }
    let is_consumers = |key: &str| CONSUMERS.contains(&key) || CONSUMERS_PREFIXES.iter().any(|p| key.starts_with(p));
    for (key, value) in config.client.iter().filter(|(key, _)| !is_consumers(key)) {
        settings.set(key, value);
    }
    settings.set_log_level(RDKafkaLogLevel::Error);
    let brokers = settings.get("bootstrap.servers").unwrap_or_default().to_string();
    let topic = topic.to_string();
    let work = tokio::task::spawn_blocking(move || {
        produce(&settings, &topic, &letters).map_err(|cause| Error::Kafka {
            doing: "produce bad records",
            why: cause.to_string(),
            retryable: !matches!(cause.rdkafka_error_code(), Some(code) if super::client::is_permanent(code)),
            topic,
            brokers,
        })
    });
    work.await.map_err(|e| Error::Worker { what: "produce bad records", why: e.to_string() })?
}

fn produce(settings: &ClientConfig, topic: &str, letters: &[DeadLetter]) -> std::result::Result<(), KafkaError> {
    let producer: BaseProducer<Deliveries> = settings.create_with_context(Deliveries::default())?;
    let failed = || producer.context().0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for letter in letters {
        let headers = letter.headers.iter().fold(OwnedHeaders::new(), |headers, (key, value)| {
            headers.insert(Header { key, value: Some(value.as_bytes()) })
        });
        let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic).headers(headers);
        record.key = letter.key.as_deref();
        record.payload = letter.value.as_deref();
        while let Err((error, back)) = producer.send(record) {
            if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
                return Err(error);
            }
            record = back;
            producer.poll(ROOM);
            if let Some(error) = failed() {
                return Err(error);
            }
        }
    }
    producer.flush(FLUSH)?;
    match failed() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}
