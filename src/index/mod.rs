//! Which file group holds a key: SIMPLE and BLOOM, per partition or global (semantics.md §5).
//!
//! Reads base files, writes nothing; knows records and tables, no sources. Look at [`tag`] first. Invariant: a key that
//! a visible base file holds is always found.

use crate::config::IndexConfig;
use crate::record::{KeyedBatch, RowRef};
use crate::table::{BaseFile, FileSystemView, Table};

/// Rows and where their keys live.
#[derive(Debug)]
pub struct Tagged {
    pub batches: Vec<KeyedBatch>,
    /// The rows that count, in arrival order.
    pub rows: Vec<TaggedRow>,
    /// File groups that hold at least one of the keys.
    pub groups: Vec<BaseFile>,
    /// Global indexes: stored rows that move away; the row of `groups[group]` with `rows[..]`'s key is deleted there.
    pub moves: Vec<Move>,
}

/// One incoming row.
#[derive(Debug, Clone, Copy)]
pub struct TaggedRow {
    pub row: RowRef,
    /// Index into [`Tagged::groups`]; `None`: a new key.
    pub group: Option<u32>,
}

/// A record whose partition changed under a global index: delete in the old group, insert in the new partition.
#[derive(Debug, Clone, Copy)]
pub struct Move {
    pub row: RowRef,
    pub group: u32,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Table(#[from] crate::table::Error),
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Error::Table(e) => e.code(),
        }
    }
}

pub type Result<T> = std::result::Result<T, Error>;

/// Looks the keys of `rows` up in the latest base files. CPU and reads run on `workers` blocking threads.
pub async fn tag(
    _table: &Table,
    _view: &FileSystemView,
    _config: &IndexConfig,
    _workers: usize,
    _batches: Vec<KeyedBatch>,
    _rows: Vec<RowRef>,
) -> Result<Tagged> {
    todo!()
}
