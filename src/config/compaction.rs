//! How a merge-on-read table is compacted: by the job that writes it, or by `hudi-streamer compact`.

use super::{ConcurrencyConfig, IndexConfig, PayloadClass, StorageConfig, WriteConfig};

/// When compaction is due, what it takes, and who does it.
#[derive(Debug, Clone)]
pub struct CompactionConfig {
    pub mode: CompactionMode,
    pub trigger: CompactionTrigger,
    pub selection: CompactionSelection,
    /// `hoodie.memory.compaction.max.size`, bytes: rows of log files held at a time for one file group.
    pub memory: usize,
    /// Threads that compact: all of them where nothing is ingested meanwhile.
    pub workers: usize,
    /// `--max-pending-compactions`: with more of them waiting no round begins.
    pub max_pending: usize,
    /// `--retry-last-pending-inline-compaction`: it is run before the round, too.
    pub retry_last_pending: bool,
    /// `hoodie.fail.writes.on.inline.table.service.exception`: a failure behind the commit ends a one-shot job with its error.
    pub fails_the_job: bool,
}

/// What the job that writes the table does about compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionMode {
    /// Nothing.
    Off,
    /// It makes plans, and somebody else executes them: `--disable-compaction` with `hoodie.compact.schedule.inline=true`.
    Schedule,
    /// Plan and execution behind the commit of a one-shot job.
    Inline,
    /// Plans between the rounds of a continuous job, execution beside them.
    Beside,
}

/// When a plan is due (`hoodie.compact.inline.*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionTrigger {
    pub strategy: TriggerStrategy,
    pub max_delta_commits: u64,
    pub max_delta_seconds: u64,
}

/// `hoodie.compact.inline.trigger.strategy` (`CompactionTriggerStrategy`, Hudi 0.15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerStrategy {
    NumCommits,
    NumCommitsAfterLastRequest,
    TimeElapsed,
    NumOrTime,
    NumAndTime,
}

/// What a plan takes of that which could be compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionSelection {
    pub strategy: SelectionStrategy,
    /// `hoodie.compaction.target.io`, MB read and written by one compaction.
    pub target_io_mb: u64,
    /// `hoodie.compaction.logfile.size.threshold`, bytes of log files of a group.
    pub log_size_threshold: u64,
    /// `hoodie.compaction.logfile.num.threshold`, log files of a group.
    pub log_count_threshold: u64,
    /// `hoodie.compaction.daybased.target.partitions`: partitions, or days back from today.
    pub target_partitions: usize,
}

/// `hoodie.compaction.strategy` (`org.apache.hudi.table.action.compact.strategy`, Hudi 0.15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectionStrategy {
    LogFileSizeBased,
    LogFileNumBased,
    BoundedIo,
    DayBased,
    BoundedPartitionAware,
    UnboundedPartitionAware,
    Unbounded,
}

/// What an operator asks of the compactions of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactCommand {
    pub mode: CompactMode,
    /// `--instant-time`: the plan to execute, or the instant to make one at.
    pub instant: Option<String>,
    /// `--retry`: tries more, where a failure may pass.
    pub retries: u32,
}

/// `--mode` (`HoodieCompactor`, Hudi 0.15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactMode {
    Schedule,
    Execute,
    ScheduleAndExecute,
}

/// The part of a job's configuration that compaction depends on.
#[derive(Debug, Clone)]
pub struct CompactConfig {
    /// `--target-base-path`
    pub base_path: String,
    /// `--target-table`, where given: must be the table's own name.
    pub table_name: Option<String>,
    pub storage: StorageConfig,
    pub concurrency: ConcurrencyConfig,
    pub compaction: CompactionConfig,
    pub write: WriteConfig,
    pub index: IndexConfig,
    /// Where the user chose it: must be the table's own.
    pub payload: Option<PayloadClass>,
    /// `--log-json`
    pub log_json: bool,
    pub warnings: Vec<String>,
}
