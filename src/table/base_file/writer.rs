//! Writing one base file.

use arrow::array::{Array, AsArray, RecordBatch, StringArray};

use super::bloom::BloomBuilder;
use super::key_range::KeyRange;
use super::rows::{Rows, write_error};
use super::{
    BLOOM_TYPE_DYNAMIC, BloomOptions, Error, FOOTER_BLOOM, FOOTER_BLOOM_TYPE, FOOTER_MAX_KEY, FOOTER_MIN_KEY,
    KeyFooter, Patch, RECORD_KEY, Reader, Result, WriterOptions, Written,
};
use crate::storage::{Storage, Upload};

/// Writes one base file on a blocking thread; visible only after [`Writer::finish`]. Dropped before, it leaves nothing.
pub struct Writer {
    rows: Rows<Upload>,
    key_column: usize,
    bloom: BloomBuilder,
    range: KeyRange,
    bloom_options: BloomOptions,
    inherits: bool,
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
        Ok(Writer {
            rows,
            key_column,
            bloom: BloomBuilder::new(&options.bloom),
            range: KeyRange::default(),
            bloom_options: options.bloom.clone(),
            inherits: false,
            count: 0,
        })
    }

    /// Before anything is written: the file takes the place of one that has this footer, all of whose keys it will have, so
    /// that the filter and the key range go on from there. `false`: there is no filter, or it is of another shape.
    pub fn inherit(&mut self, footer: KeyFooter) -> bool {
        let KeyFooter { bloom: Some(bloom), min_key: Some(min), max_key: Some(max) } = footer else { return false };
        let Some(bloom) = BloomBuilder::resume(bloom, &self.bloom_options) else { return false };
        (self.bloom, self.range, self.inherits) = (bloom, KeyRange::of(min, max), true);
        true
    }

    /// A batch with all columns, meta columns first; the record keys are taken from it.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.write_rows(batch)?;
        self.add_keys(batch.column(self.key_column).as_string());
        Ok(())
    }

    /// The same of rows whose keys the file has that this one takes the place of.
    pub fn write_stored(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.inherits { self.write_rows(batch) } else { self.write(batch) }
    }

    /// Whether [`Writer::copy`] can be: the columns of that file are exactly those of this one.
    pub fn takes_row_groups_of(&self, from: &Reader) -> bool {
        self.rows.takes_row_groups_of(from)
    }

    /// A row group of `from` with the rows of `patch`, whose keys are those of the rows before them, and with the column
    /// `_hoodie_file_name` new; how many rows it has. `keys`, if there is one, is shown its keys. Columns in which nothing
    /// changes stay as they are encoded there.
    pub fn copy(
        &mut self,
        from: &Reader,
        group: usize,
        patch: &Patch,
        file_name: &str,
        mut keys: Option<impl FnMut(&StringArray)>,
    ) -> Result<u64> {
        if !self.inherits || keys.is_some() {
            for read in from.record_keys_of(group..group + 1)? {
                let read = read?;
                if !self.inherits {
                    self.add_keys(&read);
                }
                keys.iter_mut().for_each(|keys| keys(&read));
            }
        }
        let rows = self.rows.copy(from, group, patch, file_name)?;
        self.count += rows;
        Ok(rows)
    }

    fn write_rows(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows.check(batch)?;
        let keys: &StringArray = batch.column(self.key_column).as_string();
        if let Some(row) = (0..keys.len()).find(|&i| keys.is_null(i) || keys.value_length(i) == 0) {
            let path = self.rows.display.clone();
            return Err(Error::KeyMissing { path, row: self.count + row as u64 }.into());
        }
        self.rows.write(batch)?;
        self.count += batch.num_rows() as u64;
        Ok(())
    }

    fn add_keys(&mut self, keys: &StringArray) {
        self.bloom.add_all(keys);
        self.range.add_all(keys);
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

    /// Encodes what is left; the rest is up to the disk.
    pub fn seal(self) -> Result<Sealed> {
        let bloom = self.bloom.finish();
        let mut footer = vec![(FOOTER_BLOOM, bloom.serialize())];
        if bloom.is_dynamic() {
            footer.push((FOOTER_BLOOM_TYPE, BLOOM_TYPE_DYNAMIC.to_owned()));
        }
        if let Some((min, max)) = self.range.into_inner() {
            footer.extend([(FOOTER_MIN_KEY, min), (FOOTER_MAX_KEY, max)]);
        }
        Ok(Sealed { upload: self.rows.end(footer)?, rows: self.count })
    }

    /// Both at once.
    pub fn finish(self) -> Result<Written> {
        self.seal()?.publish()
    }
}

/// A base file that is complete, and that nobody sees yet. Dropped, it leaves nothing.
#[derive(Debug)]
pub struct Sealed {
    upload: Upload,
    rows: u64,
}

impl Sealed {
    pub fn publish(self) -> Result<Written> {
        Ok(Written { size: self.upload.finish()?, rows: self.rows })
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
