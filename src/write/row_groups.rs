//! What becomes of the row groups of a file that is written anew: each stays a row group, of whose columns most are copied,
//! or its rows go into the same row group as those beside it.

use crate::table::base_file::RowGroup;
use std::iter::repeat_n;
use std::ops::Range;

/// A row group below this part of the block size is small: a file whose rows came little by little has a few large row
/// groups and, by [`join_small`], for each power of two below at most one.
const SMALL_PART: u64 = 8;

/// Below this part, by default 960 KB, a row group is not worth to be kept beside others of its size.
const VERY_SMALL_PART: u64 = 128;

/// And below this part it is written anew rather than kept beside anything: by default 240 KB, some ten milliseconds.
const TINY_PART: u64 = 512;

/// For each row group whether it can hold one of the keys, which are in the order of their bytes.
pub(super) fn touched(groups: &[RowGroup], keys: &[&str]) -> Vec<bool> {
    groups.iter().map(|group| !possible_keys(group, keys).is_empty()).collect()
}

fn possible_keys(group: &RowGroup, keys: &[&str]) -> Range<usize> {
    match &group.keys {
        _ if group.rows == 0 => 0..0,
        None => 0..keys.len(),
        Some((min, max)) => {
            let from = keys.partition_point(|key| key.as_bytes() < min.as_slice());
            let to = keys.partition_point(|key| key.as_bytes() <= max.as_slice());
            from..to.max(from)
        }
    }
}

/// How many rows must come behind the last row group for it to take them in.
pub(super) fn rows_to_join(last: &RowGroup, block_size: u64) -> u64 {
    match last.bytes {
        bytes if bytes <= block_size / TINY_PART => 1,
        bytes if bytes < block_size / SMALL_PART => last.rows,
        _ => u64::MAX,
    }
}

