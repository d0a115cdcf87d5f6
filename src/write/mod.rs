//! Rows to files: assignment to file groups (small files first), create and merge handles, write statuses.
//!
//! Runs under an open instant; knows records, index and table, no sources. Look at [`WriteContext`] first. Invariants: a
//! marker stands before each data file; untouched stored rows keep their commit time and seqno; nothing written here is
//! part of the table until the instant is completed.

use crate::config::{IndexConfig, Operation, WriteConfig};
use crate::index::Tagged;
use crate::record::{KeyGenerator, KeyedBatch, MergeRule};
use crate::schema::TableSchema;
use crate::table::{FileSystemView, InstantTime, Table, WriteStat};
use datafusion::execution::SendableRecordBatchStream;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio_util::sync::CancellationToken;

/// What a write under one instant needs to know.
#[derive(Debug, Clone)]
pub struct WriteContext {
    pub table: Table,
    pub instant: InstantTime,
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
}

/// The outcome of one written file.
#[derive(Debug, Clone)]
pub struct WriteStatus {
    pub stat: WriteStat,
}

/// What is going to be written: the basis of the inflight file's workload profile.
#[derive(Debug)]
pub struct Plan;

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
            Error::Cancelled => "write-cancelled",
            Error::Input(_) => "write-input",
        }
    }
}

pub type Result<T> = std::result::Result<T, Error>;

/// Upsert and insert: updates go to their groups, inserts to small files, then to new groups.
pub fn assign(_context: &WriteContext, _tagged: Tagged, _view: &FileSystemView) -> Result<Plan> {
    todo!()
}

impl Plan {
    /// The inflight file's content (timeline.md §7.4).
    pub fn workload_profile(&self) -> crate::table::CommitMetadata {
        todo!()
    }
    pub async fn execute(self, _context: Arc<WriteContext>) -> Result<Vec<WriteStatus>> {
        todo!()
    }
}

/// Bulk insert: streams rows into new file groups without looking anything up, in the configured sort mode.
/// `pieces` are read by `workers` blocking threads, each piece by one thread, a free thread taking the next; memory is
/// bounded by the open writers, whose row groups are flushed when they hold too much.
pub async fn bulk_insert(
    _context: Arc<WriteContext>,
    _pieces: Vec<SendableRecordBatchStream>,
    _keys: KeyGenerator,
) -> Result<Vec<WriteStatus>> {
    todo!()
}

/// Before the commit point: deletes files that have a marker but no status (table-services.md §1, step 13).
pub async fn finalize(_context: &WriteContext, _statuses: &[WriteStatus]) -> Result<()> {
    todo!()
}

#[allow(unused)]
fn _unused(_: KeyedBatch) {}
