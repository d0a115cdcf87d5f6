//! Words that name one of a few things: what is done, and what Hudi knows besides.

use super::load::PolicyKind;
use super::{
    BadRecordPolicy, BulkInsertSortMode, ConcurrencyMode, FailedWritesPolicy, IndexType, KafkaCheckpointType,
    KeyGeneratorClass, LogBlockFormat, OffsetReset, Operation, ParquetCodec, PayloadClass, SelectionStrategy,
    SourceClass, TableType, TimelineTimezone, TimestampType, Tombstones, TriggerStrategy,
};

/// A choice: words for what is done, and words that Hudi knows but we do not do yet.
pub(super) struct Choice<T: 'static> {
    pub done: &'static [(&'static str, T)],
    pub later: &'static [&'static str],
}

/// Why a word is not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    NotDone,
    Unknown,
    /// A class of somebody else, though its last name may be one of ours.
    Foreign,
}

/// Packages whose classes are meant by their last names.
const PACKAGES: [&str; 3] =
    ["org.apache.hudi.", "io.confluent.kafka.serializers.", "org.apache.kafka.common.serialization."];

impl<T: Copy> Choice<T> {
    /// Case does not matter, nor does which of Hudi's packages a class is in: some have moved between releases.
    pub fn pick(&self, word: &str) -> Result<T, Refusal> {
        let word = word.trim();
        let short = match word.rsplit_once('.') {
            None => word,
            Some((_, short)) if PACKAGES.iter().any(|package| word.starts_with(package)) => short,
            Some(_) => return Err(Refusal::Foreign),
        };
        match self.done.iter().find(|(name, _)| name.eq_ignore_ascii_case(short)) {
            Some((_, value)) => Ok(*value),
            None if self.later.iter().any(|name| name.eq_ignore_ascii_case(short)) => Err(Refusal::NotDone),
            None => Err(Refusal::Unknown),
        }
    }

    /// Whether the words are names of Java classes.
    pub fn takes_classes(&self) -> bool {
        self.done.iter().all(|(name, _)| name.contains(char::is_lowercase) && name.starts_with(char::is_uppercase))
    }

    /// The words that are taken.
    pub fn words(&self) -> String {
        self.done.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    /// The taken word nearest to a misspelt one.
    pub fn nearest(&self, word: &str) -> Option<&'static str> {
        let short = word.rsplit('.').next().unwrap_or(word).to_ascii_lowercase();
        let all = self.done.iter().map(|(name, _)| *name).chain(self.later.iter().copied());
        let scored = all.map(|n| (strsim::normalized_damerau_levenshtein(&n.to_ascii_lowercase(), &short), n));
        scored.filter(|(score, _)| *score > 0.7).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, n)| n)
    }
}

pub(super) const TABLE_TYPES: Choice<TableType> = Choice {
    done: &[("COPY_ON_WRITE", TableType::CopyOnWrite), ("MERGE_ON_READ", TableType::MergeOnRead)],
    later: &[],
};

pub(super) const LOG_BLOCK_FORMATS: Choice<LogBlockFormat> =
    Choice { done: &[("avro", LogBlockFormat::Avro), ("parquet", LogBlockFormat::Parquet)], later: &["hfile"] };

pub(super) const OPERATIONS: Choice<Operation> = Choice {
    done: &[("UPSERT", Operation::Upsert), ("INSERT", Operation::Insert), ("BULK_INSERT", Operation::BulkInsert)],
    later: &["INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION", "DELETE"],
};

pub(super) const SOURCES: Choice<SourceClass> = Choice {
    done: &[
        ("JsonDFSSource", SourceClass::JsonDfs),
        ("JsonKafkaSource", SourceClass::JsonKafka),
        ("AvroKafkaSource", SourceClass::AvroKafka),
    ],
    later: &[
        "ProtoKafkaSource",
        "AvroDFSSource",
        "ParquetDFSSource",
        "ORCDFSSource",
        "CsvDFSSource",
        "MysqlDebeziumSource",
        "PostgresDebeziumSource",
        "HoodieIncrSource",
        "S3EventsSource",
        "S3EventsHoodieIncrSource",
        "GcsEventsSource",
        "GcsEventsHoodieIncrSource",
        "SqlSource",
        "SqlFileBasedSource",
        "JdbcSource",
        "PulsarSource",
        "KinesisSource",
        "HiveIncrPullSource",
    ],
};

