mod vectors;

use std::ops::Range;

use bytes::Bytes;

use super::scan::{Scanner, Source};
use super::*;

/// A file in memory. An error comes with the offset of its block.
#[derive(Debug, Clone)]
struct Memory(Bytes);

type Outcome<T> = std::result::Result<T, (u64, BlockError)>;

impl Source for Memory {
    type Error = (u64, BlockError);

    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, range: Range<u64>) -> Outcome<Bytes> {
        Ok(self.0.slice(range.start as usize..range.end as usize))
    }

    fn refuse(&self, offset: u64, error: BlockError) -> (u64, BlockError) {
        (offset, error)
    }
}

/// Read in small pieces and at once, which must be the same.
fn scan(bytes: &[u8]) -> Outcome<Vec<Block>> {
    let by_window = |window: u64| -> Outcome<Vec<Block>> {
        let mut scanner = Scanner::new(Memory(Bytes::copy_from_slice(bytes)), window);
        std::iter::from_fn(|| scanner.next_block().transpose()).collect()
    };
    let blocks = by_window(u64::MAX);
    for window in [1, 20, 300] {
        assert_eq!(by_window(window), blocks, "window of {window} bytes");
    }
    blocks
}

fn kinds(bytes: &[u8]) -> Vec<BlockKind> {
    scan(bytes).unwrap().iter().map(|block| block.kind).collect()
}

fn content<'a>(bytes: &'a [u8], block: &Block) -> &'a [u8] {
    &bytes[block.content.start as usize..block.content.end as usize]
}
