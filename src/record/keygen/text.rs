//! Values as text, the way Java's `toString()` on Hudi's Avro values prints them (semantics.md §4.1).

use super::super::{Error, Result};
use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
};
use std::fmt::Write;

/// The column's values as text, nulls kept. A text column is passed on as it is.
pub(super) fn texts(name: &str, column: &ArrayRef, consistent_logical_timestamp: bool) -> Result<StringArray> {
    macro_rules! each {
        ($array:expr, $write:expr) => {{
            let array = $array;
            let mut out = StringBuilder::with_capacity(array.len(), array.len() * 12);
            for row in 0..array.len() {
                if array.is_null(row) {
                    out.append_null();
                } else {
                    let write: fn(&mut StringBuilder, _) -> std::fmt::Result = $write;
                    write(&mut out, array.value(row)).expect("a string builder takes every text");
                    out.append_value("");
                }
            }
            Ok(out.finish())
        }};
    }
    match column.data_type() {
        DataType::Utf8 => Ok(column.as_string::<i32>().clone()),
        DataType::Boolean => each!(column.as_boolean(), |out, v: bool| write!(out, "{v}")),
        DataType::Int8 => each!(column.as_primitive::<Int8Type>(), |out, v: i8| write!(out, "{v}")),
        DataType::Int16 => each!(column.as_primitive::<Int16Type>(), |out, v: i16| write!(out, "{v}")),
        DataType::Int32 => each!(column.as_primitive::<Int32Type>(), |out, v: i32| write!(out, "{v}")),
        DataType::Int64 => each!(column.as_primitive::<Int64Type>(), |out, v: i64| write!(out, "{v}")),
        DataType::Float32 => {
            each!(column.as_primitive::<Float32Type>(), |out, v: f32| write!(
                out,
                "{}",
                java_float(f64::from(v), format!("{v:e}"))
            ))
        }
        DataType::Float64 => {
            each!(column.as_primitive::<Float64Type>(), |out, v: f64| write!(
                out,
                "{}",
                java_float(v, format!("{v:e}"))
            ))
        }
        DataType::Binary => each!(column.as_binary::<i32>(), |out, v: &[u8]| hex(out, v)),
        DataType::FixedSizeBinary(_) => each!(column.as_fixed_size_binary(), |out, v: &[u8]| hex(out, v)),
        DataType::Date32 => each!(column.as_primitive::<Date32Type>(), |out, v: i32| {
            match Date32Type::to_naive_date_opt(v) {
                Some(date) => write!(out, "{date}"),
                None => write!(out, "{v}"),
            }
        }),
        DataType::Decimal128(_, _) => {
            let array = column.as_primitive::<Decimal128Type>();
            let mut out = StringBuilder::with_capacity(array.len(), array.len() * 12);
            for row in 0..array.len() {
                if array.is_null(row) { out.append_null() } else { out.append_value(array.value_as_string(row)) }
            }
            Ok(out.finish())
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) if !consistent_logical_timestamp => {
            each!(column.as_primitive::<TimestampMillisecondType>(), |out, v: i64| write!(out, "{v}"))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) if !consistent_logical_timestamp => {
            each!(column.as_primitive::<TimestampMicrosecondType>(), |out, v: i64| write!(out, "{v}"))
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            each!(column.as_primitive::<TimestampMillisecondType>(), |out, v: i64| sql_timestamp(
                out,
                v.checked_mul(1000)
            ))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            each!(column.as_primitive::<TimestampMicrosecondType>(), |out, v: i64| sql_timestamp(out, Some(v)))
        }
        other => {
            let what = format!("field {name} is of type {other}, which cannot make a record key or partition path");
            Err(Error::Unsupported { what })
        }
    }
}

fn hex(out: &mut StringBuilder, bytes: &[u8]) -> std::fmt::Result {
    bytes.iter().try_for_each(|b| write!(out, "{b:02x}"))
}

/// `java.sql.Timestamp.toString()` in UTC: `2024-02-29 01:02:03.0`, at least one digit of fraction.
fn sql_timestamp(out: &mut StringBuilder, micros: Option<i64>) -> std::fmt::Result {
    let Some(time) = micros.and_then(chrono::DateTime::from_timestamp_micros) else { return out.write_str("") };
    let fraction = format!("{:06}", time.timestamp_subsec_micros());
    let fraction = match fraction.trim_end_matches('0') {
        "" => "0",
        digits => digits,
    };
    write!(out, "{}.{fraction}", time.format("%Y-%m-%d %H:%M:%S"))
}

/// `Double.toString` and `Float.toString`: plain between 10⁻³ and 10⁷, else `d.dddE±n`; always a digit after the point.
/// `scientific` is the shortest text that reads back as the value, in Rust's `1.5e10` form.
fn java_float(value: f64, scientific: String) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |m| ("-", m));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    if value == 0.0 {
        return format!("{sign}0.0");
    }
    if (-3..7).contains(&exponent) {
        let point = exponent + 1;
        let (whole, fraction) = if point <= 0 {
            ("0".to_string(), "0".repeat(-point as usize) + &digits)
        } else if digits.len() <= point as usize {
            (format!("{digits:0<width$}", width = point as usize), "0".to_string())
        } else {
            let (whole, fraction) = digits.split_at(point as usize);
            (whole.to_string(), fraction.to_string())
        };
        return format!("{sign}{whole}.{fraction}");
    }
    let (first, rest) = digits.split_at(1);
    format!("{sign}{first}.{}E{exponent}", if rest.is_empty() { "0" } else { rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_as_java_prints_them() {
        let cases = [
            (1e10, "1.0E10"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (100.5, "100.5"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (0.001, "0.001"),
            (0.00012, "1.2E-4"),
            (-123.456, "-123.456"),
            (1.5e300, "1.5E300"),
            (f64::NAN, "NaN"),
        ];
        for (value, want) in cases {
            assert_eq!(java_float(value, format!("{value:e}")), want);
        }
    }
}