/// A kind of schema provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaProviderKind {
    File,
    Registry,
    NullTargetRegistry,
}

pub(super) const SCHEMA_PROVIDERS: Choice<SchemaProviderKind> = Choice {
    done: &[
        ("FilebasedSchemaProvider", SchemaProviderKind::File),
        ("SchemaRegistryProvider", SchemaProviderKind::Registry),
        ("NullTargetSchemaRegistryProvider", SchemaProviderKind::NullTargetRegistry),
    ],
    later: &[
        "HiveSchemaProvider",
        "JdbcbasedSchemaProvider",
        "ProtoClassBasedSchemaProvider",
        "RowBasedSchemaProvider",
    ],
};

/// Where the credentials for a schema registry stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CredentialsSource {
    Url,
    UserInfo,
}

pub(super) const CREDENTIALS_SOURCES: Choice<CredentialsSource> = Choice {
    done: &[("URL", CredentialsSource::Url), ("USER_INFO", CredentialsSource::UserInfo)],
    later: &["SASL_INHERIT"],
};

pub(super) const STORE_TYPES: Choice<()> = Choice { done: &[("PEM", ())], later: &["JKS", "PKCS12"] };

/// A kind of transformer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransformerKind {
    SqlQuery,
    SqlFile,
}

pub(super) const TRANSFORMERS: Choice<TransformerKind> = Choice {
    done: &[
        ("SqlQueryBasedTransformer", TransformerKind::SqlQuery),
        ("SqlFileBasedTransformer", TransformerKind::SqlFile),
    ],
    later: &["FlatteningTransformer", "ChainedTransformer", "AWSDmsTransformer", "IdentityTransformer"],
};

pub(super) const PAYLOADS: Choice<PayloadClass> = Choice {
    done: &[
        ("OverwriteWithLatestAvroPayload", PayloadClass::OverwriteWithLatest),
        ("DefaultHoodieRecordPayload", PayloadClass::DefaultHoodieRecord),
    ],
    later: &[
        "EventTimeAvroPayload",
        "OverwriteNonDefaultsWithLatestAvroPayload",
        "PartialUpdateAvroPayload",
        "FirstValueAvroPayload",
        "HoodieAvroPayload",
        "EmptyHoodieRecordPayload",
        "AWSDmsAvroPayload",
        "MySqlDebeziumAvroPayload",
        "PostgresDebeziumAvroPayload",
    ],
};

pub(super) const KEY_GENERATORS: Choice<KeyGeneratorClass> = Choice {
    done: &[
        ("SimpleKeyGenerator", KeyGeneratorClass::Simple),
        ("ComplexKeyGenerator", KeyGeneratorClass::Complex),
        ("NonpartitionedKeyGenerator", KeyGeneratorClass::NonPartitioned),
        ("TimestampBasedKeyGenerator", KeyGeneratorClass::TimestampBased),
        ("SimpleAvroKeyGenerator", KeyGeneratorClass::Simple),
        ("ComplexAvroKeyGenerator", KeyGeneratorClass::Complex),
        ("NonpartitionedAvroKeyGenerator", KeyGeneratorClass::NonPartitioned),
        ("TimestampBasedAvroKeyGenerator", KeyGeneratorClass::TimestampBased),
    ],
    later: &[
        "CustomKeyGenerator",
        "CustomAvroKeyGenerator",
        "GlobalDeleteKeyGenerator",
        "GlobalAvroDeleteKeyGenerator",
    ],
};

pub(super) const KEY_GENERATOR_TYPES: Choice<KeyGeneratorClass> = Choice {
    done: &[
        ("SIMPLE", KeyGeneratorClass::Simple),
        ("COMPLEX", KeyGeneratorClass::Complex),
        ("NON_PARTITION", KeyGeneratorClass::NonPartitioned),
        ("TIMESTAMP", KeyGeneratorClass::TimestampBased),
    ],
    later: &["CUSTOM", "GLOBAL_DELETE", "HOODIE_TABLE_METADATA", "SPARK_SQL", "USER_PROVIDED"],
};

