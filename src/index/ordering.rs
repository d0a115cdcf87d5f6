//! Ordering values as columns: of stored rows by field, of incoming rows by position.

use crate::record::{KeyedBatch, RowRef};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, make_array};
use arrow::buffer::NullBuffer;
use arrow::error::ArrowError;

/// The column at a dotted path; null where a struct on the way is null. `None` if there is no such column.
pub(crate) fn nested_column(batch: &RecordBatch, path: &str) -> Option<ArrayRef> {
    let mut names = path.split('.');
    let mut column = batch.column_by_name(names.next()?)?.clone();
    for name in names {
        let parent = column.as_struct_opt()?;
        let child = parent.column_by_name(name)?;
        let nulls = NullBuffer::union(parent.nulls(), child.nulls());
        let data = child.to_data().into_builder().nulls(nulls).build();
        column = make_array(data.expect("only the nulls differ from an array that is valid"));
    }
    Some(column)
}

/// The ordering values of `rows`; every batch must have ordering values.
pub(crate) fn incoming_ordering(
    batches: &[KeyedBatch],
    rows: impl Iterator<Item = RowRef>,
) -> Result<ArrayRef, ArrowError> {
    let columns: Vec<&dyn Array> = batches.iter().filter_map(|batch| batch.ordering.as_deref()).collect();
    let picks: Vec<(usize, usize)> = rows.map(|row| (row.batch as usize, row.row as usize)).collect();
    arrow::compute::interleave(&columns, &picks)
}
