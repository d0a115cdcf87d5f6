//! Row groups of a file as they go into another one: columns encoded and compressed as they are.

use std::ops::Range;

use arrow::datatypes::{Field, Schema};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::statistics::Statistics;
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use super::row_group::chunk_range;
use super::{RECORD_KEY, Reader, Result};

/// Bytes that are in memory of a row group that is copied, and of a column more.
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

    /// Whether row groups can stand in a file of that schema, which as Arrow has it is `arrow`, as they are.
    pub(super) fn is_written_as(&self, schema: &SchemaDescriptor, arrow: &Schema) -> bool {
        let metadata = self.metadata.metadata().file_metadata();
        let writer = metadata.created_by().unwrap_or_default();
        // The name of the message is the writer's own affair.
        TRUSTED_WRITERS.iter().any(|trusted| writer.starts_with(trusted))
            && metadata.schema_descr().root_schema().get_fields() == schema.root_schema().get_fields()
            && self.schema().fields().iter().zip(arrow.fields()).all(|(file, want)| is_same(file, want))
    }

    pub(super) fn row_group_rows(&self, group: usize) -> Result<u64> {
        self.row_group(group).map(rows)
    }

    /// Columns of a row group whose writer made no dictionary, or threw it away.
    pub(super) fn without_dictionary(&self, group: usize) -> Result<Vec<ColumnPath>> {
        let columns = self.row_group(group)?.columns().iter();
        let without = columns.filter(|column| column.dictionary_page_offset().is_none());
        Ok(without.map(|column| column.column_path().clone()).collect())
    }

    fn row_group(&self, group: usize) -> Result<&RowGroupMetaData> {
        let groups = self.metadata.metadata().row_groups();
        groups.get(group).ok_or_else(|| self.file.corrupt(format!("it has no row group {group}")))
    }

    /// The top-level columns of a row group as they are encoded, but for `without`, a few at a time: as many as fit into a
    /// piece, and one at least. That one is there, with nothing in it.
    pub(super) fn encoded_columns(&self, group: usize, without: usize) -> Result<EncodedColumns<'_>> {
        self.row_group(group)?;
        Ok(EncodedColumns { reader: self, group, without, next: 0 })
    }
}

/// See [`Reader::encoded_columns`].
pub(super) struct EncodedColumns<'a> {
    reader: &'a Reader,
    group: usize,
    without: usize,
    next: usize,
}

impl<'a> Iterator for EncodedColumns<'a> {
    type Item = Result<Vec<EncodedColumn<'a>>>;

    fn next(&mut self) -> Option<Self::Item> {
        let leaves = self.reader.metadata.parquet_schema().num_columns();
        (self.next < leaves).then(|| self.fetch())
    }
}

impl<'a> EncodedColumns<'a> {
    fn fetch(&mut self) -> Result<Vec<EncodedColumn<'a>>> {
        let EncodedColumns { reader, group, without, .. } = *self;
        let (file, schema) = (reader.file.as_ref(), reader.metadata.parquet_schema());
        let leaves = reader.row_group(group)?.columns();
        let (mut columns, mut ranges): (Vec<EncodedColumn>, Vec<Range<u64>>) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        while let Some(column) = leaves.get(self.next) {
            let root = schema.get_column_root_idx(self.next);
            if columns.last().is_none_or(|last| last.root != root) {
                if bytes >= PIECE {
                    break;
                }
                columns.push(EncodedColumn { reader, group, root, leaves: self.next..self.next, chunks: Vec::new() });
            }
            if root != without {
                let range = chunk_range(column, file.size).map_err(|e| file.corrupt(e))?;
                bytes += range.end - range.start;
                ranges.push(range);
            }
            self.next += 1;
            columns.iter_mut().last().into_iter().for_each(|column| column.leaves.end = self.next);
        }
        let mut fetched = ranges.iter().map(|range| range.start).zip(file.fetch(&ranges)?);
        for column in columns.iter_mut().filter(|column| column.root != without) {
            column.chunks = fetched.by_ref().take(column.leaves.len()).collect();
        }
        Ok(columns)
    }
}

/// A top-level column of a row group, as it is encoded.
pub(super) struct EncodedColumn<'a> {
    reader: &'a Reader,
    group: usize,
    /// Which of the top-level columns.
    pub(super) root: usize,
    /// The columns within it.
    pub(super) leaves: Range<usize>,
    /// Of each: where it begins in the file, and its bytes.
    chunks: Vec<(u64, Bytes)>,
}

impl EncodedColumn<'_> {
    /// The column chunks, and what is to be said of them where they go.
    pub(super) fn into_chunks(self) -> Result<Vec<(Bytes, ColumnCloseResult)>> {
        let group = self.reader.row_group(self.group)?;
        let columns = group.columns().get(self.leaves).unwrap_or_default();
        let chunk = |(column, (_, bytes))| closed(column, rows(group)).map(|closed| (bytes, closed));
        let chunks = columns.iter().zip(self.chunks).map(chunk).collect::<parquet::errors::Result<_>>();
        chunks.map_err(|e| self.reader.file.corrupt(e))
    }

    pub(super) fn corrupt(&self, cause: impl std::fmt::Display) -> super::super::Error {
        self.reader.file.corrupt(cause)
    }

    /// Its values, in batches of one column.
    pub(super) fn decode(&self, batch_rows: usize) -> Result<ParquetRecordBatchReader> {
        let reader = self.reader;
        let levels = reader.levels(ProjectionMask::roots(reader.metadata.parquet_schema(), [self.root]))?;
        reader.decode(self.group, &levels, batch_rows, self.leaves.clone().zip(self.chunks.iter().cloned()))
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

/// But for names within lists and maps, which Parquet has its own of.
fn is_same(a: &Field, b: &Field) -> bool {
    a.name() == b.name() && a.data_type().equals_datatype(b.data_type())
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
