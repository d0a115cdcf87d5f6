//! The typed configuration: what the rest of the program sees. Made once, at start-up, by [`super::load`];
//! nothing below `cli` and `config` ever looks up a string key.

use std::time::Duration;

/// Everything one job needs, checked.
#[derive(Debug, Clone)]
pub struct StreamerConfig {
    pub table: TableConfig,
    pub storage: super::StorageConfig,
    pub operation: Operation,
    /// Merge rule for records of one key (`--payload-class`).
    pub payload: PayloadClass,
    /// True when the user chose the payload class; otherwise an existing table's own rule is kept.
    pub payload_explicit: bool,
    /// Field whose greater value wins among records of one key (`--source-ordering-field`), dotted paths allowed.
    pub ordering_field: Option<String>,
    /// True when the user named the ordering field; false when it is Hudi's silent default `ts`, which
    /// counts only if the schema has such a field.
    pub ordering_field_explicit: bool,
    pub filter_dupes: bool,
    pub commit_on_errors: bool,
    pub keys: KeyConfig,
    pub source: SourceConfig,
    pub round: super::RoundConfig,
    /// `hoodie.streamer.memory.max.bytes` (ours), shared out.
    pub memory: super::MemoryConfig,
    pub schema: SchemaProviderConfig,
    pub transformers: Vec<TransformerConfig>,
    pub index: IndexConfig,
    pub write: WriteConfig,
    pub compaction: super::CompactionConfig,
    pub concurrency: super::ConcurrencyConfig,
    pub archive: super::ArchiveConfig,
    pub clean: super::CleanConfig,
    pub checkpoint: CheckpointConfig,
    pub run: RunConfig,
    /// `None`: off.
    pub metrics: Option<MetricsConfig>,
    /// The effective settings with their origins, masked and sorted: for the start-up log and `--dry-run`.
    pub effective: Vec<EffectiveSetting>,
    /// Warnings found while loading (deprecated names, lines Hudi would mangle, `spark.*` keys, …), to be logged once.
    pub warnings: Vec<String>,
}

/// One line of the effective configuration; `value` is masked already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveSetting {
    pub key: String,
    pub value: String,
    /// `default`, `flag --x`, `file.properties:12`, `--hoodie-conf`, …
    pub origin: String,
}

#[derive(Debug, Clone)]
pub struct TableConfig {
    /// `--target-base-path` as given: a local path or a URL.
    pub base_path: String,
    /// `--target-table`, `hoodie.table.name`.
    pub name: String,
    /// `hoodie.database.name`, empty when not set.
    pub database: String,
    pub table_type: TableType,
    /// `hoodie.table.timeline.timezone` for tables that we create, and the zone override for existing `LOCAL` ones.
    pub timeline_timezone: TimelineTimezone,
    /// `hoodie.allow.empty.commit`
    pub allow_empty_commit: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableType {
    CopyOnWrite,
    MergeOnRead,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimelineTimezone {
    Utc,
    Local,
}

/// `--op`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Upsert,
    Insert,
    BulkInsert,
}

/// `--payload-class`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadClass {
    OverwriteWithLatest,
    /// `DefaultHoodieRecordPayload`: event-time ordering also against the stored row.
    DefaultHoodieRecord,
}

impl PayloadClass {
    /// The class that `hoodie.properties` names.
    pub fn java_class(self) -> &'static str {
        match self {
            PayloadClass::OverwriteWithLatest => "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
            PayloadClass::DefaultHoodieRecord => "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
        }
    }

    /// `None`: one that is not done.
    pub fn from_java_class(class: &str) -> Option<PayloadClass> {
        [PayloadClass::OverwriteWithLatest, PayloadClass::DefaultHoodieRecord]
            .into_iter()
            .find(|p| p.java_class() == class)
    }
}

