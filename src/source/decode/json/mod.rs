//! JSON objects to Arrow columns by a schema-driven scanner (streamer-options.md §10, path A of 1.0.2): exact or refused.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

/// Why a record cannot be taken; the caller adds where it came from. Bytes count from 1 at the start of the record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    #[error("not a JSON object: {why} at byte {at}")]
    Malformed { why: String, at: usize },
    #[error("field {field}: {value} {why} (at byte {at})")]
    Value { field: String, value: String, why: String, at: usize },
    #[error("field {field} is missing, and the schema does not let it be null")]
    Missing { field: String },
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

/// Decodes records of one schema into batches.
#[derive(Debug)]
pub struct JsonDecoder;

impl JsonDecoder {
    /// `with_positions` appends [`crate::source::POSITION_COLUMN`]. Fails for a type that JSON cannot fill.
    pub fn new(_schema: SchemaRef, _with_positions: bool) -> Result<JsonDecoder, JsonError> {
        todo!()
    }
    /// Schema of the batches, the position column included.
    pub fn schema(&self) -> &SchemaRef {
        todo!()
    }
    /// One record (one JSON object in `bytes`); on an error the record leaves no trace in the columns.
    pub fn decode(&mut self, _bytes: &[u8], _position: u64) -> Result<(), JsonError> {
        todo!()
    }
    /// Rows decoded since the last flush.
    pub fn rows(&self) -> usize {
        todo!()
    }
    /// Bytes of JSON decoded since the last flush: flush long before 1 GiB, where [`JsonDecoder::decode`] refuses.
    pub fn bytes(&self) -> usize {
        todo!()
    }
    /// The rows decoded since the last flush; may be none.
    pub fn flush(&mut self) -> RecordBatch {
        todo!()
    }
}