pub(super) const TIMESTAMP_TYPES: Choice<TimestampType> = Choice {
    done: &[
        ("UNIX_TIMESTAMP", TimestampType::UnixTimestamp),
        ("EPOCHMILLISECONDS", TimestampType::EpochMilliseconds),
        ("EPOCHMICROSECONDS", TimestampType::EpochMicroseconds),
        ("SCALAR", TimestampType::Scalar),
        ("DATE_STRING", TimestampType::DateString),
        ("MIXED", TimestampType::Mixed),
    ],
    later: &[],
};

/// Nanoseconds of a `java.util.concurrent.TimeUnit`.
pub(super) const TIME_UNITS: Choice<i64> = Choice {
    done: &[
        ("NANOSECONDS", 1),
        ("MICROSECONDS", 1_000),
        ("MILLISECONDS", 1_000_000),
        ("SECONDS", 1_000_000_000),
        ("MINUTES", 60_000_000_000),
        ("HOURS", 3_600_000_000_000),
        ("DAYS", 86_400_000_000_000),
    ],
    later: &[],
};

pub(super) const INDEXES: Choice<IndexType> = Choice {
    done: &[
        ("SIMPLE", IndexType::Simple),
        ("BLOOM", IndexType::Bloom),
        ("GLOBAL_SIMPLE", IndexType::GlobalSimple),
        ("GLOBAL_BLOOM", IndexType::GlobalBloom),
        ("BUCKET", IndexType::Bucket),
    ],
    later: &["RECORD_INDEX", "INMEMORY", "HBASE", "FLINK_STATE"],
};

pub(super) const BUCKET_ENGINES: Choice<()> = Choice { done: &[("SIMPLE", ())], later: &["CONSISTENT_HASHING"] };

pub(super) const SORT_MODES: Choice<BulkInsertSortMode> = Choice {
    done: &[
        ("NONE", BulkInsertSortMode::None),
        ("GLOBAL_SORT", BulkInsertSortMode::GlobalSort),
        ("PARTITION_SORT", BulkInsertSortMode::PartitionSort),
    ],
    later: &["PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"],
};

pub(super) const CODECS: Choice<ParquetCodec> = Choice {
    done: &[
        ("UNCOMPRESSED", ParquetCodec::Uncompressed),
        ("SNAPPY", ParquetCodec::Snappy),
        ("GZIP", ParquetCodec::Gzip),
        ("ZSTD", ParquetCodec::Zstd),
        ("LZ4_RAW", ParquetCodec::Lz4Raw),
    ],
    later: &["LZO", "BROTLI", "LZ4"],
};

pub(super) const ZONES: Choice<TimelineTimezone> =
    Choice { done: &[("UTC", TimelineTimezone::Utc), ("LOCAL", TimelineTimezone::Local)], later: &[] };

pub(super) const BLOOM_TYPES: Choice<bool> = Choice { done: &[("DYNAMIC_V0", true), ("SIMPLE", false)], later: &[] };

pub(super) const BASE_FILE_FORMATS: Choice<()> = Choice { done: &[("PARQUET", ())], later: &["HFILE", "ORC"] };

pub(super) const BOOLEANS: Choice<bool> = Choice { done: &[("true", true), ("false", false)], later: &[] };

pub(super) const BAD_RECORD_POLICIES: Choice<BadRecordPolicy> = Choice {
    done: &[
        ("fail", BadRecordPolicy::Fail),
        ("skip", BadRecordPolicy::Skip),
        ("quarantine", BadRecordPolicy::Quarantine),
    ],
    later: &[],
};

pub(super) const REPORTERS: Choice<()> = Choice {
    done: &[("PROMETHEUS", ())],
    later: &[
        "GRAPHITE",
        "INMEMORY",
        "JMX",
        "DATADOG",
        "CONSOLE",
        "PROMETHEUS_PUSHGATEWAY",
        "CLOUDWATCH",
        "M3",
        "SLF4J",
    ],
};

pub(super) const TERMINATIONS: Choice<()> = Choice { done: &[("NoNewDataTerminationStrategy", ())], later: &[] };

