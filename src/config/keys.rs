//! The registry: every property key that counts here, once, as data. Names and defaults are Hudi's (0.15.0) unless they say
//! "ours".

/// A property key.
#[derive(Debug)]
pub(super) struct Key {
    pub name: &'static str,
    /// Old or other spellings, which count when the name itself is not set.
    pub aliases: &'static [&'static str],
    /// As text; empty: none.
    pub default: &'static str,
    pub doc: &'static str,
}

impl Key {
    /// Whether only Kafka sources look at it.
    pub fn is_kafkas(&self) -> bool {
        let of_client = ["bootstrap.servers", "group.id", "auto.offset.reset", "default.api.timeout.ms"];
        let prefixes = ["hoodie.streamer.source.kafka.", "hoodie.streamer.kafka."];
        of_client.contains(&self.name) || prefixes.iter().any(|prefix| self.name.starts_with(prefix))
    }
}

macro_rules! keys {
    ($($id:ident = $name:literal $([$($alias:literal),+])?, $default:literal, $doc:literal;)+) => {
        $(pub(super) const $id: Key = Key { name: $name, aliases: &[$($($alias),+)?], default: $default, doc: $doc };)+
        /// All of them, for suggestions and for the reference.
        pub(super) const ALL: &[&Key] = &[$(&$id),+];
    };
}

