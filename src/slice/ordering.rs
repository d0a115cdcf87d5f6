//! Ordering values of log records, kept for the winner of each key, compared as Java compares them.

use crate::table::log_file::OrderingValue;
use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::*;

/// Ordering values in a form that compares fast: of the rows of a batch, or of the winners.
#[derive(Debug)]
pub(super) enum Orderings {
    /// There is no ordering field: each record has Java's `Integer` 0.
    None,
    Numbers(DataType, Vec<i64>),
    Decimals(Vec<i128>),
    Texts(DataType, Texts),
}

/// Texts or bytes that may be replaced.
#[derive(Debug, Default)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    spans: Vec<(usize, usize)>,
}

impl Texts {
    fn get(&self, at: usize) -> &[u8] {
        let (start, length) = self.spans[at];
        &self.bytes[start..start + length]
    }

    fn push(&mut self, text: &[u8]) {
        self.spans.push((self.bytes.len(), text.len()));
        self.bytes.extend_from_slice(text);
    }

    fn set(&mut self, at: usize, text: &[u8]) {
        let (start, length) = self.spans[at];
        if text.len() <= length {
            self.bytes[start..start + text.len()].copy_from_slice(text);
            self.spans[at].1 = text.len();
        } else {
            self.spans[at] = (self.bytes.len(), text.len());
            self.bytes.extend_from_slice(text);
        }
    }
}

impl Orderings {
    /// Whether values of this type have an order.
    pub fn takes(data_type: &DataType) -> bool {
        use DataType::*;
        let number = matches!(data_type, Boolean | Int32 | Int64 | Float32 | Float64 | Decimal128(..));
        let time = matches!(data_type, Timestamp(TimeUnit::Millisecond | TimeUnit::Microsecond, _));
        number || time || matches!(data_type, Date32 | Utf8 | Binary)
    }

    /// An empty list for values of a type that it takes.
    pub fn new(data_type: Option<&DataType>) -> Orderings {
        match data_type {
            None => Orderings::None,
            Some(DataType::Decimal128(..)) => Orderings::Decimals(Vec::new()),
            Some(text @ (DataType::Utf8 | DataType::Binary)) => Orderings::Texts(text.clone(), Texts::default()),
            Some(number) => Orderings::Numbers(number.clone(), Vec::new()),
        }
    }

    /// The values of a batch's column, which has the type that `self` was made for. Nulls have any value.
    pub fn of(&self, column: &ArrayRef) -> Orderings {
        match self {
            Orderings::None => Orderings::None,
            Orderings::Numbers(data_type, _) => Orderings::Numbers(data_type.clone(), numbers(column)),
            Orderings::Decimals(_) => Orderings::Decimals(column.as_primitive::<Decimal128Type>().values().to_vec()),
            Orderings::Texts(data_type, _) => {
                let mut texts = Texts::default();
                for row in 0..column.len() {
                    texts.push(match data_type {
                        DataType::Utf8 => column.as_string::<i32>().value(row).as_bytes(),
                        _ => column.as_binary::<i32>().value(row),
                    });
                }
                Orderings::Texts(data_type.clone(), texts)
            }
        }
    }

    /// Whether value `at` is greater than value `row` of `others`, which are of the same kind.
    #[inline]
    pub fn is_greater(&self, at: usize, others: &Orderings, row: usize) -> bool {
        match (self, others) {
            (Orderings::Numbers(_, ours), Orderings::Numbers(_, theirs)) => ours[at] > theirs[row],
            (Orderings::Decimals(ours), Orderings::Decimals(theirs)) => ours[at] > theirs[row],
            (Orderings::Texts(_, ours), Orderings::Texts(_, theirs)) => ours.get(at) > theirs.get(row),
            _ => false,
        }
    }

