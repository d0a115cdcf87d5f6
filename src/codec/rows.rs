//! The rows of a batch in the making, whatever they are decoded from.

use super::POSITION_COLUMN;
use super::columns::{Record, Unsupported, take};
use arrow::array::{RecordBatch, RecordBatchOptions, UInt64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use std::sync::Arc;

/// Bytes of values in one batch, so that no list gets 2^31 items. No text in a column is twice as long as it is in JSON (the
/// longest: `9e-6,` becomes `0.000009,`), so its 32-bit offsets cannot overflow either; Avro watches its texts while they grow.
pub(super) const MAX_BATCH_BYTES: usize = 1 << 30;

/// What a decoder has made since the last flush.
#[derive(Debug)]
pub struct Rows {
    schema: SchemaRef,
    record: Record,
    positions: Option<Vec<u64>>,
    bytes: usize,
}

impl Rows {
    /// `with_positions` appends [`POSITION_COLUMN`].
    pub(super) fn new(schema: &SchemaRef, with_positions: bool) -> Result<Rows, Unsupported> {
        let record = Record::new(schema.fields(), "")?;
        let mut fields: Vec<FieldRef> = schema.fields().iter().cloned().collect();
        if with_positions {
            fields.push(Arc::new(Field::new(POSITION_COLUMN, DataType::UInt64, false)));
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        Ok(Rows { schema, record, positions: with_positions.then(Vec::new), bytes: 0 })
    }

    /// To be asked before [`Rows::add`]: why a value of so many bytes must wait for the next batch.
    #[inline]
    pub(super) fn check_room(&self, bytes: usize) -> Result<(), &'static str> {
        match self.bytes.saturating_add(bytes) > MAX_BATCH_BYTES {
            true => Err("more than 1 GiB in one batch"),
            false => Ok(()),
        }
    }

    /// One row, which `fill` makes of a value of so many bytes; when it fails, nothing stays of what it has begun.
    #[inline]
    pub(super) fn add<E>(
        &mut self,
        bytes: usize,
        position: u64,
        fill: impl FnOnce(&mut Record) -> Result<(), E>,
    ) -> Result<(), E> {
        let rows = self.record.rows;
        if let Err(e) = fill(&mut self.record) {
            self.record.truncate(rows);
            return Err(e);
        }
        self.bytes += bytes;
        self.push_position(position);
        Ok(())
    }

    /// A row of no meaning (zeros, empty values, no nulls): it keeps the place of a record without a value.
    pub fn push_default(&mut self, position: u64) {
        self.record.push_default();
        self.push_position(position);
    }

    #[inline]
    fn push_position(&mut self, position: u64) {
        if let Some(positions) = &mut self.positions {
            positions.push(position);
        }
    }

    /// Schema of the batches, the position column included.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub fn len(&self) -> usize {
        self.record.rows
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the values that the rows were decoded from: flush long before 1 GiB, where decoders refuse.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The rows as a batch, may be of none; the next one begins.
    pub fn flush(&mut self) -> RecordBatch {
        self.bytes = 0;
        let (mut columns, rows) = self.record.finish(self.schema.fields());
        if let Some(positions) = &mut self.positions {
            columns.push(Arc::new(UInt64Array::from(take(positions))));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .expect("all columns have the schema's types and the record's length")
    }
}