keys! {
    DFS_ROOT = "hoodie.streamer.source.dfs.root", "", "folder that JsonDFSSource reads, with all below it";
    SKIP_INVALID = "hoodie.streamer.source.json.skip.invalid.records", "false", "true: the policy for bad records is skip";
    BAD_RECORDS_POLICY = "hoodie.streamer.source.bad.records.policy", "", "ours: what becomes of records that cannot be decoded or keyed: fail (default), skip or quarantine";
    BAD_RECORDS_MAX_ROWS = "hoodie.streamer.source.bad.records.max.rows", "", "ours: more bad records in a round fail it all the same";
    BAD_RECORDS_MAX_PERCENT = "hoodie.streamer.source.bad.records.max.percent", "", "ours: a larger share of a round's records fails it all the same";
    BAD_RECORDS_TOPIC = "hoodie.streamer.source.bad.records.topic", "", "ours: quarantine to this topic of the source's cluster (Kafka sources)";
    ERROR_TABLE = "hoodie.errortable.enable", "false", "quarantine bad records to a Hudi table";
    ERROR_TABLE_PATH = "hoodie.errortable.base.path", "", "base path of that table";
    ERROR_TABLE_NAME = "hoodie.errortable.target.table.name", "", "name of that table";
    KAFKA_TOPIC = "hoodie.streamer.source.kafka.topic", "", "topic that JsonKafkaSource and AvroKafkaSource read";
    BOOTSTRAP_SERVERS = "bootstrap.servers", "", "brokers of Kafka sources; other settings of a Kafka client stand beside it, without a prefix";
    GROUP_ID = "group.id", "", "consumer group: for auto.offset.reset=group and for telling offsets";
    OFFSET_RESET = "auto.offset.reset", "latest", "where a job without a checkpoint begins: latest, earliest, or group (what group.id has committed)";
    API_TIMEOUT = "default.api.timeout.ms", "30000", "longest wait for an answer of the brokers";
    MAX_EVENTS = "hoodie.streamer.kafka.source.maxEvents", "5000000", "most offsets a round, where --source-limit is not given";
    MIN_PARTITIONS = "hoodie.streamer.source.kafka.minPartitions", "0", "pieces that a round is read in, at the least";
    KAFKA_CHECKPOINT_TYPE = "hoodie.streamer.source.kafka.checkpoint.type", "string", "how --checkpoint is read: string (topic,0:1,1:2), timestamp (epoch milliseconds) or single_offset";
    FAIL_ON_DATA_LOSS = "hoodie.streamer.source.kafka.enable.failOnDataLoss", "false", "fail when offsets have expired before they were read";
    COMMIT_OFFSET = "hoodie.streamer.source.kafka.enable.commit.offset", "false", "tell group.id the position after each commit";
    APPEND_OFFSETS = "hoodie.streamer.source.kafka.append.offsets", "false", "add columns with a row's offset, partition, timestamp and message key";
    TOMBSTONES = "hoodie.streamer.source.kafka.tombstones", "skip", "ours: what a message without value does: skip, or delete the row of the message key";
    MEMORY = "hoodie.streamer.memory.max.bytes", "536870912", "ours: memory for rows; rounds, sorts, merges and transformers share it";
    ROUND_BYTES = "hoodie.streamer.round.max.bytes" ["hoodie.streamer.source.kafka.round.max.bytes"], "", "ours: input a round, about; 0: no bound; default: what the memory for rows holds";
    ROUND_SECONDS = "hoodie.streamer.round.max.seconds" ["hoodie.streamer.source.kafka.round.max.seconds"], "60", "ours: time a round of a continuous job takes, about; 0: no bound";
    VALUE_DESERIALIZER = "hoodie.streamer.source.kafka.value.deserializer.class", "io.confluent.kafka.serializers.KafkaAvroDeserializer", "AvroKafkaSource: KafkaAvroDeserializer or KafkaAvroSchemaDeserializer (values name their schema, which is resolved to the source schema), or ByteArrayDeserializer (bare Avro of the source schema)";
    IGNORED_PREFIXES = "hoodie.streamer.source.kafka.ignore.prefix.config.list", "", "comma list of prefixes of settings that are not for the Kafka client";
    SHUTDOWN_GRACE = "hoodie.streamer.shutdown.grace.seconds", "20", "ours: how long a round may go on after SIGTERM before it is given up";
    SCHEMA_SOURCE_FILE = "hoodie.streamer.schemaprovider.source.schema.file", "", "Avro schema of the input (FilebasedSchemaProvider)";
    SCHEMA_TARGET_FILE = "hoodie.streamer.schemaprovider.target.schema.file", "", "Avro schema of the table; default: that of the input, or of the transformed rows";
    SCHEMA_SOURCE_URL = "hoodie.streamer.schemaprovider.registry.url", "", "whole address of the input's subject, as http://127.0.0.1:8081/subjects/trip-value/versions/latest (SchemaRegistryProvider)";
    SCHEMA_TARGET_URL = "hoodie.streamer.schemaprovider.registry.targetUrl", "", "the same of the table's schema; default: that of the input, or of the transformed rows";
    REGISTRY_URL = "schema.registry.url", "", "address of the schema registry; a comma list is tried in order";
    REGISTRY_AUTH = "basic.auth.credentials.source" ["schema.registry.basic.auth.credentials.source"], "", "URL or USER_INFO: where the registry's user and password stand; default: where they are found";
    REGISTRY_USER_INFO = "basic.auth.user.info" ["schema.registry.basic.auth.user.info"], "", "user:password for the schema registry";
    REGISTRY_TRUSTSTORE = "schema.registry.ssl.truststore.location", "", "PEM file of the authorities that the schema registry's certificate may come from";
    REGISTRY_TRUSTSTORE_TYPE = "schema.registry.ssl.truststore.type", "PEM", "PEM";
    REGISTRY_KEYSTORE = "schema.registry.ssl.keystore.location", "", "PEM file of the certificate, and its key, to show to the schema registry";
    REGISTRY_KEYSTORE_TYPE = "schema.registry.ssl.keystore.type", "PEM", "PEM";
    TRANSFORMER_SQL = "hoodie.streamer.transformer.sql", "", "statement of SqlQueryBasedTransformer, over <SRC>";
    TRANSFORMER_SQL_FILE = "hoodie.streamer.transformer.sql.file", "", "file of SqlFileBasedTransformer";
    CHECKPOINT_FORCE_SKIP = "hoodie.streamer.checkpoint.force.skip", "false", "write no checkpoint into commits";
    MAX_IDLE_ROUNDS = "max.rounds.without.new.data.to.shutdown", "3", "rounds without a commit before NoNewDataTerminationStrategy stops";
    RECORD_KEY = "hoodie.datasource.write.recordkey.field", "", "field, or comma list of fields, that identifies a row; dotted paths allowed";
    PARTITION_PATH = "hoodie.datasource.write.partitionpath.field", "", "field, or comma list, that rows are partitioned by; empty: none";
    KEYGEN_CLASS = "hoodie.datasource.write.keygenerator.class", "", "key generator; inferred from the fields when not set";
    KEYGEN_TYPE = "hoodie.datasource.write.keygenerator.type", "", "the same by a short name: SIMPLE, COMPLEX, NON_PARTITION, TIMESTAMP";
    HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning", "false", "partition folders named field=value";
    URL_ENCODE = "hoodie.datasource.write.partitionpath.urlencode", "false", "escape special characters in partition values";
    LOGICAL_TIMESTAMP = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled", "false", "timestamps in keys as text instead of numbers";
    TIMESTAMP_TYPE = "hoodie.keygen.timebased.timestamp.type" ["hoodie.deltastreamer.keygen.timebased.timestamp.type"], "", "UNIX_TIMESTAMP, EPOCHMILLISECONDS, EPOCHMICROSECONDS, SCALAR, DATE_STRING or MIXED";
    TIMESTAMP_UNIT = "hoodie.keygen.timebased.timestamp.scalar.time.unit" ["hoodie.deltastreamer.keygen.timebased.timestamp.scalar.time.unit"], "SECONDS", "unit of SCALAR: DAYS … NANOSECONDS";
    INPUT_FORMAT = "hoodie.keygen.timebased.input.dateformat" ["hoodie.deltastreamer.keygen.timebased.input.dateformat"], "", "Joda patterns of DATE_STRING values, tried in order";
    INPUT_DELIMITER = "hoodie.keygen.timebased.input.dateformat.list.delimiter.regex" ["hoodie.deltastreamer.keygen.timebased.input.dateformat.list.delimiter.regex"], ",", "what parts those patterns";
    INPUT_ZONE = "hoodie.keygen.timebased.input.timezone" ["hoodie.deltastreamer.keygen.timebased.input.timezone"], "UTC", "zone of values without one; empty: a value keeps its own";
    OUTPUT_FORMAT = "hoodie.keygen.timebased.output.dateformat" ["hoodie.deltastreamer.keygen.timebased.output.dateformat"], "", "Joda pattern of the partition path";
    OUTPUT_ZONE = "hoodie.keygen.timebased.output.timezone" ["hoodie.deltastreamer.keygen.timebased.output.timezone"], "UTC", "zone of the partition path";
    ZONE = "hoodie.keygen.timebased.timezone" ["hoodie.deltastreamer.keygen.timebased.timezone"], "", "both zones at once";
    PRECOMBINE = "hoodie.datasource.write.precombine.field", "", "ordering field, where --source-ordering-field is not given";
    PAYLOAD_ORDERING = "hoodie.payload.ordering.field", "", "must be the ordering field, if it is set";
    PAYLOAD_CLASS = "hoodie.datasource.write.payload.class" ["hoodie.compaction.payload.class"], "", "merge rule, where --payload-class is not given";
    DATABASE = "hoodie.database.name", "", "database of the table";
    TIMELINE_ZONE = "hoodie.table.timeline.timezone", "UTC", "zone of instants: UTC (ours) or LOCAL, for new tables";
    EMPTY_COMMIT = "hoodie.allow.empty.commit", "true", "commit a position that moved without data";
    INDEX_TYPE = "hoodie.index.type", "SIMPLE", "SIMPLE, BLOOM, GLOBAL_SIMPLE, GLOBAL_BLOOM or BUCKET";
    BUCKET_ENGINE = "hoodie.index.bucket.engine", "SIMPLE", "SIMPLE";
    BUCKETS = "hoodie.bucket.index.num.buckets", "256", "BUCKET: file groups of a partition; stays what it was when the table was made";
    BUCKET_FIELDS = "hoodie.bucket.index.hash.field", "", "BUCKET: record key fields that a row's file group is found by; default: all. Stays what it was when the table was made";
    SIMPLE_UPDATE_PATH = "hoodie.simple.index.update.partition.path", "true", "GLOBAL_SIMPLE: a row moves to its new partition";
    BLOOM_UPDATE_PATH = "hoodie.bloom.index.update.partition.path", "true", "GLOBAL_BLOOM: a row moves to its new partition";
    INDEX_CACHE = "hoodie.streamer.index.cache.max.bytes", "268435456", "ours: memory in which a continuous job remembers where keys are, 17 bytes a key; 0: none";
    CODEC = "hoodie.parquet.compression.codec", "gzip", "uncompressed, snappy, gzip, zstd or lz4_raw";
    COMPRESSION_RATIO = "hoodie.parquet.compression.ratio", "0.1", "expected ratio, for the size of files";
    MAX_FILE_SIZE = "hoodie.parquet.max.file.size", "125829120", "bytes at which a new file group is begun";
    BLOCK_SIZE = "hoodie.parquet.block.size", "125829120", "bytes of a row group";
    PAGE_SIZE = "hoodie.parquet.page.size", "1048576", "bytes of a page";
    DICTIONARY = "hoodie.parquet.dictionary.enabled", "true", "dictionary encoding";
    SMALL_FILE_LIMIT = "hoodie.parquet.small.file.limit", "104857600", "files below are filled with new rows; 0: never. Merge-on-read: where it is not set, only those that are small beside what comes";
    SMALL_FILE_CANDIDATES = "hoodie.merge.small.file.group.candidates.limit", "1", "merge-on-read: most files of a partition that a commit fills with new rows";
    LOG_MAX_SIZE = "hoodie.logfile.max.size", "1073741824", "merge-on-read: bytes at which a commit begins the next log file of a file group";
    LOG_BLOCK_MAX_SIZE = "hoodie.logfile.data.block.max.size", "268435456", "merge-on-read: bytes at which the next block of a log file is begun";
    LOG_BLOCK_FORMAT = "hoodie.logfile.data.block.format", "avro", "merge-on-read: avro or parquet";
    RECORD_SIZE_ESTIMATE = "hoodie.copyonwrite.record.size.estimate", "1024", "bytes of a record before any commit tells";
    RECORD_SIZE_THRESHOLD = "hoodie.record.size.estimation.threshold", "1.0", "share of the small file limit that a commit must hold to tell";
    AUTO_SPLIT = "hoodie.copyonwrite.insert.auto.split", "true", "rows of a new file group by the maximum file size";
    SPLIT_SIZE = "hoodie.copyonwrite.insert.split.size", "500000", "rows of a new file group without auto split";
    SORT_MODE = "hoodie.bulkinsert.sort.mode", "NONE", "NONE, GLOBAL_SORT or PARTITION_SORT";
    ALLOW_DUPLICATES = "hoodie.merge.allow.duplicate.on.inserts", "true", "INSERT keeps duplicates also in a file that it fills";
    BLOOM_ENTRIES = "hoodie.index.bloom.num_entries", "60000", "keys of a bloom filter";
    BLOOM_FPP = "hoodie.index.bloom.fpp", "0.000000001", "wrong positives of a bloom filter";
    BLOOM_TYPE = "hoodie.bloom.index.filter.type", "DYNAMIC_V0", "DYNAMIC_V0 or SIMPLE";
    BLOOM_MAX_ENTRIES = "hoodie.bloom.index.filter.dynamic.max.entries", "100000", "most keys of a dynamic bloom filter";
    RECONCILE = "hoodie.datasource.write.reconcile.schema", "false", "keep columns of the table that the input lacks";
    SET_NULL = "hoodie.write.set.null.for.missing.columns", "false", "fill such columns with null";
    COLUMN_DROP = "hoodie.datasource.write.schema.allow.auto.evolution.column.drop", "false", "drop such columns";
    TABLE_SERVICES = "hoodie.table.services.enabled", "true", "false: the job does not compact";
    SERVICE_FAILURES = "hoodie.fail.writes.on.inline.table.service.exception", "true", "false: a one-shot job whose compaction fails behind its commit ends well, with a warning";
    COMPACT_INLINE = "hoodie.compact.inline", "", "must say what the job does anyway: true for a one-shot job on a merge-on-read table without --disable-compaction";
    COMPACT_SCHEDULE_INLINE = "hoodie.compact.schedule.inline", "false", "true with --disable-compaction: the job makes plans, `hudi-streamer compact` or Spark executes them";
    COMPACT_TRIGGER = "hoodie.compact.inline.trigger.strategy", "NUM_COMMITS", "when a compaction is due: NUM_COMMITS, NUM_COMMITS_AFTER_LAST_REQUEST, TIME_ELAPSED, NUM_OR_TIME or NUM_AND_TIME";
    COMPACT_COMMITS = "hoodie.compact.inline.max.delta.commits", "5", "delta commits after which a compaction is due";
    COMPACT_SECONDS = "hoodie.compact.inline.max.delta.seconds", "3600", "seconds after which a compaction is due";
    COMPACT_STRATEGY = "hoodie.compaction.strategy", "LogFileSizeBasedCompactionStrategy", "what a compaction takes: LogFileSizeBased-, LogFileNumBased-, BoundedIO-, DayBased-, BoundedPartitionAware-, UnBoundedPartitionAware- or UnBoundedCompactionStrategy";
    COMPACT_IO = "hoodie.compaction.target.io", "512000", "megabytes that one compaction reads and writes, about";
    COMPACT_LOG_SIZE = "hoodie.compaction.logfile.size.threshold", "0", "LogFileSizeBased: bytes of log files below which a file group waits";
    COMPACT_LOG_COUNT = "hoodie.compaction.logfile.num.threshold", "0", "LogFileNumBased: log files below which a file group waits";
    COMPACT_PARTITIONS = "hoodie.compaction.daybased.target.partitions", "10", "DayBased: newest partitions that are compacted; PartitionAware: days back from today";
    COMPACT_MEMORY = "hoodie.memory.compaction.max.size", "", "bytes of log rows held at a time for one file group (in Hudi a share of the heap); default: a quarter of the memory for rows";
    CHECKPOINT_ID = "hoodie.streamer.multiwriter.source.checkpoint.id", "", "names the checkpoints of this job where several jobs write one table";
    META_PREFIXES = "hoodie.write.meta.key.prefixes", "", "several writers: comma list; what the newest commit carries under keys that begin so, each commit carries on";
    CONCURRENCY = "hoodie.write.concurrency.mode", "single_writer", "single_writer, or optimistic_concurrency_control for several writers that take a lock";
    FAILED_WRITES = "hoodie.clean.failed.writes.policy" ["hoodie.cleaner.policy.failed.writes"], "EAGER", "who rolls back writes that died: EAGER (the next write), LAZY (cleaning, when their heartbeats have expired) or NEVER; several writers: LAZY";
    CONFLICT_RETRIES = "hoodie.write.num.retries.on.conflict.failures", "0", "times that a round is done again which lost its rows' file groups to another writer";
    HEARTBEAT_INTERVAL = "hoodie.client.heartbeat.interval_in_ms", "60000", "milliseconds between the heartbeats of a write (LAZY)";
    HEARTBEAT_MISSES = "hoodie.client.heartbeat.tolerable.misses", "2", "heartbeats that may fail to come before a write counts as dead";
    LOCK_PROVIDER = "hoodie.write.lock.provider", "ZookeeperBasedLockProvider", "what several writers lock: ZookeeperBased-, FileSystemBased-, StorageBased- or InProcessLockProvider";
    LOCK_WAIT = "hoodie.write.lock.wait_time_ms", "60000", "milliseconds that one try for the lock waits";
    LOCK_RETRIES = "hoodie.write.lock.client.num_retries", "50", "further tries for the lock";
    LOCK_PAUSE = "hoodie.write.lock.client.wait_time_ms_between_retry", "5000", "milliseconds between tries for the lock";
    ZOOKEEPER_URL = "hoodie.write.lock.zookeeper.url", "", "ZooKeeper's servers: host:port, a comma list";
    ZOOKEEPER_PORT = "hoodie.write.lock.zookeeper.port", "", "as in Hudi without effect: the port stands in hoodie.write.lock.zookeeper.url";
    ZOOKEEPER_PATH = "hoodie.write.lock.zookeeper.base_path", "", "path in ZooKeeper that the lock is below, the same for all writers of a table";
    ZOOKEEPER_KEY = "hoodie.write.lock.zookeeper.lock_key", "", "its name there; default: the name of the table";
    ZOOKEEPER_SESSION = "hoodie.write.lock.zookeeper.session_timeout_ms", "60000", "milliseconds of silence after which ZooKeeper gives a writer's lock to the next one";
    ZOOKEEPER_CONNECTION = "hoodie.write.lock.zookeeper.connection_timeout_ms", "15000", "milliseconds to wait for a connection to ZooKeeper";
    LOCK_FOLDER = "hoodie.write.lock.filesystem.path", "", "FileSystemBasedLockProvider: folder of the file lock; default: the table's .hoodie";
    LOCK_EXPIRE = "hoodie.write.lock.filesystem.expire", "0", "FileSystemBasedLockProvider: minutes after which a lock counts as left behind; 0: never";
    LOCK_VALIDITY = "hoodie.write.lock.storage.validity.timeout.secs", "300", "StorageBasedLockProvider: seconds that a lock is good for if it is not renewed";
    LOCK_RENEWAL = "hoodie.write.lock.storage.renew.interval.secs" ["hoodie.write.lock.storage.heartbeat.poll.secs"], "30", "StorageBasedLockProvider: seconds between renewals";
    ARCHIVE_AUTOMATIC = "hoodie.archive.automatic", "true", "archive old instants behind commits";
    KEEP_MIN = "hoodie.keep.min.commits", "20", "completed commits that archiving leaves on the timeline, and as many cleans and rollbacks; more where the cleaner's settings ask for them";
    KEEP_MAX = "hoodie.keep.max.commits", "30", "with more of them the oldest are archived";
    ARCHIVE_BATCH = "hoodie.commits.archival.batch", "10", "states of instants in a block of the archived timeline";
    ARCHIVE_MERGE = "hoodie.archive.merge.enable", "true", "write on in the newest file of the archived timeline while it is small; false, as in Hudi: a file each time";
    ARCHIVE_FILE_BYTES = "hoodie.archive.merge.small.file.limit.bytes", "4194304", "bytes up to which such a file grows (in Hudi 20971520)";
    CLEAN_AUTOMATIC = "hoodie.clean.automatic", "true", "remove old files behind each commit";
    CLEAN_ASYNC = "hoodie.clean.async" ["hoodie.clean.async.enabled"], "false", "true with --continuous: remove them beside the rounds";
    CLEAN_POLICY = "hoodie.cleaner.policy" ["hoodie.clean.policy"], "KEEP_LATEST_COMMITS", "what stays: KEEP_LATEST_COMMITS, KEEP_LATEST_BY_HOURS or KEEP_LATEST_FILE_VERSIONS; where it is not set, that of the one key that says how much";
    CLEAN_COMMITS = "hoodie.cleaner.commits.retained" ["hoodie.clean.commits.retained"], "10", "KEEP_LATEST_COMMITS: commits whose files stay, and those that were the newest before them";
    CLEAN_HOURS = "hoodie.cleaner.hours.retained" ["hoodie.clean.hours.retained"], "24", "KEEP_LATEST_BY_HOURS: the same by hours";
    CLEAN_VERSIONS = "hoodie.cleaner.fileversions.retained" ["hoodie.clean.fileversions.retained"], "3", "KEEP_LATEST_FILE_VERSIONS: slices of each file group that stay";
    CLEAN_MAX_COMMITS = "hoodie.clean.max.commits" ["hoodie.clean.trigger.max.commits"], "1", "commits after a clean from which on the next is looked for";
    CLEAN_INCREMENTAL = "hoodie.cleaner.incremental.mode" ["hoodie.clean.incremental.enabled"], "true", "look only at partitions that were written to since the last clean";
    CLEAN_MULTIPLE = "hoodie.clean.allow.multiple" ["hoodie.clean.multiple.enabled"], "false", "plan a clean also where one is pending that cannot be finished now";
    CLEAN_PARALLELISM = "hoodie.cleaner.parallelism" ["hoodie.clean.parallelism"], "200", "folders listed, or files deleted, at a time by a clean; 32 at most";
    METRICS_ON = "hoodie.metrics.on", "false", "serve /metrics, /healthz and /readyz over HTTP";
    METRICS_REPORTER = "hoodie.metrics.reporter.type", "PROMETHEUS", "PROMETHEUS (in Hudi GRAPHITE, which is not done)";
    METRICS_HOST = "hoodie.metrics.prometheus.host", "0.0.0.0", "ours: address to serve them on";
    METRICS_PORT = "hoodie.metrics.prometheus.port", "9090", "port to serve them on; 0: any free one, which the log tells";
    METRICS_PREFIX = "hoodie.metrics.reporter.metricsname.prefix", "", "what the names of metrics begin with; default: the name of the table";
    HEALTH_STALL = "hoodie.streamer.health.stall.seconds", "600", "ours: a round without a sign of life for longer makes /healthz say 503";
    FSYNC = "hoodie.streamer.fsync", "true", "ours: on local disks what is committed survives a power cut; false: only a crash of the program";
    WORKERS = "hoodie.streamer.workers", "", "ours: threads that decode, merge and encode; default: the number of cores";
}