pub(super) const COMPACTION_TRIGGERS: Choice<TriggerStrategy> = Choice {
    done: &[
        ("NUM_COMMITS", TriggerStrategy::NumCommits),
        ("NUM_COMMITS_AFTER_LAST_REQUEST", TriggerStrategy::NumCommitsAfterLastRequest),
        ("TIME_ELAPSED", TriggerStrategy::TimeElapsed),
        ("NUM_OR_TIME", TriggerStrategy::NumOrTime),
        ("NUM_AND_TIME", TriggerStrategy::NumAndTime),
    ],
    later: &[],
};

pub(super) const CLEAN_POLICIES: Choice<PolicyKind> = Choice {
    done: &[
        ("KEEP_LATEST_COMMITS", PolicyKind::Commits),
        ("KEEP_LATEST_BY_HOURS", PolicyKind::Hours),
        ("KEEP_LATEST_FILE_VERSIONS", PolicyKind::FileVersions),
    ],
    later: &[],
};

pub(super) const COMPACTION_STRATEGIES: Choice<SelectionStrategy> = Choice {
    done: &[
        ("LogFileSizeBasedCompactionStrategy", SelectionStrategy::LogFileSizeBased),
        ("LogFileNumBasedCompactionStrategy", SelectionStrategy::LogFileNumBased),
        ("BoundedIOCompactionStrategy", SelectionStrategy::BoundedIo),
        ("DayBasedCompactionStrategy", SelectionStrategy::DayBased),
        ("BoundedPartitionAwareCompactionStrategy", SelectionStrategy::BoundedPartitionAware),
        ("UnBoundedPartitionAwareCompactionStrategy", SelectionStrategy::UnboundedPartitionAware),
        ("UnBoundedCompactionStrategy", SelectionStrategy::Unbounded),
    ],
    later: &["PartitionRegexBasedCompactionStrategy", "CompositeCompactionStrategy"],
};

pub(super) const CONCURRENCY_MODES: Choice<ConcurrencyMode> = Choice {
    done: &[
        ("single_writer", ConcurrencyMode::SingleWriter),
        ("optimistic_concurrency_control", ConcurrencyMode::Optimistic),
    ],
    later: &["non_blocking_concurrency_control"],
};

pub(super) const FAILED_WRITES: Choice<FailedWritesPolicy> = Choice {
    done: &[
        ("EAGER", FailedWritesPolicy::Eager),
        ("LAZY", FailedWritesPolicy::Lazy),
        ("NEVER", FailedWritesPolicy::Never),
    ],
    later: &[],
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockProviderKind {
    ZooKeeper,
    FileSystem,
    InProcess,
    Storage,
}

pub(super) const LOCK_PROVIDERS: Choice<LockProviderKind> = Choice {
    done: &[
        ("ZookeeperBasedLockProvider", LockProviderKind::ZooKeeper),
        ("FileSystemBasedLockProvider", LockProviderKind::FileSystem),
        ("StorageBasedLockProvider", LockProviderKind::Storage),
        ("InProcessLockProvider", LockProviderKind::InProcess),
    ],
    later: &[
        "ZookeeperBasedImplicitBasePathLockProvider",
        "HiveMetastoreBasedLockProvider",
        "DynamoDBBasedLockProvider",
        "DynamoDBBasedImplicitPartitionKeyLockProvider",
        "NoopLockProvider",
    ],
};

pub(super) const OFFSET_RESETS: Choice<OffsetReset> = Choice {
    done: &[("latest", OffsetReset::Latest), ("earliest", OffsetReset::Earliest), ("group", OffsetReset::Group)],
    later: &[],
};

pub(super) const KAFKA_CHECKPOINT_TYPES: Choice<KafkaCheckpointType> = Choice {
    done: &[
        ("string", KafkaCheckpointType::String),
        ("timestamp", KafkaCheckpointType::Timestamp),
        ("single_offset", KafkaCheckpointType::SingleOffset),
    ],
    later: &[],
};

pub(super) const TOMBSTONES: Choice<Tombstones> =
    Choice { done: &[("skip", Tombstones::Skip), ("delete", Tombstones::Delete)], later: &[] };

/// Whether a value names its schema.
pub(super) const VALUE_DESERIALIZERS: Choice<bool> = Choice {
    done: &[("KafkaAvroDeserializer", true), ("KafkaAvroSchemaDeserializer", true), ("ByteArrayDeserializer", false)],
    later: &[],
};
