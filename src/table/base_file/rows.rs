//! Rows as Parquet, wherever the bytes go: row groups end at the block size or when asked.

use std::io::{BufWriter, Write};
use std::iter::repeat_n;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{Field, Schema};
use bytes::Bytes;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowLeafColumn, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::basic::Compression;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::ColumnPath;

use super::copy::EncodedColumn;
use super::cores::Writing;
use super::gzip::{GzipChunk, GzipChunks};
use super::patch::{ColumnPatch, Patch};
use super::{
    COMMIT_SEQNO, Error, FILE_NAME, FOOTER_AVRO_SCHEMA, FOOTER_MODEL, RECORD_KEY, Reader, Result, WriterOptions,
    parquet_schema, sample,
};
use crate::table::Error as TableError;

/// Bytes that go to the file at a time.
const PIECE: usize = 64 << 10;

/// Rows whose file name is encoded at a time.
const NAMES: usize = 8192;

/// Rows that are encoded sooner than a thread begins.
const FEW: usize = 1000;

pub(super) struct Rows<W: Write + Send> {
    file: SerializedFileWriter<BufWriter<W>>,
    /// The row group that is being written: has rows, and room for more.
    open: Option<RowGroup>,
    options: WriterOptions,
    writing: Writing,
    pub(super) display: String,
}

impl<W: Write + Send> Rows<W> {
    pub(super) fn begin(to: W, display: String, options: &WriterOptions) -> Result<Rows<W>> {
        let failed = |e: ParquetError| write_error(&display, &e);
        let schema = parquet_schema::of_arrow(&options.schema).map_err(failed)?.root_schema_ptr();
        let to = BufWriter::with_capacity(PIECE, to);
        let file = SerializedFileWriter::new(to, schema, Arc::new(properties(options, &[]))).map_err(failed)?;
        Ok(Rows { file, open: None, options: options.clone(), writing: Writing::begin(), display })
    }

