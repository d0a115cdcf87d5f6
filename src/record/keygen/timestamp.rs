//! TimestampBased partition values: a number or text becomes a time, the time a formatted text (semantics.md §4.3).

use super::super::field::FieldPath;
use super::super::{Error, Result};
use super::joda::{Pattern, Zone, in_zone};
use super::partition::Bad;
use crate::config::{TimestampKeyConfig, TimestampType};
use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use arrow::util::display::array_value_to_string;
use chrono::{DateTime, FixedOffset, Utc};

/// How one field's values become partition texts.
#[derive(Debug, Clone)]
pub(super) struct TimestampPart {
    field: String,
    timestamp_type: TimestampType,
    scalar_unit_nanos: i64,
    inputs: Vec<(String, Pattern)>,
    /// `None`: a text keeps the offset that stands in it.
    input_zone: Option<Zone>,
    output: Pattern,
    output_zone: Option<Zone>,
}

impl TimestampPart {
    pub fn new(config: &TimestampKeyConfig, field: &FieldPath) -> Result<TimestampPart> {
        let compile = |pattern: &String| Pattern::compile(pattern).map_err(|what| Error::Unsupported { what });
        let zone = |text: &str| match text {
            "" => Ok(None),
            text => {
                let unknown = || Error::Unsupported { what: format!("time zone {text} is not known") };
                Zone::parse(text).map(Some).ok_or_else(unknown)
            }
        };
        let texts = matches!(config.timestamp_type, TimestampType::DateString | TimestampType::Mixed);
        if !texts && field.data_type == DataType::Utf8 {
            let what = format!(
                "partition field {} is text, and hoodie.keygen.timebased.timestamp.type names a number: use DATE_STRING",
                field.name
            );
            return Err(Error::Unsupported { what });
        }
        if texts && field.data_type != DataType::Utf8 {
            let what = format!(
                "partition field {} is {}, and hoodie.keygen.timebased.timestamp.type names a text: use SCALAR, \
                 EPOCHMILLISECONDS, EPOCHMICROSECONDS or UNIX_TIMESTAMP",
                field.name, field.data_type
            );
            return Err(Error::Unsupported { what });
        }
        if texts && config.input_formats.is_empty() {
            let what = "hoodie.keygen.timebased.input.dateformat is not set, and DATE_STRING and MIXED need it".into();
            return Err(Error::Unsupported { what });
        }
        let inputs: Vec<(String, Pattern)> =
            config.input_formats.iter().map(|p| Ok((p.clone(), compile(p)?))).collect::<Result<_>>()?;
        if let Some((pattern, _)) = inputs.iter().find(|(_, p)| p.reads_two_digit_years()) {
            let what = format!(
                "two-digit years are not read (hoodie.keygen.timebased.input.dateformat has {pattern}): their century \
                 depends on the day of the run"
            );
            return Err(Error::Unsupported { what });
        }
        Ok(TimestampPart {
            field: field.name.clone(),
            timestamp_type: config.timestamp_type,
            scalar_unit_nanos: config.scalar_unit_nanos,
            inputs,
            input_zone: zone(&config.input_timezone)?,
            output: compile(&config.output_format)?,
            output_zone: zone(&config.output_timezone)?,
        })
    }

    /// Formatted times; null where a value makes none. A null is read as the epoch, as Hudi does, and so lands in 1970.
    pub fn texts(&self, column: &ArrayRef, bad: &mut Bad) -> Result<StringArray> {
        match column.data_type() {
            DataType::Utf8 => self.format_texts(column.as_string::<i32>(), bad),
            _ => self.format_numbers(column, bad),
        }
    }

    fn format_texts(&self, values: &StringArray, bad: &mut Bad) -> Result<StringArray> {
        let mut out = StringBuilder::with_capacity(values.len(), values.len() * 10);
        for row in 0..values.len() {
            if values.is_null(row) {
                out.append_value(self.format(DateTime::<Utc>::UNIX_EPOCH.fixed_offset()));
                continue;
            }
            let text = values.value(row);
            let Some(time) = self.inputs.iter().find_map(|(_, p)| p.parse(text, self.input_zone)) else {
                let patterns: Vec<&str> = self.inputs.iter().map(|(p, _)| p.as_str()).collect();
                let why = format!(
                    "field {} fits none of hoodie.keygen.timebased.input.dateformat ({})",
                    self.field,
                    patterns.join(", ")
                );
                bad(row, text, &why);
                out.append_null();
                continue;
            };
            out.append_value(self.format(time));
        }
        Ok(out.finish())
    }

    fn format_numbers(&self, column: &ArrayRef, bad: &mut Bad) -> Result<StringArray> {
        let unsupported = || Error::Unsupported {
            what: format!("partition field {} of type {} makes no time", self.field, column.data_type()),
        };
        // Dates are days and timestamps are numbers of their own unit, as in the Avro record that Hudi sees.
        let numbers = match column.data_type() {
            DataType::Date32 => cast(column, &DataType::Int32).and_then(|days| cast(&days, &DataType::Int64)),
            DataType::Boolean | DataType::Binary => return Err(unsupported()),
            _ => cast(column, &DataType::Int64),
        };
        let numbers = numbers.map_err(|_| unsupported())?;
        let numbers = numbers.as_primitive::<Int64Type>();
        let mut out = StringBuilder::with_capacity(numbers.len(), numbers.len() * 10);
        for row in 0..numbers.len() {
            let value = match (column.is_null(row), numbers.is_null(row)) {
                (true, _) => Some(1),
                // A number that the cast could not hold, such as NaN.
                (false, true) => None,
                (false, false) => Some(numbers.value(row)),
            };
            let time = value.and_then(|v| self.millis(v)).and_then(DateTime::from_timestamp_millis);
            let Some(time) = time else {
                let shown = array_value_to_string(column, row).unwrap_or_default();
                bad(row, &shown, &format!("field {} is out of range for a time", self.field));
                out.append_null();
                continue;
            };
            out.append_value(self.format(time.fixed_offset()));
        }
        Ok(out.finish())
    }

    fn millis(&self, value: i64) -> Option<i64> {
        match self.timestamp_type {
            TimestampType::UnixTimestamp => value.checked_mul(1000),
            TimestampType::EpochMilliseconds => Some(value),
            TimestampType::EpochMicroseconds => Some(value.div_euclid(1000)),
            TimestampType::Scalar => {
                i64::try_from(i128::from(value) * i128::from(self.scalar_unit_nanos) / 1_000_000).ok()
            }
            // Numbers are refused for these when the part is made.
            TimestampType::DateString | TimestampType::Mixed => None,
        }
    }

    fn format(&self, time: DateTime<FixedOffset>) -> String {
        let time = match self.output_zone {
            Some(zone) => in_zone(time.with_timezone(&Utc), zone),
            None => time,
        };
        self.output.format(time)
    }
}
