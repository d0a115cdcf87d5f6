//! Which row groups of the old file no incoming row touches, so that they are copied as they are.

use crate::table::base_file::RowGroup;
use std::ops::Range;

/// A row group below this part of the block size is small: a file whose rows came little by little has a few large row
/// groups and, by [`join_small`], for each power of two below at most one.
const SMALL_PART: u64 = 8;

/// And below this part it is written anew rather than kept beside anything: by default 240 KB, some ten milliseconds.
const TINY_PART: u64 = 512;

/// What the statistics of the key column say of the row groups.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Touched {
    No,
    Yes,
    /// Its keys must be read.
    Perhaps,
}

/// Where keys can be that the file is to hold; `keys`: in the order of their bytes. A key that only one row group can hold
/// is taken to be there.
pub(super) fn by_statistics(groups: &[RowGroup], keys: &[&str]) -> Vec<Touched> {
    let possible: Vec<Range<usize>> = groups.iter().map(|group| possible_keys(group, keys)).collect();
    // By key: in how many row groups it can be, and before it the sum of keys that can be in one alone.
    let mut steps = vec![0i64; keys.len() + 1];
    for range in &possible {
        steps[range.start] += 1;
        steps[range.end] -= 1;
    }
    let mut alone = vec![0usize; keys.len() + 1];
    let mut covered = 0;
    for at in 0..keys.len() {
        covered += steps[at];
        alone[at + 1] = alone[at] + usize::from(covered == 1);
    }
    let touched = possible.into_iter().map(|range| match alone[range.end] - alone[range.start] {
        _ if range.is_empty() => Touched::No,
        0 => Touched::Perhaps,
        _ => Touched::Yes,
    });
    touched.collect()
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

/// Row groups that are written anew, of which `written` are in any case, and after the last of them `coming` bytes of new
/// rows: a small row group goes into what is written beside it if that is no smaller, so that a row is written again only
/// when its row group doubles.
pub(super) fn join_small(groups: &[RowGroup], written: &mut [bool], coming: u64, block_size: u64) {
    // From the end, where new rows are: one pass takes in all that they reach.
    for at in (0..groups.len()).rev().chain(0..groups.len()) {
        let before = written[..at].iter().rev().take_while(|written| **written).count();
        let after = written[at + 1..].iter().take_while(|written| **written).count();
        let end = at + 1 + after;
        let mut beside: u64 = groups[at - before..at].iter().chain(&groups[at + 1..end]).map(|group| group.bytes).sum();
        let mut has_neighbour = before + after > 0;
        if end == groups.len() && coming > 0 {
            beside += coming;
            has_neighbour = true;
        }
        let small =
            groups[at].bytes < block_size / SMALL_PART && groups[at].bytes <= beside.max(block_size / TINY_PART);
        written[at] |= has_neighbour && small;
    }
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
            ("no keys", &disjoint[..], &[][..], [Touched::No, Touched::No, Touched::No]),
            ("between ranges", &disjoint, &["d", "z"], [Touched::No, Touched::No, Touched::No]),
            ("at the ends", &disjoint, &["a", "c", "i"], [Touched::Yes, Touched::No, Touched::Yes]),
            ("in two", &disjoint, &["b", "g"], [Touched::Yes, Touched::Perhaps, Touched::Perhaps]),
            ("in two, and in one alone", &disjoint, &["g", "h"], [Touched::No, Touched::Perhaps, Touched::Yes]),
            (
                "without statistics",
                &[Some(("a", "c")), None, Some(("e", "f"))],
                &["b"],
                [Touched::Perhaps, Touched::Perhaps, Touched::No],
            ),
        ] {
            let groups: Vec<_> = ranges.iter().map(|range| group(1, *range)).collect();
            assert_eq!(by_statistics(&groups, keys), want, "{name}");
        }
        let empty = RowGroup { rows: 0, ..group(0, None) };
        assert_eq!(by_statistics(&[empty], &["a"]), [Touched::No]);
    }

    const BLOCK: u64 = 80 << 20;
    const SMALL: u64 = BLOCK / SMALL_PART;
    const TINY: u64 = BLOCK / TINY_PART;

    fn joined(bytes: &[u64], written: &[usize], coming: u64) -> Vec<usize> {
        let groups: Vec<_> = bytes.iter().map(|bytes| group(*bytes, None)).collect();
        let mut flags = vec![false; bytes.len()];
        written.iter().for_each(|at| flags[*at] = true);
        join_small(&groups, &mut flags, coming, BLOCK);
        (0..bytes.len()).filter(|at| flags[*at]).collect()
    }

    #[test]
    fn small_row_groups_go_into_what_is_written_beside_them() {
        const M: u64 = 1 << 20;
        for (name, bytes, written, coming, want) in [
            ("large ones stay", &[60 * M, 60 * M, 60 * M][..], &[1][..], 0, &[1][..]),
            ("what is large enough stays", &[10 * M, 10 * M], &[1], 10 * M, &[1]),
            ("new rows begin a row group", &[60 * M, 9 * M], &[], M, &[]),
            ("new rows take in a smaller one", &[60 * M, M], &[], M, &[1]),
            ("and what has doubled by it", &[60 * M, 4 * M, 2 * M, M], &[], M, &[1, 2, 3]),
            ("a larger one ends it", &[60 * M, 3 * M, 5 * M, M], &[], M, &[3]),
            ("tiny ones are not kept beside fewer bytes", &[60 * M, TINY], &[], 1, &[1]),
            ("on both sides of what is touched", &[M, 60 * M, M, 60 * M], &[1], 0, &[0, 1, 2]),
            ("no new rows, nothing touched", &[M, M], &[], 0, &[]),
            ("between two", &[2 * M, 3 * M, 2 * M], &[0, 2], 0, &[0, 1, 2]),
        ] {
            assert_eq!(joined(bytes, written, coming), want, "{name}");
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
                let mut written = vec![false; groups.len()];
                join_small(&groups, &mut written, coming, BLOCK);
                let kept = written.iter().take_while(|written| !**written).count();
                prop_assert!(written[kept..].iter().all(|written| *written), "only at the end");
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
