//! Rows for the tests of this room and of the rooms above it.

use crate::record::{KeyedBatch, PartitionColumn};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use std::sync::Arc;

/// `id` and `region` (text), `value` (long).
pub(crate) fn arrow_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Utf8, true),
        Field::new("region", DataType::Utf8, true),
        Field::new("value", DataType::Int64, true),
    ]))
}

/// Rows of (key, partition path, value); the value orders, too.
pub(crate) fn keyed(rows: &[(&str, &str, i64)]) -> KeyedBatch {
    let keys = StringArray::from_iter_values(rows.iter().map(|row| row.0));
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.2)));
    let regions = StringArray::from_iter_values(rows.iter().map(|row| row.1));
    let mut paths: Vec<String> = rows.iter().map(|row| row.1.to_string()).collect();
    paths.sort();
    paths.dedup();
    let ids = rows.iter().map(|row| paths.binary_search(&row.1.to_string()).unwrap() as u32).collect();
    let columns = vec![Arc::new(keys.clone()) as ArrayRef, Arc::new(regions), values.clone()];
    KeyedBatch {
        rows: RecordBatch::try_new(arrow_schema(), columns).unwrap(),
        keys,
        partitions: PartitionColumn { ids, paths: Arc::new(paths) },
        ordering: Some(values),
        deleted: None,
    }
}