    /// Whether value `at` is greater than a delete's, where Hudi compares the two at all. It does where both have one Java
    /// class, and values in records have that of Avro's plain types: an `Integer` for a date, a `Long` for a timestamp, a
    /// `Fixed` for a decimal, a `Utf8` for a text, but in deletes a `LocalDate`, an `Instant`, a `BigDecimal`, a `String`.
    /// A delete with Java's `Integer` 0 wins by arrival.
    pub fn is_greater_than_deletes(&self, at: usize, delete: &OrderingValue) -> bool {
        let other = match (self, delete) {
            (_, OrderingValue::Int(0)) => return false,
            (Orderings::None, OrderingValue::Int(value)) => return 0 > *value,
            (Orderings::Texts(DataType::Binary, ours), OrderingValue::Bytes(value)) => {
                return ours.get(at) > &value[..];
            }
            (Orderings::Numbers(ours, _), delete) => match (ours, delete) {
                (DataType::Boolean, OrderingValue::Boolean(value)) => i64::from(*value),
                (DataType::Int32 | DataType::Date32, OrderingValue::Int(value)) => i64::from(*value),
                (DataType::Int64 | DataType::Timestamp(..), OrderingValue::Long(value)) => *value,
                (DataType::Float32, OrderingValue::Float(value)) => order(f64::from(*value)),
                (DataType::Float64, OrderingValue::Double(value)) => order(*value),
                _ => return false,
            },
            _ => return false,
        };
        matches!(self, Orderings::Numbers(_, ours) if ours[at] > other)
    }

    /// Appends value `row` of `others`.
    #[inline]
    pub fn push(&mut self, others: &Orderings, row: usize) {
        match (self, others) {
            (Orderings::Numbers(_, ours), Orderings::Numbers(_, theirs)) => ours.push(theirs[row]),
            (Orderings::Decimals(ours), Orderings::Decimals(theirs)) => ours.push(theirs[row]),
            (Orderings::Texts(_, ours), Orderings::Texts(_, theirs)) => ours.push(theirs.get(row)),
            _ => {}
        }
    }

    /// Appends a value that nobody asks for.
    pub fn push_any(&mut self) {
        match self {
            Orderings::None => {}
            Orderings::Numbers(_, ours) => ours.push(0),
            Orderings::Decimals(ours) => ours.push(0),
            Orderings::Texts(_, ours) => ours.push(&[]),
        }
    }

    /// Puts value `row` of `others` in place of value `at`.
    #[inline]
    pub fn set(&mut self, at: usize, others: &Orderings, row: usize) {
        match (self, others) {
            (Orderings::Numbers(_, ours), Orderings::Numbers(_, theirs)) => ours[at] = theirs[row],
            (Orderings::Decimals(ours), Orderings::Decimals(theirs)) => ours[at] = theirs[row],
            (Orderings::Texts(_, ours), Orderings::Texts(_, theirs)) => ours.set(at, theirs.get(row)),
            _ => {}
        }
    }

    /// Bytes in use.
    pub fn memory(&self) -> usize {
        match self {
            Orderings::None => 0,
            Orderings::Numbers(_, values) => values.capacity() * 8,
            Orderings::Decimals(values) => values.capacity() * 16,
            Orderings::Texts(_, texts) => texts.bytes.capacity() + texts.spans.capacity() * 16,
        }
    }
}

fn numbers(column: &ArrayRef) -> Vec<i64> {
    fn all<T: ArrowPrimitiveType>(column: &ArrayRef, number: impl Fn(T::Native) -> i64) -> Vec<i64> {
        let column: &PrimitiveArray<T> = column.as_primitive();
        column.values().iter().map(|value| number(*value)).collect()
    }
    match column.data_type() {
        DataType::Boolean => column.as_boolean().values().iter().map(i64::from).collect(),
        DataType::Int32 => all::<Int32Type>(column, i64::from),
        DataType::Date32 => all::<Date32Type>(column, i64::from),
        DataType::Float32 => all::<Float32Type>(column, |value| order(f64::from(value))),
        DataType::Float64 => all::<Float64Type>(column, order),
        DataType::Timestamp(TimeUnit::Millisecond, _) => all::<TimestampMillisecondType>(column, |value| value),
        DataType::Timestamp(..) => all::<TimestampMicrosecondType>(column, |value| value),
        _ => all::<Int64Type>(column, |value| value),
    }
}

