//! One block: its kind, its header map, its bytes (log-file.md §2, §3).

use std::ops::Range;

use bytes::Bytes;

use super::super::InstantTime;
use super::BlockError;

/// `HoodieLogFormat.MAGIC`.
pub(super) const MAGIC: &[u8; 6] = b"#HUDI#";
/// `HoodieLogFormat.CURRENT_VERSION`, since Hudi 0.4.
pub(super) const FORMAT_VERSION: u32 = 1;
/// Readers take lengths as Java's `int`.
pub(super) const LONGEST: u64 = i32::MAX as u64;
/// What follows the content: an empty footer map and the trailer.
pub(super) const TAIL: u64 = 4 + 8;
/// `HoodieCommandBlockTypeEnum.ROLLBACK_BLOCK`, the only command there is.
const ROLLBACK: &str = "0";

/// `HoodieLogBlock.HoodieLogBlockType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Undoes the blocks of an instant.
    Command,
    Delete,
    /// Never written: bytes that are no block.
    Corrupt,
    AvroData,
    /// Only in metadata tables.
    HfileData,
    /// The content is a whole Parquet file.
    ParquetData,
    /// Only in `.cdc` log files.
    CdcData,
}

impl BlockKind {
    const ALL: [BlockKind; 7] = [
        BlockKind::Command,
        BlockKind::Delete,
        BlockKind::Corrupt,
        BlockKind::AvroData,
        BlockKind::HfileData,
        BlockKind::ParquetData,
        BlockKind::CdcData,
    ];

    pub(super) fn of_ordinal(ordinal: u32) -> Option<BlockKind> {
        BlockKind::ALL.get(ordinal as usize).copied()
    }

    /// Whether its content is rows of the table.
    pub fn is_data(self) -> bool {
        !matches!(self, BlockKind::Command | BlockKind::Delete | BlockKind::Corrupt)
    }
}

/// `HoodieLogBlock.HeaderMetadataType`; the last two since Hudi 1.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeaderKey {
    InstantTime,
    TargetInstantTime,
    Schema,
    CommandBlockType,
    CompactedBlockTimes,
    RecordPositions,
    BlockIdentifier,
    IsPartial,
    BaseFileInstantTimeOfRecordPositions,
}

impl HeaderKey {
    const ALL: [HeaderKey; 9] = [
        HeaderKey::InstantTime,
        HeaderKey::TargetInstantTime,
        HeaderKey::Schema,
        HeaderKey::CommandBlockType,
        HeaderKey::CompactedBlockTimes,
        HeaderKey::RecordPositions,
        HeaderKey::BlockIdentifier,
        HeaderKey::IsPartial,
        HeaderKey::BaseFileInstantTimeOfRecordPositions,
    ];

    pub(super) fn of_ordinal(ordinal: u32) -> Option<HeaderKey> {
        HeaderKey::ALL.get(ordinal as usize).copied()
    }
}

/// The header map of a block, in the order of the file (Hudi writes any).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockHeader {
    entries: Vec<(HeaderKey, String)>,
    instant: Option<InstantTime>,
    target_instant: Option<InstantTime>,
}

impl BlockHeader {
    /// Of a data or delete block: `schema` is the writer's, in Avro's JSON, with the meta fields.
    pub fn of_write(instant: &InstantTime, schema: &str) -> BlockHeader {
        let schema = (HeaderKey::Schema, schema.to_owned());
        BlockHeader {
            entries: vec![(HeaderKey::InstantTime, instant.to_string()), schema],
            instant: Some(instant.clone()),
            target_instant: None,
        }
    }

    /// Of a block of the archived timeline, which says its schema alone.
    pub fn of_schema(schema: &str) -> BlockHeader {
        let entries = vec![(HeaderKey::Schema, schema.to_owned())];
        BlockHeader { entries, ..BlockHeader::default() }
    }

    /// Of a command block: the rollback at `instant` undoes `target`.
    pub fn of_rollback(instant: &InstantTime, target: &InstantTime) -> BlockHeader {
        let entries = vec![
            (HeaderKey::InstantTime, instant.to_string()),
            (HeaderKey::TargetInstantTime, target.to_string()),
            (HeaderKey::CommandBlockType, ROLLBACK.to_owned()),
        ];
        BlockHeader { entries, instant: Some(instant.clone()), target_instant: Some(target.clone()) }
    }

    pub(super) fn of_entries(entries: Vec<(HeaderKey, String)>) -> Result<BlockHeader, BlockError> {
        let mut header = BlockHeader { entries, instant: None, target_instant: None };
        header.instant = header.time(HeaderKey::InstantTime)?;
        header.target_instant = header.time(HeaderKey::TargetInstantTime)?;
        Ok(header)
    }

