//! From where keys were found to what becomes of the rows: update in place, move, insert (semantics.md §5.1).

use super::look_up::Hit;
use super::{Move, TaggedRow};
use crate::record::{KeyedBatch, RowRef};
use crate::table::BaseFile;
use arrow::array::Array;

/// What becomes of the rows.
#[derive(Debug, PartialEq)]
pub(super) struct Settled {
    pub rows: Vec<TaggedRow>,
    pub groups: Vec<BaseFile>,
    pub moves: Vec<Move>,
}

/// `hits`: what was found in each of `files`. `moving`: a record follows its partition path to another partition.
pub(super) fn settle(
    batches: &[KeyedBatch],
    rows: &[RowRef],
    files: Vec<BaseFile>,
    hits: &[Vec<Hit>],
    moving: bool,
) -> Settled {
    let mut groups = Vec::new();
    let mut found: Vec<(Hit, u32)> = Vec::new();
    for (file, hits) in files.into_iter().zip(hits) {
        if !hits.is_empty() {
            found.extend(hits.iter().map(|hit| (*hit, groups.len() as u32)));
            groups.push(file);
        }
    }
    found.sort_unstable_by_key(|(hit, group)| (hit.position, *group));

    let mut settled = Settled { rows: Vec::with_capacity(rows.len().max(found.len())), groups, moves: Vec::new() };
    let mut found = found.as_slice();
    for (position, &row) in rows.iter().enumerate() {
        let count = found.iter().take_while(|(hit, _)| hit.position as usize == position).count();
        let (mine, rest) = found.split_at(count);
        found = rest;
        let batch = &batches[row.batch as usize];
        let stays = |hit: &Hit, group: u32| {
            !moving
                || hit.stored_wins
                || is_deleted(batch, row)
                || settled.groups[group as usize].partition == batch.partitions.path(row.row as usize)
        };
        let staying: Vec<u32> =
            mine.iter().filter(|(hit, group)| stays(hit, *group)).map(|(_, group)| *group).collect();
        let leaving = mine.iter().map(|(_, group)| *group).filter(|group| !staying.contains(group));
        settled.moves.extend(leaving.map(|group| Move { row, group }));
        if staying.is_empty() {
            settled.rows.push(TaggedRow { row, group: None });
        }
        settled.rows.extend(staying.into_iter().map(|group| TaggedRow { row, group: Some(group) }));
    }
    settled
}

fn is_deleted(batch: &KeyedBatch, row: RowRef) -> bool {
    batch.deleted.as_ref().is_some_and(|deleted| deleted.is_valid(row.row as usize) && deleted.value(row.row as usize))
}
