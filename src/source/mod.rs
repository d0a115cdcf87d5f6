//! Where rows come from: files and topics, decoded straight to Arrow by `codec`, and the position after them.
//!
//! Knows schemas and storage; no table, no keys. Look at [`Source`] first. Invariants: a [`Fetch`] can be read more than
//! once and gives the same rows in the same order (partition 0 first); a row's position
//! is the only thing that later stages carry along, and only [`Source::describe`] can read it.

pub mod dfs;
pub mod kafka;
mod reject;

pub use crate::codec::POSITION_COLUMN;
pub use reject::{BadRecords, Reason, Rejected, Rejects};

use crate::schema::TableSchema;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::physical_plan::streaming::PartitionStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Name of the hidden column (Binary, behind the position) that makes a row a tombstone: the key of a message without a value,
/// as it came, empty if it had none; null for ordinary rows. All else in the row means nothing. Present when the
/// configuration asks for it.
pub const TOMBSTONE_COLUMN: &str = "_hoodie_streamer_source_tombstone";

/// How many of the schema's fields, the last ones, are hidden columns.
pub fn hidden_columns(schema: &Schema) -> usize {
    let hidden = |name: &str| name == POSITION_COLUMN || name == TOMBSTONE_COLUMN;
    schema.fields().iter().rev().take_while(|f| hidden(f.name())).count()
}

/// What the streamer asks of a source.
#[derive(Debug, Clone, Default)]
pub struct FetchRequest {
    /// The checkpoint to start after; `None`: the source's own beginning.
    pub from: Option<String>,
    /// The position not to go beyond: a [`Fetch::rest`].
    pub until: Option<String>,
    pub limit: Option<u64>,
    /// Bytes of text or messages at which the batch is cut, about: one file, or message, is the least.
    pub bytes: Option<u64>,
    /// Reader schema; `None`: infer it over the whole batch.
    pub schema: Option<TableSchema>,
    /// Append [`POSITION_COLUMN`].
    pub positions: bool,
}

/// One batch of input: not yet read, but fixed.
#[derive(Debug)]
pub struct Fetch {
    /// `None`: no data.
    pub batches: Option<Batches>,
    /// Position after this batch; `None`: the source has none to give.
    pub checkpoint: Option<String>,
    /// Where the batch would have ended, had [`FetchRequest::bytes`] not cut it.
    pub rest: Option<String>,
    pub stats: FetchStats,
}

#[derive(Debug, Clone, Default)]
pub struct FetchStats {
    pub files: u64,
    pub bytes: u64,
    /// What counts against [`FetchRequest::bytes`], where that is known before reading.
    pub weight: Option<u64>,
    /// Offsets of a topic that this batch covers.
    pub events: u64,
    pub topic: Option<String>,
    /// Offsets of each partition that were not in the table when the batch began.
    pub lag: Vec<(i32, i64)>,
    /// Offsets that expired before they were read.
    pub lost: u64,
    /// Things the user should know (files that will never be read, …), to be logged as warnings.
    pub warnings: Vec<String>,
}

/// Rows as partitions of a DataFusion plan; partitions are contiguous pieces of the input, in order, of about 32 MiB of
/// input each, so that a few workers share them evenly. A piece decodes on the thread that polls it.
#[derive(Debug, Clone)]
pub struct Batches {
    pub schema: SchemaRef,
    pub partitions: Vec<Arc<dyn PartitionStream>>,
    /// Records that cannot be taken, found while reading.
    pub rejects: Arc<Rejects>,
    /// Bytes of input read so far, for the progress bar.
    pub bytes_read: Arc<AtomicU64>,
    /// When the rows read so far were made.
    pub times: Arc<EventTimes>,
}

/// The oldest and the newest time (epoch milliseconds) of the messages of a batch.
#[derive(Debug)]
pub struct EventTimes {
    oldest: AtomicI64,
    newest: AtomicI64,
}

impl Default for EventTimes {
    fn default() -> EventTimes {
        EventTimes { oldest: AtomicI64::new(i64::MAX), newest: AtomicI64::new(i64::MIN) }
    }
}

impl EventTimes {
    pub fn saw(&self, ms: i64) {
        self.oldest.fetch_min(ms, Ordering::Relaxed);
        self.newest.fetch_max(ms, Ordering::Relaxed);
    }

    /// `None` where no message had a time.
    pub fn range(&self) -> Option<(i64, i64)> {
        let (oldest, newest) = (self.oldest.load(Ordering::Relaxed), self.newest.load(Ordering::Relaxed));
        (oldest <= newest).then_some((oldest, newest))
    }
}

/// A record as it came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Raw {
    /// `None` for a message without one.
    pub value: Option<bytes::Bytes>,
    /// Key and time of a message.
    pub key: Option<bytes::Bytes>,
    pub timestamp_ms: Option<i64>,
}

/// Where a record came from, in parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Topic or file.
    pub source: String,
    /// Of a topic.
    pub partition: Option<i32>,
    /// Of a message in its partition, or of a line's first byte in the text of its file.
    pub offset: i64,
}

