//! Reading one base file: ours, or one of any Hudi's writer.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader};
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaDataOptions, ParquetMetaDataReader, RowGroupMetaData};
use tokio::runtime::Handle;

use super::row_group::{Fetched, chunk_ranges};
use super::{
    BLOOM_TYPE_DYNAMIC, BLOOM_TYPE_SIMPLE, BloomFilter, Error, FOOTER_BLOOM, FOOTER_BLOOM_OLD, FOOTER_BLOOM_TYPE,
    FOOTER_MAX_KEY, FOOTER_MIN_KEY, KeyFooter, RECORD_KEY, Result,
};
use crate::storage::Storage;

/// First read of a file, from its end: room for the footer with a bloom filter of the default size (431 KB of base64),
/// so that one request brings all of it.
const FOOTER_GUESS: u64 = 512 * 1024;

/// Rows in one piece of the key column.
const KEY_BATCH: usize = 64 * 1024;

/// Reads one base file on a blocking thread inside a tokio runtime. Holds the footer; the data of one row group at a time
/// is fetched, of the columns that are asked for, in few large reads.
#[derive(Debug, Clone)]
pub struct Reader {
    pub(super) file: Arc<File>,
    pub(super) metadata: ArrowReaderMetadata,
}

#[derive(Debug)]
pub(super) struct File {
    storage: Storage,
    runtime: Handle,
    path: String,
    /// Where it begins in what is at `path`.
    start: u64,
    pub(super) size: u64,
}

impl File {
    pub(super) fn fetch(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let ranges: Vec<_> = ranges.iter().map(|r| self.start + r.start..self.start + r.end).collect();
        Ok(self.runtime.block_on(self.storage.get_ranges(&self.path, &ranges))?)
    }

    pub(super) fn corrupt(&self, cause: impl std::fmt::Display) -> super::super::Error {
        Error::Corrupt { path: self.storage.display(&self.path), cause: cause.to_string() }.into()
    }
}

impl Reader {
    /// `size` as the listing or the commit has it.
    pub fn open(storage: &Storage, path: &str, size: u64) -> Result<Reader> {
        Reader::open_within(storage, path, 0..size)
    }

    /// A file within another: the content of a log file's Parquet block.
    pub fn open_within(storage: &Storage, path: &str, range: Range<u64>) -> Result<Reader> {
        let (start, size) = (range.start, range.end.saturating_sub(range.start));
        let runtime = Handle::current();
        let file = Arc::new(File { storage: storage.clone(), runtime, path: path.to_owned(), start, size });
        let real = file.runtime.block_on(storage.size(path))?.unwrap_or(0);
        if real < range.end {
            return Err(file.corrupt(format!("it has {real} bytes, {} were written", range.end)));
        }
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let footer = read_footer(&file)?;
        let metadata = footer.finish_with(options).map_err(|e| file.corrupt(e))?;
        Ok(Reader { file, metadata })
    }