/// Record key and partition path (`hoodie.datasource.write.*`).
#[derive(Debug, Clone)]
pub struct KeyConfig {
    pub generator: KeyGeneratorClass,
    pub record_key_fields: Vec<String>,
    /// Empty: a table without partitions.
    pub partition_fields: Vec<String>,
    pub hive_style: bool,
    pub url_encode: bool,
    pub consistent_logical_timestamp: bool,
    /// Only for [`KeyGeneratorClass::TimestampBased`] .
    pub timestamp: Option<TimestampKeyConfig>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyGeneratorClass {
    Simple,
    Complex,
    NonPartitioned,
    TimestampBased,
}

/// `hoodie.keygen.timebased.*` (old prefix `hoodie.deltastreamer.keygen.timebased.`).
#[derive(Debug, Clone)]
pub struct TimestampKeyConfig {
    pub timestamp_type: TimestampType,
    /// For [`TimestampType::Scalar`]: nanoseconds in one unit (DAYS … NANOSECONDS).
    pub scalar_unit_nanos: i64,
    /// Joda patterns, tried in order.
    pub input_formats: Vec<String>,
    /// Delimiter regex as given, for `hoodie.properties`.
    pub input_delimiter: String,
    pub input_timezone: String,
    pub output_format: String,
    pub output_timezone: String,
    /// The `hoodie.keygen.timebased.*` pairs as the user gave them, to be persisted in `hoodie.properties`.
    pub persisted: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampType {
    UnixTimestamp,
    EpochMilliseconds,
    EpochMicroseconds,
    Scalar,
    DateString,
    Mixed,
}

#[derive(Debug, Clone)]
pub struct SourceConfig {
    pub class: SourceClass,
    /// `--source-limit`; `None` = no limit. Bytes a round for DFS sources, events for Kafka.
    pub limit: Option<u64>,
    /// For DFS sources: `hoodie.streamer.source.dfs.root`.
    pub dfs_root: Option<String>,
    pub bad_records: BadRecordsConfig,
    /// For Kafka sources.
    pub kafka: Option<KafkaConfig>,
}

impl SourceConfig {
    /// The folder, or the topic.
    pub fn place(&self) -> &str {
        let topic = self.kafka.as_ref().map(|kafka| kafka.topic.as_str());
        topic.or(self.dfs_root.as_deref()).unwrap_or_default()
    }
}

/// What becomes of records that cannot be decoded or keyed (`hoodie.streamer.source.bad.records.*`, `hoodie.errortable.*`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BadRecordsConfig {
    pub policy: BadRecordPolicy,
    /// More of them in a round fail it, whatever the policy.
    pub max_rows: Option<u64>,
    /// The same as a share of the round's records, 0 to 100.
    pub max_percent: Option<f64>,
    /// Where to, for [`BadRecordPolicy::Quarantine`].
    pub quarantine: Option<QuarantineTarget>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BadRecordPolicy {
    /// The round fails.
    #[default]
    Fail,
    /// They are left out, counted and warned of.
    Skip,
    /// They are left out and kept elsewhere.
    Quarantine,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuarantineTarget {
    /// The error table, a Hudi table.
    Table { base_path: String, table_name: String },
    /// A dead-letter topic of the source's own cluster.
    Topic { name: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceClass {
    JsonDfs,
    JsonKafka,
    AvroKafka,
}

impl SourceClass {
    /// Reads a topic rather than files.
    pub fn is_kafka(self) -> bool {
        matches!(self, SourceClass::JsonKafka | SourceClass::AvroKafka)
    }
}

/// A topic and how it is read (`hoodie.streamer.source.kafka.*`).
#[derive(Clone)]
pub struct KafkaConfig {
    pub topic: String,
    /// Settings of the client, by librdkafka's names; `bootstrap.servers` among them.
    pub client: Vec<(String, String)>,
    /// `auto.offset.reset`: where a job without a checkpoint begins.
    pub reset: OffsetReset,
    /// `group.id`
    pub group: Option<String>,
    /// `.checkpoint.type`: how `--checkpoint` is to be read.
    pub checkpoint_type: KafkaCheckpointType,
    /// `.minPartitions`: pieces that a round's ranges are cut into, at the least.
    pub min_partitions: u64,
    /// Most offsets of a round: `--source-limit`, else `hoodie.streamer.kafka.source.maxEvents`.
    pub max_events: u64,
    /// `.enable.failOnDataLoss`
    pub fail_on_data_loss: bool,
    /// `.enable.commit.offset`: tell the group after each commit.
    pub commit_offset: bool,
    /// `.append.offsets`
    pub append_offsets: bool,
    /// `.tombstones` (ours)
    pub tombstones: Tombstones,
    /// `default.api.timeout.ms`: how long a question to the broker may take.
    pub timeout: Duration,
    /// How the values of AvroKafkaSource name their schema.
    pub avro: AvroValues,
}

impl std::fmt::Debug for KafkaConfig {
    /// Without the client's settings, which hold passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KafkaConfig").field("topic", &self.topic).finish_non_exhaustive()
    }
}

/// `.value.deserializer.class`
#[derive(Debug, Clone, Default)]
pub enum AvroValues {
    /// By an id in this registry (`KafkaAvroDeserializer`, `KafkaAvroSchemaDeserializer`).
    Registered(RegistryConfig),
    /// Not at all: they have the source schema (`ByteArrayDeserializer`).
    #[default]
    Bare,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetReset {
    Latest,
    Earliest,
    Group,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KafkaCheckpointType {
    /// `topic,0:1,1:2`
    String,
    /// Epoch milliseconds.
    Timestamp,
    /// One offset, of a topic of one partition.
    SingleOffset,
}

/// What a message without a value means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tombstones {
    /// Nothing, as in Hudi.
    Skip,
    /// The row whose record key is the message's key is deleted.
    Delete,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaProviderConfig {
    /// No provider: JSON is inferred over the first batch (ours), then frozen in the table's schema.
    None,
    /// `FilebasedSchemaProvider`
    File { source: String, target: Option<String> },
    /// `SchemaRegistryProvider`, and `NullTargetSchemaRegistryProvider`, which never has a target.
    Registry(Box<SubjectsConfig>),
}

/// Where in a registry the schemas are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectsConfig {
    pub source: RegistryAddress,
    pub target: Option<RegistryAddress>,
    pub registry: RegistryConfig,
}

/// How to reach a schema registry (`schema.registry.*`, `basic.auth.*`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistryConfig {
    /// `schema.registry.url`, in the order in which they are tried; none: only whole addresses of subjects are known.
    pub addresses: Vec<RegistryAddress>,
    /// `basic.auth.user.info`, for addresses without credentials of their own.
    pub credentials: Option<Credentials>,
    /// `schema.registry.ssl.truststore.location`: a PEM file of the authorities that are trusted instead of the system's.
    pub truststore: Option<String>,
    /// `schema.registry.ssl.keystore.location`: a PEM file of our own certificate and its key.
    pub keystore: Option<String>,
}

/// An address in a registry: of the registry itself, or of a version of a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryAddress {
    /// Without user info, so that it can be shown.
    pub url: url::Url,
    /// The user info that it was given with.
    pub credentials: Option<Credentials>,
}

/// User and password; not to be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credentials")
    }
}

/// One step of the transformer chain, its keys already resolved (`X.t1` overrides `X` for the step with id `t1`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransformerConfig {
    /// `SqlQueryBasedTransformer`: the statement, with `<SRC>` still in it.
    SqlQuery(String),
    /// `SqlFileBasedTransformer`: path of the file.
    SqlFile(String),
}

