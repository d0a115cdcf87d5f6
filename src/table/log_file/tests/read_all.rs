//! All that can be read of a log file, every way there is, on plain bytes: for the tests, and for `fuzz/`.

use std::ops::Range;

use bytes::Bytes;

use super::block::MAGIC;
use super::data::Pieces;
use super::scan::{Scanner, Source};
use super::*;

type Outcome<T, E = BlockError> = std::result::Result<T, E>;

/// A file in memory. An error comes with the offset of its block.
pub struct Memory(pub Bytes);

impl Source for Memory {
    type Error = (u64, BlockError);

    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, range: Range<u64>) -> Outcome<Bytes, (u64, BlockError)> {
        assert!(range.start <= range.end && range.end <= self.size(), "a read of {range:?}");
        Ok(self.0.slice(range.start as usize..range.end as usize))
    }

    fn refuse(&self, offset: u64, error: BlockError) -> (u64, BlockError) {
        assert!(offset <= self.size());
        (offset, error)
    }
}

/// The blocks up to the end or an error, the same by one read and by small ones.
pub fn scan(bytes: &Bytes) -> (Vec<Block>, Option<(u64, BlockError)>) {
    let by_window = |window: u64| {
        let mut scanner = Scanner::new(Memory(bytes.clone()), window);
        let mut blocks = Vec::new();
        loop {
            match scanner.next_block() {
                Ok(Some(block)) => blocks.push(block),
                Ok(None) => return (blocks, None),
                Err(error) => {
                    assert!(matches!(scanner.next_block(), Ok(None)), "an error ends the file");
                    return (blocks, Some(error));
                }
            }
        }
    };
    let read = by_window(u64::MAX);
    assert_eq!(by_window(24), read);
    read
}

/// The bytes as a file.
pub fn file(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    let (blocks, error) = scan(&bytes);
    let mut at = 0;
    for block in &blocks {
        assert_eq!(block.span.start, at, "blocks follow one another");
        at = block.span.end;
        assert!(block.content.start >= block.span.start && block.content.end <= at);
        whole(&bytes, block);
    }
    assert!(error.is_some() || bytes.len() as u64 - at < MAGIC.len() as u64, "all of the file is read");
}

fn whole(bytes: &Bytes, block: &Block) {
    let part = |range: &Range<u64>| bytes.slice(range.start as usize..range.end as usize);
    let data = part(&block.content);
    content(&data);
    if block.kind == BlockKind::Corrupt {
        return;
    }
    let again = encode_block(block.kind, &block.header, &data).expect("it was short enough");
    let as_read = part(&block.span);
    // Only a footer is lost, and it has 8 bytes at least.
    assert!(again == as_read || again.len() + 8 <= as_read.len(), "a block comes out as it was");
    if block.kind == BlockKind::AvroData {
        assert_eq!(by_pieces(bytes, block).ok(), at_once(&data).ok());
    }
}

/// The lengths of a data block's records, read by pieces.
fn by_pieces(bytes: &Bytes, block: &Block) -> Outcome<Vec<usize>, (u64, BlockError)> {
    let (source, mut lengths) = (Memory(bytes.clone()), Vec::new());
    for piece in Pieces::new(&source, block, 100)? {
        lengths.extend(piece?.records().map(|record| record.expect("a piece is whole").len()));
    }
    Ok(lengths)
}

fn at_once(content: &[u8]) -> Outcome<Vec<usize>> {
    avro_records(content)?.map(|record| record.map(<[u8]>::len)).collect()
}

/// The records of a delete block, if all are good.
pub fn all_deletes(content: &[u8]) -> Outcome<Vec<DeleteRecord<'_>>> {
    decode_deletes(content)?.collect()
}

/// The bytes as the content of either kind of block.
pub fn content(bytes: &[u8]) {
    if let Ok(lengths) = at_once(bytes) {
        assert_eq!(lengths.iter().sum::<usize>() + 4 * lengths.len() + 8, bytes.len());
        assert_eq!(avro_records(bytes).expect("as before").remaining() as usize, lengths.len());
    }
    if let Ok(deletes) = all_deletes(bytes) {
        let again = encode_deletes(&deletes);
        let again = all_deletes(&again).expect("what was written is read");
        assert_eq!(again.len(), deletes.len());
        for (again, delete) in again.iter().zip(&deletes) {
            // NaN is not itself.
            assert_eq!(format!("{again:?}"), format!("{delete:?}"));
        }
    }
}

/// Each stretch from one magic to the next with the lengths of a whole block; `deep`: also with a content that ends where it
/// must.
pub fn repair(bytes: &[u8], deep: bool) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let starts: Vec<usize> = memchr::memmem::find_iter(&bytes, MAGIC).collect();
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    for (start, end) in starts.iter().copied().zip(ends) {
        let Some(length) = (end - start).checked_sub(14).filter(|length| *length >= 32) else { continue };
        bytes[start + 6..start + 14].copy_from_slice(&(length as u64).to_be_bytes());
        bytes[end - 8..end].copy_from_slice(&(length as u64 + 6).to_be_bytes());
        if deep {
            bytes[start + 14..start + 21].copy_from_slice(&[0, 0, 0, 1, 0, 0, 0]);
            if let Some(field) = after_header(&bytes, start + 22, end)
                && let Some(content) = end.checked_sub(field + 8 + 12)
            {
                bytes[field..field + 8].copy_from_slice(&(content as u64).to_be_bytes());
                bytes[end - 12..end - 8].fill(0);
            }
        }
    }
    bytes
}

fn after_header(bytes: &[u8], at: usize, end: usize) -> Option<usize> {
    let word = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..end)?.first_chunk()?) as usize);
    let mut field = at + 4;
    for _ in 0..word(at)? {
        field = field.checked_add(8)?.checked_add(word(field + 4)?)?;
    }
    Some(field)
}