    fn time(&self, key: HeaderKey) -> Result<Option<InstantTime>, BlockError> {
        let Some(text) = self.get(key) else { return Ok(None) };
        let time = InstantTime::parse(text);
        time.map(Some)
            .ok_or_else(|| BlockError::malformed(format!("the header's {key:?} is `{text:.200}`, no instant")))
    }

    /// Instant of the write that made the block. Only the blocks of the archived timeline have none.
    pub fn instant(&self) -> Option<&InstantTime> {
        self.instant.as_ref()
    }

    /// The instant that a rollback undoes.
    pub fn target_instant(&self) -> Option<&InstantTime> {
        self.target_instant.as_ref()
    }

    /// Avro schema, as JSON, that the block's records are written with.
    pub fn schema(&self) -> Option<&str> {
        self.get(HeaderKey::Schema)
    }

    /// Takes the schema away, which may be long, and is the same in most blocks: for who keeps headers.
    pub fn take_schema(&mut self) -> Option<String> {
        let at = self.entries.iter().rposition(|(key, _)| *key == HeaderKey::Schema)?;
        Some(self.entries.remove(at).1)
    }

    /// Whether the block (a command) is a rollback.
    pub fn is_rollback(&self) -> bool {
        self.get(HeaderKey::CommandBlockType) == Some(ROLLBACK)
    }

    /// Whether the records have only the fields that changed (Hudi 1.0's partial updates).
    pub(super) fn is_partial(&self) -> bool {
        self.get(HeaderKey::IsPartial).is_some_and(|v| v.eq_ignore_ascii_case("true"))
    }

    /// Any entry; of a key that is there twice the last, as in Hudi.
    pub fn get(&self, key: HeaderKey) -> Option<&str> {
        self.entries.iter().rfind(|(k, _)| *k == key).map(|(_, value)| value.as_str())
    }
}

/// Where a block is in its file, and what its header says. The content is read by [`LogReader`](super::LogReader).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub kind: BlockKind,
    pub header: BlockHeader,
    /// From the block's magic to the end of its trailer.
    pub(super) span: Range<u64>,
    pub(super) content: Range<u64>,
}

impl Block {
    /// First byte in the file.
    pub fn offset(&self) -> u64 {
        self.span.start
    }

    /// Where the content is in the file.
    pub fn content_range(&self) -> Range<u64> {
        self.content.clone()
    }

    /// Bytes of the content.
    pub fn content_size(&self) -> u64 {
        self.content.end - self.content.start
    }
}

/// A whole block, ready to be written.
pub fn encode_block(kind: BlockKind, header: &BlockHeader, content: &[u8]) -> Result<Bytes, BlockError> {
    let head = encode_head(kind, header, content.len())?;
    let mut block = Vec::with_capacity(head.len() + content.len() + TAIL as usize);
    block.extend_from_slice(&head);
    block.extend_from_slice(content);
    block.extend_from_slice(&encode_tail(block.len()));
    Ok(block.into())
}

/// What precedes the content.
pub(super) fn encode_head(kind: BlockKind, header: &BlockHeader, content: usize) -> Result<Vec<u8>, BlockError> {
    let entries: usize = header.entries.iter().map(|(_, value)| 8 + value.len()).sum();
    let rest = 4 + 4 + 4 + entries as u64 + 8 + content as u64 + TAIL;
    if rest > LONGEST {
        return Err(BlockError::TooLarge { size: rest });
    }
    let mut head = Vec::with_capacity(MAGIC.len() + 8 + 4 + 4 + 4 + entries + 8);
    head.extend_from_slice(MAGIC);
    head.extend_from_slice(&rest.to_be_bytes());
    put_u32(&mut head, FORMAT_VERSION);
    put_u32(&mut head, kind as u32);
    put_u32(&mut head, header.entries.len() as u32);
    for (key, value) in &header.entries {
        put_u32(&mut head, *key as u32);
        put_u32(&mut head, value.len() as u32);
        head.extend_from_slice(value.as_bytes());
    }
    head.extend_from_slice(&(content as u64).to_be_bytes());
    Ok(head)
}

/// What follows the content, after `before` bytes of head and content: the empty footer, and the trailer, which counts
/// the magic too.
pub(super) fn encode_tail(before: usize) -> [u8; TAIL as usize] {
    let mut tail = [0; TAIL as usize];
    tail[4..].copy_from_slice(&(before as u64 + 4).to_be_bytes());
    tail
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}