/// Keys that are accepted with the value we act by, and refused with any other: name, value, what to do.
pub(super) const FIXED: &[(&str, &str, &str)] = &[
    ("hoodie.metadata.enable", "false", "the metadata table is not maintained yet"),
    (
        "hoodie.archive.beyond.savepoint",
        "false",
        "readers of Hudi 0.15 do not see rows that were written between a savepoint and the next commit that is left",
    ),
    ("hoodie.archive.async", "false", "archiving follows each commit, or `hudi-streamer archive` does it"),
    ("hoodie.clean.trigger.strategy", "NUM_COMMITS", "a clean is due after hoodie.clean.max.commits"),
    ("hoodie.cleaner.delete.bootstrap.base.file", "false", "bootstrapped tables are not done"),
    ("hoodie.clean.delete.bootstrap.base.file", "false", "bootstrapped tables are not done"),
    ("hoodie.log.compaction.inline", "false", "log compaction is not done: compaction folds logs into base files"),
    ("hoodie.log.compaction.enable", "false", "log compaction is not done: compaction folds logs into base files"),
    (
        "hoodie.compaction.plan.generator",
        "org.apache.hudi.table.action.compact.plan.generators.HoodieCompactionPlanGenerator",
        "plans are made by our own generator; hoodie.compaction.strategy says what they take",
    ),
    ("hoodie.compact.merge.handle.class", "org.apache.hudi.io.HoodieMergeHandle", "there is one way to merge"),
    ("hoodie.clustering.inline", "false", "clustering is not done yet: run it from Spark"),
    ("hoodie.clustering.async.enabled", "false", "clustering is not done yet: run it from Spark"),
    ("hoodie.datasource.write.drop.partition.columns", "false", "partition columns stay in the files"),
    ("hoodie.populate.meta.fields", "true", "tables without meta columns are not done"),
    ("hoodie.datasource.hive_sync.enable", "false", "Hive sync is not done yet"),
    ("hoodie.datasource.meta.sync.enable", "false", "catalog sync is not done yet"),
    ("hoodie.schema.on.read.enable", "false", "schema-on-read is not done"),
    ("hoodie.write.table.version", "6", "table version 6 is what is written"),
    ("hoodie.write.auto.upgrade", "false", "a table keeps its version"),
    ("hoodie.table.cdc.enabled", "false", "change data capture is not done"),
    ("hoodie.table.base.file.format", "PARQUET", "base files are Parquet"),
    ("hoodie.partition.metafile.use.base.format", "false", "partition metafiles are text"),
    ("hoodie.allow.operation.metadata.field", "false", "the operation column is not done"),
    ("hoodie.combine.before.upsert", "true", "an upsert always combines, as Hudi's Streamer insists"),
    ("hoodie.rollback.using.markers", "true", "rollbacks use markers, and listing where there are none"),
    (
        "hoodie.errortable.write.failure.strategy",
        "ROLLBACK_COMMIT",
        "a round whose bad records cannot be kept is not committed",
    ),
    ("hoodie.errortable.validate.recordcreation.enable", "true", "rows without a key are bad records too"),
    ("hoodie.write.commit.callback.on", "false", "commit callbacks are not done yet"),
    ("hoodie.avro.schema.validate", "false", "evolution is always checked, by our own rules"),
    ("hoodie.streamer.source.sanitize.invalid.schema.field.names", "false", "name sanitising is not done"),
    (
        "hoodie.streamer.source.input.selector",
        "org.apache.hudi.utilities.sources.helpers.DFSPathSelector",
        "only DFSPathSelector is done",
    ),
    ("hoodie.streamer.sample.writes.enabled", "false", "record sizes come from the timeline"),
    ("hoodie.datasource.write.insert.drop.duplicates", "false", "use --filter-dupes"),
    ("hoodie.datasource.clustering.inline.enable", "false", "clustering is not done yet: run it from Spark"),
    ("hoodie.datasource.clustering.async.enable", "false", "clustering is not done yet: run it from Spark"),
    ("hoodie.partition.ttl.inline", "false", "partitions do not expire yet: drop them from Spark"),
    ("hoodie.table.service.manager.enabled", "false", "there is no table service manager"),
    ("hoodie.metaserver.enabled", "false", "the timeline is read from storage"),
    ("hoodie.merge.data.validation.enabled", "false", "a merge is not checked a second time"),
    ("hoodie.rollback.instant.backup.enabled", "false", "rolled back instants are not kept aside"),
    ("hoodie.assume.date.partitioning", "false", "partitions are found by their metadata files"),
    ("hoodie.streamer.source.parquet.dfs.merge_schema.enable", "false", "Parquet sources are not done yet"),
];

