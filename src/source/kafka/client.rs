//! The client: what the brokers are asked, and how they are named when they do not answer.
//!
//! librdkafka's calls block, so that each question runs on a blocking thread.

use super::super::{Error, Result};
use crate::config::KafkaConfig;
use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Defaults that differ from librdkafka's, each overridden by the user's own. `isolation.level` and `check.crcs` are a Java
/// client's defaults; the waits keep a quiet topic's next message from being late.
const DEFAULTS: &[(&str, &str)] = &[
    ("isolation.level", "read_uncommitted"),
    ("check.crcs", "true"),
    ("client.id", "hudi-streamer"),
    ("fetch.wait.max.ms", "50"),
    ("fetch.queue.backoff.ms", "20"),
    ("fetch.error.backoff.ms", "100"),
    ("reconnect.backoff.max.ms", "5000"),
    ("queued.min.messages", "50000"),
    ("topic.metadata.refresh.interval.ms", "30000"),
];

/// What the source decides by itself: positions are the table's, never the group's, and nothing is skipped in silence.
const FIXED: &[(&str, &str)] = &[
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("enable.partition.eof", "true"),
    ("auto.offset.reset", "error"),
];

/// What a client fetches ahead, all partitions together; each has an equal part of it, within bounds. A small message takes twice
/// as much again in librdkafka (measured: rounds of 700,000 messages of 280 bytes peak at 420 MB, at 565 with 64 MiB of it,
/// and take as long).
const AHEAD_KBYTES: usize = 16 << 10;
const LEAST_AHEAD_KBYTES: usize = 512;
const MOST_AHEAD_KBYTES: usize = 16 << 10;
/// Most bytes of a partition in one answer, as librdkafka has it; a larger message comes all the same.
const LARGEST_ANSWER: usize = 1 << 20;

/// A group to be called by where the user names none: librdkafka assigns no partitions without one. It is never joined.
const NO_GROUP: &str = "hudi-streamer";

/// How often the client's events are served.
const EVENT_POLL: Duration = Duration::from_millis(100);

/// A topic's brokers.
#[derive(Clone)]
pub struct Client {
    topic: Arc<str>,
    /// As configured, for messages.
    brokers: Arc<str>,
    timeout: Duration,
    consumer: Arc<BaseConsumer<Events>>,
    /// Whether the brokers have ever let us in.
    answered: Arc<AtomicBool>,
    _events: Arc<EventLoop>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("topic", &self.topic).field("brokers", &self.brokers).finish_non_exhaustive()
    }
}

/// Takes what librdkafka has to say into our log.
#[derive(Debug, Default)]
pub(super) struct Events {
    last: Mutex<Last>,
}

/// The last thing that went wrong between the client and its brokers, for messages about questions without an answer.
#[derive(Debug, Default)]
struct Last {
    reason: Option<String>,
    code: Option<RDKafkaErrorCode>,
}

impl Events {
    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Events {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        // `[thrd:…]: ` says which of its threads speaks.
        let message = message.split_once("]: ").filter(|(head, _)| head.starts_with("[thrd:")).map_or(message, |m| m.1);
        match level {
            RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical | RDKafkaLogLevel::Error => {
                if facility == "FAIL" {
                    self.last().reason = Some(message.to_string());
                }
                tracing::warn!(facility, "kafka client: {message}");
            }
            RDKafkaLogLevel::Warning | RDKafkaLogLevel::Notice => tracing::info!(facility, "kafka client: {message}"),
            RDKafkaLogLevel::Info | RDKafkaLogLevel::Debug => tracing::debug!(facility, "kafka client: {message}"),
        }
    }
}

impl ConsumerContext for Events {}

/// Serves the client's own events (errors, tokens to refresh) as long as the client lives.
struct EventLoop {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Waited for, so that no thread of librdkafka is left when the process ends.
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

impl EventLoop {
    fn start(consumer: &Arc<BaseConsumer<Events>>) -> std::io::Result<EventLoop> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, consumer) = (stop.clone(), consumer.clone());
        let thread = std::thread::Builder::new().name("kafka-events".into()).spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                // Messages come by the queues of their partitions; here are errors alone, which the context has been told.
                if let Some(Err(error)) = consumer.poll(EVENT_POLL) {
                    tracing::debug!(%error, "kafka client");
                    consumer.context().last().code = error.rdkafka_error_code();
                }
            }
        })?;
        Ok(EventLoop { stop, thread: Some(thread) })
    }
}

impl Client {
    /// A client that asks. Connects to nobody yet.
    pub fn open(config: &KafkaConfig) -> Result<Client> {
        Client::with(config, &[])
    }

