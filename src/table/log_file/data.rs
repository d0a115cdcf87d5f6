//! Content of Avro data blocks: `version, count, (length, datum)*` (log-file.md §4).

use std::ops::Range;

use bytes::Bytes;

use super::BlockError;
use super::scan::Source;

/// `HoodieAvroDataBlockVersion.CURRENT_VERSION`.
const VERSION: u32 = 3;
/// Versions with this layout; before, the schema was inside.
const READ_VERSIONS: std::ops::RangeInclusive<u32> = 2..=VERSION;
/// Version and count.
const HEAD: usize = 8;
/// Length of a record.
const FRAME: usize = 4;

/// Builds the content of one data block from framed records (4 bytes of length, big-endian, and the datum).
#[derive(Debug)]
pub struct AvroContent {
    bytes: Vec<u8>,
    count: u32,
}

impl Default for AvroContent {
    fn default() -> Self {
        AvroContent { bytes: vec![0; HEAD], count: 0 }
    }
}

impl AvroContent {
    pub fn new() -> AvroContent {
        AvroContent::default()
    }

    /// Where the encoder appends framed records; tell their number by [`AvroContent::add`] then.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// `count` records have been appended to the buffer.
    pub fn add(&mut self, count: u32) {
        self.count += count;
    }

    pub fn count(&self) -> u32 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the content so far.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The content so far.
    pub fn content(&mut self) -> &[u8] {
        self.bytes[..4].copy_from_slice(&VERSION.to_be_bytes());
        self.bytes[4..HEAD].copy_from_slice(&self.count.to_be_bytes());
        &self.bytes
    }

    /// Begins the next block's content in the same memory.
    pub fn clear(&mut self) {
        self.bytes.truncate(HEAD);
        self.count = 0;
    }
}

/// The records of a data block's content.
pub fn avro_records(content: &[u8]) -> Result<AvroRecords<'_>, BlockError> {
    let count = read_head(content)?;
    Ok(AvroRecords { bytes: content, at: HEAD, remaining: count })
}

/// The number of records.
fn read_head(content: &[u8]) -> Result<u32, BlockError> {
    let short = || BlockError::malformed(format!("a data block's content of {} bytes", content.len()));
    let version = u32_at(content, 0).ok_or_else(short)?;
    if !READ_VERSIONS.contains(&version) {
        let what = format!("data block version {version}");
        return Err(BlockError::Unsupported { what, hint: "compact the table with the Hudi that wrote it" });
    }
    let count = u32_at(content, 4).ok_or_else(short)?;
    if count > i32::MAX as u32 {
        return Err(BlockError::malformed(format!("a data block of {} records", count as i32)));
    }
    Ok(count)
}

/// Datums, one after the other. After an error, nothing more.
#[derive(Debug, Clone)]
pub struct AvroRecords<'a> {
    bytes: &'a [u8],
    at: usize,
    /// As the block says; the bytes must agree.
    remaining: u32,
}

impl AvroRecords<'_> {
    /// Records that are still to come if the block tells the truth: no measure for memory.
    pub fn remaining(&self) -> u32 {
        self.remaining
    }
}

impl<'a> Iterator for AvroRecords<'a> {
    type Item = Result<&'a [u8], BlockError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.at..)?;
        if self.remaining == 0 {
            self.at = usize::MAX;
            let surplus = format!("{} bytes follow the last record of a data block", rest.len());
            return (!rest.is_empty()).then(|| Err(BlockError::malformed(surplus)));
        }
        let record = frame(rest).ok_or_else(|| {
            let missing = self.remaining;
            BlockError::malformed(format!("a data block's content ends at byte {}, {missing} records early", self.at))
        });
        match record {
            Ok(record) => {
                self.at += FRAME + record.len();
                self.remaining -= 1;
            }
            Err(_) => self.at = usize::MAX,
        }
        Some(record)
    }
}

/// The first datum of framed bytes, if it is whole.
fn frame(bytes: &[u8]) -> Option<&[u8]> {
    let length = u32_at(bytes, 0)? as usize;
    bytes.get(FRAME..FRAME.checked_add(length)?)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*word))
}

/// Some whole records of a data block.
#[derive(Debug, Clone)]
pub struct AvroPiece {
    bytes: Bytes,
    count: u32,
}

impl AvroPiece {
    pub fn records(&self) -> AvroRecords<'_> {
        AvroRecords { bytes: &self.bytes, at: 0, remaining: self.count }
    }

    /// Records in the piece.
    pub fn count(&self) -> u32 {
        self.count
    }
}

/// Reads the records of a data block in pieces of about `piece` bytes. After an error, nothing more.
pub(super) struct Pieces<'a, S: Source> {
    source: &'a S,
    block: u64,
    /// What is not read yet.
    rest: Range<u64>,
    remaining: u32,
    piece: u64,
}

impl<'a, S: Source> Pieces<'a, S> {
    pub(super) fn new(source: &'a S, block: &super::Block, piece: u64) -> Result<Self, S::Error> {
        let content = block.content.clone();
        let head = source.read(content.start..content.end.min(content.start + HEAD as u64))?;
        let remaining = read_head(&head).map_err(|e| source.refuse(block.offset(), e))?;
        let rest = content.start + HEAD as u64..content.end;
        Ok(Pieces { source, block: block.offset(), rest, remaining, piece: piece.max(1) })
    }

    fn read(&mut self) -> Result<Option<AvroPiece>, S::Error> {
        let refuse = |why: String| self.source.refuse(self.block, BlockError::malformed(why));
        let left = self.rest.end - self.rest.start;
        if self.remaining == 0 {
            return match left {
                0 => Ok(None),
                _ => Err(refuse(format!("{left} bytes follow the last record of a data block"))),
            };
        }
        let mut bytes = self.source.read(self.rest.start..self.rest.start + left.min(self.piece))?;
        let early = || refuse(format!("a data block's content ends {} records early", self.remaining));
        if frame(&bytes).is_none() {
            // A record longer than a piece: all of it, and only it.
            let word = self.source.read(self.rest.start..self.rest.start + left.min(FRAME as u64))?;
            let length = FRAME as u64 + u64::from(u32_at(&word, 0).ok_or_else(early)?);
            if length > left {
                return Err(early());
            }
            bytes = self.source.read(self.rest.start..self.rest.start + length)?;
        }
        let (mut end, mut count) = (0, 0);
        while count < self.remaining
            && let Some(record) = frame(&bytes[end..])
        {
            end += FRAME + record.len();
            count += 1;
        }
        self.rest.start += end as u64;
        self.remaining -= count;
        Ok(Some(AvroPiece { bytes: bytes.slice(..end), count }))
    }
}

impl<S: Source> Iterator for Pieces<'_, S> {
    type Item = Result<AvroPiece, S::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let piece = self.read().transpose();
        if !matches!(piece, Some(Ok(_))) {
            (self.rest, self.remaining) = (0..0, 0);
        }
        piece
    }
}
