//! A row group of a file with other rows in the place of some, column by column.
//!
//! Each column is decoded by itself, and encoded by itself on any core. One in which nothing changes goes on as it is encoded:
//! the record key always, so often the columns that it is made of, and whatever else an update says again.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, MutableArrayData, RecordBatch, UInt32Array, make_array};
use arrow::compute::{cast, take};
use arrow::datatypes::Field;
use arrow::error::ArrowError;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::arrow::arrow_writer::compute_leaves;

use super::Result;
use super::copy::EncodedColumn;
use super::rows::{Column, write_error};

/// Rows that are decoded at a time.
const BATCH: usize = 8192;

/// Rows that take the place of some of a row group's.
#[derive(Debug, Clone, Default)]
pub struct Patch {
    /// Which, counted from the row group's begin, ascending.
    pub rows: Vec<u32>,
    /// What comes there, with all columns of the file; `None`: nothing does.
    pub with: Option<RecordBatch>,
}

/// One column of a patch.
pub(super) struct ColumnPatch<'a> {
    pub rows: &'a [u32],
    pub with: &'a ArrayRef,
    pub field: &'a Field,
    /// How errors name the file that is written.
    pub display: &'a str,
}

impl ColumnPatch<'_> {
    /// Encodes the column with its new values; `false`: nothing would change, and nothing was written.
    pub(super) fn encode(&self, old: &EncodedColumn<'_>, writers: &mut [Column]) -> Result<bool> {
        let mut stored = Values { batches: old.decode(BATCH)?, column: old, row: 0 };
        let mut first = None;
        while let Some((start, values)) = stored.next().transpose()? {
            if self.changes(start, &values).map_err(|e| old.corrupt(e))? {
                if start > 0 {
                    // Rather than keep what has gone by.
                    stored = Values { batches: old.decode(BATCH)?, column: old, row: 0 };
                } else {
                    first = Some(Ok((start, values)));
                }
                for batch in first.into_iter().chain(stored) {
                    let (start, values) = batch?;
                    let merged = self.merged(start, &values).map_err(|e| old.corrupt(e))?;
                    self.write(&merged, writers)?;
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Of the patch's rows, those among `count` of the row group from `start` on.
    fn within(&self, start: usize, count: usize) -> Range<usize> {
        let until = |end: usize| self.rows.partition_point(|row| (*row as usize) < end);
        until(start)..until(start + count)
    }

    /// The patch's values there, in the type that the stored ones have: names within lists and maps may be others.
    fn values(&self, within: &Range<usize>, stored: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
        let values = self.with.slice(within.start, within.len());
        if values.data_type() == stored.data_type() { Ok(values) } else { cast(&values, stored.data_type()) }
    }

    fn changes(&self, start: usize, stored: &ArrayRef) -> std::result::Result<bool, ArrowError> {
        let within = self.within(start, stored.len());
        if within.is_empty() {
            return Ok(false);
        }
        let places = self.rows[within.clone()].iter().map(|row| row - start as u32);
        let before = take(stored, &UInt32Array::from_iter_values(places), None)?;
        Ok(before.to_data() != self.values(&within, stored)?.to_data())
    }

    fn merged(&self, start: usize, stored: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
        let within = self.within(start, stored.len());
        if within.is_empty() {
            return Ok(stored.clone());
        }
        let (stored, values) = (stored.to_data(), self.values(&within, stored)?.to_data());
        let mut merged = MutableArrayData::new(vec![&stored, &values], false, stored.len());
        let mut next = 0;
        for (at, row) in self.rows[within].iter().enumerate() {
            let place = *row as usize - start;
            merged.try_extend(0, next, place)?;
            merged.try_extend(1, at, at + 1)?;
            next = place + 1;
        }
        merged.try_extend(0, next, stored.len())?;
        Ok(make_array(merged.freeze()))
    }

    fn write(&self, values: &ArrayRef, writers: &mut [Column]) -> Result<()> {
        let leaves = compute_leaves(self.field, values);
        let written =
            leaves.and_then(|leaves| writers.iter_mut().zip(&leaves).try_for_each(|(to, leaf)| to.write(leaf)));
        written.map_err(|e| write_error(self.display, &e).into())
    }
}

/// A column's values, with the row at which each batch begins.
struct Values<'a> {
    batches: ParquetRecordBatchReader,
    column: &'a EncodedColumn<'a>,
    row: usize,
}

impl Iterator for Values<'_> {
    type Item = Result<(usize, ArrayRef)>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batches.next()?.map_err(|e| self.column.corrupt(e));
        Some(batch.map(|batch| {
            let start = self.row;
            self.row += batch.num_rows();
            (start, batch.column(0).clone())
        }))
    }
}