    /// A client that reads so many partitions: of its own, since an answer waits behind the messages that a client has asked
    /// the same broker for.
    pub(super) fn reading(config: &KafkaConfig, partitions: usize) -> Result<Client> {
        let most = (AHEAD_KBYTES / partitions.max(1)).clamp(LEAST_AHEAD_KBYTES, MOST_AHEAD_KBYTES);
        // The bound is looked at before a fetch, whose answer comes on top of it.
        let answer = (most * 1024).min(LARGEST_ANSWER);
        Client::with(
            config,
            &[("queued.max.messages.kbytes", most.to_string()), ("fetch.message.max.bytes", answer.to_string())],
        )
    }

    fn with(config: &KafkaConfig, more: &[(&str, String)]) -> Result<Client> {
        let mut settings = ClientConfig::new();
        for (key, value) in DEFAULTS {
            settings.set(*key, *value);
        }
        for (key, value) in more {
            settings.set(*key, value);
        }
        settings.set("group.id", config.group.as_deref().unwrap_or(NO_GROUP));
        for (key, value) in &config.client {
            settings.set(key, value);
        }
        for (key, value) in FIXED {
            settings.set(*key, *value);
        }
        settings.set_log_level(RDKafkaLogLevel::Warning);
        let brokers = settings.get("bootstrap.servers").unwrap_or_default().into();
        let refused = |why: String| Error::KafkaClient { why };
        let consumer: BaseConsumer<Events> =
            settings.create_with_context(Events::default()).map_err(|e| refused(e.to_string()))?;
        let consumer = Arc::new(consumer);
        let events = EventLoop::start(&consumer).map_err(|e| refused(e.to_string()))?;
        Ok(Client {
            topic: config.topic.as_str().into(),
            brokers,
            timeout: config.timeout,
            consumer,
            answered: Arc::default(),
            _events: Arc::new(events),
        })
    }

    pub(super) fn topic(&self) -> &str {
        &self.topic
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) fn consumer(&self) -> &Arc<BaseConsumer<Events>> {
        &self.consumer
    }

    /// Names the brokers, the topic and what was being done.
    pub(super) fn error(&self, doing: &'static str, cause: &KafkaError) -> Error {
        let code = cause.rdkafka_error_code();
        let waits = code.is_none_or(says_no_answer);
        let last = self.consumer.context().last();
        // That they do not answer may be because they would not let us in; if they ever have, that will pass.
        let answered = self.answered.load(Ordering::Relaxed);
        let refused = waits && !answered && last.code.is_some_and(is_refusal);
        let told = code.map_or_else(|| cause.to_string(), |code| code.to_string());
        let reason = last.reason.as_ref().filter(|_| waits).map(|reason| format!(": {reason}")).unwrap_or_default();
        Error::Kafka {
            doing,
            topic: self.topic.to_string(),
            brokers: self.brokers.to_string(),
            why: told + &reason,
            retryable: !refused && !code.is_some_and(is_permanent),
        }
    }

