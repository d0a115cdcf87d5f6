//! Writing one base file.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;

use super::bloom::BloomBuilder;
use super::key_range::KeyRange;
use super::{
    BLOOM_TYPE_DYNAMIC, COMMIT_SEQNO, Error, FOOTER_AVRO_SCHEMA, FOOTER_BLOOM, FOOTER_BLOOM_TYPE, FOOTER_MAX_KEY,
    FOOTER_MIN_KEY, FOOTER_MODEL, RECORD_KEY, Result, WriterOptions, Written, parquet_schema,
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
        self.rows.parquet.memory_size() + self.bloom.memory()
    }

    /// Ends the row group, which gives its memory back: for a task that has many files open.
    pub fn flush_row_group(&mut self) -> Result<()> {
        self.rows.parquet.flush().map_err(|e| write_error(&self.rows.display, &e))?;
        Ok(())
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

/// Rows as Parquet, wherever the bytes go.
struct Rows<W: Write + Send> {
    parquet: ArrowWriter<W>,
    schema: SchemaRef,
    avro_schema: String,
    display: String,
}

impl<W: Write + Send> Rows<W> {
    fn begin(to: W, display: String, options: &WriterOptions) -> Result<Rows<W>> {
        let failed = |e: ParquetError| write_error(&display, &e);
        let parquet_options = ArrowWriterOptions::new()
            .with_properties(properties(options))
            .with_skip_arrow_metadata(true)
            .with_parquet_schema(parquet_schema::of_arrow(&options.schema).map_err(failed)?);
        let schema = Arc::clone(&options.schema);
        let parquet = ArrowWriter::try_new_with_options(to, Arc::clone(&schema), parquet_options).map_err(failed)?;
        Ok(Rows { parquet, schema, avro_schema: options.avro_schema.clone(), display })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        Ok(self.parquet.write(batch).map_err(|e| write_error(&self.display, &e))?)
    }

    /// parquet-rs takes columns by position and writes a null in a required column as a zero.
    fn check(&self, batch: &RecordBatch) -> Result<()> {
        let refuse = |cause: String| Err(Error::Write { path: self.display.clone(), cause }.into());
        if batch.num_columns() != self.schema.fields().len() {
            let (got, want) = (batch.num_columns(), self.schema.fields().len());
            return refuse(format!("a batch of {got} columns for a file of {want}"));
        }
        for ((want, got), column) in self.schema.fields().iter().zip(batch.schema_ref().fields()).zip(batch.columns()) {
            if want.name() != got.name() || !want.data_type().equals_datatype(column.data_type()) {
                return refuse(format!("column {got} does not fit the file's column {want}"));
            }
            if !want.is_nullable() && column.logical_null_count() > 0 {
                return refuse(format!("a null in column {}, which is required", want.name()));
            }
        }
        Ok(())
    }

    fn size_estimate(&self) -> u64 {
        (self.parquet.bytes_written() + self.parquet.in_progress_size()) as u64
    }

    /// `footer`: what the footer says besides the schema.
    fn end(mut self, footer: Vec<(&str, String)>) -> Result<W> {
        let of_rows = [(FOOTER_AVRO_SCHEMA, self.avro_schema), (FOOTER_MODEL, "avro".to_owned())];
        for (key, value) in footer.into_iter().chain(of_rows) {
            self.parquet.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        Ok(self.parquet.into_inner().map_err(|e| write_error(&self.display, &e))?)
    }
}

fn properties(options: &WriterOptions) -> WriterProperties {
    let bytes = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).max(1);
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(options.compression)
        .set_dictionary_enabled(options.dictionary_enabled)
        .set_data_page_size_limit(bytes(options.page_size))
        .set_dictionary_page_size_limit(bytes(options.page_size))
        .set_max_row_group_row_count(None)
        .set_max_row_group_bytes(Some(bytes(options.block_size)))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_coerce_types(true);
    // No value of these comes twice in a file: a dictionary would be filled and thrown away (limits.md (c): 16–29 % of
    // the time).
    for unique in [RECORD_KEY, COMMIT_SEQNO] {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(unique), false);
    }
    properties.build()
}

fn write_error(path: &str, cause: &dyn std::error::Error) -> Error {
    Error::Write { path: path.to_owned(), cause: cause.to_string() }
}