/// Keys that change nothing here, by prefix: sizing of Spark, caches, threads. Accepted with one warning.
pub(super) const IDLE_PREFIXES: &[&str] = &[
    "hoodie.embed.timeline.server",
    "hoodie.errortable.source.rdd.persist",
    "hoodie.errortable.validate.targetschema.enable",
    "hoodie.errortable.write.union.enable",
    "hoodie.filesystem.view.",
    "hoodie.memory.",
    "hoodie.common.spillable",
    "hoodie.common.diskmap",
    "hoodie.write.markers",
    "hoodie.markers.",
    "hoodie.write.status.storage.level",
    "hoodie.write.buffer",
    "hoodie.write.executor",
    "hoodie.write.wait.strategy",
    "hoodie.finalize.write.parallelism",
    "hoodie.rollback.parallelism",
    "hoodie.auto.commit",
    "hoodie.auto.adjust.lock.configs",
    "hoodie.consistency.check",
    "hoodie.datasource.write.row.writer.enable",
    "hoodie.streamer.write.row.writer.enable",
    "hoodie.bloom.index.use.",
    "hoodie.bucket.index.query.pruning",
    "hoodie.bloom.index.prune.by.ranges",
    "hoodie.bloom.index.bucketized.checking",
    "hoodie.bloom.index.keys.per.bucket",
    "hoodie.bloom.index.input.storage.level",
    "hoodie.simple.index.use.caching",
    "hoodie.simple.index.input.storage.level",
    "hoodie.sensitive.config.keys",
    "hoodie.streamer.source.kafka.retry.",
    "hoodie.streamer.source.kafka.fetch_partition.time.out",
    "hoodie.fail.on.timeline.archiving",
    "hoodie.archive.delete.parallelism",
    "hoodie.archive.merge.files.batch.size",
    "hoodie.parquet.outputtimestamptype",
    "hoodie.parquet.writelegacyformat",
    "hoodie.parquet.field_id",
    "hoodie.parquet.bloom.filter.enabled",
    "hoodie.archivelog.folder",
    "hoodie.bloom.index.fileid.key.sorting.enable",
    "hoodie.combine.before.delete",
    "hoodie.datasource.compaction.async.enable",
    "hoodie.compaction.lazy.block.read",
    "hoodie.compaction.reverse.log.read",
    "hoodie.datasource.query.",
    "hoodie.datasource.read.",
    "hoodie.datasource.write.streaming.",
    "hoodie.enable.data.skipping",
    "hoodie.file.index.",
    "hoodie.filesystem.operation.retry.",
    "hoodie.instant_state.",
    "hoodie.logfile.to.parquet.compression.ratio",
    "hoodie.payload.event.time.field",
    "hoodie.release.resource.on.completion.enable",
    "hoodie.schema.cache.enable",
    "hoodie.skip.default.partition.validation",
    "hoodie.storage.layout.",
    "hoodie.spark.sql.",
    "hoodie.sql.",
    "hoodie.time.generator.",
    "hoodie.write.tagged.record.storage.level",
    "hoodie.write.track.event.time.watermark",
];

