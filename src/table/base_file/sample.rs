//! Columns for which a dictionary would be filled and thrown away, found by a sample of their values.

use std::hash::BuildHasher;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::DataType;
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use parquet::schema::types::ColumnPath;

/// Values that are looked at, and how many, without nulls, must be there.
pub(super) const SAMPLE: usize = 4096;
pub(super) const ENOUGH: usize = SAMPLE / 2;

/// One value among so many may be there a second time. A column drawn evenly from fewer than 400,000 values has more, and
/// of so many a dictionary page, a megabyte in size, does not hold even half.
const ONE_TWICE_AMONG: usize = 400;

/// Text, bytes and numbers of `batch`, also within structs, of which hardly a value comes twice.
pub(super) fn unique_columns(batch: &RecordBatch) -> Vec<ColumnPath> {
    let mut found = Vec::new();
    let batch = batch.slice(0, batch.num_rows().min(SAMPLE));
    for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        add_unique(vec![field.name().clone()], array, &mut found);
    }
    found
}

fn add_unique(path: Vec<String>, array: &ArrayRef, found: &mut Vec<ColumnPath>) {
    if let Some(of) = array.as_struct_opt() {
        for (field, child) in of.fields().iter().zip(of.columns()) {
            add_unique([&path[..], &[field.name().clone()]].concat(), child, found);
        }
    } else if is_unique(array) {
        found.push(ColumnPath::new(path));
    }
}

fn is_unique(array: &ArrayRef) -> bool {
    let hasher = FixedState::default();
    let rows = (0..array.len()).filter(|&row| array.is_valid(row));
    let hashes: Vec<u64> = match array.data_type() {
        DataType::Utf8 => rows.map(|row| hasher.hash_one(array.as_string::<i32>().value(row))).collect(),
        DataType::Binary => rows.map(|row| hasher.hash_one(array.as_binary::<i32>().value(row))).collect(),
        tpe => {
            let Some(width) = tpe.primitive_width() else { return false };
            let data = array.to_data();
            let values = &data.buffers()[0].as_slice()[data.offset() * width..];
            rows.map(|row| hasher.hash_one(&values[row * width..][..width])).collect()
        }
    };
    let (count, distinct) = (hashes.len(), hashes.into_iter().collect::<HashSet<_>>().len());
    count >= ENOUGH && (count - distinct) * ONE_TWICE_AMONG <= count
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::*;
    use arrow::datatypes::Field;

    use super::*;

    #[test]
    fn columns_without_repetition_are_found() {
        let n = 3 * SAMPLE as i64;
        let doubles =
            |of: i64| Arc::new(Float64Array::from_iter_values((0..n).map(|i| (i % of) as f64 / 7.0))) as ArrayRef;
        let text =
            |of: i64| Arc::new(StringArray::from_iter_values((0..n).map(|i| format!("t{}", i % of)))) as ArrayRef;
        let some =
            |every: i64| Arc::new(Int64Array::from_iter((0..n).map(|i| (i % every == 0).then_some(i)))) as ArrayRef;
        let within = StructArray::from(vec![
            (Arc::new(Field::new("once", DataType::Float64, false)), doubles(n)),
            (Arc::new(Field::new("often", DataType::Utf8, false)), text(3)),
        ]);
        let list = ListArray::from_iter_primitive::<arrow::datatypes::Int64Type, _, _>((0..n).map(|i| Some([Some(i)])));
        let batch = RecordBatch::try_from_iter([
            ("double", doubles(n)),
            ("text", text(n)),
            ("ten times", text(SAMPLE as i64 / 10)),
            ("a few twice", text(SAMPLE as i64 - 10)),
            ("more twice", text(SAMPLE as i64 - 11)),
            ("every second", some(2)),
            ("every third", some(3)),
            ("struct", Arc::new(within)),
            ("flag", Arc::new(BooleanArray::from(vec![true; n as usize]))),
            ("list", Arc::new(list)),
            ("null", Arc::new(NullArray::new(n as usize))),
        ]);
        let batch = batch.unwrap();
        let names =
            |batch: &RecordBatch| -> Vec<String> { unique_columns(batch).iter().map(|path| path.string()).collect() };
        let want = ["double", "text", "a few twice", "every second", "struct.once"];
        assert_eq!(names(&batch), want);
        assert_eq!(names(&batch.slice(5, n as usize - 5)), want);
        assert!(names(&batch.slice(0, ENOUGH - 1)).is_empty());
    }
}
