//! Every metric, once, as data: its group and name, and what it says.
//!
//! Hudi's are gauges under Hudi's names (`HoodieStreamerMetrics`, `HoodieMetrics`, 1.0.2), so that dashboards go on working;
//! ours are what Hudi cannot tell: totals that survive a missed scrape, lag by partition, time by stage.

/// A metric: `<prefix>_<group>_<name>`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Metric {
    pub group: &'static str,
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Gauge,
    Counter,
    Histogram,
}

/// The group of what is told of a commit; `deltacommit` for merge-on-read tables.
pub(super) const COMMIT: &str = "commit";

macro_rules! metrics {
    ($($id:ident = $kind:ident $group:literal $name:literal, $help:literal;)+) => {
        $(pub(super) const $id: Metric = Metric { group: $group, name: $name, kind: Kind::$kind, help: $help };)+
        /// All of them.
        pub(super) const ALL: &[&Metric] = &[$(&$id),+];
    };
}

metrics! {
    DURATION = Gauge "deltastreamer" "duration", "milliseconds of the last round that went through";
    LAST_SYNC = Gauge "deltastreamer" "lastSync", "epoch milliseconds of the end of the last round that went through, also one without new data";
    HEARTBEAT = Gauge "deltastreamer" "heartbeatTimestampMs", "epoch milliseconds of the start of the last round";
    KAFKA_DELAY = Gauge "deltastreamer" "kafkaDelayCount", "messages between the checkpoint and the end of the topic when the last round began";
    KAFKA_LAG = Gauge "deltastreamer" "kafkaPartitionLag", "ours: the same by topic and partition";
    KAFKA_IN = Gauge "deltastreamer" "kafkaMessageInCount", "messages of the last round";
    PARALLELISM = Gauge "deltastreamer" "sourceParallelism", "pieces that the last batch was read in";
    BYTES_TO_INGEST = Gauge "deltastreamer" "sourceBytesToBeIngestedInSyncRound", "bytes of the last batch, as far as the source knows before it reads";
    SUCCESSFUL = Gauge "deltastreamer" "numSuccessfulSyncs", "rounds that went through since the start, also those without new data";
    FAILED = Gauge "deltastreamer" "numFailedSyncs", "rounds that failed since the start";
    CONSECUTIVE = Gauge "deltastreamer" "numConsecutiveFailures", "rounds that failed since one went through";
    TOTAL_SYNC = Gauge "deltastreamer" "totalSyncDurationMs", "milliseconds from the end of the last round to the end of this one: work and waiting";
    ACTUAL_SYNC = Gauge "deltastreamer" "actualSyncDurationMs", "milliseconds of work in the last round, whatever became of it";

    PARTITIONS_WRITTEN = Gauge "commit" "totalPartitionsWritten", "partitions of the last commit";
    FILES_INSERT = Gauge "commit" "totalFilesInsert", "new file groups of the last commit";
    FILES_UPDATE = Gauge "commit" "totalFilesUpdate", "rewritten file groups of the last commit";
    RECORDS_WRITTEN = Gauge "commit" "totalRecordsWritten", "rows in the files of the last commit, copied ones too";
    RECORDS_UPDATE = Gauge "commit" "totalUpdateRecordsWritten", "rows that the last commit updated";
    RECORDS_INSERT = Gauge "commit" "totalInsertRecordsWritten", "rows that the last commit inserted";
    RECORDS_DELETED = Gauge "commit" "totalRecordsDeleted", "rows that the last commit deleted";
    BYTES_WRITTEN = Gauge "commit" "totalBytesWritten", "bytes of the files of the last commit";
    SCAN_TIME = Gauge "commit" "totalScanTime", "0: there are no log files to scan";
    CREATE_TIME = Gauge "commit" "totalCreateTime", "milliseconds spent on new files, summed over them";
    UPSERT_TIME = Gauge "commit" "totalUpsertTime", "milliseconds spent on merges, summed over files";
    COMPACTED_RECORDS = Gauge "commit" "totalCompactedRecordsUpdated", "0: compactions tell of themselves";
    LOG_FILES_COMPACTED = Gauge "commit" "totalLogFilesCompacted", "0: compactions tell of themselves";
    LOG_FILES_SIZE = Gauge "commit" "totalLogFilesSize", "0: compactions tell of themselves";
    COMMIT_TIME = Gauge "commit" "commitTime", "epoch milliseconds of the instant of the last commit";
    COMMIT_DURATION = Gauge "commit" "duration", "milliseconds from that instant to its completion";
    COMMIT_LATENCY = Gauge "commit" "commitLatencyInMs", "completion of the last commit less the oldest event time in it; no value without event times";
    COMMIT_FRESHNESS = Gauge "commit" "commitFreshnessInMs", "completion of the last commit less the newest event time in it; no value without event times";

    COMPACTION_DURATION = Gauge "compaction" "duration", "milliseconds of the last compaction";
    COMPACTION_RECORDS = Gauge "compaction" "totalRecordsWritten", "rows in the base files of the last compaction";
    COMPACTION_BYTES = Gauge "compaction" "totalBytesWritten", "bytes of the base files of the last compaction";
    COMPACTION_UPDATED = Gauge "compaction" "totalCompactedRecordsUpdated", "keys that the log files of the last compaction came down to";
    COMPACTION_LOG_FILES = Gauge "compaction" "totalLogFilesCompacted", "log files of the last compaction";
    COMPACTION_LOG_BYTES = Gauge "compaction" "totalLogFilesSize", "bytes of the log files of the last compaction";
    COMPACTION_SCAN_TIME = Gauge "compaction" "totalScanTime", "milliseconds spent on log files, summed over file groups";
    COMPACTIONS_REQUESTED = Gauge "compaction" "requested_counter", "compactions planned since the start";
    COMPACTIONS_COMPLETED = Gauge "compaction" "completed_counter", "compactions completed since the start";
    COMPACTIONS_FAILED = Counter "compaction" "failures_total", "ours: compactions that failed since the start, by error code; each is tried again";
    COMPACTIONS_PENDING = Gauge "compaction" "pending", "ours: compactions that are planned and not completed";

    ARCHIVE_DURATION = Gauge "archive" "duration", "milliseconds of the last run of archiving that found something";
    ARCHIVE_INSTANTS = Gauge "archive" "deleteInstantsNum", "instants that it moved to the archived timeline";
    ARCHIVES_FAILED = Counter "archive" "failures_total", "ours: runs of archiving that failed since the start, by error code; each is tried again";

    CLEAN_DURATION = Gauge "clean" "duration", "milliseconds of the last clean";
    CLEAN_FILES = Gauge "clean" "numFilesDeleted", "files that the last clean deleted";
    CLEANS_FAILED = Counter "clean" "failures_total", "ours: cleans that failed since the start, by error code; each is tried again";

    ROLLBACK_DURATION = Gauge "rollback" "duration", "milliseconds of the last rollback";
    ROLLBACK_FILES = Gauge "rollback" "numFilesDeleted", "files that the last rollback deleted";

    ROUNDS = Counter "deltastreamer" "rounds_total", "ours: rounds since the start, by outcome: committed, idle, failed, interrupted";
    FAILURES = Counter "deltastreamer" "failures_total", "ours: failed tries since the start, by error code; retries inside a round count too";
    ROWS_READ = Counter "deltastreamer" "rowsRead_total", "ours: rows read by committed rounds";
    ROWS_COMBINED = Counter "deltastreamer" "rowsCombined_total", "ours: rows that lost to a row of the same key in their batch";
    ROWS_FILTERED = Counter "deltastreamer" "rowsFiltered_total", "ours: rows dropped because their key was stored already";
    ROWS_WRITTEN = Counter "deltastreamer" "rowsWritten_total", "ours: rows written since the start, by kind: insert, update, delete";
    BYTES_READ = Counter "deltastreamer" "bytesRead_total", "ours: bytes of input of committed rounds";
    OFFSETS_LOST = Counter "deltastreamer" "lostOffsets_total", "ours: offsets of the topic that expired before they were read";
    BAD_RECORDS = Counter "deltastreamer" "badRecords_total", "ours: records that could not be decoded or make no row, by what became of them: skipped, quarantined, failed (their round)";
    STAGE_SECONDS = Histogram "deltastreamer" "stageSeconds", "ours: seconds by stage of a committed round";
}