/// Keys that would change rows, files or the table if they were left out, by prefix, and what to do instead. They come
/// before [`LATER_PREFIXES`].
pub(super) const REFUSED_PREFIXES: &[(&str, &str)] = &[
    ("hoodie.compaction.record.merger.", MERGE_RULE),
    ("hoodie.datasource.write.record.merger.", MERGE_RULE),
    ("hoodie.write.record.merge.", MERGE_RULE),
    ("hoodie.record.merge.", MERGE_RULE),
    ("hoodie.payload.delete.", "mark deletes with a boolean field _hoodie_is_deleted"),
    ("hoodie.datasource.write.partitions.to.delete", "delete partitions from Spark"),
    ("hoodie.datasource.insert.dup.policy", "use --filter-dupes"),
    ("hoodie.bulkinsert.user.defined.partitioner.", "choose an order with hoodie.bulkinsert.sort.mode"),
    ("hoodie.bootstrap.", "bootstrap a table with Hudi on Spark"),
    ("hoodie.index.class", OTHER_INDEX),
    ("hoodie.bucket.index.", "of the bucket index, hoodie.bucket.index.num.buckets and .hash.field are done"),
    ("hoodie.index.hbase.", OTHER_INDEX),
    ("hoodie.hbase.", OTHER_INDEX),
    ("hoodie.record.index.", OTHER_INDEX),
    ("hoodie.errortable.write.class", "leave it out: the error table is written without a class"),
    ("hoodie.precommit.validators", "check the table after the commit"),
    ("hoodie.keygen.datetime.parser.class", "give Joda patterns with hoodie.keygen.timebased.input.dateformat"),
    ("hoodie.streamer.schemaprovider.registry.schemaconverter", "register the schema as Avro"),
    (
        "hoodie.streamer.schemaprovider.registry.",
        "give the whole address with hoodie.streamer.schemaprovider.registry.url",
    ),
    ("schema.registry.ssl.key.password", PLAIN_KEY),
    ("schema.registry.ssl.keystore.password", PLAIN_KEY),
    ("schema.registry.ssl.truststore.password", "a PEM truststore has no password: leave it out"),
    ("hoodie.streamer.source.json.kafka.processor.", "shape the rows with a transformer"),
    (
        "hoodie.streamer.source.kafka.value.deserializer.schema",
        "it is the source schema, which the schema provider gives",
    ),
    ("hoodie.streamer.source.kafka.proto.", "ProtoKafkaSource is not done yet"),
    ("hoodie.streamer.source.kafka.offset.skip.buffer.minutes", "start from a timestamp, with --checkpoint"),
    ("hoodie.streamer.schemaprovider.schema_post_processor", SCHEMA_FILE),
    ("hoodie.table.recordkey.fields", "set hoodie.datasource.write.recordkey.field"),
    ("hoodie.table.partition.fields", "set hoodie.datasource.write.partitionpath.field"),
    ("hoodie.table.keygenerator.", "set hoodie.datasource.write.keygenerator.class"),
    ("hoodie.table.precombine.field", ORDERING),
    ("hoodie.table.ordering.fields", ORDERING),
];
const MERGE_RULE: &str = "choose a merge rule with --payload-class";
const SCHEMA_FILE: &str = "give the whole schema as a file, with hoodie.streamer.schemaprovider.source.schema.file";
const PLAIN_KEY: &str = "give the key in PEM without a password (openssl pkcs8 -topk8 -nocrypt), and leave this out";
const OTHER_INDEX: &str = "choose one of the indexes that are done with hoodie.index.type";
const ORDERING: &str = "name the ordering field with --source-ordering-field";

