//! Finding the blocks of a file, as `HoodieLogFileReader` of Hudi 0.15 does, with few positioned reads.

use std::ops::Range;

use bytes::Bytes;
use memchr::memmem;

use super::BlockError;
use super::block::{Block, BlockHeader, BlockKind, FORMAT_VERSION, HeaderKey, LONGEST, MAGIC, TAIL};

/// A file of known size. Ranges that are asked for lie within it.
pub(super) trait Source {
    type Error;

    fn size(&self) -> u64;

    /// The whole range.
    fn read(&self, range: Range<u64>) -> Result<Bytes, Self::Error>;

    /// `error` in the block at `offset` of this file.
    fn refuse(&self, offset: u64, error: BlockError) -> Self::Error;
}

/// Some bytes of the file.
#[derive(Debug, Default)]
struct Window {
    start: u64,
    bytes: Bytes,
}

impl Window {
    fn get(&self, range: &Range<u64>) -> Option<Bytes> {
        let from = usize::try_from(range.start.checked_sub(self.start)?).ok()?;
        let to = usize::try_from(range.end.checked_sub(self.start)?).ok()?;
        (from <= to && to <= self.bytes.len()).then(|| self.bytes.slice(from..to))
    }
}

/// Walks from block to block.
#[derive(Debug)]
pub(super) struct Scanner<S> {
    source: S,
    /// Bytes of one read.
    window: u64,
    /// Where the next block begins.
    at: u64,
    /// What was read last: where a block begins, and where it ends.
    head: Window,
    tail: Window,
}

impl<S: Source> Scanner<S> {
    pub(super) fn new(source: S, window: u64) -> Scanner<S> {
        Scanner { source, window: window.max(1), at: 0, head: Window::default(), tail: Window::default() }
    }

    pub(super) fn source(&self) -> &S {
        &self.source
    }

    /// The next block, or `None` at the end. After an error, nothing more.
    pub(super) fn next_block(&mut self) -> Result<Option<Block>, S::Error> {
        let block = self.read_block();
        self.at = match &block {
            Ok(Some(block)) => block.span.end,
            _ => self.source.size(),
        };
        block
    }

    fn at_hand(&self, range: &Range<u64>) -> Option<Bytes> {
        self.head.get(range).or_else(|| self.tail.get(range))
    }

    fn read_block(&mut self) -> Result<Option<Block>, S::Error> {
        let (start, size) = (self.at, self.source.size());
        // Hudi takes less than a magic for the end of the file.
        if size - start < MAGIC.len() as u64 {
            return Ok(None);
        }
        let body = start + MAGIC.len() as u64;
        // The end of the block before is where this one begins.
        if self.head.get(&(start..body)).is_none() {
            std::mem::swap(&mut self.head, &mut self.tail);
        }
        if self.peek(start..body)? != MAGIC[..] {
            let why = BlockError::malformed("a log file begins with #HUDI#, this does not");
            return Err(self.source.refuse(start, why));
        }
        match self.whole_block(body)? {
            Some(end) => self.parse(start, end).map(Some),
            None => self.corrupt(start, body).map(Some),
        }
    }

    /// Where the block ends, if its length, its trailer and what follows agree.
    fn whole_block(&mut self, body: u64) -> Result<Option<u64>, S::Error> {
        let size = self.source.size();
        if size - body < 8 {
            return Ok(None);
        }
        let first = body + 8;
        let length = be_u64(&self.peek(body..first)?);
        let end = first.saturating_add(length);
        if length > LONGEST || end > size {
            return Ok(None);
        }
        // The trailer, the next magic and the rest of the next header in one read.
        let trailer = self.peek_tail(end - 8..end)?;
        if be_u64(&trailer).checked_sub(MAGIC.len() as u64) != Some(length) {
            return Ok(None);
        }
        let next = end..end + MAGIC.len() as u64;
        let goes_on = next.end > size || self.peek_tail(next)? == MAGIC[..];
        Ok(goes_on.then_some(end))
    }

    /// What the block says of itself between `start` and `end`.
    fn parse(&mut self, start: u64, end: u64) -> Result<Block, S::Error> {
        let mut fields = Fields { at: start + MAGIC.len() as u64 + 8, end: end - 8, scanner: self };
        let parsed = fields.block(start..end);
        parsed.map_err(|fault| match fault {
            Fault::Read(error) => error,
            Fault::Block(error) => self.source.refuse(start, error),
        })
    }

    /// All bytes up to the next magic, or the end.
    fn corrupt(&mut self, start: u64, body: u64) -> Result<Block, S::Error> {
        let (size, mut at) = (self.source.size(), body);
        let end = loop {
            let piece = at..size.min(at.saturating_add(self.window.max(2 * MAGIC.len() as u64)));
            let bytes = self.peek(piece.clone())?;
            match memmem::find(&bytes, MAGIC) {
                Some(found) => break at + found as u64,
                None if piece.end == size => break size,
                None => at = piece.end - (MAGIC.len() as u64 - 1),
            }
        };
        let header = BlockHeader::default();
        Ok(Block { kind: BlockKind::Corrupt, header, span: start..end, content: body..end })
    }

