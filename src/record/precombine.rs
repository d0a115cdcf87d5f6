//! One row a key within a batch: greatest ordering value wins, a tie goes to the later arrival (semantics.md §2).

use super::{KeyedBatch, Result, RowRef};

/// The winners, in arrival order of the winning rows.
#[derive(Debug, Clone, Default)]
pub struct Deduplicated {
    pub winners: Vec<RowRef>,
    /// Rows that lost.
    pub dropped: u64,
}

/// `global`: the key alone identifies a record (global indexes); else key and partition path.
pub fn precombine(_batches: &[KeyedBatch], _global: bool) -> Result<Deduplicated> {
    todo!()
}