#[derive(Debug, Clone)]
pub struct IndexConfig {
    pub index_type: IndexType,
    /// `hoodie.{simple,bloom}.index.update.partition.path`, for the global indexes.
    pub update_partition_path: bool,
    /// `hoodie.streamer.index.cache.max.bytes` (ours): what a continuous job may remember of keys; 0: nothing.
    pub cache_bytes: usize,
    /// For [`IndexType::Bucket`].
    pub buckets: Option<BucketConfig>,
}

/// `hoodie.bucket.index.*`: tables do not keep it, so that it must be the same in every job of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketConfig {
    /// `.num.buckets`, above 0.
    pub count: u32,
    /// `.hash.field`, or all fields of the record key.
    pub hash_fields: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexType {
    Simple,
    Bloom,
    GlobalSimple,
    GlobalBloom,
    Bucket,
}

impl IndexType {
    /// A global index holds a key once in the whole table, not once a partition.
    pub fn is_global(self) -> bool {
        matches!(self, IndexType::GlobalSimple | IndexType::GlobalBloom)
    }
}

#[derive(Debug, Clone)]
pub struct WriteConfig {
    pub parquet: ParquetConfig,
    pub log: LogConfig,
    pub bloom: BloomConfig,
    /// `hoodie.parquet.small.file.limit`, bytes; 0 turns packing off.
    pub small_file_limit: u64,
    /// True when the user named the limit; otherwise merge-on-read tables look at the proportion too.
    pub small_file_limit_explicit: bool,
    /// `hoodie.merge.small.file.group.candidates.limit`, for merge-on-read tables.
    pub small_file_candidates: usize,
    /// `hoodie.copyonwrite.record.size.estimate`, bytes.
    pub record_size_estimate: u64,
    /// `hoodie.record.size.estimation.threshold`
    pub record_size_estimation_threshold: f64,
    /// `hoodie.copyonwrite.insert.auto.split`
    pub insert_auto_split: bool,
    /// `hoodie.copyonwrite.insert.split.size`, rows.
    pub insert_split_size: u64,
    /// `hoodie.bulkinsert.sort.mode`
    pub bulk_insert_sort_mode: BulkInsertSortMode,
    /// `hoodie.merge.allow.duplicate.on.inserts`
    pub allow_duplicate_on_inserts: bool,
    /// `hoodie.datasource.write.reconcile.schema`
    pub reconcile_schema: bool,
    /// `hoodie.write.set.null.for.missing.columns`
    pub set_null_for_missing_columns: bool,
    /// `hoodie.datasource.write.schema.allow.auto.evolution.column.drop`
    pub allow_column_drop: bool,
    pub memory: super::MemoryConfig,
    /// Threads that decode, merge and encode (ours: `hoodie.streamer.workers`, default the number of cores).
    pub workers: usize,
}