/// A number that compares as Java's `Double.compare`: -0.0 before 0.0, every NaN last.
fn order(value: f64) -> i64 {
    if value.is_nan() {
        return i64::MAX;
    }
    let bits = value.to_bits() as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::*;
    use std::sync::Arc;

    /// Columns with values in ascending order.
    fn columns() -> Vec<ArrayRef> {
        let floats = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-300, 2.0, f64::INFINITY, f64::NAN];
        vec![
            Arc::new(BooleanArray::from(vec![false, true])),
            Arc::new(Int32Array::from(vec![i32::MIN, -1, 0, 7])),
            Arc::new(Int64Array::from(vec![i64::MIN, -1, 0, i64::MAX])),
            Arc::new(Float64Array::from(floats.to_vec())),
            Arc::new(Float32Array::from(vec![-1.5, -0.0, 0.0, f32::MAX, f32::NAN])),
            Arc::new(Date32Array::from(vec![-1, 0, 1])),
            Arc::new(TimestampMillisecondArray::from(vec![-1, 1])),
            Arc::new(TimestampMicrosecondArray::from(vec![-1, 1])),
            Arc::new(Decimal128Array::from(vec![i128::from(i64::MIN) * 2, -1, 0, i128::from(i64::MAX) * 2])),
            Arc::new(StringArray::from(vec!["", "a", "aa", "b", "é"])),
            Arc::new(BinaryArray::from(vec![&b""[..], b"\x00", b"\x7f", b"\xff"])),
        ]
    }

    #[test]
    fn values_compare_as_in_java() {
        for column in columns() {
            let mut kept = Orderings::new(Some(column.data_type()));
            let values = kept.of(&column);
            // Kept out of order, so that texts grow and shrink in place.
            (0..column.len()).for_each(|_| kept.push(&values, 0));
            (0..column.len()).rev().for_each(|at| kept.set(at, &values, at));
            for (at, row) in (0..column.len()).flat_map(|at| (0..column.len()).map(move |row| (at, row))) {
                assert_eq!(kept.is_greater(at, &values, row), at > row, "{at} > {row} of {column:?}");
            }
        }
    }

    #[test]
    fn deletes_are_compared_where_hudi_compares_them() {
        let int = |v: i32| Arc::new(Int32Array::from(vec![v])) as ArrayRef;
        let long = |v: i64| Arc::new(Int64Array::from(vec![v])) as ArrayRef;
        let date = Arc::new(Date32Array::from(vec![9])) as ArrayRef;
        let time = Arc::new(TimestampMicrosecondArray::from(vec![9])) as ArrayRef;
        let text = Arc::new(StringArray::from(vec!["z"])) as ArrayRef;
        let decimal = Arc::new(Decimal128Array::from(vec![9])) as ArrayRef;
        let double = Arc::new(Float64Array::from(vec![0.5])) as ArrayRef;
        for (column, delete, stays) in [
            (long(9), OrderingValue::Long(8), true),
            (long(9), OrderingValue::Long(9), false),
            (long(9), OrderingValue::Int(8), false),
            (long(9), OrderingValue::Long(0), true),
            (int(9), OrderingValue::Int(0), false),
            (int(9), OrderingValue::Int(1), true),
            (int(9), OrderingValue::Long(1), false),
            (date.clone(), OrderingValue::Date(1), false),
            (date, OrderingValue::Int(1), true),
            (time.clone(), OrderingValue::TimestampMicros(1), false),
            (time, OrderingValue::Long(1), true),
            (text, OrderingValue::Text("a".into()), false),
            (decimal, OrderingValue::Decimal { unscaled: 1 }, false),
            (double.clone(), OrderingValue::Double(-1.0), true),
            (double.clone(), OrderingValue::Float(-1.0), false),
            (double, OrderingValue::Null, false),
        ] {
            let mut kept = Orderings::new(Some(column.data_type()));
            kept.push(&kept.of(&column), 0);
            assert_eq!(kept.is_greater_than_deletes(0, &delete), stays, "{column:?} against {delete:?}");
        }
        assert!(!Orderings::None.is_greater_than_deletes(0, &OrderingValue::Int(1)));
    }
}
