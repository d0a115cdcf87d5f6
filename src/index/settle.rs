//! From where keys were found to what becomes of the rows: update in place, move, insert (semantics.md §5.1).

use super::look_up::Hit;
use super::{Move, Tagged, TaggedRow, is_deleted};
use crate::record::{KeyedBatch, RowRef};
use crate::table::BaseFile;

/// `hits`: what was found in each of `files`. `moving`: a record follows its partition path to another partition.
pub(super) fn settle(
    batches: Vec<KeyedBatch>,
    rows: &[RowRef],
    files: Vec<BaseFile>,
    hits: &[Vec<Hit>],
    moving: bool,
) -> Tagged {
    let mut groups = Vec::new();
    let mut found: Vec<(Hit, u32)> = Vec::new();
    for (file, hits) in files.into_iter().zip(hits) {
        if !hits.is_empty() {
            found.extend(hits.iter().map(|hit| (*hit, groups.len() as u32)));
            groups.push(file);
        }
    }
    found.sort_unstable_by_key(|(hit, group)| (hit.position, *group));

    let (mut tagged, mut moves) = (Vec::with_capacity(rows.len().max(found.len())), Vec::new());
    let mut found = found.as_slice();
    for (position, &row) in rows.iter().enumerate() {
        let count = found.iter().take_while(|(hit, _)| hit.position as usize == position).count();
        let (mine, rest) = found.split_at(count);
        found = rest;
        let batch = &batches[row.batch as usize];
        let stays = |hit: &Hit, group: u32| {
            !moving
                || hit.stored_wins
                || is_deleted(batch, row.row as usize)
                || groups[group as usize].partition == batch.partitions.path(row.row as usize)
        };
        let staying: Vec<u32> =
            mine.iter().filter(|(hit, group)| stays(hit, *group)).map(|(_, group)| *group).collect();
        let leaving = mine.iter().map(|(_, group)| *group).filter(|group| !staying.contains(group));
        moves.extend(leaving.map(|group| Move { row, group }));
        if staying.is_empty() {
            tagged.push(TaggedRow { row, group: None });
        }
        tagged.extend(staying.into_iter().map(|group| TaggedRow { row, group: Some(group) }));
    }
    Tagged { batches, rows: tagged, groups, moves }
}
