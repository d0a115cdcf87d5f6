//! Rows of a base file.

use std::fs::File;
use std::path::Path;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::super::{Row, Value};

pub(super) fn rows(path: &Path) -> Vec<Row> {
    let failed = |e: &dyn std::fmt::Display| -> ! { panic!("{} is no whole base file: {e}", path.display()) };
    let file = File::open(path).unwrap_or_else(|e| failed(&e));
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|builder| builder.build());
    let batches = reader.unwrap_or_else(|e| failed(&e));
    batches.flat_map(|batch| rows_of(&batch.unwrap_or_else(|e| failed(&e)))).collect()
}

fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let mut rows = vec![Row::new(); batch.num_rows()];
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        for (i, row) in rows.iter_mut().enumerate() {
            row.insert(field.name().clone(), if column.is_null(i) { Value::Null } else { value(column.as_ref(), i) });
        }
    }
    rows
}

fn value(column: &dyn Array, i: usize) -> Value {
    match column.data_type() {
        DataType::Utf8 => column.as_string::<i32>().value(i).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(i).into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(i).into(),
        DataType::Boolean => column.as_boolean().value(i).into(),
        other => panic!("no test of this reader has columns of {other}"),
    }
}
