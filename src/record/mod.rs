//! What makes a row a record: record key, partition path, ordering value; one row a key; the merge rules.
//!
//! Pure functions on Arrow batches; sees config alone, knows no files. Look at [`KeyedBatch`] first. Invariants: the
//! data columns of a keyed batch are in writer-schema order and nothing else; keys are never null or empty; nothing here
//! allocates per row except texts that do not exist in a column already.

mod field;
mod keygen;
mod merge;
mod precombine;
mod refuse;

pub use field::{ordering_column, top_level};
pub use keygen::{KeyGenerator, RecordOptions, has_delete_flag, nested_clash};
pub use merge::MergeRule;
pub use precombine::{Deduplicated, hash_key, precombine};
pub use refuse::{Refuse, Refused};

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, StringArray};
use std::sync::Arc;

/// Rows with what identifies and orders them.
#[derive(Debug, Clone)]
pub struct KeyedBatch {
    /// Data columns, in writer-schema order, no meta columns, no hidden ones. What a tombstone has in them means nothing.
    pub rows: RecordBatch,
    pub keys: StringArray,
    pub partitions: PartitionColumn,
    /// `None` without an ordering field (last arrival wins). A null is newer than all that came before, stored rows included,
    /// and older than all that comes after: a tombstone, or after [`precombine`] a row that came after one of its key.
    pub ordering: Option<ArrayRef>,
    /// True where `_hoodie_is_deleted` is true and for tombstones; `None` if no row is deleted.
    pub deleted: Option<BooleanArray>,
}

impl KeyedBatch {
    /// Bytes that it holds.
    pub fn memory(&self) -> usize {
        // Keys are mostly a column of the rows.
        let ordering = self.ordering.as_ref().map_or(0, |ordering| ordering.get_array_memory_size());
        self.rows.get_array_memory_size() + ordering + self.partitions.ids.len() * size_of::<u32>()
    }
}

/// The partition path of each row: an index into a short list of paths.
#[derive(Debug, Clone, Default)]
pub struct PartitionColumn {
    pub ids: Vec<u32>,
    pub paths: Arc<Vec<String>>,
}

impl PartitionColumn {
    pub fn path(&self, row: usize) -> &str {
        &self.paths[self.ids[row] as usize]
    }
}

/// Position of a row among several batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowRef {
    pub batch: u32,
    pub row: u32,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("record key field {field} is null or empty in {row}; every row needs a key")]
    NullKey { field: String, position: Option<u64>, row: String },
    #[error(
        "ordering value {field} of record {key} is null; every row needs one, or name another --source-ordering-field"
    )]
    NullOrdering { field: String, key: String, position: Option<u64> },
    #[error("{role} {field} is not in the schema, whose fields are {fields}")]
    MissingField { role: &'static str, field: String, fields: String },
    #[error("no record key can be made of a message without a value (a tombstone) whose key is {key:?}: {why}")]
    TombstoneKey { key: String, why: String, position: Option<u64> },
    #[error("partition path {value:?} of record {key}: {why}")]
    BadPartition { value: String, key: String, why: String, position: Option<u64> },
    /// Whoever counts the rows that make no record has had enough of them, and knows them.
    #[error("too many rows make no record")]
    Stopped,
    #[error("{what}")]
    Unsupported { what: String },
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Error::NullKey { .. } => "record-null-key",
            Error::NullOrdering { .. } => "record-null-ordering",
            Error::MissingField { .. } => "record-missing-field",
            Error::TombstoneKey { .. } => "record-tombstone-key",
            Error::BadPartition { .. } => "record-bad-partition",
            Error::Stopped => "source-bad-records",
            Error::Unsupported { .. } => "record-unsupported",
        }
    }
    /// The source position of the row at fault, if it was carried along.
    pub fn position(&self) -> Option<u64> {
        match self {
            Error::NullKey { position, .. }
            | Error::NullOrdering { position, .. }
            | Error::TombstoneKey { position, .. }
            | Error::BadPartition { position, .. } => *position,
            _ => None,
        }
    }
}

pub type Result<T> = std::result::Result<T, Error>;
