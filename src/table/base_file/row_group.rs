//! A row group that has been fetched, as parquet-rs reads it page by page.
//!
//! Of gzip it is told that there is none: pages are decompressed on their way to it, by libdeflate.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, Bytes};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{Compression, CompressionCodec};
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length, SerializedPageReader};

use super::gzip;
use super::page_header::PageHeader;

/// Where the projected column chunks are, by leaf; checked, because parquet-rs asserts what the footer says.
pub(super) fn chunk_ranges(
    group: &RowGroupMetaData,
    projection: &ProjectionMask,
    size: u64,
) -> std::result::Result<Vec<(usize, Range<u64>)>, String> {
    let wanted = group.columns().iter().enumerate().filter(|(leaf, _)| projection.leaf_included(*leaf));
    wanted.map(|(leaf, column)| Ok((leaf, chunk_range(column, size)?))).collect()
}

/// Where a column chunk is in a file of `size` bytes.
pub(super) fn chunk_range(column: &ColumnChunkMetaData, size: u64) -> std::result::Result<Range<u64>, String> {
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let range = u64::try_from(start)
        .ok()
        .zip(u64::try_from(column.compressed_size()).ok())
        .and_then(|(start, length)| Some(start..start.checked_add(length)?));
    range
        .filter(|r| r.end <= size)
        .ok_or_else(|| format!("column {} lies outside the file of {size} bytes", column.column_path().string()))
}

pub(super) struct Fetched {
    metadata: Arc<ParquetMetaData>,
    group: usize,
    chunks: Vec<(usize, Arc<Chunk>)>,
}

impl Fetched {
    /// `chunks`: the leaf; where its chunk begins in the file, and its bytes.
    pub(super) fn new(
        metadata: &Arc<ParquetMetaData>,
        group: usize,
        chunks: impl Iterator<Item = (usize, (u64, Bytes))>,
    ) -> Fetched {
        let chunk = |(leaf, (start, bytes)): (usize, (u64, Bytes))| {
            let column = metadata.row_group(group).column(leaf);
            (leaf, Arc::new(Chunk::new(start, bytes, column)))
        };
        Fetched { metadata: Arc::clone(metadata), group, chunks: chunks.map(chunk).collect() }
    }

    fn group(&self) -> &RowGroupMetaData {
        self.metadata.row_group(self.group)
    }
}

impl RowGroups for Fetched {
    fn num_rows(&self) -> usize {
        usize::try_from(self.group().num_rows()).unwrap_or(0)
    }

    fn column_chunks(&self, leaf: usize) -> Result<Box<dyn PageIterator>> {
        let found = self.chunks.iter().find(|(l, _)| *l == leaf);
        let (_, chunk) = found.ok_or_else(|| ParquetError::General(format!("column {leaf} was not fetched")))?;
        let mut column = self.group().column(leaf).clone();
        if chunk.gzipped.is_some() {
            column = column.into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
        }
        let pages = SerializedPageReader::new(Arc::clone(chunk), &column, self.num_rows(), None)?;
        Ok(Box::new(Pages(Some(pages))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.group()))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The pages of the one chunk that a column has in one row group.
struct Pages(Option<SerializedPageReader<Chunk>>);

impl Iterator for Pages {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(Ok(Box::new(self.0.take()?)))
    }
}

impl PageIterator for Pages {}

struct Chunk {
    start: u64,
    bytes: Bytes,
    /// If its pages are decompressed here: the header that was read last, whose page is read next.
    gzipped: Option<Mutex<Option<PageHeader>>>,
}

impl Chunk {
    fn new(start: u64, bytes: Bytes, column: &ColumnChunkMetaData) -> Chunk {
        let mut chunk = Chunk { start, bytes, gzipped: None };
        // Data pages of version 2 have levels before what is compressed: parquet-rs takes them apart itself.
        let is_simple = || {
            let first = chunk.from(u64::try_from(column.data_page_offset()).ok()?).ok()?;
            Some(PageHeader::parse(&first)?.is_compressed_whole())
        };
        if column.compression_codec() == CompressionCodec::GZIP && is_simple() == Some(true) {
            chunk.gzipped = Some(Mutex::default());
        }
        chunk
    }

    fn from(&self, start: u64) -> Result<Bytes> {
        let at = start.checked_sub(self.start).filter(|at| *at <= self.bytes.len() as u64);
        let at = at.ok_or_else(|| ParquetError::EOF(format!("byte {start} is not within the column's chunk")))?;
        Ok(self.bytes.slice(at as usize..))
    }
}

impl Length for Chunk {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Chunk {
    type T = bytes::buf::Reader<Bytes>;

    /// Called for headers; for a page only when its header has been read before, and gzip does not begin as a header does.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let bytes = self.from(start)?;
        if let Some(last) = &self.gzipped
            && let Some(header) = PageHeader::parse(&bytes)
        {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(header);
        }
        Ok(bytes.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.from(start)?;
        if bytes.len() < length {
            let after = bytes.len();
            return Err(ParquetError::EOF(format!("a page of {length} bytes at byte {start} ends after {after}")));
        }
        let page = bytes.slice(..length);
        let Some(last) = &self.gzipped else { return Ok(page) };
        let header = last.lock().unwrap_or_else(PoisonError::into_inner).take();
        match header.filter(|header| header.compressed_size == length && header.is_compressed_whole()) {
            Some(header) => gzip::decompress(&page, header.uncompressed_size),
            None => {
                Err(ParquetError::General(format!("the page at byte {start} has another header than pages before it")))
            }
        }
    }
}