    async fn ask<T: Send + 'static>(
        &self,
        doing: &'static str,
        question: impl FnOnce(&Client) -> std::result::Result<T, KafkaError> + Send + 'static,
    ) -> Result<T> {
        let client = self.clone();
        let answer = tokio::task::spawn_blocking(move || {
            let answer = question(&client);
            if answer.is_ok() {
                client.answered.store(true, Ordering::Relaxed);
                *client.consumer.context().last() = Last::default();
            }
            answer.map_err(|e| client.error(doing, &e))
        });
        answer.await.map_err(|e| Error::Worker { what: doing, why: e.to_string() })?
    }

    /// The same brokers, asked for all that was written, read or not yet readable.
    pub(super) fn uncommitted(config: &KafkaConfig) -> Result<Client> {
        let mut config = config.clone();
        config.client.push(("isolation.level".into(), "read_uncommitted".into()));
        Client::open(&config)
    }

    /// The topic's partitions, in order.
    pub async fn partitions(&self) -> Result<Vec<i32>> {
        let found = self
            .ask("look up the partitions", |client| {
                let metadata = client.consumer.fetch_metadata(Some(client.topic()), client.timeout)?;
                let topic = metadata.topics().iter().find(|t| t.name() == client.topic());
                match topic.and_then(|t| t.error()) {
                    Some(error) if RDKafkaErrorCode::from(error) != RDKafkaErrorCode::UnknownTopicOrPartition => {
                        Err(KafkaError::MetadataFetch(error.into()))
                    }
                    Some(_) => Ok(Vec::new()),
                    None => Ok(topic.map(|t| t.partitions().iter().map(|p| p.id()).collect()).unwrap_or_default()),
                }
            })
            .await?;
        let mut partitions: Vec<i32> = found;
        partitions.sort_unstable();
        match partitions.is_empty() {
            true => Err(Error::NoTopic { topic: self.topic.to_string(), brokers: self.brokers.to_string() }),
            false => Ok(partitions),
        }
    }

    /// Earliest offset and end (the next offset to be written; with `read_committed`, to be readable) of each partition.
    pub async fn bounds(&self) -> Result<BTreeMap<i32, (i64, i64)>> {
        let partitions = self.partitions().await?;
        let earliest = self.list(&partitions, Offset::Beginning).await?;
        let end = self.list(&partitions, Offset::End).await?;
        Ok(earliest
            .into_iter()
            .filter_map(|(partition, earliest)| Some((partition, (earliest, *end.get(&partition)?))))
            .collect())
    }

    async fn list(&self, partitions: &[i32], which: Offset) -> Result<BTreeMap<i32, i64>> {
        let wanted = self.list_of(partitions.iter().map(|p| (*p, which)));
        let answer = self
            .ask("look up offsets", move |client| {
                // A time stamp of -1 or -2 asks for the end or the beginning: one request a broker, not one a partition.
                client.consumer.offsets_for_times(wanted, client.timeout)
            })
            .await?;
        answered(self, &answer)
    }

    fn list_of(&self, offsets: impl Iterator<Item = (i32, Offset)>) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        for (partition, offset) in offsets {
            list.add_partition_offset(self.topic(), partition, offset).expect("an offset that librdkafka can hold");
        }
        list
    }

    /// The first offset of each partition whose message is of `ms` (epoch milliseconds) or later; else the end.
    pub async fn offsets_for_times(&self, ms: i64) -> Result<BTreeMap<i32, i64>> {
        let bounds = self.bounds().await?;
        let wanted = self.list_of(bounds.keys().map(|p| (*p, Offset::Offset(ms))));
        let answer = self
            .ask("look up offsets by time", move |client| client.consumer.offsets_for_times(wanted, client.timeout))
            .await?;
        let mut found = BTreeMap::new();
        for element in answer.elements() {
            element.error().map_err(|e| self.error("look up offsets by time", &e))?;
            let end = bounds.get(&element.partition()).map(|b| b.1).unwrap_or_default();
            let offset = match element.offset() {
                Offset::Offset(offset) => offset,
                _ => end,
            };
            found.insert(element.partition(), offset);
        }
        Ok(found)
    }

    /// What the group (`group.id`) has committed, by partition.
    pub async fn committed(&self) -> Result<BTreeMap<i32, Option<i64>>> {
        let partitions = self.partitions().await?;
        let wanted = self.list_of(partitions.iter().map(|p| (*p, Offset::Invalid)));
        let answer = self
            .ask("look up committed offsets", move |client| client.consumer.committed_offsets(wanted, client.timeout))
            .await?;
        let mut found = BTreeMap::new();
        for element in answer.elements() {
            element.error().map_err(|e| self.error("look up committed offsets", &e))?;
            let offset = match element.offset() {
                Offset::Offset(offset) => Some(offset),
                _ => None,
            };
            found.insert(element.partition(), offset);
        }
        Ok(found)
    }

    /// Tells the group the position.
    pub(super) async fn commit(&self, next: BTreeMap<i32, i64>) -> Result<()> {
        let list = self.list_of(next.into_iter().map(|(p, o)| (p, Offset::Offset(o))));
        self.ask("commit offsets", move |client| client.consumer.commit(&list, CommitMode::Sync)).await
    }
}

fn answered(client: &Client, list: &TopicPartitionList) -> Result<BTreeMap<i32, i64>> {
    let mut found = BTreeMap::new();
    for element in list.elements() {
        element.error().map_err(|e| client.error("look up offsets", &e))?;
        match element.offset() {
            Offset::Offset(offset) => found.insert(element.partition(), offset),
            other => {
                let why = KafkaError::OffsetFetch(RDKafkaErrorCode::OffsetNotAvailable);
                tracing::debug!(?other, partition = element.partition(), "no offset in the answer");
                return Err(client.error("look up offsets", &why));
            }
        };
    }
    Ok(found)
}

/// Errors that say no more than that nobody answers.
fn says_no_answer(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as C;
    matches!(
        code,
        C::OperationTimedOut | C::BrokerTransportFailure | C::AllBrokersDown | C::RequestTimedOut | C::Resolve
    )
}

/// Errors of those who are not let in.
fn is_refusal(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as C;
    matches!(code, C::Authentication | C::SaslAuthenticationFailed | C::UnsupportedSASLMechanism | C::SSL)
}

/// Errors that waiting does not mend: rights and settings.
pub(super) fn is_permanent(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as C;
    matches!(
        code,
        C::TopicAuthorizationFailed
            | C::GroupAuthorizationFailed
            | C::ClusterAuthorizationFailed
            | C::InvalidTopic
            | C::UnsupportedVersion
            | C::InvalidArgument
            | C::UnknownGroup
    )
}
