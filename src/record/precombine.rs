//! One row a key within a batch: greatest ordering value wins, a tie goes to the later arrival (semantics.md §2).

use super::{Error, KeyedBatch, Result, RowRef};
use arrow::array::{Array, ArrayRef, DynComparator, make_comparator};
use arrow::compute::{SortOptions, concat};
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
/// Costs a hash and about one cache miss a row; keys stay where they are.
pub fn precombine(batches: &[KeyedBatch], global: bool) -> Result<Deduplicated> {
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
                Some(earlier) => earlier.row = this,
                None => {
                    seen.insert_unique(hash, Candidate { hash, row: this }, |c| c.hash);
                }
            }
        }
    }
    let mut winners: Vec<RowRef> = seen.into_iter().map(|c| c.row).collect();
    winners.sort_unstable();
    Ok(Deduplicated { dropped: (total - winners.len()) as u64, winners })
}

/// The row that holds a key so far.
struct Candidate {
    hash: u64,
    row: RowRef,
}

/// Ordering values of all batches, comparable across them.
struct Ordered {
    compare: Option<DynComparator>,
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
            return Ok(Ordered { compare: None, starts });
        }
        let unsupported = |e| Error::Unsupported { what: format!("ordering values cannot be compared: {e}") };
        let all = concat(&values).map_err(unsupported)?;
        // Arrow orders floats as Java's Double.compare does: -0.0 before 0.0, NaN last.
        let compare = make_comparator(&all, &all, SortOptions::default()).map_err(unsupported)?;
        Ok(Ordered { compare: Some(compare), starts })
    }

    fn earlier_wins(&self, earlier: RowRef, later: RowRef) -> bool {
        let Some(compare) = &self.compare else { return false };
        let index = |r: RowRef| self.starts[r.batch as usize] + r.row as usize;
        compare(index(earlier), index(later)) == Ordering::Greater
    }
}

#[cfg(test)]
mod tests {
    use super::super::PartitionColumn;
    use super::*;
    use arrow::array::{Int64Array, RecordBatch, RecordBatchOptions, StringArray};
    use arrow::datatypes::Schema;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::sync::Arc;

    type Row = (u8, u8, i64);

    fn keyed(rows: &[Row], ordered: bool) -> KeyedBatch {
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let schema = Arc::new(Schema::empty());
        KeyedBatch {
            rows: RecordBatch::try_new_with_options(schema, vec![], &options).expect("no columns"),
            keys: StringArray::from_iter_values(rows.iter().map(|r| format!("k{}", r.0))),
            partitions: PartitionColumn {
                ids: rows.iter().map(|r| u32::from(r.1)).collect(),
                paths: Arc::new((0..4).map(|p| format!("p{p}")).collect()),
            },
            ordering: ordered.then(|| Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r.2))) as ArrayRef),
            deleted: None,
        }
    }

    proptest! {
        #[test]
        fn the_newest_row_of_each_key_wins(
            batches in prop::collection::vec(prop::collection::vec((0u8..12, 0u8..4, -3i64..3), 0..30), 0..5),
            global: bool,
            ordered: bool,
        ) {
            let mut model: HashMap<(u8, u8), (i64, RowRef)> = HashMap::new();
            for (batch, rows) in batches.iter().enumerate() {
                for (row, (key, partition, ts)) in rows.iter().enumerate() {
                    let id = (*key, if global { 0 } else { *partition });
                    let this = (*ts, RowRef { batch: batch as u32, row: row as u32 });
                    if model.get(&id).is_none_or(|old| !ordered || old.0 <= this.0) {
                        model.insert(id, this);
                    }
                }
            }
            let mut want: Vec<RowRef> = model.into_values().map(|v| v.1).collect();
            want.sort();
            let keyed: Vec<KeyedBatch> = batches.iter().map(|b| keyed(b, ordered)).collect();
            let got = precombine(&keyed, global).expect("longs compare");
            let total: usize = batches.iter().map(Vec::len).sum();
            prop_assert_eq!(got.dropped as usize, total - want.len());
            prop_assert_eq!(got.winners, want);
        }
    }
}
