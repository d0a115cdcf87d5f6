//! Rows that were read but cannot be written: they do not fit the table's schema, or make no record.

use crate::config::BadRecordPolicy;
use crate::record::Refuse;
use crate::source::{Reason, Rejected, Rejects};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::util::display::array_value_to_string;
use serde_json::{Map, Number, Value};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Hands refused rows to those who count bad records.
#[derive(Debug, Clone)]
pub(super) struct Refuser(pub Arc<Rejects>);

impl Refuser {
    /// What the key generator calls for rows that make no record.
    pub fn of_records(&self) -> Refuse {
        let this = self.clone();
        Refuse::new(move |refused| {
            let (cause, reason) = (&refused.cause, Reason::RecordCreation);
            this.row(refused.rows, refused.row, cause.position(), reason, cause.code(), cause.to_string())
        })
    }

    /// A row of `rows`, which have no hidden columns. Breaks when reading on is of no use.
    pub fn row(
        &self,
        rows: &RecordBatch,
        row: usize,
        position: Option<u64>,
        reason: Reason,
        code: &'static str,
        why: String,
    ) -> ControlFlow<()> {
        let kept = self.0.policy() == BadRecordPolicy::Quarantine;
        let value = kept.then(|| text(rows, row).into_bytes());
        let rejected = Rejected { position, reason, code, why, value, key: None, timestamp_ms: None };
        match self.0.refuse(rejected) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// A row as a JSON object.
fn text(rows: &RecordBatch, row: usize) -> String {
    let fields = rows.schema_ref().fields().iter().zip(rows.columns());
    let object: Map<String, Value> = fields.map(|(f, column)| (f.name().clone(), json(column, row))).collect();
    Value::Object(object).to_string()
}

fn json(column: &ArrayRef, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    let items = |values: &ArrayRef| (0..values.len()).map(|i| json(values, i)).collect::<Vec<_>>();
    let shown = || array_value_to_string(column, row).unwrap_or_default();
    let number = |n: f64| Number::from_f64(n).map_or_else(|| Value::String(shown()), Value::Number);
    match column.data_type() {
        DataType::Boolean => Value::Bool(column.as_boolean().value(row)),
        DataType::Float32 => number(column.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => number(column.as_primitive::<Float64Type>().value(row)),
        integer if integer.is_integer() => shown().parse().map_or_else(|_| Value::String(shown()), Value::Number),
        DataType::Utf8 => Value::String(column.as_string::<i32>().value(row).to_string()),
        DataType::List(_) => Value::Array(items(&column.as_list::<i32>().value(row))),
        DataType::Struct(fields) => {
            let columns = fields.iter().zip(column.as_struct().columns());
            Value::Object(columns.map(|(f, column)| (f.name().clone(), json(column, row))).collect())
        }
        DataType::Map(..) => {
            let entries = column.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            let key = |i| array_value_to_string(keys, i).unwrap_or_default();
            Value::Object((0..entries.len()).map(|i| (key(i), json(values, i))).collect())
        }
        // Decimals, times and bytes as text, as the table's readers show them.
        _ => Value::String(shown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, ListArray, StringArray,
        StructArray,
    };
    use arrow::datatypes::{Field, Int32Type};

    #[test]
    fn a_row_is_told_as_a_json_object() {
        let inner: ArrayRef = Arc::new(StringArray::from(vec![Some("in \"it\""), None]));
        let outer = StructArray::from(vec![(Arc::new(Field::new("s", DataType::Utf8, true)), inner)]);
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None]);
        let decimal = Decimal128Array::from(vec![Some(1250), None]).with_precision_and_scale(6, 2).expect("fits");
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("n", Arc::new(Int64Array::from(vec![Some(i64::MIN), None]))),
            ("f", Arc::new(Float64Array::from(vec![f64::NAN, 0.5]))),
            ("b", Arc::new(BooleanArray::from(vec![Some(true), None]))),
            ("o", Arc::new(outer)),
            ("l", Arc::new(list)),
            ("d", Arc::new(decimal)),
            ("t", Arc::new(Date32Array::from(vec![Some(19_782), None]))),
            ("x", Arc::new(BinaryArray::from(vec![Some([1u8, 0xab].as_slice()), None]))),
        ];
        let rows = RecordBatch::try_from_iter(columns).expect("two rows");
        let want = [
            r#"{"b":true,"d":"12.50","f":"NaN","l":[1,null],"n":-9223372036854775808,"o":{"s":"in \"it\""},"t":"2024-02-29","x":"01ab"}"#,
            r#"{"b":null,"d":null,"f":0.5,"l":null,"n":null,"o":{"s":null},"t":null,"x":null}"#,
        ];
        let value = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        for (row, want) in want.iter().enumerate() {
            assert_eq!(value(&text(&rows, row)), value(want));
        }
    }
}