/// A source of rows.
#[async_trait::async_trait]
pub trait Source: Send + Sync + std::fmt::Debug {
    /// Fixes the next batch: what it holds and the position after it. Reads no rows, unless the schema is to be inferred.
    async fn fetch(&self, request: FetchRequest) -> Result<Fetch>;
    /// Where the row with this [`POSITION_COLUMN`] value of the last fetch came from: `file:line`. May read the input again.
    async fn describe(&self, position: u64) -> String;
    /// The same in parts, without reading.
    fn origin(&self, position: u64) -> Origin;
    /// The records at these positions of the last fetch as they came, in the same order; `None` for one that cannot be had
    /// again. Reads the input again: for the few that became a row and were refused as such.
    async fn raw(&self, positions: &[u64]) -> Result<Vec<Option<Raw>>> {
        Ok(vec![None; positions.len()])
    }
    /// After the commit that holds `checkpoint`.
    async fn on_commit(&self, checkpoint: &str) -> Result<()>;
    /// Whether the source knows at little cost that there is nothing after this checkpoint. False proves nothing.
    async fn has_nothing_after(&self, _checkpoint: &str) -> Result<bool> {
        Ok(false)
    }
    /// How long a continuous job waits after a round without new data.
    fn idle_wait(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// Why rows cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Storage(#[from] crate::storage::Error),
    #[error("input folder {root} does not exist: correct hoodie.streamer.source.dfs.root")]
    MissingRoot { root: String },
    #[error(
        "checkpoint {checkpoint:?} is not one of a file source (epoch milliseconds of the newest file read{hint}); \
         start anew with --ignore-checkpoint <any text>, or give --checkpoint <epoch milliseconds>"
    )]
    ForeignCheckpoint { checkpoint: String, hint: &'static str },
    #[error("{0}")]
    BadRecords(Box<BadRecords>),
    /// Ends the reading of a round that has failed; [`Rejects::verdict`] says why.
    #[error("too many bad records")]
    EnoughBadRecords,
    #[error(
        "{records} bad records of this round take {bytes} bytes, and more are not kept in memory until they are quarantined: \
         read less a round with --source-limit, or set hoodie.streamer.source.bad.records.max.rows"
    )]
    QuarantineFull { records: u64, bytes: u64 },
    #[error(transparent)]
    Schema(#[from] crate::codec::json::JsonError),
    #[error(transparent)]
    Avro(crate::codec::avro::AvroError),
    #[error(transparent)]
    TableSchema(#[from] crate::schema::Error),
    #[error("{file}: {cause}")]
    LineTooLong { file: String, cause: crate::codec::lines::LineTooLong },
    #[error("{file}: {why}")]
    Unreadable { file: String, why: String },
    #[error("the schema cannot be inferred: {0}")]
    Inference(#[from] crate::codec::infer::InferError),
    #[error("the Kafka client cannot be made: {why}")]
    KafkaClient { why: String },
    #[error("cannot {doing} of topic {topic} (brokers {brokers}): {why}")]
    Kafka { doing: &'static str, topic: String, brokers: String, why: String, retryable: bool },
    #[error(
        "topic {topic} does not exist on brokers {brokers}: correct hoodie.streamer.source.kafka.topic or bootstrap.servers, \
         or create it"
    )]
    NoTopic { topic: String, brokers: String },
    #[error(
        "checkpoint {checkpoint:?} does not fit topic {topic}: {why}; give a position with --checkpoint {topic},0:<offset>,… , \
         or start anew with --ignore-checkpoint <any text>"
    )]
    KafkaCheckpoint { checkpoint: String, topic: String, why: String },
    #[error(
        "some messages of topic {topic} have expired before they were read, and \
         hoodie.streamer.source.kafka.enable.failOnDataLoss=true: {partitions}; go on with --checkpoint at the earliest offsets, \
         or set it to false"
    )]
    KafkaDataLoss { topic: String, partitions: String },
    #[error(
        "offset {offset} of topic {topic}, partition {partition}, was deleted while the round was read; the next round says what \
         is lost"
    )]
    KafkaVanished { topic: String, partition: i32, offset: i64 },
    #[error("{what}: {why}")]
    Worker { what: &'static str, why: String },
}

impl Error {
    /// Stable code of the kind of failure.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Storage(e) => e.code(),
            Error::MissingRoot { .. } => "source-missing-folder",
            Error::ForeignCheckpoint { .. } => "source-foreign-checkpoint",
            Error::BadRecords(bad) => bad.code(),
            Error::EnoughBadRecords => "source-bad-records",
            Error::QuarantineFull { .. } => "source-quarantine-full",
            Error::Schema(e) => e.code(),
            Error::LineTooLong { .. } => "source-line-too-long",
            Error::Unreadable { .. } => "source-unreadable-file",
            Error::Inference(e) => e.code(),
            Error::KafkaClient { .. } => "kafka-client",
            Error::Kafka { .. } => "kafka-broker",
            Error::NoTopic { .. } => "kafka-no-topic",
            Error::KafkaCheckpoint { .. } => "source-foreign-checkpoint",
            Error::KafkaDataLoss { .. } => "kafka-data-loss",
            Error::KafkaVanished { .. } => "kafka-vanished",
            Error::Avro(e) => e.code(),
            Error::TableSchema(e) => e.code(),
            Error::Worker { .. } => "internal",
        }
    }

    /// Whether the same may go through later without anybody's help.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Kafka { retryable, .. } => *retryable,
            Error::KafkaVanished { .. } => true,
            Error::TableSchema(e) => e.is_retryable(),
            _ => false,
        }
    }
}

/// Result of this room.
pub type Result<T> = std::result::Result<T, Error>;

/// The source that the configuration names.
pub fn open(
    config: &crate::config::SourceConfig,
    storage: &crate::config::StorageConfig,
    workers: usize,
) -> Result<Arc<dyn Source>> {
    match config.class {
        crate::config::SourceClass::JsonDfs => Ok(Arc::new(dfs::JsonDfsSource::open(config, storage, workers)?)),
        crate::config::SourceClass::JsonKafka | crate::config::SourceClass::AvroKafka => {
            Ok(Arc::new(kafka::KafkaSource::open(config)?))
        }
    }
}