    /// A batch that has passed [`Rows::check`].
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.add(batch).map_err(|e| write_error(&self.display, &e).into())
    }

    fn add(&mut self, batch: &RecordBatch) -> ParquetResult<()> {
        let block_size = size(self.options.block_size);
        let mut start = 0;
        while start < batch.num_rows() {
            let open = match &mut self.open {
                Some(open) => open,
                none => none.insert(RowGroup::begin(&self.file, &self.options, &[])?),
            };
            let count = open.room(block_size).min(batch.num_rows() - start);
            let rows = batch.slice(start, count);
            let unique = open.unique_columns(&rows)?;
            if !unique.is_empty() {
                let first = std::mem::take(&mut open.first);
                *open = RowGroup::begin(&self.file, &self.options, &unique)?;
                open.is_sampled = true;
                first.iter().try_for_each(|rows| open.add(&self.writing, &self.options.schema, rows))?;
            }
            open.add(&self.writing, &self.options.schema, &rows)?;
            start += count;
            if open.room(block_size) == 0 {
                self.end_row_group()?;
            }
        }
        Ok(())
    }

    /// parquet-rs takes columns by position and writes a null in a required column as a zero.
    pub(super) fn check(&self, batch: &RecordBatch) -> Result<()> {
        let refuse = |cause: String| Err(Error::Write { path: self.display.clone(), cause }.into());
        if batch.num_columns() != self.options.schema.fields().len() {
            let (got, want) = (batch.num_columns(), self.options.schema.fields().len());
            return refuse(format!("a batch of {got} columns for a file of {want}"));
        }
        for ((want, got), column) in
            self.options.schema.fields().iter().zip(batch.schema_ref().fields()).zip(batch.columns())
        {
            if want.name() != got.name() || !want.data_type().equals_datatype(column.data_type()) {
                return refuse(format!("column {got} does not fit the file's column {want}"));
            }
            if !want.is_nullable() && column.logical_null_count() > 0 {
                return refuse(format!("a null in column {}, which is required", want.name()));
            }
        }
        Ok(())
    }

    /// Bytes so far: what is flushed plus an estimate of what is buffered (compressed).
    pub(super) fn size_estimate(&self) -> u64 {
        (self.file.bytes_written() + self.open.as_ref().map_or(0, RowGroup::size)) as u64
    }

    /// Bytes of memory that the open row group holds.
    pub(super) fn memory(&self) -> usize {
        self.open.as_ref().map_or(0, RowGroup::memory)
    }

    /// Ends the row group, which gives its memory back.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.end_row_group().map_err(|e| write_error(&self.display, &e).into())
    }

    fn end_row_group(&mut self) -> ParquetResult<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let columns = open.close(&self.writing)?;
        let mut row_group = self.file.next_row_group()?;
        for column in columns {
            column.append(&mut row_group)?;
        }
        row_group.close()?;
        Ok(())
    }

    pub(super) fn takes_row_groups_of(&self, from: &Reader) -> bool {
        from.is_written_as(self.file.schema_descr(), &self.options.schema)
    }

    /// A row group of a file of the same columns, with the rows of `patch`, and with `_hoodie_file_name` new; how many rows it
    /// has. Columns in which nothing changes stay as they are encoded there.
    pub(super) fn copy(&mut self, from: &Reader, group: usize, patch: &Patch, file_name: &str) -> Result<u64> {
        self.flush()?;
        patch.with.iter().try_for_each(|with| self.check(with))?;
        let rows = from.row_group_rows(group)?;
        let failed = |e: ParquetError| write_error(&self.display, &e);
        let fields = self.options.schema.fields();
        let name_column = self.options.schema.index_of(FILE_NAME).map_err(|e| write_error(&self.display, &e))?;
        let without_dictionary = from.without_dictionary(group)?;
        let open = RowGroup::begin(&self.file, &self.options, &without_dictionary).map_err(failed)?;
        let mut writers = open.columns.into_iter();
        let mut row_group = self.file.next_row_group().map_err(failed)?;
        for columns in from.encoded_columns(group, name_column)? {
            let mut copies = Vec::new();
            for column in columns? {
                let writers = writers.by_ref().take(column.leaves.len()).collect();
                copies.push(Copying { old: Some(column), writers, done: Vec::new() });
            }
            let copy = |copying: &mut Copying| {
                let Some(old) = copying.old.take() else { return Ok(()) };
                let field = fields[old.root].as_ref();
                if old.root == name_column {
                    return copying.name(field, file_name, rows).map_err(|e| failed(e).into());
                }
                if let Some(with) = patch.with.as_ref().filter(|_| field.name() != RECORD_KEY) {
                    let (rows, with) = (patch.rows.as_slice(), with.column(old.root));
                    let patch = ColumnPatch { rows, with, field, display: &self.display };
                    if patch.encode(&old, &mut copying.writers)? {
                        return copying.close().map_err(|e| failed(e).into());
                    }
                }
                copying.done =
                    old.into_chunks()?.into_iter().map(|(bytes, close)| Chunk::Copied(bytes, close)).collect();
                Ok::<_, TableError>(())
            };
            match patch.rows.is_empty() || rows < FEW as u64 {
                true => copies.iter_mut().try_for_each(copy)?,
                false => self.writing.each(copies.iter_mut().collect(), copy)?,
            }
            for chunk in copies.into_iter().flat_map(|copying| copying.done) {
                chunk.append(&mut row_group).map_err(failed)?;
            }
        }
        row_group.close().map_err(failed)?;
        Ok(rows)
    }

    /// `footer`: what the footer says besides the schema.
    pub(super) fn end(mut self, footer: Vec<(&str, String)>) -> Result<W> {
        self.flush()?;
        let of_rows = [(FOOTER_AVRO_SCHEMA, self.options.avro_schema), (FOOTER_MODEL, "avro".to_owned())];
        for (key, value) in footer.into_iter().chain(of_rows) {
            self.file.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        let written = self.file.into_inner().map_err(|e| write_error(&self.display, &e))?;
        Ok(written.into_inner().map_err(|e| write_error(&self.display, e.error()))?)
    }
}

