//! What the commands for services need to know (`hudi-streamer clean`, `archive`, `savepoint`, `rollback`, `restore`).

/// A service that an operator asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceCommand {
    Clean,
    Archive,
    Savepoint(SavepointCommand),
    /// `None`: the newest write.
    Rollback {
        instant: Option<String>,
    },
    /// `None`: to the newest savepoint.
    Restore {
        instant: Option<String>,
    },
}

/// What is to be done about savepoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SavepointCommand {
    /// `None`: of the newest completed write.
    Create {
        instant: Option<String>,
        user: String,
        comments: String,
    },
    Delete {
        instant: String,
    },
    List,
}

/// How a command acts and answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServiceOptions {
    /// `--dry-run`: say what would be done, and write nothing.
    pub dry_run: bool,
    /// `--json`: the answer for machines.
    pub json: bool,
}

/// The part of a job's configuration that services depend on.
#[derive(Debug, Clone)]
pub struct ServiceConfig {
    /// `--target-base-path`
    pub base_path: String,
    /// `--target-table`, where given: must be the table's own name.
    pub table_name: Option<String>,
    pub storage: super::StorageConfig,
    pub concurrency: super::ConcurrencyConfig,
    pub clean: super::CleanConfig,
    pub archive: super::ArchiveConfig,
    /// When the next compaction comes due: archiving leaves it what it counts.
    pub trigger: super::CompactionTrigger,
    /// `--log-json`
    pub log_json: bool,
    pub warnings: Vec<String>,
}
