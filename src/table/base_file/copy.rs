//! Row groups of a file as they go into another one: encoded and compressed as they are, but for the name of the file.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;
use parquet::schema::types::SchemaDescriptor;

use super::reader::File;
use super::row_group::chunk_range;
use super::{RECORD_KEY, Reader, Result};

/// Bytes that are fetched at a time where a row group is copied.
const PIECE: u64 = 8 << 20;

/// Writers whose column chunks are what the format says: parquet-mr since 1.10 (Spark 2.4), before which dictionaries and
/// statistics were written in ways that readers make out by the writer's name, and parquet-rs.
const TRUSTED_WRITERS: [&str; 2] = ["parquet-mr version 1.1", "parquet-rs version "];

/// What is known of a row group without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowGroup {
    pub rows: u64,
    /// In the file.
    pub bytes: u64,
    /// All record keys lie between these, by their bytes.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
}

impl Reader {
    pub fn row_groups(&self) -> Vec<RowGroup> {
        let groups = self.metadata.metadata().row_groups().iter();
        groups.map(|group| RowGroup { rows: rows(group), bytes: bytes(group), keys: keys(group) }).collect()
    }

    /// Whether row groups can stand in a file of that schema as they are.
    pub(super) fn is_written_as(&self, schema: &SchemaDescriptor) -> bool {
        let metadata = self.metadata.metadata().file_metadata();
        let writer = metadata.created_by().unwrap_or_default();
        // The name of the message is the writer's own affair.
        TRUSTED_WRITERS.iter().any(|trusted| writer.starts_with(trusted))
            && metadata.schema_descr().root_schema().get_fields() == schema.root_schema().get_fields()
    }

    pub(super) fn row_group_rows(&self, group: usize) -> Result<u64> {
        self.row_group(group).map(rows)
    }

    fn row_group(&self, group: usize) -> Result<&RowGroupMetaData> {
        let groups = self.metadata.metadata().row_groups();
        groups.get(group).ok_or_else(|| self.file.corrupt(format!("it has no row group {group}")))
    }

    /// The column chunks of a row group, in the order of its columns; `None` for that of column `without`. Never in memory
    /// all at a time.
    pub(super) fn column_chunks(&self, group: usize, without: usize) -> Result<ColumnChunks<'_>> {
        let file = self.file.as_ref();
        let group = self.row_group(group)?;
        let ranges = group.columns().iter().map(|column| chunk_range(column, file.size));
        let ranges = ranges.collect::<std::result::Result<Vec<_>, _>>().map_err(|e| file.corrupt(e))?;
        Ok(ColumnChunks { file, group, ranges, without, next: 0, fetched: VecDeque::new() })
    }
}

/// See [`Reader::column_chunks`].
pub(super) struct ColumnChunks<'a> {
    file: &'a File,
    group: &'a RowGroupMetaData,
    ranges: Vec<Range<u64>>,
    without: usize,
    next: usize,
    /// Of columns from `next` on, but for `without`.
    fetched: VecDeque<Bytes>,
}

impl Iterator for ColumnChunks<'_> {
    type Item = Result<Option<(Bytes, ColumnCloseResult)>>;

    fn next(&mut self) -> Option<Self::Item> {
        let column = self.group.columns().get(self.next)?;
        let at = self.next;
        self.next += 1;
        if at == self.without {
            return Some(Ok(None));
        }
        let bytes = match self.fetched.pop_front().map_or_else(|| self.fetch(at), Ok) {
            Ok(bytes) => bytes,
            Err(e) => return Some(Err(e)),
        };
        let closed = closed(column, rows(self.group)).map_err(|e| self.file.corrupt(e));
        Some(closed.map(|closed| Some((bytes, closed))))
    }
}

impl ColumnChunks<'_> {
    /// Of column `first`, and of as many after it as fit into a piece.
    fn fetch(&mut self, first: usize) -> Result<Bytes> {
        let mut bytes = 0;
        let after = self.ranges.iter().enumerate().skip(first).filter(|(at, _)| *at != self.without);
        let piece = after.map(|(_, range)| range.clone()).take_while(|range| {
            let fits = bytes == 0 || bytes + (range.end - range.start) <= PIECE;
            bytes += range.end - range.start;
            fits
        });
        self.fetched = self.file.fetch(&piece.collect::<Vec<_>>())?.into();
        self.fetched.pop_front().ok_or_else(|| self.file.corrupt("a column chunk is not there"))
    }
}

/// What its writer would have said of a column chunk that it leaves by itself. Statistics of the old kind go: they are
/// of no order, and only the name of the file's writer said so.
fn closed(column: &ColumnChunkMetaData, rows: u64) -> parquet::errors::Result<ColumnCloseResult> {
    let dictionary = column.dictionary_page_offset();
    let start = dictionary.unwrap_or(column.data_page_offset());
    let mut metadata = column.clone().into_builder();
    metadata = metadata
        .set_data_page_offset(column.data_page_offset().saturating_sub(start))
        .set_dictionary_page_offset(dictionary.map(|_| 0));
    if column.statistics().is_some_and(Statistics::is_min_max_deprecated) {
        metadata = metadata.clear_statistics();
    }
    Ok(ColumnCloseResult {
        bytes_written: u64::try_from(column.compressed_size()).unwrap_or_default(),
        rows_written: rows,
        metadata: metadata.build()?,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    })
}

fn rows(group: &RowGroupMetaData) -> u64 {
    u64::try_from(group.num_rows()).unwrap_or_default()
}

fn bytes(group: &RowGroupMetaData) -> u64 {
    u64::try_from(group.compressed_size()).unwrap_or_default()
}

fn keys(group: &RowGroupMetaData) -> Option<(Vec<u8>, Vec<u8>)> {
    let column = group.columns().iter().find(|column| column.column_path().parts() == [RECORD_KEY])?;
    let statistics = column.statistics().filter(|statistics| !statistics.is_min_max_deprecated())?;
    Some((statistics.min_bytes_opt()?.to_vec(), statistics.max_bytes_opt()?.to_vec()))
}
