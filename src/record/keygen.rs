//! Key generators: Simple, Complex, NonPartitioned, TimestampBased (semantics.md §4).

use super::{KeyedBatch, Result};
use crate::config::KeyConfig;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

/// Turns rows into records. Made once for a schema.
#[derive(Debug, Clone)]
pub struct KeyGenerator;

/// What besides the key configuration decides how records are made.
#[derive(Debug, Clone, Default)]
pub struct RecordOptions {
    /// Take ordering values from this field (upsert, or filter-dupes).
    pub ordering_field: Option<String>,
    /// A table's stored single-field Complex keys are `id:value` (true) or `value`.
    pub complex_single_key_prefixed: bool,
    /// Name of the source's hidden position column, if the rows carry it as their last column.
    pub position_column: Option<&'static str>,
}

impl KeyGenerator {
    /// `schema`: of the rows (with the position column, if any). Missing fields are errors here, not at the first row.
    pub fn new(_config: &KeyConfig, _options: RecordOptions, _schema: &SchemaRef) -> Result<KeyGenerator> {
        todo!()
    }
    pub fn key(&self, _rows: &RecordBatch) -> Result<KeyedBatch> {
        todo!()
    }
}
