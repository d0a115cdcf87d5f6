//! What an operator asks about a table.

use super::StorageConfig;
use std::path::PathBuf;

/// `hudi-streamer table …`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableCommand {
    /// The table at a glance.
    Show,
    /// Its instants, newest first.
    Timeline { limit: usize, archived: bool },
    /// The position of the job that feeds it.
    Checkpoint { history: usize },
    /// Its file groups.
    Files(FilesCommand),
    /// Whether it is whole.
    Verify(VerifyCommand),
}

/// `hudi-streamer table files`
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilesCommand {
    /// This one alone, slice by slice; `None`: a line a partition.
    pub partition: Option<String>,
    /// Slice by slice, of every partition.
    pub slices: bool,
}

/// `hudi-streamer table verify`
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyCommand {
    /// This one alone.
    pub partition: Option<String>,
    pub unique: UniqueKeys,
    /// Decode every column, not only Hudi's own.
    pub all_columns: bool,
    /// Folder for the keys that do not fit into memory; `None`: the machine's own for temporary files.
    pub spill: Option<PathBuf>,
}

/// Within what a record key is to be there once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UniqueKeys {
    #[default]
    Partition,
    Table,
    /// Keys are not compared.
    Nowhere,
}

/// What is known before the table is looked at.
#[derive(Debug, Clone)]
pub struct InspectConfig {
    pub base_path: String,
    pub storage: StorageConfig,
    /// `--target-table`, where given: must be the table's own name.
    pub table_name: Option<String>,
    /// `--json`
    pub json: bool,
    /// `hoodie.parquet.small.file.limit`, bytes: what counts as a small file.
    pub small_file_limit: u64,
    /// Files that are read at a time.
    pub workers: usize,
    /// Not with `--no-progress`.
    pub progress: bool,
    /// `--log-json`
    pub log_json: bool,
    pub warnings: Vec<String>,
}
