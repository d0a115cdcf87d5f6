//! Files cut into pieces, each a partition of a plan that decodes on the thread that polls it.

use super::super::{Error, POSITION_COLUMN, Rejects, Result};
use super::Input;
use super::read::PieceReader;
use crate::codec::json::JsonDecoder;
use crate::config::BadRecordsConfig;
use crate::storage::{FileInfo, Storage};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Pieces become smaller towards the end, so that workers finish together: what is left, in so many of them.
const PIECES_LEFT: u64 = 32;
/// Starting one costs nothing beside reading so much of it.
const LEAST: u64 = 4 << 20;
const MOST: u64 = 32 << 20;
/// A position is a file's number and the offset of a line in it (of the text, where the file is compressed).
const OFFSET_BITS: u32 = 40;

/// Extensions that Hadoop would decompress, and we do not yet.
const OTHER_CODECS: [&str; 6] = [".bz2", ".snappy", ".zst", ".lz4", ".deflate", ".lzo"];

/// Lines of one file whose first byte lies in `start..end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub file: usize,
    pub start: u64,
    pub end: u64,
}

pub(super) fn is_gzip(path: &str) -> bool {
    path.ends_with(".gz")
}

/// Refuses compressed files that would be read as garbage.
pub(super) fn check_names(storage: &Storage, files: &[FileInfo]) -> Result<()> {
    match files.iter().find_map(|f| OTHER_CODECS.iter().find(|c| f.path.ends_with(*c)).map(|c| (f, c))) {
        Some((file, codec)) => Err(Error::Unreadable {
            file: storage.display(&file.path),
            why: format!("compression {codec} is not done yet: use .gz, or plain files"),
        }),
        None => Ok(()),
    }
}

/// Pieces, in order, each a list of parts: large plain files are cut, small ones share a piece, gzip files stay whole.
pub(super) fn cut(files: &[FileInfo]) -> Vec<Vec<Part>> {
    let mut pieces: Vec<Vec<Part>> = Vec::new();
    let mut left: u64 = files.iter().map(|file| file.size).sum();
    let mut room = 0;
    for (file, info) in files.iter().enumerate() {
        let mut start = 0;
        while start < info.size {
            if room == 0 {
                pieces.push(Vec::new());
                room = (left / PIECES_LEFT).next_multiple_of(LEAST).clamp(LEAST, MOST);
            }
            let end = if is_gzip(&info.path) { info.size } else { info.size.min(start + room) };
            room = room.saturating_sub(end - start);
            left -= end - start;
            pieces.last_mut().expect("one was pushed").push(Part { file, start, end });
            start = end;
        }
    }
    pieces
}

pub(super) fn pack(file: usize, offset: u64) -> u64 {
    (file as u64) << OFFSET_BITS | offset
}

pub(super) fn unpack(position: u64) -> (usize, u64) {
    ((position >> OFFSET_BITS) as usize, position & ((1 << OFFSET_BITS) - 1))
}

/// The schema of the batches.
pub(super) fn schema_with_position(schema: &SchemaRef, positions: bool) -> SchemaRef {
    if !positions {
        return schema.clone();
    }
    let position = Arc::new(Field::new(POSITION_COLUMN, DataType::UInt64, false));
    Arc::new(Schema::new(schema.fields().iter().cloned().chain([position]).collect::<Vec<_>>()))
}

/// One piece, readable as often as wanted.
#[derive(Debug)]
pub(super) struct JsonPiece {
    pub input: Arc<Input>,
    pub files: Arc<Vec<FileInfo>>,
    pub parts: Vec<Part>,
    reader: SchemaRef,
    schema: SchemaRef,
    positions: bool,
    rejects: Arc<Rejects>,
    pub bytes_read: Arc<AtomicU64>,
}

impl JsonPiece {
    /// Fails for a schema that JSON cannot fill.
    pub fn new(
        input: &Arc<Input>,
        files: &Arc<Vec<FileInfo>>,
        parts: Vec<Part>,
        reader: &SchemaRef,
        positions: bool,
    ) -> Result<JsonPiece> {
        JsonDecoder::new(reader.clone(), positions)?;
        Ok(JsonPiece {
            input: input.clone(),
            files: files.clone(),
            parts,
            reader: reader.clone(),
            schema: schema_with_position(reader, positions),
            positions,
            rejects: Arc::new(Rejects::new(&BadRecordsConfig::default())),
            bytes_read: Arc::default(),
        })
    }

    /// Shares what is counted over the whole batch.
    pub fn sharing(mut self, rejects: &Arc<Rejects>, bytes_read: &Arc<AtomicU64>) -> JsonPiece {
        self.rejects = rejects.clone();
        self.bytes_read = bytes_read.clone();
        self
    }

    fn reader(&self) -> Result<PieceReader> {
        let decoder = JsonDecoder::new(self.reader.clone(), self.positions)?;
        Ok(PieceReader::new(&self.input, &self.files, &self.parts, decoder, &self.rejects, &self.bytes_read))
    }
}

impl PartitionStream for JsonPiece {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let external = |e: Error| DataFusionError::External(Box::new(e));
        let batches = futures::stream::try_unfold(self.reader(), move |reader| async move {
            let mut reader = reader.map_err(external)?;
            let batch = reader.next_batch().await.map_err(external)?;
            Ok(batch.map(|batch| (batch, Ok(reader))))
        });
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches))
    }
}
