mod damage;
mod place;
mod random;
mod read_all;
mod vectors;

use bytes::Bytes;

use super::data::Pieces;
use super::*;
use read_all::all_deletes;

fn scan(bytes: &[u8]) -> std::result::Result<Vec<Block>, (u64, BlockError)> {
    let (blocks, error) = read_all::scan(&Bytes::copy_from_slice(bytes));
    error.map_or(Ok(blocks), Err)
}

fn kinds(bytes: &[u8]) -> Vec<BlockKind> {
    scan(bytes).unwrap().iter().map(|block| block.kind).collect()
}

fn content<'a>(bytes: &'a [u8], block: &Block) -> &'a [u8] {
    &bytes[block.content.start as usize..block.content.end as usize]
}
