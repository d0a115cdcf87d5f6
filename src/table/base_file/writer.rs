//! Writing one base file.

use arrow::array::{Array, AsArray, RecordBatch, StringArray};

use super::bloom::BloomBuilder;
use super::key_range::KeyRange;
use super::rows::{Rows, write_error};
use super::{
    BLOOM_TYPE_DYNAMIC, Error, FOOTER_BLOOM, FOOTER_BLOOM_TYPE, FOOTER_MAX_KEY, FOOTER_MIN_KEY, RECORD_KEY, Result,
    WriterOptions, Written,
};
use crate::storage::{Storage, Upload};

/// Writes one base file on a blocking thread; visible only after [`Writer::finish`]. Dropped before, it leaves nothing.
pub struct Writer {
    rows: Rows<Upload>,
    key_column: usize,
    bloom: BloomBuilder,
    range: KeyRange,
    count: u64,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("path", &self.rows.display).field("rows", &self.count).finish_non_exhaustive()
    }
}

impl Writer {
    pub fn create(storage: &Storage, path: &str, options: &WriterOptions) -> Result<Writer> {
        let display = storage.display(path);
        let key_column = options.schema.index_of(RECORD_KEY).map_err(|e| write_error(&display, &e))?;
        let rows = Rows::begin(storage.upload(path)?, display, options)?;
        Ok(Writer { rows, key_column, bloom: BloomBuilder::new(&options.bloom), range: KeyRange::default(), count: 0 })
    }

    /// A batch with all columns, meta columns first; the record keys are taken from it.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows.check(batch)?;
        let keys: &StringArray = batch.column(self.key_column).as_string();
        if let Some(row) = (0..keys.len()).find(|&i| keys.is_null(i) || keys.value_length(i) == 0) {
            let path = self.rows.display.clone();
            return Err(Error::KeyMissing { path, row: self.count + row as u64 }.into());
        }
        self.rows.write(batch)?;
        self.bloom.add_all(keys);
        self.range.add_all(keys);
        self.count += batch.num_rows() as u64;
        Ok(())
    }

    /// Bytes so far: what is flushed plus an estimate of what is buffered (compressed).
    pub fn size_estimate(&self) -> u64 {
        self.rows.size_estimate()
    }

    /// Bytes of memory the writer holds.
    pub fn memory(&self) -> usize {
        self.rows.memory() + self.bloom.memory()
    }

    /// Ends the row group, which gives its memory back: for a task that has many files open.
    pub fn flush_row_group(&mut self) -> Result<()> {
        self.rows.flush()
    }

    pub fn finish(self) -> Result<Written> {
        let bloom = self.bloom.finish();
        let mut footer = vec![(FOOTER_BLOOM, bloom.serialize())];
        if bloom.is_dynamic() {
            footer.push((FOOTER_BLOOM_TYPE, BLOOM_TYPE_DYNAMIC.to_owned()));
        }
        if let Some((min, max)) = self.range.into_inner() {
            footer.extend([(FOOTER_MIN_KEY, min), (FOOTER_MAX_KEY, max)]);
        }
        let upload = self.rows.end(footer)?;
        Ok(Written { size: upload.finish()?, rows: self.count })
    }
}

/// The content of a Parquet block of a log file: as a base file, but in memory and without an index in its footer
/// (`HoodieParquetDataBlock`, Hudi 0.15).
pub struct BlockWriter {
    rows: Rows<Vec<u8>>,
}

impl std::fmt::Debug for BlockWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockWriter").field("of", &self.rows.display).finish_non_exhaustive()
    }
}

impl BlockWriter {
    /// `display` names the log file in errors.
    pub fn begin(display: String, options: &WriterOptions) -> Result<BlockWriter> {
        Ok(BlockWriter { rows: Rows::begin(Vec::new(), display, options)? })
    }

    /// A batch with all columns, meta columns first.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows.check(batch)?;
        self.rows.write(batch)
    }

    /// As [`Writer::size_estimate`].
    pub fn size_estimate(&self) -> u64 {
        self.rows.size_estimate()
    }

    pub fn finish(self) -> Result<Vec<u8>> {
        self.rows.end(Vec::new())
    }
}
