//! Writing one base file.

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
    parquet: ArrowWriter<Upload>,
    schema: SchemaRef,
    avro_schema: String,
    key_column: usize,
    bloom: BloomBuilder,
    range: KeyRange,
    rows: u64,
    display: String,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("path", &self.display).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl Writer {
    pub fn create(storage: &Storage, path: &str, options: &WriterOptions) -> Result<Writer> {
        let display = storage.display(path);
        let failed = |e: ParquetError| write_error(&display, &e);
        let key_column = options.schema.index_of(RECORD_KEY).map_err(|e| write_error(&display, &e))?;
        let parquet_options = ArrowWriterOptions::new()
            .with_properties(properties(options))
            .with_skip_arrow_metadata(true)
            .with_parquet_schema(parquet_schema::of_arrow(&options.schema).map_err(failed)?);
        let upload = storage.upload(path)?;
        let parquet =
            ArrowWriter::try_new_with_options(upload, Arc::clone(&options.schema), parquet_options).map_err(failed)?;
        Ok(Writer {
            parquet,
            schema: Arc::clone(&options.schema),
            avro_schema: options.avro_schema.clone(),
            key_column,
            bloom: BloomBuilder::new(&options.bloom),
            range: KeyRange::default(),
            rows: 0,
            display,
        })
    }

    /// A batch with all columns, meta columns first; the record keys are taken from it.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.check(batch)?;
        let keys: &StringArray = batch.column(self.key_column).as_string();
        if let Some(row) = (0..keys.len()).find(|&i| keys.is_null(i) || keys.value_length(i) == 0) {
            return Err(Error::KeyMissing { path: self.display.clone(), row: self.rows + row as u64 }.into());
        }
        self.parquet.write(batch).map_err(|e| write_error(&self.display, &e))?;
        self.bloom.add_all(keys);
        self.range.add_all(keys);
        self.rows += batch.num_rows() as u64;
        Ok(())
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

    /// Bytes so far: what is flushed plus an estimate of what is buffered (compressed).
    pub fn size_estimate(&self) -> u64 {
        (self.parquet.bytes_written() + self.parquet.in_progress_size()) as u64
    }

    /// Bytes of memory the writer holds.
    pub fn memory(&self) -> usize {
        self.parquet.memory_size() + self.bloom.memory()
    }

    /// Ends the row group, which gives its memory back: for a task that has many files open.
    pub fn flush_row_group(&mut self) -> Result<()> {
        Ok(self.parquet.flush().map_err(|e| write_error(&self.display, &e))?)
    }

    pub fn finish(mut self) -> Result<Written> {
        let bloom = self.bloom.finish();
        let mut footer = vec![(FOOTER_BLOOM, bloom.serialize())];
        if bloom.is_dynamic() {
            footer.push((FOOTER_BLOOM_TYPE, BLOOM_TYPE_DYNAMIC.to_owned()));
        }
        if let Some((min, max)) = self.range.into_inner() {
            footer.extend([(FOOTER_MIN_KEY, min), (FOOTER_MAX_KEY, max)]);
        }
        footer.extend([(FOOTER_AVRO_SCHEMA, self.avro_schema), (FOOTER_MODEL, "avro".to_owned())]);
        for (key, value) in footer {
            self.parquet.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        let upload = self.parquet.into_inner().map_err(|e| write_error(&self.display, &e))?;
        Ok(Written { size: upload.finish()?, rows: self.rows })
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
