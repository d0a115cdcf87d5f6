//! What `hudi-streamer checkpoint` needs to know: far less than a job, from the same flags and files.

use super::{CheckpointConfig, ConcurrencyConfig, KafkaConfig, SourceClass, StorageConfig};

/// What an operator asks of the positions of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PositionsCommand {
    /// Where the job stands, and how it came there.
    Show { history: usize, json: bool },
    /// A commit without rows that carries this position.
    Set { checkpoint: String, how: SetHow },
    /// A position found at the source: printed, or, with `set`, set as by [`PositionsCommand::Set`].
    From { start: StartFrom, set: Option<SetHow> },
}

/// How a position is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetHow {
    /// Say what would change, and write nothing.
    pub dry_run: bool,
    /// Set it in spite of doubts.
    pub force: bool,
}

/// Where a position is taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartFrom {
    /// Milliseconds since 1970: the first record that is not older.
    Timestamp(i64),
    /// The committed offsets of a consumer group.
    Group(String),
    Earliest,
}

/// The part of a job's configuration that positions depend on.
#[derive(Debug, Clone)]
pub struct PositionsConfig {
    /// `--target-base-path`; empty where no table is asked.
    pub base_path: String,
    /// `--target-table`, where given: must be the table's own name.
    pub table_name: Option<String>,
    pub storage: StorageConfig,
    pub concurrency: ConcurrencyConfig,
    pub source: SourceClass,
    /// Hudi's name of the class.
    pub source_name: &'static str,
    /// False when the class is Hudi's default.
    pub source_given: bool,
    /// Of a Kafka source: the topic, where given.
    pub topic: Option<String>,
    /// Of a Kafka source whose brokers are configured.
    pub kafka: Option<KafkaConfig>,
    /// The flags `--checkpoint` and `--ignore-checkpoint` of the job, which count for what its next run does.
    pub checkpoint: CheckpointConfig,
    /// `--log-json`
    pub log_json: bool,
    pub warnings: Vec<String>,
}