#[derive(Debug, Clone)]
pub struct ParquetConfig {
    pub codec: ParquetCodec,
    /// `hoodie.parquet.max.file.size`, bytes.
    pub max_file_size: u64,
    /// `hoodie.parquet.block.size`, bytes.
    pub block_size: u64,
    /// `hoodie.parquet.page.size`, bytes.
    pub page_size: u64,
    /// `hoodie.parquet.dictionary.enabled`
    pub dictionary_enabled: bool,
    /// `hoodie.parquet.compression.ratio`
    pub compression_ratio: f64,
}

/// Log files of merge-on-read tables (`hoodie.logfile.*`).
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// `.max.size`, bytes.
    pub max_file_size: u64,
    /// `.data.block.max.size`, bytes.
    pub max_block_size: u64,
    /// `.data.block.format`
    pub block_format: LogBlockFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogBlockFormat {
    Avro,
    Parquet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParquetCodec {
    Uncompressed,
    Snappy,
    Gzip,
    Zstd,
    Lz4Raw,
}

#[derive(Debug, Clone)]
pub struct BloomConfig {
    /// `hoodie.index.bloom.num_entries`
    pub num_entries: u32,
    /// `hoodie.index.bloom.fpp`
    pub fpp: f64,
    /// `hoodie.bloom.index.filter.type`: DYNAMIC_V0 (true) or SIMPLE (false).
    pub dynamic: bool,
    /// `hoodie.bloom.index.filter.dynamic.max.entries`
    pub dynamic_max_entries: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkInsertSortMode {
    None,
    GlobalSort,
    PartitionSort,
}

#[derive(Debug, Clone, Default)]
pub struct CheckpointConfig {
    /// `--checkpoint`
    pub checkpoint: Option<String>,
    /// `--ignore-checkpoint`
    pub ignore_checkpoint: Option<String>,
    /// `--allow-commit-on-no-checkpoint-change`
    pub allow_commit_on_no_change: bool,
    /// `hoodie.streamer.checkpoint.force.skip`
    pub force_skip: bool,
    /// `hoodie.streamer.multiwriter.source.checkpoint.id`: names the checkpoints of this job where several write a table.
    pub id: Option<String>,
    /// What is read, for jobs without an id to know their own checkpoints by.
    pub source: String,
    /// `hoodie.write.meta.key.prefixes`
    pub carried_prefixes: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct RunConfig {
    pub continuous: bool,
    pub min_sync_interval: Duration,
    pub retry_on_source_failures: bool,
    pub retry_interval: Duration,
    pub max_retry_count: u32,
    /// `hoodie.streamer.shutdown.grace.seconds` (ours): how long a round may go on after SIGTERM before it is given up.
    pub shutdown_grace: Duration,
    /// A continuous job ends after so many failed rounds in a row: `--max-retry-count`, where it is given.
    pub failures_to_give_up: Option<u32>,
    /// `NoNewDataTerminationStrategy`: stop after this many rounds without a commit.
    pub max_rounds_without_new_data: Option<u32>,
    /// Ours: do all but writing.
    pub dry_run: bool,
    /// Ours: print the plan of the round and stop.
    pub explain: bool,
    /// Ours: log lines as JSON.
    pub log_json: bool,
    /// Ours: no progress bar even on a terminal.
    pub no_progress: bool,
}

/// `hoodie.metrics.*`: what is served over HTTP, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsConfig {
    /// Ours: `hoodie.metrics.prometheus.host`.
    pub host: String,
    /// `hoodie.metrics.prometheus.port`; 0: any free one.
    pub port: u16,
    /// `hoodie.metrics.reporter.metricsname.prefix`, or the name of the table.
    pub prefix: String,
    /// Ours: `hoodie.streamer.health.stall.seconds`.
    pub stall: Duration,
}
