//! JSON objects to Arrow columns by a schema-driven scanner: no tape, no tree, nothing boxed for a row.
//!
//! Knows one schema and one record at a time, no file and no source. Look at [`JsonDecoder`] first. `scan` reads strict
//! JSON, `fill` decides which value goes into which of the `columns`; `tests/twin`
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

use super::columns::Unsupported;
use super::rows::Rows;
use arrow::datatypes::SchemaRef;
pub(super) use fail::{Fallible, shown};
pub(super) use scan::Cursor;

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

/// Decodes records of one schema into batches.
#[derive(Debug)]
pub struct JsonDecoder {
    pub rows: Rows,
}

impl JsonDecoder {
    /// `with_positions` appends [`POSITION_COLUMN`](crate::codec::POSITION_COLUMN). Fails for a type that JSON cannot fill.
    pub fn new(schema: SchemaRef, with_positions: bool) -> Result<JsonDecoder, JsonError> {
        Ok(JsonDecoder { rows: Rows::new(&schema, with_positions)? })
    }

    /// One record (one JSON object in `bytes`); on an error the record leaves no trace in the columns.
    pub fn decode(&mut self, bytes: &[u8], position: u64) -> Result<(), JsonError> {
        let full = |why: &str| JsonError::Malformed { why: why.to_owned(), at: 1 };
        self.rows.check_room(bytes.len()).map_err(full)?;
        let text = utf8(bytes)?;
        let mut cursor = Cursor::new(text, 0);
        let filled =
            self.rows.add(bytes.len(), position, |record| record.fill(&mut cursor).and_then(|()| cursor.end()));
        filled.map_err(|fail| fail.into_error(text))
    }
}

pub(super) fn utf8(bytes: &[u8]) -> Result<&str, JsonError> {
    let malformed =
        |e: std::str::Utf8Error| JsonError::Malformed { why: "invalid UTF-8".to_owned(), at: e.valid_up_to() + 1 };
    std::str::from_utf8(bytes).map_err(malformed)
}

#[cfg(test)]
mod tests;
