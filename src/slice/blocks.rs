//! The first pass over the logs: which blocks count (log-file.md §10; `AbstractHoodieLogRecordReader.scanInternalV1`, 0.15).

use super::{Error, Fault, LogTotals, Result};
use crate::storage::Storage;
use crate::table::log_file::{Block, BlockError, BlockKind, HeaderKey, LogReader};
use crate::table::{Action, FileSlice, InstantTime, Timeline};

/// The data and delete blocks that count, oldest first.
#[derive(Debug)]
pub(super) struct LogBlocks {
    pub storage: Storage,
    files: Vec<File>,
    pub blocks: Vec<LogBlock>,
    /// Of data blocks, each once.
    pub schemas: Vec<String>,
    pub totals: LogTotals,
}

#[derive(Debug)]
struct File {
    path: String,
    size: u64,
}

#[derive(Debug)]
pub(super) struct LogBlock {
    pub block: Block,
    file: usize,
    /// Index into [`LogBlocks::schemas`]; of no meaning for a delete block.
    pub schema: usize,
}

impl LogBlocks {
    pub fn scan(storage: &Storage, timeline: &Timeline, slice: &FileSlice) -> Result<LogBlocks> {
        // As Hudi does: change data is for readers of changes.
        let logs = slice.log_files.iter().filter(|log| !log.name.cdc);
        let files: Vec<File> = logs.map(|log| File { path: slice.log_path(log), size: log.size }).collect();
        let totals = LogTotals {
            log_files: files.len() as u64,
            log_bytes: files.iter().map(|file| file.size).sum(),
            ..LogTotals::default()
        };
        let storage = storage.clone();
        let mut logs = LogBlocks { storage, files, blocks: Vec::new(), schemas: Vec::new(), totals };
        if let Some(upto) = upto(timeline) {
            logs.read(timeline, upto)?;
        }
        Ok(logs)
    }

    fn read(&mut self, timeline: &Timeline, upto: &InstantTime) -> Result<()> {
        let mut stack: Vec<LogBlock> = Vec::new();
        for file in 0..self.files.len() {
            for block in self.open(file) {
                let mut block = block?;
                self.totals.log_blocks += 1;
                if block.kind == BlockKind::Corrupt {
                    self.totals.corrupt_blocks += 1;
                    stack.push(LogBlock { block, file, schema: 0 });
                    continue;
                }
                let instant = block.header.instant().ok_or_else(|| self.malformed(file, &block, "no instant"))?;
                if instant > upto {
                    return self.keep(stack);
                }
                if block.kind == BlockKind::Command {
                    let target = self.rolled_back(file, &block)?;
                    let before = stack.len();
                    stack.retain(|b| b.block.kind != BlockKind::Corrupt && b.block.header.instant() != Some(target));
                    self.totals.rollback_blocks += (before - stack.len()) as u64;
                } else if timeline.is_valid(instant) {
                    let schema = self.intern(file, &mut block)?;
                    stack.push(LogBlock { block, file, schema });
                }
            }
        }
        self.keep(stack)
    }

    /// The number of a block's schema, whose text the block then no longer has.
    fn intern(&mut self, file: usize, block: &mut Block) -> Result<usize> {
        let schema = block.header.take_schema();
        if !block.kind.is_data() {
            return Ok(0);
        }
        let schema = schema.ok_or_else(|| self.malformed(file, block, "no schema"))?;
        // Most blocks have the schema of the block before.
        let known = self.schemas.iter().rposition(|known| *known == schema);
        Ok(known.unwrap_or_else(|| {
            self.schemas.push(schema);
            self.schemas.len() - 1
        }))
    }

    /// The instant whose blocks a command takes away.
    fn rolled_back<'b>(&self, file: usize, block: &'b Block) -> Result<&'b InstantTime> {
        if !block.header.is_rollback() {
            let command = block.header.get(HeaderKey::CommandBlockType).unwrap_or_default();
            return Err(self.unsupported(file, block, format!("a block with command `{command:.200}`")));
        }
        block.header.target_instant().ok_or_else(|| self.malformed(file, block, "no target instant"))
    }

    fn keep(&mut self, stack: Vec<LogBlock>) -> Result<()> {
        for block in stack {
            match block.block.kind {
                BlockKind::Corrupt => {
                    // Of a write that was never rolled back: Hudi passes over it without a word.
                    tracing::warn!(
                        file = self.storage.display(&self.files[block.file].path),
                        offset = block.block.offset(),
                        "a corrupt block of a log file is passed over: rows of a commit may be missing"
                    );
                    continue;
                }
                BlockKind::HfileData => return Err(self.unsupported(block.file, &block.block, "an HFile data block")),
                BlockKind::CdcData => return Err(self.unsupported(block.file, &block.block, "a CDC data block")),
                _ => {}
            }
            if block.block.header.get(HeaderKey::CompactedBlockTimes).is_some_and(|times| !times.is_empty()) {
                return Err(self.unsupported(block.file, &block.block, "a data block of a log compaction"));
            }
            self.blocks.push(block);
        }
        Ok(())
    }

    fn open(&self, file: usize) -> LogReader {
        let File { path, size } = &self.files[file];
        LogReader::open(&self.storage, path, *size)
    }

    /// Reads what is in the block of that number.
    pub fn reader(&self, number: u32) -> (LogReader, &LogBlock) {
        let block = &self.blocks[number as usize];
        (self.open(block.file), block)
    }

    /// The file of a block, relative to the table.
    pub fn path(&self, number: u32) -> &str {
        &self.files[self.blocks[number as usize].file].path
    }

    /// What is wrong with the block of that number.
    #[cold]
    pub fn fault(&self, number: u32, fault: impl Into<Fault>) -> Error {
        let LogBlock { block, file, .. } = &self.blocks[number as usize];
        self.refuse(*file, block, fault)
    }

    fn malformed(&self, file: usize, block: &Block, lacks: &str) -> Error {
        let why = format!("the header of a {:?} block has {lacks}", block.kind);
        self.refuse(file, block, BlockError::Malformed { why })
    }

    fn unsupported(&self, file: usize, block: &Block, what: impl Into<String>) -> Error {
        let hint = "compact the file group with the Hudi that wrote it";
        self.refuse(file, block, BlockError::Unsupported { what: what.into(), hint })
    }

    fn refuse(&self, file: usize, block: &Block, fault: impl Into<Fault>) -> Error {
        let path = self.storage.display(&self.files[file].path);
        Error::Log { path, offset: block.offset(), fault: Box::new(fault.into()) }
    }
}

/// The last instant whose blocks are read. A rollback counts: Hudi 0.15 draws the instant of a write before it rolls back
/// what an earlier one left, so the rollback's command block lies before that write's blocks, with a greater instant, and
/// would end the reading there (§10.1).
fn upto(timeline: &Timeline) -> Option<&InstantTime> {
    let counts = |action: Action| action.is_write() || action == Action::Rollback;
    timeline.instants.iter().filter(|i| !i.is_pending() && counts(i.action)).map(|i| &i.time).max()
}