    fn peek(&mut self, range: Range<u64>) -> Result<Bytes, S::Error> {
        if let Some(bytes) = self.at_hand(&range) {
            return Ok(bytes);
        }
        self.head = self.fetch(&range)?;
        Ok(self.head.get(&range).unwrap_or_default())
    }

    /// The same near the end of a block: where the block begins stays at hand.
    fn peek_tail(&mut self, range: Range<u64>) -> Result<Bytes, S::Error> {
        if let Some(bytes) = self.at_hand(&range) {
            return Ok(bytes);
        }
        // The empty footer precedes the trailer.
        let range_with_footer = range.start.saturating_sub(TAIL - 8)..range.end;
        self.tail = self.fetch(&range_with_footer)?;
        Ok(self.tail.get(&range).unwrap_or_default())
    }

    /// A window from the range's start on that has at least the range.
    fn fetch(&self, range: &Range<u64>) -> Result<Window, S::Error> {
        let end = range.end.max(self.source.size().min(range.start.saturating_add(self.window)));
        Ok(Window { start: range.start, bytes: self.source.read(range.start..end)? })
    }
}

/// The file, for contents: what is at hand needs no read.
impl<S: Source> Source for Scanner<S> {
    type Error = S::Error;

    fn size(&self) -> u64 {
        self.source.size()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes, S::Error> {
        self.at_hand(&range).map_or_else(|| self.source.read(range), Ok)
    }

    fn refuse(&self, offset: u64, error: BlockError) -> S::Error {
        self.source.refuse(offset, error)
    }
}

enum Fault<E> {
    Read(E),
    Block(BlockError),
}

impl<E> From<BlockError> for Fault<E> {
    fn from(error: BlockError) -> Self {
        Fault::Block(error)
    }
}

/// The fields of a block, in order, up to its trailer.
struct Fields<'a, S> {
    scanner: &'a mut Scanner<S>,
    at: u64,
    end: u64,
}

impl<S: Source> Fields<'_, S> {
    fn block(&mut self, span: Range<u64>) -> Result<Block, Fault<S::Error>> {
        let version = self.u32("log format version")?;
        if version != FORMAT_VERSION {
            let what = format!("log format version {version}");
            return Err(BlockError::Unsupported { what, hint: "compact the table with the Hudi that wrote it" }.into());
        }
        let ordinal = self.u32("block type")?;
        let kind = BlockKind::of_ordinal(ordinal).filter(|kind| *kind != BlockKind::Corrupt).ok_or_else(|| {
            let what = format!("block type {ordinal}");
            BlockError::Unsupported { what, hint: "compact the table with the Hudi that wrote it" }
        })?;
        let header = BlockHeader::of_entries(self.map("header")?)?;
        if kind == BlockKind::Command && !header.is_rollback() {
            let command = header.get(HeaderKey::CommandBlockType).unwrap_or("none");
            let what = format!("command `{command:.200}`");
            return Err(BlockError::Unsupported { what, hint: "Hudi 0.15 knows only the rollback, 0" }.into());
        }
        let length = self.u64("content length")?;
        let content = self.skip("content", length)?;
        self.map("footer")?;
        if self.at != self.end {
            let surplus = self.end - self.at;
            return Err(BlockError::malformed(format!("{surplus} bytes are between footer and trailer")).into());
        }
        Ok(Block { kind, header, span, content })
    }

    fn map(&mut self, what: &'static str) -> Result<Vec<(HeaderKey, String)>, Fault<S::Error>> {
        let count = self.u32(what)?;
        let mut entries = Vec::new();
        for _ in 0..count {
            let ordinal = self.u32(what)?;
            let length = self.u32(what)?;
            let key = HeaderKey::of_ordinal(ordinal).ok_or_else(|| {
                let what = format!("{what} key {ordinal}");
                BlockError::Unsupported { what, hint: "Hudi 1.0 knows keys up to 8" }
            })?;
            let range = self.skip(what, u64::from(length))?;
            let value = self.scanner.peek(range).map_err(Fault::Read)?;
            let text = std::str::from_utf8(&value);
            let text = text.map_err(|_| BlockError::malformed(format!("{what} {key:?} is not UTF-8")))?;
            entries.push((key, text.to_owned()));
        }
        Ok(entries)
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, Fault<S::Error>> {
        let range = self.skip(what, 4)?;
        let bytes = self.scanner.peek(range).map_err(Fault::Read)?;
        Ok(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    }

    fn u64(&mut self, what: &'static str) -> Result<u64, Fault<S::Error>> {
        let range = self.skip(what, 8)?;
        Ok(be_u64(&self.scanner.peek(range).map_err(Fault::Read)?))
    }

    /// The next `length` bytes, if the block has them.
    fn skip(&mut self, what: &'static str, length: u64) -> Result<Range<u64>, BlockError> {
        let start = self.at;
        let end = start.checked_add(length).filter(|end| *end <= self.end);
        self.at = end.ok_or_else(|| {
            BlockError::malformed(format!("the {what} of {length} bytes at byte {start} does not end within the block"))
        })?;
        Ok(start..self.at)
    }
}

fn be_u64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}
