//! `tombstones=delete`: a message without a value becomes a row that stands in its place and holds its key.

use super::super::{Error, Result, TOMBSTONE_COLUMN};
use arrow::array::{BinaryBuilder, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use std::sync::Arc;

/// Collects [`TOMBSTONE_COLUMN`], beside the decoder of the other columns.
#[derive(Debug)]
pub(super) struct Tombstones {
    keys: BinaryBuilder,
    /// Of the batches.
    schema: SchemaRef,
}

/// The schema with the column behind all others.
pub(super) fn with_tombstones(schema: &SchemaRef) -> SchemaRef {
    let column = Arc::new(Field::new(TOMBSTONE_COLUMN, DataType::Binary, true));
    let fields: Vec<FieldRef> = schema.fields().iter().cloned().chain([column]).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

impl Tombstones {
    /// `schema`: with the column.
    pub fn new(schema: SchemaRef) -> Tombstones {
        Tombstones { keys: BinaryBuilder::new(), schema }
    }

    /// An ordinary row.
    pub fn push_row(&mut self) {
        self.keys.append_null();
    }

    /// A tombstone, for which the decoder has a row too. Whoever makes record keys says what is wrong with its key.
    pub fn push_key(&mut self, key: Option<&[u8]>) {
        self.keys.append_value(key.unwrap_or_default());
    }

    /// Puts the column of the rows since the last call to their batch.
    pub fn attach(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = batch.columns().to_vec();
        columns.push(Arc::new(self.keys.finish()));
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .map_err(|e| Error::Worker { what: "append the keys of tombstones", why: e.to_string() })
    }
}
