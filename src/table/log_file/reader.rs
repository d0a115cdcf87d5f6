//! Reading a log file through storage.

use std::ops::Range;

use bytes::Bytes;
use tokio::runtime::Handle;

use super::data::Pieces;
use super::scan::{Scanner, Source};
use super::{AvroPiece, Block, BlockError, BlockKind, Error, Result};
use crate::storage::Storage;

/// Bytes of one read in search of blocks. A file that is not larger is read once, content included; in a larger one every
/// block costs one read, for its end and the next block's header.
const WINDOW: u64 = 512 * 1024;

/// The blocks of one log file in its order, on a blocking thread inside a tokio runtime. Contents are read when asked for:
/// what the reader holds is at most two pieces of 512 KiB, or a block's header where that is larger.
///
/// After an error the iteration is over.
#[derive(Debug)]
pub struct LogReader {
    scanner: Scanner<LogBytes>,
}

#[derive(Debug)]
struct LogBytes {
    storage: Storage,
    path: String,
    size: u64,
    from: From,
}

#[derive(Debug)]
enum From {
    Storage(Handle),
    Memory(Bytes),
}

impl Source for LogBytes {
    type Error = Error;

    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        match &self.from {
            From::Storage(runtime) => Ok(runtime.block_on(self.storage.get_range(&self.path, range))?),
            From::Memory(bytes) => Ok(bytes.slice(range.start as usize..range.end as usize)),
        }
    }

    fn refuse(&self, offset: u64, error: BlockError) -> Error {
        Error::LogBlock { path: self.place(), offset, error }
    }
}

impl LogBytes {
    fn place(&self) -> String {
        self.storage.display(&self.path)
    }
}

impl LogReader {
    /// `size` as the listing has it. Reads nothing yet.
    pub fn open(storage: &Storage, path: &str, size: u64) -> LogReader {
        let from = From::Storage(Handle::current());
        LogReader {
            scanner: Scanner::new(LogBytes { storage: storage.clone(), path: path.to_owned(), size, from }, WINDOW),
        }
    }

    /// Of a file that is in memory: on any thread.
    pub fn over(storage: &Storage, path: &str, bytes: Bytes) -> LogReader {
        let (path, size) = (path.to_owned(), bytes.len() as u64);
        let file = LogBytes { storage: storage.clone(), path, size, from: From::Memory(bytes) };
        LogReader { scanner: Scanner::new(file, WINDOW) }
    }

    /// The whole content of a block of this file: nothing for a command. Kinds that this program does not read are refused.
    pub fn content(&self, block: &Block) -> Result<Bytes> {
        readable(block).map_err(|e| self.in_block(block, e))?;
        self.scanner.read(block.content.clone())
    }

    /// The records of an Avro data block, by pieces of about `piece` bytes (or one record where that is longer): for blocks
    /// that are not to be held whole.
    pub fn pieces(&self, block: &Block, piece: usize) -> Result<impl Iterator<Item = Result<AvroPiece>> + '_> {
        let kind = if block.kind == BlockKind::AvroData { readable(block) } else { Err(not_read(block)) };
        kind.map_err(|e| self.in_block(block, e))?;
        Pieces::new(&self.scanner, block, piece as u64)
    }

    /// The file, for a person.
    pub fn place(&self) -> String {
        self.scanner.source().place()
    }

    /// An error in a block's content, with the file's name and the block's place.
    pub fn in_block(&self, block: &Block, error: BlockError) -> Error {
        self.scanner.refuse(block.offset(), error)
    }
}

impl Iterator for LogReader {
    type Item = Result<Block>;

    fn next(&mut self) -> Option<Self::Item> {
        self.scanner.next_block().transpose()
    }
}

fn readable(block: &Block) -> std::result::Result<(), BlockError> {
    match block.kind {
        BlockKind::Corrupt | BlockKind::HfileData | BlockKind::CdcData => Err(not_read(block)),
        _ if block.header.is_partial() => Err(BlockError::Unsupported {
            what: "a data block of partial updates".to_owned(),
            hint: "compact the table with Hudi 1.0",
        }),
        _ => Ok(()),
    }
}

fn not_read(block: &Block) -> BlockError {
    let (what, hint) = match block.kind {
        BlockKind::HfileData => ("an HFile data block", "only metadata tables have them"),
        BlockKind::CdcData => ("a CDC data block", "it is in a .cdc log file, which holds no rows of the table"),
        BlockKind::Corrupt => ("a corrupt block", "it is to be skipped"),
        _ => ("a block that is no Avro data block", "ask for its content"),
    };
    BlockError::Unsupported { what: what.to_owned(), hint }
}