/// A row group whose columns are being encoded, in memory.
struct RowGroup {
    columns: Vec<Column>,
    rows: usize,
    /// Whether it has been seen which columns do without a dictionary.
    is_sampled: bool,
    /// The rows so far, until it has.
    first: Vec<RecordBatch>,
}

pub(super) struct Column {
    writer: ArrowColumnWriter,
    gzipped: Option<GzipChunk>,
}

/// A column chunk that goes to the file next.
enum Chunk {
    Encoded(ArrowColumnChunk, Option<GzipChunk>),
    Copied(Bytes, ColumnCloseResult),
}

/// A top-level column that goes from file to file.
struct Copying<'a> {
    old: Option<EncodedColumn<'a>>,
    /// For the columns within it, if they change.
    writers: Vec<Column>,
    done: Vec<Chunk>,
}

impl Copying<'_> {
    fn name(&mut self, field: &Field, name: &str, rows: u64) -> ParquetResult<()> {
        let mut left = usize::try_from(rows).unwrap_or(usize::MAX);
        let names: ArrayRef = Arc::new(StringArray::from_iter_values(repeat_n(name, left.min(NAMES))));
        while left > 0 {
            let count = left.min(NAMES);
            let leaves = compute_leaves(field, &names.slice(0, count))?;
            self.writers.iter_mut().zip(&leaves).try_for_each(|(writer, leaf)| writer.write(leaf))?;
            left -= count;
        }
        self.close()
    }

    fn close(&mut self) -> ParquetResult<()> {
        self.done = self.writers.drain(..).map(Column::close).collect::<ParquetResult<_>>()?;
        Ok(())
    }
}

impl RowGroup {
    /// `unique`: columns that get no dictionary.
    fn begin<W: Write + Send>(
        file: &SerializedFileWriter<W>,
        options: &WriterOptions,
        unique: &[ColumnPath],
    ) -> ParquetResult<RowGroup> {
        // Properties are a file's in parquet-rs. These are only of the row group: of a file that is nowhere.
        let nowhere = SerializedFileWriter::new(
            std::io::sink(),
            file.schema_descr().root_schema_ptr(),
            Arc::new(properties(options, unique)),
        )?;
        let factory = ArrowRowGroupWriterFactory::new(&nowhere, Arc::clone(&options.schema));
        let number = file.flushed_row_groups().len();
        let columns = match options.compression {
            Compression::GZIP(_) => {
                let columns = GzipChunks::open(factory, number)?.into_iter();
                columns.map(|(writer, gzipped)| Column { writer, gzipped: Some(gzipped) }).collect()
            }
            _ => {
                let writers = factory.create_column_writers(number)?.into_iter();
                writers.map(|writer| Column { writer, gzipped: None }).collect()
            }
        };
        Ok(RowGroup { columns, rows: 0, is_sampled: !options.dictionary_enabled, first: Vec::new() })
    }

    /// Columns that turn out to be without repetition when `rows` come, for which the row group is to begin anew: once, when
    /// there are enough to tell. (The first rows of a file come by the hundred, because its size is asked for.)
    fn unique_columns(&mut self, rows: &RecordBatch) -> ParquetResult<Vec<ColumnPath>> {
        if self.is_sampled {
            return Ok(Vec::new());
        }
        if self.rows + rows.num_rows() < sample::ENOUGH {
            self.first.push(rows.clone());
            return Ok(Vec::new());
        }
        self.is_sampled = true;
        let sample = rows.slice(0, rows.num_rows().min(sample::SAMPLE));
        let sample = concat_batches(rows.schema_ref(), self.first.iter().chain([&sample]))?;
        let unique = sample::unique_columns(&sample);
        if unique.is_empty() {
            self.first.clear();
        }
        Ok(unique)
    }