/// Whose rows go into the same row group as those beside them, if by that each at least doubles, so that a row is not
/// written again often: small ones beside rows that are written anyway, of which `coming` bytes follow behind the last, and
/// very small ones that are `touched`, where all columns would have been decoded for a few rows.
pub(super) fn join_small(groups: &[RowGroup], touched: &[bool], coming: u64, block_size: u64) -> Vec<bool> {
    let is_small = |group: &RowGroup| group.bytes < block_size / SMALL_PART;
    let is_very_small = |group: &RowGroup| group.bytes < block_size / VERY_SMALL_PART;
    let mut joined = Vec::with_capacity(groups.len());
    let small: Vec<bool> =
        groups.iter().zip(touched).map(|(group, touched)| *touched && is_very_small(group)).collect();
    for run in small.chunk_by(|a, b| a == b) {
        let bytes = || groups[joined.len()..][..run.len()].iter().map(|group| group.bytes);
        let doubles = run[0] && bytes().max().unwrap_or_default() <= bytes().sum::<u64>() / 2;
        joined.extend(repeat_n(doubles, run.len()));
    }
    // From the end, where new rows are: one pass takes in all that they reach.
    for at in (0..groups.len()).rev().chain(0..groups.len()) {
        let before = joined[..at].iter().rev().take_while(|joined| **joined).count();
        let after = joined[at + 1..].iter().take_while(|joined| **joined).count();
        let end = at + 1 + after;
        let mut beside: u64 = groups[at - before..at].iter().chain(&groups[at + 1..end]).map(|group| group.bytes).sum();
        let mut has_neighbour = before + after > 0;
        if end == groups.len() && coming > 0 {
            beside += coming;
            has_neighbour = true;
        }
        let doubles = groups[at].bytes <= beside.max(block_size / TINY_PART);
        joined[at] |= has_neighbour && is_small(&groups[at]) && doubles;
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn group(bytes: u64, keys: Option<(&str, &str)>) -> RowGroup {
        RowGroup { rows: 10, bytes, keys: keys.map(|(min, max)| (min.into(), max.into())) }
    }

    #[test]
    fn row_groups_are_touched_where_their_statistics_have_room_for_a_key() {
        let disjoint = [Some(("a", "c")), Some(("e", "g")), Some(("g", "i"))];
        for (name, ranges, keys, want) in [
            ("no keys", &disjoint[..], &[][..], [false, false, false]),
            ("between ranges", &disjoint, &["d", "z"], [false, false, false]),
            ("at the ends", &disjoint, &["a", "c", "i"], [true, false, true]),
            ("in two", &disjoint, &["b", "g"], [true, true, true]),
            ("without statistics", &[Some(("a", "c")), None, Some(("e", "f"))], &["b"], [true, true, false]),
        ] {
            let groups: Vec<_> = ranges.iter().map(|range| group(1, *range)).collect();
            assert_eq!(touched(&groups, keys), want, "{name}");
        }
        let empty = RowGroup { rows: 0, ..group(0, None) };
        assert_eq!(touched(&[empty], &["a"]), [false]);
    }

    const BLOCK: u64 = 80 << 20;
    const SMALL: u64 = BLOCK / SMALL_PART;
    const TINY: u64 = BLOCK / TINY_PART;
    const VERY_SMALL: u64 = BLOCK / VERY_SMALL_PART - 1;

    fn joined(bytes: &[u64], touched: &[usize], coming: u64) -> Vec<usize> {
        let groups: Vec<_> = bytes.iter().map(|bytes| group(*bytes, None)).collect();
        let touched: Vec<bool> = (0..bytes.len()).map(|at| touched.contains(&at)).collect();
        let joined = join_small(&groups, &touched, coming, BLOCK);
        (0..bytes.len()).filter(|at| joined[*at]).collect()
    }

    #[test]
    fn small_row_groups_join_those_beside_them_when_each_doubles() {
        const M: u64 = 1 << 20;
        for (name, bytes, touched, coming, want) in [
            ("large ones stay", &[60 * M, 60 * M, 60 * M][..], &[0, 1, 2][..], 0, &[][..]),
            ("what is large enough stays", &[10 * M, 10 * M], &[0, 1], 10 * M, &[]),
            ("new rows begin a row group", &[60 * M, 9 * M], &[], M, &[]),
            ("new rows take in a smaller one", &[60 * M, M], &[], M, &[1]),
            ("and what has doubled by it", &[60 * M, 4 * M, 2 * M, M], &[], M, &[1, 2, 3]),
            ("a larger one ends it", &[60 * M, 3 * M, 5 * M, M], &[], M, &[3]),
            ("tiny ones are not kept beside fewer bytes", &[60 * M, TINY], &[], 1, &[1]),
            ("one alone", &[60 * M, M, 60 * M], &[1], 0, &[]),
            ("two as large", &[60 * M, VERY_SMALL, VERY_SMALL, 60 * M], &[1, 2], 0, &[1, 2]),
            ("two that are worth it", &[60 * M, M, M, 60 * M], &[1, 2], 0, &[]),
            ("one larger than the others", &[60 * M, VERY_SMALL, TINY, TINY, 60 * M], &[1, 2, 3], 0, &[]),
            ("not beside each other", &[VERY_SMALL, VERY_SMALL, VERY_SMALL], &[0, 2], 0, &[]),
            ("with those beside them", &[2 * TINY, VERY_SMALL, VERY_SMALL, M], &[1, 2], 0, &[0, 1, 2, 3]),
            ("no new rows, nothing touched", &[TINY, TINY], &[], 0, &[]),
        ] {
            assert_eq!(joined(bytes, touched, coming), want, "{name}");
        }
    }

    proptest! {
        /// A file that gets rows of any size again and again, as the writer of files splits them: its row groups do not
        /// become many, and no row is written often.
        #[test]
        fn row_groups_do_not_pile_up(rounds in prop::collection::vec(1..SMALL, 1..300)) {
            let (mut bytes, mut rewritten, mut total) = (Vec::<u64>::new(), 0, 0);
            for coming in rounds {
                let groups: Vec<_> = bytes.iter().map(|bytes| group(*bytes, None)).collect();
                let joined = join_small(&groups, &vec![false; groups.len()], coming, BLOCK);
                let kept = joined.iter().take_while(|joined| !**joined).count();
                prop_assert!(joined[kept..].iter().all(|joined| *joined), "only at the end");
                let again: u64 = bytes.drain(kept..).sum();
                rewritten += again;
                total += coming;
                bytes.push(again + coming);
            }
            let doublings = u64::from((SMALL / TINY).ilog2()) + 2;
            prop_assert!(bytes.len() as u64 <= total / SMALL + 1 + doublings, "{bytes:?}");
            // Each is written once a doubling, and what is tiny perhaps with each round.
            prop_assert!(rewritten <= total * doublings + TINY * 300, "{rewritten} of {total}");
        }
    }
}