/// Keys that tune what is not done yet, by prefix, and what that is: accepted with a warning by name.
pub(super) const LATER_PREFIXES: &[(&str, &str)] = &[
    ("hoodie.archive.limit.", "a limit to one run of archiving"),
    ("hoodie.clustering.", "clustering"),
    ("hoodie.metadata.", "the metadata table"),
    ("hoodie.metrics.graphite.", "the GRAPHITE reporter"),
    ("hoodie.metrics.pushgateway.", "the PROMETHEUS_PUSHGATEWAY reporter"),
    ("hoodie.metrics.", "this part of metrics"),
    ("hoodie.write.lock.", "this part of locks"),
    ("hoodie.datasource.hive_sync.", "Hive sync"),
    ("hoodie.datasource.meta_sync.", "catalog sync"),
    ("hoodie.datasource.meta.sync.", "catalog sync"),
    ("hoodie.meta.sync.", "catalog sync"),
    ("hoodie.meta_sync.", "catalog sync"),
    ("hoodie.write.commit.callback.", "commit callbacks"),
    ("hoodie.streamer.source.dfs.datepartitioned.", "DatePartitionPathSelector"),
    ("hoodie.streamer.source.hoodieincr.", "HoodieIncrSource"),
    ("hoodie.streamer.source.cloud.", "sources over cloud events"),
    ("hoodie.streamer.source.sql.", "SqlSource"),
    ("hoodie.streamer.source.pulsar.", "PulsarSource"),
    ("hoodie.streamer.source.kinesis.", "KinesisSource"),
    ("hoodie.streamer.jdbc.", "JdbcSource"),
    ("hoodie.streamer.csv.", "CsvDFSSource"),
    ("hoodie.streamer.ingestion.", "several tables in one process"),
    ("hoodie.debezium.", "Debezium sources"),
    ("hoodie.streamer.sample.writes.", "trial writes"),
    ("hoodie.log.compaction.", "log compaction"),
    ("hoodie.layout.optimize.", "clustering"),
    ("hoodie.partition.ttl.", "the expiry of partitions"),
    ("hoodie.table.service.manager", "the table service manager"),
    ("hoodie.metaserver.", "the metaserver"),
    ("hoodie.timeline.compaction.", "archiving"),
    ("hoodie.write.concurrency.", "conflict detection"),
    ("hoodie.hfile.", "HFile base files"),
    ("hoodie.orc.", "ORC base files"),
];

/// Keys whose value must be what a flag says: name, flag.
pub(super) const SAME_AS_FLAG: &[(&str, &str)] = &[
    ("hoodie.table.name", "--target-table"),
    ("hoodie.datasource.write.table.name", "--target-table"),
    ("hoodie.base.path", "--target-base-path"),
    ("hoodie.table.type", "--table-type"),
    ("hoodie.datasource.write.table.type", "--table-type"),
    ("hoodie.datasource.write.operation", "--op"),
    ("hoodie.combine.before.insert", "--filter-dupes"),
];

/// Names of Hudi's keys, for those that are known but not done.
pub(super) fn known_to_hudi() -> impl Iterator<Item = &'static str> {
    include_str!("known_keys.txt").lines().filter(|l| !l.is_empty() && !l.starts_with('#'))
}

/// From here on a name counts as misspelt rather than foreign.
const NEAR: f64 = 0.85;

/// The key whose name is nearest, if one is near.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let ours = ALL.iter().map(|k| k.name).chain(FIXED.iter().map(|f| f.0));
    let all = ours.chain(known_to_hudi());
    let scored = all.map(|known| (strsim::normalized_damerau_levenshtein(known, name), known));
    scored.filter(|(score, _)| *score >= NEAR).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}
