//! Records of the logs as batches of rows, whichever blocks they are in.

use super::blocks::LogBlocks;
use super::fold::RECORD_KEY;
use super::{Fault, Result};
use crate::codec::avro::AvroDecoder;
use crate::schema::{TableSchema, rewrite};
use crate::table::base_file::Reader;
use crate::table::log_file::{AvroPiece, BlockKind};
use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;

/// Bytes of a block that are read at a time.
const PIECE: usize = 1 << 20;
/// Bytes of records that are decoded into one batch; a record may be longer.
const BATCH_BYTES: usize = 16 << 20;

/// Where a record is in the logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Place {
    pub block: u32,
    /// Number of the record in the block.
    pub row: u32,
}

/// A record of a batch: where it is, and its bytes in the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub place: Place,
    pub bytes: u32,
}

/// Takes batches, with where each row comes from.
pub(super) trait Sink: FnMut(&LogBlocks, RecordBatch, &[Origin]) -> Result<()> {}
impl<F: FnMut(&LogBlocks, RecordBatch, &[Origin]) -> Result<()>> Sink for F {}

/// What is in the blocks, and as many of their bytes as there is room for: they are read at least twice.
pub(super) struct Contents {
    pub blocks: LogBlocks,
    kept: Vec<Option<Vec<AvroPiece>>>,
    held: u64,
    most: u64,
}

impl Contents {
    /// `most`: bytes to keep.
    pub fn new(blocks: LogBlocks, most: usize) -> Contents {
        Contents { kept: vec![None; blocks.blocks.len()], held: 0, most: most as u64, blocks }
    }

    /// Bytes that are kept.
    pub fn held(&self) -> usize {
        self.held as usize
    }

    /// Keeps nothing from now on.
    pub fn forget(&mut self) {
        self.kept.fill(None);
        (self.held, self.most) = (0, 0);
    }

    fn each_piece(&mut self, number: u32, mut then: impl FnMut(&LogBlocks, &AvroPiece) -> Result<bool>) -> Result<()> {
        if let Some(kept) = &self.kept[number as usize] {
            for piece in kept {
                if !then(&self.blocks, piece)? {
                    break;
                }
            }
            return Ok(());
        }
        let (reader, log) = self.blocks.reader(number);
        let size = log.block.content_size();
        let mut keep = (self.held + size <= self.most).then(Vec::new);
        for piece in reader.pieces(&log.block, PIECE)? {
            let piece = piece?;
            if !then(&self.blocks, &piece)? {
                keep = None;
                break;
            }
            keep.iter_mut().for_each(|kept| kept.push(piece.clone()));
        }
        if keep.is_some() {
            self.held += size;
            self.kept[number as usize] = keep;
        }
        Ok(())
    }
}

/// Decodes records into rows of one schema. Rows of blocks that have one writer's schema share batches; what is left is
/// given away by [`RowReader::finish`].
pub(super) struct RowReader<'a> {
    schema: &'a TableSchema,
    batch_rows: usize,
    /// The decoder in use, and the number of the writer's schema.
    decoder: Option<(usize, AvroDecoder)>,
    origins: Vec<Origin>,
}

