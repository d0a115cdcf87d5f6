//! Base files: parquet with the five meta columns, the record-key bloom filter and the key range in the footer (base-file.md).
//!
//! Look at [`Writer`] and [`Reader`] first; both work on blocking threads. Knows nothing of file names, file groups or
//! instants: a path in, a file out. Invariants: a file that becomes visible is whole, and its filter and key range cover
//! all its keys; nothing read from a file, however torn, is taken for more than bytes.

mod bloom;
mod copy;
mod cores;
mod error;
mod gzip;
mod key_range;
mod murmur;
mod page_header;
mod parquet_schema;
mod patch;
mod reader;
mod row_group;
mod rows;
mod sample;
#[cfg(test)]
mod tests;
mod writer;

use arrow::datatypes::SchemaRef;

pub use bloom::{BloomBuilder, BloomFilter};
pub use copy::RowGroup;
pub use error::Error;
pub use key_range::KeyRange;
pub use patch::Patch;
pub use reader::Reader;
pub use writer::{BlockWriter, Sealed, Writer};

use super::Result;

/// Footer keys (`HoodieAvroWriteSupport`, `HoodieBloomFilterWriteSupport`, Hudi 0.15; base-file.md §5).
const FOOTER_BLOOM: &str = "org.apache.hudi.bloomfilter";
const FOOTER_BLOOM_OLD: &str = "com.uber.hoodie.bloomfilter";
const FOOTER_BLOOM_TYPE: &str = "hoodie_bloom_filter_type_code";
const FOOTER_MIN_KEY: &str = "hoodie_min_record_key";
const FOOTER_MAX_KEY: &str = "hoodie_max_record_key";
const FOOTER_AVRO_SCHEMA: &str = "parquet.avro.schema";
const FOOTER_MODEL: &str = "writer.model.name";
const BLOOM_TYPE_DYNAMIC: &str = "DYNAMIC_V0";
const BLOOM_TYPE_SIMPLE: &str = "SIMPLE";

const RECORD_KEY: &str = "_hoodie_record_key";
const COMMIT_SEQNO: &str = "_hoodie_commit_seqno";
const FILE_NAME: &str = "_hoodie_file_name";

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

/// What is known of a finished base file.
#[derive(Debug, Clone)]
pub struct Written {
    pub size: u64,
    pub rows: u64,
}

/// What the footer says for the index.
#[derive(Debug, Clone)]
pub struct KeyFooter {
    pub bloom: Option<BloomFilter>,
    pub min_key: Option<String>,
    pub max_key: Option<String>,
}

impl KeyFooter {
    /// Bytes of memory it holds.
    pub fn memory(&self) -> usize {
        let texts = [&self.min_key, &self.max_key].into_iter().flatten().map(String::len);
        size_of::<KeyFooter>() + texts.sum::<usize>() + self.bloom.as_ref().map_or(0, BloomFilter::memory)
    }
}
