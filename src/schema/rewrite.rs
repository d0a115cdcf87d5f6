//! Rows of one schema brought to another: by name, deep, never cut or wrapped (`HoodieAvroUtils.rewriteRecordDeep`, 0.15).

use super::{Error, Result};
use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, ListArray, MapArray, RecordBatch, StructArray, new_null_array,
};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Float32Type, Float64Type, Int64Type, SchemaRef, TimeUnit};
use std::sync::Arc;

/// Brings rows (of an older file, or of a batch) to `target`: columns by name, missing ones null, promotable types cast
/// (also inside structs, lists and maps); anything else is an error naming the column. Costs nothing when schemas are
/// equal, and no copy of values where only names differ.
pub fn rewrite(batch: &RecordBatch, target: &SchemaRef) -> Result<RecordBatch> {
    rows(batch, target, Conform::Stored)
}

/// Whose rows are brought to a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conform {
    /// Long to float may round, as in Hudi: whoever widened the column chose so, and the rows must stay writable.
    Stored,
    /// A number that would be rounded is an error.
    Incoming,
}

pub(super) fn rows(batch: &RecordBatch, target: &SchemaRef, whose: Conform) -> Result<RecordBatch> {
    if Arc::ptr_eq(batch.schema_ref(), target) || batch.schema_ref().fields() == target.fields() {
        return Ok(batch.clone());
    }
    let columns =
        whose.children(batch.schema_ref().fields(), batch.columns(), target.fields(), batch.num_rows(), "")?;
    for (field, column) in target.fields().iter().zip(&columns) {
        if !field.is_nullable() && column.null_count() > 0 {
            return Err(Error::Row { column: field.name().clone(), why: "null, and the schema allows none".into() });
        }
    }
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(target.clone(), columns, &options)
        .map_err(|e| Error::internal("bring rows to the writer schema", e))
}

impl Conform {
    fn children(
        self,
        from: &Fields,
        columns: &[ArrayRef],
        to: &Fields,
        rows: usize,
        path: &str,
    ) -> Result<Vec<ArrayRef>> {
        let child = |target: &FieldRef| {
            let path = if path.is_empty() { target.name().clone() } else { format!("{path}.{}", target.name()) };
            match from.find(target.name()) {
                Some((index, _)) => self.conform(&columns[index], target, &path),
                None if target.is_nullable() => Ok(new_null_array(target.data_type(), rows)),
                None => Err(Error::Row { column: path, why: "missing, and the schema allows no null".into() }),
            }
        };
        to.iter().map(child).collect()
    }

    fn conform(self, array: &ArrayRef, target: &Field, path: &str) -> Result<ArrayRef> {
        let internal = |e| Error::internal("bring a nested column to the writer schema", e);
        let (from, to) = (array.data_type(), target.data_type());
        if from == to {
            return Ok(array.clone());
        }
        match (from, to) {
            (DataType::Struct(before), DataType::Struct(after)) => {
                let parent = array.as_struct();
                let columns = self.children(before, parent.columns(), after, parent.len(), path)?;
                let rebuilt =
                    StructArray::try_new_with_length(after.clone(), columns, parent.nulls().cloned(), parent.len());
                Ok(Arc::new(rebuilt.map_err(|e| Error::Row { column: path.to_string(), why: e.to_string() })?))
            }
            (DataType::List(_), DataType::List(item)) => {
                let list = array.as_list::<i32>();
                let values = self.conform(list.values(), item, &format!("{path}[]"))?;
                let rebuilt = ListArray::try_new(item.clone(), list.offsets().clone(), values, list.nulls().cloned());
                Ok(Arc::new(rebuilt.map_err(|e| Error::Row { column: path.to_string(), why: e.to_string() })?))
            }
            (DataType::Map(_, _), DataType::Map(entries, sorted)) => {
                let map = array.as_map();
                let DataType::Struct(pair) = entries.data_type() else { return Err(mismatch(from, to, path)) };
                let [key, value] = pair.iter().as_slice() else { return Err(mismatch(from, to, path)) };
                // By place, not by name: writers name keys and values differently.
                let keys = self.conform(map.keys(), key, &format!("{path}{{key}}"))?;
                let values = self.conform(map.values(), value, &format!("{path}{{}}"))?;
                let inner = StructArray::try_new(pair.clone(), vec![keys, values], None).map_err(internal)?;
                let offsets = map.offsets().clone();
                let rebuilt = MapArray::try_new(entries.clone(), offsets, inner, map.nulls().cloned(), *sorted);
                Ok(Arc::new(rebuilt.map_err(internal)?))
            }
            (DataType::Float32, DataType::Float64) => Ok(Arc::new(widen(array))),
            _ if promotable(from, to) => {
                // Never a null in place of a value that does not fit.
                let exact = CastOptions { safe: false, ..Default::default() };
                let cast = cast_with_options(array, to, &exact)
                    .map_err(|e| Error::Row { column: path.to_string(), why: e.to_string() })?;
                if self == Conform::Incoming && from.is_integer() && to.is_floating() {
                    not_rounded(array, &cast, path)?;
                }
                Ok(cast)
            }
            _ => Err(mismatch(from, to, path)),
        }
    }
}

/// Whether floats are the numbers that they were made of, to the last digit.
fn not_rounded(numbers: &ArrayRef, floats: &ArrayRef, path: &str) -> Result<()> {
    let internal = |e| Error::internal("compare numbers with their floats", e);
    let (long, double) =
        (cast(numbers, &DataType::Int64).map_err(internal)?, cast(floats, &DataType::Float64).map_err(internal)?);
    let pairs = long.as_primitive::<Int64Type>().iter().zip(double.as_primitive::<Float64Type>());
    // i64::MAX becomes 2^63, which would come back as i64::MAX.
    match pairs.flat_map(|(n, f)| n.zip(f)).find(|(n, f)| *f as i128 != i128::from(*n)) {
        None => Ok(()),
        Some((number, _)) => Err(Error::Row {
            column: path.to_string(),
            why: format!("{number} has more digits than {} holds", floats.data_type()),
        }),
    }
}

/// By way of the text, as Hudi does: 0.1f becomes 0.1, not 0.10000000149011612.
fn widen(array: &ArrayRef) -> Float64Array {
    let narrow = array.as_primitive::<Float32Type>();
    narrow.iter().map(|v| v.map(|v| v.to_string().parse().unwrap_or(f64::from(v)))).collect()
}

fn promotable(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    match (from, to) {
        (Int8 | Int16 | UInt8 | UInt16, Int32 | Int64 | Float32 | Float64) => true,
        (Int32 | UInt32, Int64 | Float32 | Float64) | (Int64, Float32 | Float64) => true,
        (LargeUtf8 | Utf8View, Utf8) | (LargeBinary | BinaryView, Binary) | (LargeList(_), List(_)) => true,
        (Dictionary(_, values), to) => **values == *to || promotable(values, to),
        (Decimal128(p, s), Decimal128(wide, scale)) => s == scale && p <= wide,
        (Timestamp(a, Some(_)), Timestamp(b, Some(_))) => {
            a == b || (*a, *b) == (TimeUnit::Millisecond, TimeUnit::Microsecond)
        }
        _ => false,
    }
}

fn mismatch(from: &DataType, to: &DataType, path: &str) -> Error {
    Error::Row { column: path.to_string(), why: format!("values of type {from} do not fit the schema's {to}") }
}
