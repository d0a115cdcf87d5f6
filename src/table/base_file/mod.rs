//! Base files: parquet with the five meta columns, the record-key bloom filter and the key range in the footer (base-file.md).

use super::Result;
use crate::storage::Storage;
use arrow::array::{RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;

/// How base files are written; filled from the configuration by the room that writes.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    pub compression: parquet::basic::Compression,
    pub block_size: u64,
    pub page_size: u64,
    pub dictionary_enabled: bool,
    pub bloom: BloomOptions,
    /// Avro schema **with** the meta fields, for the footer (`parquet.avro.schema`).
    pub avro_schema: String,
    /// Arrow schema with the meta columns first.
    pub schema: SchemaRef,
}

#[derive(Debug, Clone)]
pub struct BloomOptions {
    pub num_entries: u32,
    pub fpp: f64,
    pub dynamic: bool,
    pub dynamic_max_entries: u32,
}

/// Writes one base file on a blocking thread; visible only after [`Writer::finish`].
pub struct Writer;

/// What is known of a finished base file.
#[derive(Debug, Clone)]
pub struct Written {
    pub size: u64,
    pub rows: u64,
}

impl Writer {
    pub fn create(_storage: &Storage, _path: &str, _options: &WriterOptions) -> Result<Writer> {
        todo!()
    }
    /// A batch with all columns, meta columns first; the record keys are taken from it.
    pub fn write(&mut self, _batch: &RecordBatch) -> Result<()> {
        todo!()
    }
    /// Bytes so far: what is flushed plus an estimate of what is buffered (compressed).
    pub fn size_estimate(&self) -> u64 {
        todo!()
    }
    /// Bytes of memory the writer holds.
    pub fn memory(&self) -> usize {
        todo!()
    }
    pub fn finish(self) -> Result<Written> {
        todo!()
    }
}

/// What the footer says for the index.
#[derive(Debug, Clone)]
pub struct KeyFooter {
    pub bloom: Option<BloomFilter>,
    pub min_key: Option<String>,
    pub max_key: Option<String>,
}

/// Hudi's bloom filter (SIMPLE or DYNAMIC_V0), to the byte.
#[derive(Debug, Clone)]
pub struct BloomFilter;

impl BloomFilter {
    pub fn might_contain(&self, _key: &str) -> bool {
        todo!()
    }
}

/// Reads one base file on a blocking thread inside a tokio runtime.
pub struct Reader;

impl Reader {
    pub fn open(_storage: &Storage, _path: &str, _size: u64) -> Result<Reader> {
        todo!()
    }
    /// Arrow schema of the file (meta columns included).
    pub fn schema(&self) -> SchemaRef {
        todo!()
    }
    pub fn key_footer(&self) -> Result<KeyFooter> {
        todo!()
    }
    pub fn rows(&self) -> u64 {
        todo!()
    }
    /// The `_hoodie_record_key` column, in file order, in chunks.
    pub fn record_keys(&self) -> Result<Vec<StringArray>> {
        todo!()
    }
    /// All columns (`None`) or the named top-level ones, in batches of at most `batch_size` rows.
    pub fn batches(
        &self,
        _columns: Option<&[&str]>,
        _batch_size: usize,
    ) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>> {
        todo!()
    }
}