    /// Arrow schema of the file (meta columns included).
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(self.metadata.schema())
    }

    pub fn key_footer(&self) -> Result<KeyFooter> {
        let entries = self.metadata.metadata().file_metadata().key_value_metadata();
        let entry = |key: &str| entries?.iter().find(|kv| kv.key == key)?.value.clone();
        let dynamic = match entry(FOOTER_BLOOM_TYPE).as_deref() {
            Some(BLOOM_TYPE_DYNAMIC) => true,
            Some(BLOOM_TYPE_SIMPLE) | None => false,
            Some(other) => return Err(self.file.corrupt(format!("unknown type of bloom filter {other}"))),
        };
        let bloom = entry(FOOTER_BLOOM)
            .or_else(|| entry(FOOTER_BLOOM_OLD))
            .map(|text| BloomFilter::parse(&text, dynamic))
            .transpose()
            .map_err(|e| self.file.corrupt(format!("bloom filter: {e}")))?;
        Ok(KeyFooter { bloom, min_key: entry(FOOTER_MIN_KEY), max_key: entry(FOOTER_MAX_KEY) })
    }

    pub fn rows(&self) -> u64 {
        let rows = |group: &RowGroupMetaData| u64::try_from(group.num_rows()).unwrap_or(0);
        self.metadata.metadata().row_groups().iter().map(rows).sum()
    }

    pub fn row_group_count(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// The `_hoodie_record_key` column, in file order, in chunks.
    pub fn record_keys(&self) -> Result<Vec<StringArray>> {
        self.record_keys_of(0..self.row_group_count())?.collect()
    }

    /// The same of some of the row groups, as it is taken.
    pub fn record_keys_of(&self, groups: Range<usize>) -> Result<impl Iterator<Item = Result<StringArray>>> {
        let batches = self.batches_of(groups, Some(&[RECORD_KEY]), KEY_BATCH)?;
        Ok(batches.map(|batch| {
            let keys = batch?.column(0).as_string_opt::<i32>().cloned();
            keys.ok_or_else(|| self.file.corrupt(format!("{RECORD_KEY} is not text")))
        }))
    }

    /// All columns (`None`) or the named top-level ones, in the file's order, in batches of at most `batch_size` rows.
    pub fn batches(
        &self,
        columns: Option<&[&str]>,
        batch_size: usize,
    ) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>> {
        self.batches_of(0..self.row_group_count(), columns, batch_size)
    }

    /// The same of some of the row groups.
    pub fn batches_of(
        &self,
        groups: Range<usize>,
        columns: Option<&[&str]>,
        batch_size: usize,
    ) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>> {
        let projection = match columns {
            None => ProjectionMask::all(),
            Some(names) => {
                let root = |name: &&str| {
                    self.schema().index_of(name).map_err(|_| Error::ColumnMissing {
                        path: self.file.storage.display(&self.file.path),
                        column: (*name).to_owned(),
                    })
                };
                let roots = names.iter().map(root).collect::<std::result::Result<Vec<_>, _>>()?;
                ProjectionMask::roots(self.metadata.parquet_schema(), roots)
            }
        };
        let levels = self.levels(projection.clone())?;
        Ok(Box::new(Batches {
            reader: self.clone(),
            projection,
            levels,
            batch_size: batch_size.max(1),
            groups: groups.collect(),
            current: None,
        }))
    }

    pub(super) fn levels(&self, projection: ProjectionMask) -> Result<FieldLevels> {
        parquet_to_arrow_field_levels(self.metadata.parquet_schema(), projection, None)
            .map_err(|e| self.file.corrupt(e))
    }

    /// `chunks`: by leaf of the projection that the levels are of, where it begins in the file, and its bytes.
    pub(super) fn decode(
        &self,
        group: usize,
        levels: &FieldLevels,
        batch_rows: usize,
        chunks: impl Iterator<Item = (usize, (u64, Bytes))>,
    ) -> Result<ParquetRecordBatchReader> {
        let fetched = Fetched::new(self.metadata.metadata(), group, chunks);
        ParquetRecordBatchReader::try_new_with_row_groups(levels, &fetched, batch_rows, None)
            .map_err(|e| self.file.corrupt(e))
    }
}

struct Footer(ParquetMetaDataReader);

impl Footer {
    fn finish_with(mut self, options: ArrowReaderOptions) -> parquet::errors::Result<ArrowReaderMetadata> {
        ArrowReaderMetadata::try_new(Arc::new(self.0.finish()?), options)
    }
}

/// Reads the end of the file, and once more if the footer is longer than the guess.
fn read_footer(file: &File) -> Result<Footer> {
    let mut length = FOOTER_GUESS.min(file.size);
    loop {
        let tail = file.fetch(std::slice::from_ref(&(file.size - length..file.size)))?.pop().unwrap_or_default();
        // Of each column of a row group how many pages have which encoding: who copies the row group writes it down again.
        let whole = ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
        let mut reader = ParquetMetaDataReader::new().with_metadata_options(Some(whole));
        match reader.try_parse_sized(&tail, file.size) {
            Ok(()) => return Ok(Footer(reader)),
            Err(ParquetError::NeedMoreData(needed)) if needed as u64 > length && needed as u64 <= file.size => {
                length = needed as u64;
            }
            Err(e) => return Err(file.corrupt(e)),
        }
    }
}

/// Row group by row group; after an error, nothing more.
struct Batches {
    reader: Reader,
    projection: ProjectionMask,
    levels: FieldLevels,
    batch_size: usize,
    groups: VecDeque<usize>,
    current: Option<ParquetRecordBatchReader>,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(current) = &mut self.current {
                match current.next() {
                    Some(Ok(batch)) => return Some(Ok(batch)),
                    Some(Err(e)) => return Some(Err(self.stop(|file| file.corrupt(e)))),
                    None => self.current = None,
                }
            }
            let group = self.groups.pop_front()?;
            match self.open(group) {
                Ok(reader) => self.current = Some(reader),
                Err(e) => return Some(Err(self.stop(|_| e))),
            }
        }
    }
}

impl Batches {
    fn stop<E>(&mut self, error: impl FnOnce(&File) -> E) -> E {
        self.groups.clear();
        self.current = None;
        error(&self.reader.file)
    }

    fn open(&self, group: usize) -> Result<ParquetRecordBatchReader> {
        let Reader { file, metadata } = &self.reader;
        let chunks = chunk_ranges(metadata.metadata().row_group(group), &self.projection, file.size)
            .map_err(|e| file.corrupt(format!("row group {group}: {e}")))?;
        let (leaves, ranges): (Vec<_>, Vec<_>) = chunks.into_iter().unzip();
        let chunks = ranges.iter().map(|r| r.start).zip(file.fetch(&ranges)?);
        self.reader.decode(group, &self.levels, self.batch_size, leaves.into_iter().zip(chunks))
    }
}
