//! Arrow rows in Avro's binary encoding.

use super::AvroError;
use crate::schema::TableSchema;
use arrow::array::RecordBatch;

/// Rows to Avro's binary encoding, by a plan made once from the schema (unions null first); nothing boxed per row.
#[derive(Debug)]
pub struct AvroEncoder {}

impl AvroEncoder {
    /// For rows of `schema`, written with its `avro`; meta columns are columns like others.
    pub fn new(schema: &TableSchema) -> Result<AvroEncoder, AvroError> {
        let _ = schema;
        Ok(AvroEncoder {})
    }

    /// Appends each row of `batch` (columns = the schema's Arrow) as 4-byte big-endian length and datum.
    pub fn append_framed(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), AvroError> {
        self.append_framed_rows(batch, 0..batch.num_rows(), out)
    }

    /// The same of some rows, in the order given.
    pub fn append_framed_rows(
        &self,
        batch: &RecordBatch,
        rows: impl Iterator<Item = usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), AvroError> {
        let _ = (batch, rows, out);
        Err(AvroError::Batch { field: String::new(), why: "encoding is not there yet".into() })
    }
}
