//! One row a key within a batch: greatest ordering value wins, a tie goes to the later arrival (semantics.md §2). A tombstone,
//! which has no ordering value, wins over all that came before it and loses to all that comes after.

use super::{Error, KeyedBatch, Result, RowRef};
use arrow::array::{Array, ArrayRef, BooleanArray, DynComparator, make_comparator};
use arrow::buffer::NullBuffer;
use arrow::compute::{SortOptions, concat, nullif};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::cmp::Ordering;
use std::hash::BuildHasher;

/// The winners, in arrival order of the winning rows.
#[derive(Debug, Clone, Default)]
pub struct Deduplicated {
    pub winners: Vec<RowRef>,
    /// Rows that lost.
    pub dropped: u64,
}

/// The hash of a record key, the same in every room and every run.
pub fn hash_key(key: &str) -> u64 {
    FixedState::with_seed(0).hash_one(key.as_bytes())
}

/// `global`: the key alone identifies a record (global indexes); else key and partition path.
///
/// Costs a hash and about one cache miss a row; keys stay where they are. A winner that came after a tombstone of its key
/// loses its ordering value: the row that is stored has been deleted before it, however new it was.
pub fn precombine(batches: &mut [KeyedBatch], global: bool) -> Result<Deduplicated> {
    let (winners, dropped) = winners(batches, global)?;
    forget_ordering(batches, winners.iter().filter(|w| w.reborn).map(|w| w.row))?;
    Ok(Deduplicated { winners: winners.into_iter().map(|w| w.row).collect(), dropped })
}

/// In arrival order, and how many rows lost.
fn winners(batches: &[KeyedBatch], global: bool) -> Result<(Vec<Candidate>, u64)> {
    let total: usize = batches.iter().map(|b| b.keys.len()).sum();
    let ordering = Ordered::new(batches)?;
    let mut seen: HashTable<Candidate> = HashTable::with_capacity(total);
    for (batch, keyed) in batches.iter().enumerate() {
        let salts: Vec<u64> = match global {
            true => vec![0; keyed.partitions.paths.len()],
            false => keyed.partitions.paths.iter().map(|p| hash_key(p)).collect(),
        };
        for row in 0..keyed.keys.len() {
            let key = keyed.keys.value(row);
            let hash = hash_key(key) ^ salts[keyed.partitions.ids[row] as usize].rotate_left(17);
            let this = RowRef { batch: batch as u32, row: row as u32 };
            let same = |other: &Candidate| {
                let them = &batches[other.row.batch as usize];
                let there = other.row.row as usize;
                other.hash == hash
                    && them.keys.value(there) == key
                    && (global || them.partitions.path(there) == keyed.partitions.path(row))
            };
            match seen.find_mut(hash, same) {
                Some(earlier) if ordering.earlier_wins(earlier.row, this) => {}
                Some(earlier) => {
                    earlier.reborn =
                        !ordering.is_tombstone(this) && (earlier.reborn || ordering.is_tombstone(earlier.row));
                    earlier.row = this;
                }
                None => {
                    seen.insert_unique(hash, Candidate { hash, row: this, reborn: false }, |c| c.hash);
                }
            }
        }
    }
    let mut winners: Vec<Candidate> = seen.into_iter().collect();
    winners.sort_unstable_by_key(|w| w.row);
    let dropped = (total - winners.len()) as u64;
    Ok((winners, dropped))
}

fn forget_ordering(batches: &mut [KeyedBatch], rows: impl Iterator<Item = RowRef>) -> Result<()> {
    let mut marked: Vec<Option<Vec<bool>>> = vec![None; batches.len()];
    for row in rows {
        let length = batches[row.batch as usize].keys.len();
        marked[row.batch as usize].get_or_insert_with(|| vec![false; length])[row.row as usize] = true;
    }
    for (batch, marked) in batches.iter_mut().zip(marked) {
        let (Some(ordering), Some(marked)) = (&mut batch.ordering, marked) else { continue };
        *ordering = nullif(ordering, &BooleanArray::from(marked))
            .map_err(|e| Error::Unsupported { what: format!("ordering values cannot be taken away: {e}") })?;
    }
    Ok(())
}

/// The row that holds a key so far.
struct Candidate {
    hash: u64,
    row: RowRef,
    /// It came after a tombstone of its key.
    reborn: bool,
}

/// Ordering values of all batches, comparable across them.
struct Ordered {
    compare: Option<DynComparator>,
    nulls: Option<NullBuffer>,
    /// Where each batch begins among all values.
    starts: Vec<usize>,
}

impl Ordered {
    fn new(batches: &[KeyedBatch]) -> Result<Ordered> {
        let mut starts = Vec::with_capacity(batches.len());
        let mut next = 0;
        for batch in batches {
            starts.push(next);
            next += batch.keys.len();
        }
        let values: Vec<&dyn Array> =
            batches.iter().filter_map(|b| b.ordering.as_ref()).map(ArrayRef::as_ref).collect();
        if values.is_empty() {
            return Ok(Ordered { compare: None, nulls: None, starts });
        }
        let unsupported = |e| Error::Unsupported { what: format!("ordering values cannot be compared: {e}") };
        let all = concat(&values).map_err(unsupported)?;
        // Arrow orders floats as Java's Double.compare does: -0.0 before 0.0, NaN last.
        let compare = make_comparator(&all, &all, SortOptions::default()).map_err(unsupported)?;
        Ok(Ordered { compare: Some(compare), nulls: all.nulls().cloned(), starts })
    }

    fn earlier_wins(&self, earlier: RowRef, later: RowRef) -> bool {
        let Some(compare) = &self.compare else { return false };
        // A null compares as less than any value, which is right for the earlier row alone.
        !self.is_tombstone(later) && compare(self.index(earlier), self.index(later)) == Ordering::Greater
    }

    /// Rows without a value of any other kind are refused before.
    fn is_tombstone(&self, row: RowRef) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(self.index(row)))
    }

    fn index(&self, row: RowRef) -> usize {
        self.starts[row.batch as usize] + row.row as usize
    }
}

#[cfg(test)]
mod tests;
