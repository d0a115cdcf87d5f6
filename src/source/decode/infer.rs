//! A schema from the JSON objects of a whole batch, where no schema provider gives one.

use super::json::JsonError;
use arrow::datatypes::SchemaRef;

/// Why no schema can be made of the records seen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InferError {
    #[error("field {field} is {one} ({one_example}) and {other} ({other_example}): give a schema file")]
    Conflict { field: String, one: &'static str, one_example: String, other: &'static str, other_example: String },
    #[error("field {field}: {why}")]
    Field { field: String, why: String },
    #[error("no field with a value in any record: give a schema file")]
    NoFields,
}

impl InferError {
    /// Stable name, see the README.
    pub fn code(&self) -> &'static str {
        match self {
            InferError::Conflict { .. } => "infer-conflict",
            InferError::Field { .. } => "infer-field",
            InferError::NoFields => "infer-no-fields",
        }
    }
}

/// A schema and the fields that are not in it.
#[derive(Debug, Clone)]
pub struct Inferred {
    pub schema: SchemaRef,
    /// Paths of fields left out: always null, or objects and arrays that are always empty; a warning each.
    pub left_out: Vec<String>,
}

/// What the records seen so far have in common.
#[derive(Debug, Default)]
pub struct SchemaInference;

impl SchemaInference {
    pub fn new() -> SchemaInference {
        todo!()
    }
    /// One record; a record that is not a JSON object leaves no trace.
    pub fn observe(&mut self, _bytes: &[u8]) -> Result<(), JsonError> {
        todo!()
    }
    /// Takes in what another has seen of later records.
    pub fn merge(&mut self, _later: SchemaInference) {
        todo!()
    }
    pub fn finish(self) -> Result<Inferred, InferError> {
        todo!()
    }
}