impl<'a> RowReader<'a> {
    pub fn new(schema: &'a TableSchema, batch_rows: usize) -> RowReader<'a> {
        RowReader { schema, batch_rows: batch_rows.max(1), decoder: None, origins: Vec::new() }
    }

    /// The records of a data block, all of them or those of the given numbers, which ascend.
    pub fn read(
        &mut self,
        contents: &mut Contents,
        number: u32,
        wanted: Option<&[u32]>,
        sink: &mut impl Sink,
    ) -> Result<()> {
        match contents.blocks.blocks[number as usize].block.kind {
            BlockKind::ParquetData => {
                self.finish(&contents.blocks, sink)?;
                self.read_parquet(&contents.blocks, number, wanted, sink)
            }
            _ => self.read_avro(contents, number, wanted, sink),
        }
    }

    fn read_avro(
        &mut self,
        contents: &mut Contents,
        number: u32,
        wanted: Option<&[u32]>,
        sink: &mut impl Sink,
    ) -> Result<()> {
        self.learn(&contents.blocks, number, sink)?;
        let mut wanted = wanted.map(|rows| rows.iter().copied().peekable());
        let mut row = 0;
        contents.each_piece(number, |blocks, piece| {
            for record in piece.records() {
                let record = record.map_err(|e| blocks.fault(number, e))?;
                let take = wanted.as_mut().is_none_or(|wanted| wanted.next_if_eq(&row).is_some());
                if take {
                    self.decode(blocks, record, Place { block: number, row }, sink)?;
                }
                row += 1;
            }
            Ok(wanted.as_mut().is_none_or(|wanted| wanted.peek().is_some()))
        })
    }

    /// Makes a decoder for the block's schema, unless the block before had the same.
    fn learn(&mut self, blocks: &LogBlocks, number: u32, sink: &mut impl Sink) -> Result<()> {
        let schema = blocks.blocks[number as usize].schema;
        if self.decoder.as_ref().is_none_or(|(known, _)| *known != schema) {
            self.finish(blocks, sink)?;
            let decoder = AvroDecoder::of_writer(self.schema, &blocks.schemas[schema])
                .map_err(|e| blocks.fault(number, Fault::WriterSchema(e)))?;
            self.decoder = Some((schema, decoder));
        }
        Ok(())
    }

    #[inline]
    fn decode(&mut self, blocks: &LogBlocks, record: &[u8], place: Place, sink: &mut impl Sink) -> Result<()> {
        let Some((_, decoder)) = &mut self.decoder else { return Ok(()) };
        if let Err(error) = decoder.decode(record, 0) {
            return Err(blocks.fault(place.block, Fault::Record { record: place.row, error }));
        }
        self.origins.push(Origin { place, bytes: record.len() as u32 });
        match self.origins.len() >= self.batch_rows || decoder.rows.bytes() >= BATCH_BYTES {
            true => self.finish(blocks, sink),
            false => Ok(()),
        }
    }

    /// Gives away the rows that are not yet in a batch.
    pub fn finish(&mut self, blocks: &LogBlocks, sink: &mut impl Sink) -> Result<()> {
        if let Some((_, decoder)) = self.decoder.as_mut().filter(|_| !self.origins.is_empty()) {
            sink(blocks, decoder.rows.flush(), &self.origins)?;
            self.origins.clear();
        }
        Ok(())
    }

    /// The content is a whole Parquet file.
    fn read_parquet(
        &mut self,
        blocks: &LogBlocks,
        number: u32,
        wanted: Option<&[u32]>,
        sink: &mut impl Sink,
    ) -> Result<()> {
        let failed = |e| blocks.fault(number, Fault::Parquet(e));
        let log = &blocks.blocks[number as usize];
        let reader = Reader::open_within(&blocks.storage, blocks.path(number), log.block.content_range());
        let reader = reader.map_err(failed)?;
        // Nobody knows how the columns of a record are encoded; an even share is as good as any.
        let bytes = (log.block.content_size() / reader.rows().max(1)).min(u64::from(u32::MAX)) as u32;
        let columns = present(&reader, self.schema);
        let mut start = 0;
        let mut wanted = wanted;
        for batch in reader.batches(Some(&columns), self.batch_rows).map_err(failed)? {
            let mut batch = batch.map_err(failed)?;
            let rows = start..start + batch.num_rows() as u32;
            start = rows.end;
            let mut origins: Vec<Origin> =
                rows.clone().map(|row| Origin { place: Place { block: number, row }, bytes }).collect();
            if let Some(left) = &mut wanted {
                let (here, later) = left.split_at(left.partition_point(|row| *row < rows.end));
                *left = later;
                let picks = UInt32Array::from_iter_values(here.iter().map(|row| row - rows.start));
                batch = take_record_batch(&batch, &picks).map_err(|e| blocks.fault(number, e))?;
                origins = here.iter().map(|row| Origin { place: Place { block: number, row: *row }, bytes }).collect();
            }
            if !origins.is_empty() {
                let batch = rewrite(&batch, &self.schema.arrow).map_err(|e| blocks.fault(number, e))?;
                sink(blocks, batch, &origins)?;
            }
            if wanted.is_some_and(<[u32]>::is_empty) {
                break;
            }
        }
        Ok(())
    }
}

/// Those of the schema's columns that a file has, and the record key, which it must have.
pub(super) fn present<'s>(reader: &Reader, schema: &'s TableSchema) -> Vec<&'s str> {
    let stored = reader.schema();
    let names = schema.arrow.fields().iter().map(|field| field.name().as_str());
    names.filter(|name| *name == RECORD_KEY || stored.column_with_name(name).is_some()).collect()
}
