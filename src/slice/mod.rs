//! A file slice as merged rows: a base file and the log files on top of it (log-file.md §10, semantics.md §3).
//!
//! ```text
//! log files ─▶ blocks ─▶ which count ─▶ fold ─▶ one winner a key ─┐
//!                                                                ├─▶ MergedBatch
//! base file ─▶ batches, in file order ───────────────────────────┘
//! ```
//!
//! Reads, writes nothing; sees records, schemas and tables, no indexes and no services. Look at [`merge`] first. Invariants:
//! a row comes out as Hudi's own reader has it, whatever the budget of memory; rows keep the meta columns that they were
//! stored with; memory follows the budget and the number of keys in the logs, never the base file.

mod error;

pub use error::{Error, Result};

use crate::record::MergeRule;
use crate::schema::TableSchema;
use crate::table::{FileSlice, Table, Timeline};
use arrow::array::RecordBatch;

/// What rows come out as, and what decides between records of one key.
#[derive(Debug, Clone)]
pub struct SliceOptions {
    /// The rows' schema, with meta columns. It may have fewer columns than the files, but always `_hoodie_record_key`, and
    /// the ordering field and `_hoodie_is_deleted` where the table has them.
    pub schema: TableSchema,
    pub rule: MergeRule,
    /// `hoodie.table.precombine.field`. As in Hudi a dotted path means nothing among log records, of which the last wins
    /// then; against the base file it does.
    pub ordering_field: Option<String>,
    /// Bytes for rows of the logs and the table of their keys. What does not fit is read from the logs again, window by
    /// window of the base file.
    pub memory: usize,
    /// Rows in a batch.
    pub batch_rows: usize,
}

/// Rows of a slice, and what was done to get them.
#[derive(Debug)]
pub struct MergedBatch {
    /// In the schema of the options, meta columns as they are stored: `_hoodie_file_name` says where a row was.
    pub rows: RecordBatch,
    /// Rows of the base file that log records took the place of.
    pub updates: u64,
    /// Rows of log records that the base file did not have.
    pub inserts: u64,
    /// Rows of the base file that are gone.
    pub deletes: u64,
}

/// What was read of the logs, as Hudi counts it for the statistics of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogTotals {
    pub log_files: u64,
    pub log_bytes: u64,
    pub log_blocks: u64,
    pub corrupt_blocks: u64,
    /// Blocks that rollbacks took away.
    pub rollback_blocks: u64,
    /// Records in the data blocks that count.
    pub log_records: u64,
    /// Keys that the logs say something of.
    pub updated_records: u64,
    /// Time that reading the logs and folding them took.
    pub scan_ms: u64,
}

/// The rows of a slice: those of the base file in its order, then those that only the logs have, in the order in which
/// their keys came.
///
/// Folds the logs before it returns; the base file is read as batches are taken. Blocks count if their instant is completed
/// on `timeline`; those behind the newest completed write or rollback are left out (§10.1 says why rollbacks are asked
/// too). For a blocking thread inside a tokio runtime.
pub fn merge(_table: &Table, _timeline: &Timeline, _slice: &FileSlice, _options: &SliceOptions) -> Result<Merged> {
    Err(Error::NotDone)
}

/// See [`merge`]. Ends after an error.
pub struct Merged {
    totals: LogTotals,
}

impl Merged {
    pub fn totals(&self) -> LogTotals {
        self.totals
    }
}

impl Iterator for Merged {
    type Item = Result<MergedBatch>;

    fn next(&mut self) -> Option<Result<MergedBatch>> {
        None
    }
}
