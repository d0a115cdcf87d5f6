//! From where keys were found to what becomes of the rows: update in place, move, insert (semantics.md §5.1).

use super::look_up::Hit;
use super::{Move, Tagged, TaggedRow, is_deleted};
use crate::record::{KeyedBatch, RowRef};
use crate::table::FileSlice;
use std::collections::BTreeSet;
use std::sync::Arc;

/// `hits`: what was found in each of `slices`; a key that a log has deleted counts only where it comes back. `moving`: a record follows its partition path to another partition.
pub(super) fn settle(
    batches: Vec<KeyedBatch>,
    rows: &[RowRef],
    slices: Vec<Arc<FileSlice>>,
    hits: &[Vec<Hit>],
    moving: bool,
) -> Tagged {
    let mut groups = Vec::new();
    let mut found: Vec<(Hit, u32)> = Vec::new();
    for (slice, hits) in slices.into_iter().zip(hits) {
        if !hits.is_empty() {
            found.extend(hits.iter().map(|hit| (*hit, groups.len() as u32)));
            groups.push(slice);
        }
    }
    found.sort_unstable_by_key(|(hit, group)| (hit.position, *group));

    let (mut tagged, mut moves) = (Vec::with_capacity(rows.len().max(found.len())), Vec::new());
    let mut revived = BTreeSet::new();
    let mut found = found.as_slice();
    for (position, &row) in rows.iter().enumerate() {
        let count = found.iter().take_while(|(hit, _)| hit.position as usize == position).count();
        let (mine, rest) = found.split_at(count);
        found = rest;
        let batch = &batches[row.batch as usize];
        let (dead, mine): (Vec<_>, Vec<_>) = mine.iter().copied().partition(|(hit, _)| hit.deleted);
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
            // The base file still has its key, so that other writers will look for it there.
            let back = dead.iter().find(|(hit, group)| stays(hit, *group)).map(|(_, group)| *group);
            let back = back.filter(|_| !is_deleted(batch, row.row as usize));
            revived.extend(back);
            tagged.push(TaggedRow { row, group: back });
        }
        tagged.extend(staying.into_iter().map(|group| TaggedRow { row, group: Some(group) }));
    }
    Tagged { batches, rows: tagged, groups, moves, revived }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{filter_dupes, testing};
    use crate::table::InstantTime;

    fn slice(partition: &str) -> FileSlice {
        FileSlice {
            partition: partition.to_string(),
            file_id: partition.to_string(),
            base_instant: InstantTime::parse("20240101000000000").unwrap(),
            base_file: None,
            log_files: Vec::new(),
            pending_compaction: None,
        }
    }

    fn row(row: u32) -> RowRef {
        RowRef { batch: 0, row }
    }

    /// One row of partition `p` (deleted or not) whose key was found in `found`: partition, and whether the stored row
    /// wins. Gives the groups that the row updates, those that its stored record leaves, and whether it is unknown
    /// to `--filter-dupes`.
    fn settled(deleted: bool, found: &[(&str, bool)], moving: bool) -> (Vec<Option<String>>, Vec<String>, bool) {
        let mut batch = testing::keyed(&[("k", "p", 1)]);
        batch.deleted = Some(vec![deleted].into());
        let hits: Vec<_> =
            found.iter().map(|(_, stored_wins)| vec![Hit { stored_wins: *stored_wins, ..Hit::of(0) }]).collect();
        let slices = found.iter().map(|(partition, _)| slice(partition).into()).collect();
        let tagged = settle(vec![batch], &[row(0)], slices, &hits, moving);
        let name = |group: u32| tagged.groups[group as usize].file_id.clone();
        (
            tagged.rows.iter().map(|row| row.group.map(name)).collect(),
            tagged.moves.iter().map(|gone| name(gone.group)).collect(),
            filter_dupes(&tagged) == [row(0)],
        )
    }

    #[test]
    fn what_becomes_of_a_row() {
        let update = |groups: &[&str]| groups.iter().map(|group| Some(group.to_string())).collect::<Vec<_>>();
        let gone = |groups: &[&str]| groups.iter().map(|group| group.to_string()).collect::<Vec<_>>();
        let insert = || vec![None];
        for (name, deleted, found, moving, want) in [
            ("new key", false, &[][..], true, (insert(), gone(&[]), true)),
            ("stored in its partition", false, &[("p", false)], true, (update(&["p"]), gone(&[]), false)),
            (
                "stored twice: updated in both",
                false,
                &[("p", false), ("p2", false)],
                false,
                (update(&["p", "p2"]), gone(&[]), false),
            ),
            ("elsewhere, staying there", false, &[("q", false)], false, (update(&["q"]), gone(&[]), false)),
            ("elsewhere, moving", false, &[("q", false)], true, (insert(), gone(&["q"]), false)),
            ("elsewhere, the stored row wins", false, &[("q", true)], true, (update(&["q"]), gone(&[]), false)),
            ("a delete goes where the record is", true, &[("q", false)], true, (update(&["q"]), gone(&[]), false)),
            (
                "here and elsewhere: one is left",
                false,
                &[("q", false), ("p", false)],
                true,
                (update(&["p"]), gone(&["q"]), false),
            ),
        ] {
            assert_eq!(settled(deleted, found, moving), want, "{name}");
        }
    }

    #[test]
    fn rows_keep_arrival_order_and_files_without_hits_are_no_groups() {
        let batch = testing::keyed(&[("a", "p", 1), ("b", "p", 1), ("c", "p", 1)]);
        let hit = Hit::of;
        let slices = ["f0", "f1", "f2"].map(|name| slice(name).into()).into();
        let rows = [row(2), row(0), row(1)];
        let tagged = settle(vec![batch], &rows, slices, &[vec![hit(2)], vec![], vec![hit(0), hit(2)]], false);
        let groups: Vec<&str> = tagged.groups.iter().map(|slice| slice.file_id.as_str()).collect();
        assert_eq!(groups, ["f0", "f2"]);
        let got: Vec<_> = tagged.rows.iter().map(|tagged| (tagged.row, tagged.group)).collect();
        assert_eq!(got, [(row(2), Some(1)), (row(0), None), (row(1), Some(0)), (row(1), Some(1))]);
        assert_eq!(tagged.moves, []);
    }

    /// Of a key that was found where logs have deleted it and where they have not: the groups that the row updates, those
    /// that its stored record leaves, and those in which the key comes back.
    fn settled_with_logs(deleted: bool, found: &[(&str, bool)]) -> (Vec<Option<u32>>, Vec<u32>, Vec<u32>) {
        let mut batch = testing::keyed(&[("k", "p", 1)]);
        batch.deleted = Some(vec![deleted].into());
        let hits: Vec<_> = found.iter().map(|(_, gone)| vec![Hit { deleted: *gone, ..Hit::of(0) }]).collect();
        let slices = found.iter().map(|(partition, _)| slice(partition).into()).collect();
        let tagged = settle(vec![batch], &[row(0)], slices, &hits, true);
        (
            tagged.rows.iter().map(|row| row.group).collect(),
            tagged.moves.iter().map(|gone| gone.group).collect(),
            tagged.revived.into_iter().collect(),
        )
    }

    #[test]
    fn a_key_that_a_log_has_deleted_counts_only_where_it_comes_back() {
        for (name, deleted, found, want) in [
            ("deleted here: it comes back", false, &[("p", true)][..], (vec![Some(0)], vec![], vec![0])),
            ("deleted elsewhere: it is new here", false, &[("q", true)], (vec![None], vec![], vec![])),
            (
                "deleted here, stored elsewhere: it moves back",
                false,
                &[("p", true), ("q", false)],
                (vec![Some(0)], vec![1], vec![0]),
            ),
            ("deleted elsewhere, stored here", false, &[("p", false), ("q", true)], (vec![Some(0)], vec![], vec![])),
            ("deleted twice: it comes back once", false, &[("p", true), ("p", true)], (vec![Some(0)], vec![], vec![0])),
            ("a delete of what is deleted", true, &[("p", true)], (vec![None], vec![], vec![])),
        ] {
            assert_eq!(settled_with_logs(deleted, found), want, "{name}");
        }
    }
}