    fn add(&mut self, writing: &Writing, schema: &Schema, batch: &RecordBatch) -> ParquetResult<()> {
        let leaves = schema.fields().iter().zip(batch.columns()).map(|(field, array)| compute_leaves(field, array));
        let leaves: Vec<Vec<ArrowLeafColumn>> = leaves.collect::<ParquetResult<_>>()?;
        let write = |(column, leaf): (&mut Column, ArrowLeafColumn)| column.write(&leaf);
        let mut tasks = self.columns.iter_mut().zip(leaves.into_iter().flatten());
        match batch.num_rows() < FEW {
            true => tasks.try_for_each(write)?,
            false => writing.each(tasks.collect(), write)?,
        }
        self.rows += batch.num_rows();
        Ok(())
    }

    fn close(self, writing: &Writing) -> ParquetResult<Vec<Chunk>> {
        if self.rows < FEW {
            return self.columns.into_iter().map(Column::close).collect();
        }
        let mut closed: Vec<_> = self.columns.iter().map(|_| None).collect();
        writing.each(self.columns.into_iter().zip(&mut closed).collect(), |(column, closed)| {
            *closed = Some(column.close()?);
            Ok::<_, ParquetError>(())
        })?;
        Ok(closed.into_iter().flatten().collect())
    }

    /// How many rows still fit, by the average size of those within; any number in an empty one.
    fn room(&self, block_size: usize) -> usize {
        let size = self.size();
        match size.checked_div(self.rows) {
            None => usize::MAX,
            Some(row) => block_size.saturating_sub(size) / row.max(1),
        }
    }

    /// Bytes in the file, were it to end here; pages that are not full count uncompressed.
    fn size(&self) -> usize {
        self.columns.iter().map(Column::size).sum()
    }

    fn memory(&self) -> usize {
        self.columns.iter().map(|column| column.writer.memory_size()).sum()
    }
}

impl Column {
    pub(super) fn write(&mut self, leaf: &ArrowLeafColumn) -> ParquetResult<()> {
        self.writer.write(leaf)
    }

    fn close(self) -> ParquetResult<Chunk> {
        Ok(Chunk::Encoded(self.writer.close()?, self.gzipped))
    }

    fn size(&self) -> usize {
        let saved = self.gzipped.as_ref().map_or(0, GzipChunk::saved);
        self.writer.get_estimated_total_bytes().saturating_sub(saved)
    }
}

impl Chunk {
    fn append<W: Write + Send>(self, row_group: &mut SerializedRowGroupWriter<'_, W>) -> ParquetResult<()> {
        match self {
            Chunk::Encoded(chunk, Some(gzipped)) => gzipped.append(chunk, row_group),
            Chunk::Encoded(chunk, None) => chunk.append_to_row_group(row_group),
            Chunk::Copied(bytes, close) => row_group.append_column(&bytes, close),
        }
    }
}

fn size(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX).max(1)
}

fn properties(options: &WriterOptions, unique: &[ColumnPath]) -> WriterProperties {
    let encoder_compresses = match options.compression {
        Compression::GZIP(_) => Compression::UNCOMPRESSED,
        other => other,
    };
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(encoder_compresses)
        .set_dictionary_enabled(options.dictionary_enabled)
        .set_data_page_size_limit(size(options.page_size))
        .set_dictionary_page_size_limit(size(options.page_size))
        .set_max_row_group_row_count(None)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // Of no use without a column index.
        .set_offset_index_disabled(true)
        .set_coerce_types(true);
    // No value of these comes twice: a dictionary would be filled and thrown away (limits.md (c): 16–29 % of the time).
    let unique = unique.iter().cloned().chain([RECORD_KEY, COMMIT_SEQNO].map(ColumnPath::from));
    for column in unique {
        properties = properties.set_column_dictionary_enabled(column, false);
    }
    properties.build()
}

pub(super) fn write_error(path: &str, cause: &dyn std::error::Error) -> Error {
    Error::Write { path: path.to_owned(), cause: cause.to_string() }
}
