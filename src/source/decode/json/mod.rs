//! JSON objects to Arrow columns by a schema-driven scanner: no tape, no tree, nothing boxed for a row.
//!
//! Knows one schema and one record at a time, no file and no source. Look at [`JsonDecoder`] first. `scan` reads strict
//! JSON, `fill` decides which value goes into which of the [`columns`]; `tests/twin`
//! is the slow and obvious decoder that it is compared with. Invariants: a value is stored exactly (a double: the nearest one) or
//! the record is refused; a refused record leaves no trace.
//!
//! The rules are those of Hudi 1.0.2's `MercifulJsonConverter` (streamer-options.md §10, path A), with or without a
//! transformer, and without what it loses:
//!
//! | field | takes | refuses, where Hudi would store something else |
//! | --- | --- | --- |
//! | int, long | integers, also as `2.0`, `1e3`, `"2"` | fractions (cut), what is out of range (wraps) |
//! | float, double | numbers, also in text; `"NaN"`, `"Infinity"` | what is out of range (infinity) |
//! | string | text; any other value as its JSON text, `1e3` as `1E+3` | |
//! | decimal | numbers and text of numbers; padded Base64 | digits that do not fit; `"1234"` is no Base64 |
//! | timestamp, date, time | numbers in the unit of the field, ISO text | text finer than the unit |
//! | fixed | a list of exactly as many byte numbers | lists of another length (cut, or filled with zeros) |
//! | all | `null` or nothing where nullable | text after the object (ignored) |

mod decimal;
mod fail;
mod fill;
mod scan;
mod temporal;

use super::columns::{self, Record, Unsupported};
use crate::source::POSITION_COLUMN;
use arrow::array::{RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
pub(super) use fail::{Fallible, shown};
pub(super) use scan::Cursor;
use std::sync::Arc;

/// Why a record cannot be taken; the caller adds where it came from. Bytes count from 1 at the start of the record;
/// a value is cut to 200 characters; a field is a path like `a.b[3].c`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The record must be repaired, or skipped, whatever the schema.
    #[error("not a JSON object: {why} at byte {at}")]
    Malformed { why: String, at: usize },
    /// The schema or the value is wrong.
    #[error("field {field}: {value} {why} (at byte {at})")]
    Value { field: String, value: String, why: String, at: usize },
    /// As with [`JsonError::Value`], but there is no value to show.
    #[error("field {field} is missing, and the schema does not let it be null")]
    Missing { field: String },
    /// The schema must change, whatever the records.
    #[error("field {field} is {data_type} in the schema, which JSON cannot fill")]
    UnsupportedType { field: String, data_type: String },
}

impl JsonError {
    /// Stable name, see the README.
    pub fn code(&self) -> &'static str {
        match self {
            JsonError::Malformed { .. } => "json-malformed",
            JsonError::Value { .. } => "json-value",
            JsonError::Missing { .. } => "json-missing-field",
            JsonError::UnsupportedType { .. } => "json-unsupported-type",
        }
    }
}

impl From<Unsupported> for JsonError {
    fn from(Unsupported { field, data_type }: Unsupported) -> JsonError {
        JsonError::UnsupportedType { field, data_type }
    }
}

/// Bytes of JSON in one batch. Columns of text have 32-bit offsets, and no text in a column is twice as long as it is
/// in JSON (the longest: `9e-6,` becomes `0.000009,`), so below this nothing can overflow.
const MAX_BATCH_BYTES: usize = 1 << 30;

/// Decodes records of one schema into batches.
#[derive(Debug)]
pub struct JsonDecoder {
    schema: SchemaRef,
    record: Record,
    positions: Option<Vec<u64>>,
    bytes: usize,
}

impl JsonDecoder {
    /// `with_positions` appends [`POSITION_COLUMN`]. Fails for a type that JSON cannot fill.
    pub fn new(schema: SchemaRef, with_positions: bool) -> Result<JsonDecoder, JsonError> {
        let record = Record::new(schema.fields(), "")?;
        let mut fields: Vec<FieldRef> = schema.fields().iter().cloned().collect();
        if with_positions {
            fields.push(Arc::new(Field::new(POSITION_COLUMN, DataType::UInt64, false)));
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        Ok(JsonDecoder { schema, record, positions: with_positions.then(Vec::new), bytes: 0 })
    }

    /// Schema of the batches, the position column included.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// One record (one JSON object in `bytes`); on an error the record leaves no trace in the columns.
    pub fn decode(&mut self, bytes: &[u8], position: u64) -> Result<(), JsonError> {
        if self.bytes.saturating_add(bytes.len()) > MAX_BATCH_BYTES {
            return Err(JsonError::Malformed { why: "more than 1 GiB in one batch".to_owned(), at: 1 });
        }
        let text = utf8(bytes)?;
        let rows = self.record.rows;
        let mut cursor = Cursor::new(text, 0);
        if let Err(fail) = self.record.fill(&mut cursor).and_then(|()| cursor.end()) {
            self.record.truncate(rows);
            return Err(fail.into_error(text));
        }
        self.bytes += bytes.len();
        if let Some(positions) = &mut self.positions {
            positions.push(position);
        }
        Ok(())
    }

    /// A row of no meaning (zeros, empty values, no nulls): it keeps the place of a record without a value.
    pub fn push_default(&mut self, position: u64) {
        self.record.push_default();
        if let Some(positions) = &mut self.positions {
            positions.push(position);
        }
    }

    /// Rows decoded since the last flush.
    pub fn rows(&self) -> usize {
        self.record.rows
    }

    /// Bytes of JSON decoded since the last flush: flush long before 1 GiB, where [`JsonDecoder::decode`] refuses.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The rows decoded since the last flush; may be none.
    pub fn flush(&mut self) -> RecordBatch {
        self.bytes = 0;
        let (mut columns, rows) = self.record.finish(self.schema.fields());
        if let Some(positions) = &mut self.positions {
            columns.push(Arc::new(UInt64Array::from(columns::take(positions))));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .expect("all columns have the schema's types and the record's length")
    }
}

pub(super) fn utf8(bytes: &[u8]) -> Result<&str, JsonError> {
    let malformed =
        |e: std::str::Utf8Error| JsonError::Malformed { why: "invalid UTF-8".to_owned(), at: e.valid_up_to() + 1 };
    std::str::from_utf8(bytes).map_err(malformed)
}

#[cfg(test)]
mod tests;
