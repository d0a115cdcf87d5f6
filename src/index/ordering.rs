//! Ordering values of incoming rows as a column.

use crate::record::{KeyedBatch, RowRef};
use arrow::array::{Array, ArrayRef};
use arrow::error::ArrowError;

/// The ordering values of `rows`; every batch must have ordering values.
pub(crate) fn incoming_ordering(
    batches: &[KeyedBatch],
    rows: impl Iterator<Item = RowRef>,
) -> Result<ArrayRef, ArrowError> {
    let columns: Vec<&dyn Array> = batches.iter().filter_map(|batch| batch.ordering.as_deref()).collect();
    let picks: Vec<(usize, usize)> = rows.map(|row| (row.batch as usize, row.row as usize)).collect();
    arrow::compute::interleave(&columns, &picks)
}
