//! JSON objects to Arrow columns by a schema-driven scanner (streamer-options.md §10, path A of 1.0.2): exact or refused.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

/// Why a record cannot be taken; the caller adds where it came from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    #[error("not a JSON object: {why} at byte {at}")]
    Malformed { why: String, at: usize },
    #[error("field {field}: {value} {why}")]
    Value { field: String, value: String, why: String },
}

/// Decodes records of one schema into batches.
pub struct JsonDecoder;

impl JsonDecoder {
    /// Fails for a type that JSON cannot fill.
    pub fn new(_schema: SchemaRef) -> Result<JsonDecoder, JsonError> {
        todo!()
    }
    /// One record (one JSON object in `bytes`); on an error the record leaves no trace in the builders.
    pub fn decode(&mut self, _bytes: &[u8]) -> Result<(), JsonError> {
        todo!()
    }
    /// Rows decoded since the last flush.
    pub fn rows(&self) -> usize {
        todo!()
    }
    /// Bytes of memory held by the builders, roughly.
    pub fn flush(&mut self) -> RecordBatch {
        todo!()
    }
}
