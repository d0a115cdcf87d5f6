//! How each row of a group goes into its log: as a record, or as a delete, and with which ordering value.

use super::AppendTask;
use crate::index::is_deleted;
use crate::record::{KeyedBatch, RowRef};
use crate::table::log_file::OrderingValue;
use crate::write::{Error, Result, WriteContext};
use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType,
};

/// Deletes by arrival: 0 is the "natural order" that no record is older or newer than (`DeleteRecord`, Hudi 0.15).
const BY_ARRIVAL: OrderingValue = OrderingValue::Int(0);

/// What goes into a log, in the order of its blocks.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Changes {
    /// Deletes before the records, of keys that are among these: the row came after a tombstone of its key, so that nothing
    /// which is stored counts, however new. A record that follows a delete always wins.
    pub reborn: Vec<(RowRef, OrderingValue)>,
    pub records: Vec<RowRef>,
    /// Of the records so many say `_hoodie_is_deleted`.
    pub deleting_records: u64,
    /// Deletes after the records, with the values of their ordering field.
    pub deletes: Vec<(RowRef, OrderingValue)>,
    /// Deletes after the records, whatever is stored. In a block of their own: hudi-rs reads none of mixed types.
    pub tombstones: Vec<(RowRef, OrderingValue)>,
}

impl AppendTask {
    /// Refuses records without an ordering value, whatever the operation: readers of logs order them by the table's field,
    /// and fail on a null for good.
    pub fn check(&self, context: &WriteContext, batches: &[KeyedBatch]) -> Result<()> {
        let Some(field) = context.table.properties.precombine_field() else { return Ok(()) };
        // Of a dotted path readers of logs know nothing.
        let column = |batch: &KeyedBatch| batch.rows.column_by_name(field).filter(|c| c.null_count() > 0).cloned();
        let columns: Vec<_> = batches.iter().map(column).collect();
        let by_event_time = context.rule.needs_stored_ordering();
        for row in &self.rows {
            let (batch, at) = (&batches[row.batch as usize], row.row as usize);
            let is_record = !is_deleted(batch, at) || (by_event_time && !is_newer_than_all(batch, at));
            if is_record && columns[row.batch as usize].as_ref().is_some_and(|column| column.is_null(at)) {
                return Err(Error::NullOrdering {
                    partition: self.slice.partition.clone(),
                    file_id: self.slice.file_id.clone(),
                    key: batch.keys.value(at).chars().take(200).collect(),
                    field: field.to_string(),
                });
            }
        }
        Ok(())
    }
}

/// A tombstone, or a row that came after one.
fn is_newer_than_all(batch: &KeyedBatch, row: usize) -> bool {
    batch.ordering.as_ref().is_some_and(|ordering| ordering.is_null(row))
}

impl Changes {
    /// A row that says `_hoodie_is_deleted` stays a record under a rule that compares with the stored row, lest it delete a
    /// newer one (README, "Where we differ"); else it is a delete with its ordering value, as Hudi's own writer has it.
    pub fn of(context: &WriteContext, batches: &[KeyedBatch], task: &AppendTask) -> Changes {
        // Readers order by the table's own field: without one, arrival decides.
        let ordered = context.table.properties.precombine_field().is_some();
        let value_of = |row: RowRef| {
            let ordering = batches[row.batch as usize].ordering.as_ref().filter(|_| ordered)?;
            let row = row.row as usize;
            ordering.is_valid(row).then(|| ordering_value(ordering, row))?
        };
        let by_event_time = context.rule.needs_stored_ordering();
        let mut changes = Changes::default();
        for &row in &task.rows {
            let (batch, at) = (&batches[row.batch as usize], row.row as usize);
            match (is_deleted(batch, at), is_newer_than_all(batch, at)) {
                (false, false) => changes.records.push(row),
                (false, true) => {
                    changes.reborn.push((row, BY_ARRIVAL));
                    changes.records.push(row);
                }
                (true, true) => changes.tombstones.push((row, BY_ARRIVAL)),
                (true, false) if by_event_time => {
                    changes.records.push(row);
                    changes.deleting_records += 1;
                }
                (true, false) => changes.delete(row, value_of(row)),
            }
        }
        // A rule that compares has let the row win already, and its value holds also against what is still to come. Under
        // the other the stored record goes however new it is.
        for &row in &task.moved_away {
            changes.delete(row, value_of(row).filter(|_| by_event_time));
        }
        changes
    }

