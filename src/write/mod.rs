//! Rows to files: assignment to file groups (small files first), create, merge and append handles, write statuses.
//!
//! ```text
//! Tagged ─▶ assign ─▶ Plan ─▶ execute ─┬─▶ create ─┐
//!                                      ├─▶ merge ──┼─▶ data_file ─▶ table::base_file::Writer ─▶ WriteStatus
//!                                      └─▶ append ─┼──────────────▶ table::log_file::LogWriter ─▶ WriteStatus
//! streams of rows ─▶ bulk (─▶ sort) ────▶ create ──┤
//! FileSlice ─────────────────────────────▶ compact ─┘
//! ```
//!
//! `assign` is pure; `create` rolls files by size; `merge` rewrites one file group, whose row groups stay where `row_groups`
//! says so; `append` puts its changes into a log file; `data_file` names one base file, marks it and fills the five meta
//! columns. Runs under an open instant; knows records, index and table, no sources. Look at [`WriteContext`] first.
//! Invariants: a marker stands before each data file; untouched stored rows keep their commit time and seqno; nothing written
//! here is part of the table until the instant is completed.

mod append;
mod assign;
mod bulk;
mod compact;
mod create;
mod data_file;
mod merge;
mod meta;
mod row_groups;
mod sort;
mod status;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use assign::{Plan, assign};
pub use bulk::bulk_insert;
pub use compact::compact;
pub use status::{WriteStatus, finalize};

use crate::config::{IndexConfig, Operation, WriteConfig};
use crate::index::KeyCache;
use crate::record::MergeRule;
use crate::schema::TableSchema;
use crate::table::{InstantTime, Table, Timeline};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio_util::sync::CancellationToken;

/// Rows that are merged, keyed and encoded at a time.
pub(crate) const BATCH_ROWS: usize = 8192;

/// What a write under one instant needs to know.
#[derive(Debug, Clone)]
pub struct WriteContext {
    pub table: Table,
    /// What the file groups were chosen by: whose blocks in their logs count.
    pub timeline: Arc<Timeline>,
    pub instant: InstantTime,
    /// Third part of the write tokens: another one for each attempt at an instant that is written more than once.
    pub attempt: u32,
    pub config: WriteConfig,
    pub index: IndexConfig,
    pub operation: Operation,
    pub rule: MergeRule,
    /// Dotted path of the ordering field, for rules that compare with the stored row.
    pub ordering_field: Option<String>,
    /// Writer schema, without meta columns.
    pub schema: TableSchema,
    /// Average bytes a record, from the timeline (semantics.md §6.1).
    pub average_record_size: u64,
    /// Asked between batches: a write that is cancelled ends with [`Error::Cancelled`] and leaves what a crash leaves.
    pub cancel: CancellationToken,
    /// Rows given to file writers so far, for progress.
    pub rows_written: Arc<AtomicU64>,
    /// Told of the keys of base files that are written, where there is one.
    pub key_cache: Option<Arc<KeyCache>>,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Table(#[from] crate::table::Error),
    #[error(transparent)]
    Storage(#[from] crate::storage::Error),
    #[error(transparent)]
    Schema(#[from] crate::schema::Error),
    #[error(transparent)]
    Record(#[from] crate::record::Error),
    /// A row cannot be a record of a log.
    #[error(transparent)]
    Encode(#[from] crate::codec::avro::AvroError),
    #[error(transparent)]
    Slice(#[from] crate::slice::Error),
    /// Rows do not have the writer schema, or one column of a batch outgrows what a column may hold.
    #[error("put rows into columns: {0}")]
    Columns(#[from] arrow::error::ArrowError),
    /// One file could not be written.
    #[error("{doing} {path}: {source}")]
    File { doing: &'static str, path: String, source: Box<Error> },
    #[error(
        "update file group {file_id} in partition {partition:?}: a pending clustering is going to replace it; let the \
         clustering finish, or roll it back, first"
    )]
    PendingClustering { partition: String, file_id: String },
    #[error(
        "put record {key:?} into a log file of group {file_id} in partition {partition:?}: {field}, by which the table orders \
         records, is null, and readers of logs fail on that; give each row a value, or leave out those without one"
    )]
    NullOrdering { partition: String, file_id: String, key: String, field: String },
    #[error("the write was cancelled")]
    Cancelled,
    /// The rows could not be read; the streamer finds the room that failed inside.
    #[error(transparent)]
    Input(#[from] datafusion::error::DataFusionError),
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Error::Table(e) => e.code(),
            Error::Storage(e) => e.code(),
            Error::Schema(e) => e.code(),
            Error::Record(e) => e.code(),
            Error::Encode(e) => e.code(),
            Error::Slice(e) => e.code(),
            Error::Columns(_) => "write-columns",
            Error::File { source, .. } => source.code(),
            Error::PendingClustering { .. } => "write-pending-clustering",
            Error::NullOrdering { .. } => "write-null-ordering",
            Error::Cancelled => "write-cancelled",
            Error::Input(_) => "write-input",
        }
    }

    /// Whether the same write may go through later without anybody's help.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Storage(e) | Error::Table(crate::table::Error::Storage(e)) => e.is_retryable(),
            Error::Slice(e) => e.is_retryable(),
            Error::File { source, .. } => source.is_retryable(),
            _ => false,
        }
    }

    /// Names the file that was being written; a cancelled write is no fault of the file.
    fn in_file(self, doing: &'static str, path: &str) -> Error {
        match self {
            Error::Cancelled => Error::Cancelled,
            source => Error::File { doing, path: path.to_string(), source: Box::new(source) },
        }
    }
}

pub type Result<T> = std::result::Result<T, Error>;