    fn delete(&mut self, row: RowRef, value: Option<OrderingValue>) {
        match value {
            Some(value) => self.deletes.push((row, value)),
            None => self.tombstones.push((row, BY_ARRIVAL)),
        }
    }
}

/// The wrapper of a delete's ordering value, by the type of the ordering field as Hudi's Streamer takes it from the record
/// (`HoodieAvroUtils.convertValueForSpecificDataTypes`, 0.15): timestamps are plain numbers. Readers compare it only with a
/// record's value of the same Java class. `None`: it has none of these types, or does not fit its wrapper.
fn ordering_value(column: &dyn Array, row: usize) -> Option<OrderingValue> {
    Some(match column.data_type() {
        DataType::Boolean => OrderingValue::Boolean(column.as_boolean().value(row)),
        DataType::Int32 => OrderingValue::Int(column.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => OrderingValue::Long(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => OrderingValue::Float(column.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => OrderingValue::Double(column.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => OrderingValue::Text(column.as_string::<i32>().value(row).to_string()),
        DataType::Binary => OrderingValue::Bytes(column.as_binary::<i32>().value(row).to_vec()),
        DataType::Date32 => OrderingValue::Date(column.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            OrderingValue::Long(column.as_primitive::<TimestampMillisecondType>().value(row))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            OrderingValue::Long(column.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Decimal128(_, scale) => decimal(column.as_primitive::<Decimal128Type>().value(row), *scale)?,
        _ => return None,
    })
}

/// In the wrapper's precision of 30 and scale of 15 (`HoodieDelete.avsc`).
fn decimal(unscaled: i128, scale: i8) -> Option<OrderingValue> {
    const SCALE: i8 = 15;
    const LIMIT: i128 = 10i128.pow(30);
    let raised = u32::try_from(SCALE - scale).ok().and_then(|by| 10i128.checked_pow(by)?.checked_mul(unscaled));
    raised.filter(|unscaled| unscaled.abs() < LIMIT).map(|unscaled| OrderingValue::Decimal { unscaled })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Decimal128Array, Float32Array, Float64Array, Int32Array, Int64Array, StringArray};
    use arrow::array::{BinaryArray, BooleanArray, Date32Array, TimestampMicrosecondArray, TimestampMillisecondArray};
    use std::sync::Arc;

    fn decimals(value: i128, precision: u8, scale: i8) -> ArrayRef {
        let array = Decimal128Array::from(vec![value]).with_precision_and_scale(precision, scale);
        Arc::new(array.expect("a type of decimals"))
    }

    #[test]
    fn an_ordering_value_goes_into_the_wrapper_of_its_type() {
        let cases: [(ArrayRef, Option<OrderingValue>); 15] = [
            (Arc::new(BooleanArray::from(vec![true])), Some(OrderingValue::Boolean(true))),
            (Arc::new(Int32Array::from(vec![7])), Some(OrderingValue::Int(7))),
            (Arc::new(Int64Array::from(vec![7])), Some(OrderingValue::Long(7))),
            (Arc::new(Float32Array::from(vec![1.5])), Some(OrderingValue::Float(1.5))),
            (Arc::new(Float64Array::from(vec![1.5])), Some(OrderingValue::Double(1.5))),
            (Arc::new(StringArray::from(vec!["a"])), Some(OrderingValue::Text("a".into()))),
            (Arc::new(BinaryArray::from(vec![&b"a"[..]])), Some(OrderingValue::Bytes(b"a".to_vec()))),
            (Arc::new(Date32Array::from(vec![19_000])), Some(OrderingValue::Date(19_000))),
            (Arc::new(TimestampMillisecondArray::from(vec![5]).with_timezone("UTC")), Some(OrderingValue::Long(5))),
            (Arc::new(TimestampMicrosecondArray::from(vec![5]).with_timezone("UTC")), Some(OrderingValue::Long(5))),
            (decimals(1234, 10, 2), Some(OrderingValue::Decimal { unscaled: 12_340_000_000_000_000 })),
            (decimals(-5, 20, 15), Some(OrderingValue::Decimal { unscaled: -5 })),
            (decimals(5, 20, 16), None),
            (decimals(10i128.pow(15), 38, 0), None),
            (decimals(10i128.pow(37), 38, 2), None),
        ];
        for (column, want) in cases {
            assert_eq!(ordering_value(&column, 0), want, "{column:?}");
        }
    }
}
