//! How a round is shared out over the partitions (`KafkaOffsetGen.CheckpointUtils.computeOffsetRanges`, 1.0.2).

use std::collections::BTreeMap;

/// Offsets `from..until` of a partition. Offsets, not messages: markers and what compaction removed count too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OffsetRange {
    pub partition: i32,
    pub from: i64,
    pub until: i64,
}

impl OffsetRange {
    pub fn len(&self) -> u64 {
        self.until.saturating_sub(self.from).max(0) as u64
    }
}

/// Gives out at most `limit` offsets, an even share to each partition in turn until nothing is left; all partitions are
/// in the answer, in order, also those that get nothing. `from` and `end` have the same partitions.
pub(super) fn allocate(
    from: &BTreeMap<i32, i64>,
    end: &BTreeMap<i32, i64>,
    limit: u64,
    min_partitions: u64,
) -> Vec<OffsetRange> {
    let mut ranges: Vec<OffsetRange> =
        from.iter().map(|(&partition, &from)| OffsetRange { partition, from, until: from }).collect();
    let end_of = |partition: i32| end.get(&partition).copied().unwrap_or_default();
    let available: u64 = ranges.iter().map(|r| end_of(r.partition).saturating_sub(r.from).max(0) as u64).sum();
    let total = available.min(limit);
    let share = (total / min_partitions.max(ranges.len() as u64).max(1)).max(1);
    let mut given = 0;
    let mut hungry: Vec<&mut OffsetRange> = ranges.iter_mut().collect();
    while given < total {
        hungry.retain_mut(|range| {
            let left = end_of(range.partition).saturating_sub(range.until).max(0) as u64;
            let more = share.min(total - given).min(left);
            range.until += more as i64;
            given += more;
            more < left
        });
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_partition(offsets: &[i64]) -> BTreeMap<i32, i64> {
        offsets.iter().enumerate().map(|(p, o)| (p as i32, *o)).collect()
    }

    /// From, end, limit, minPartitions, next checkpoint.
    type Case<'a> = (&'a [i64], &'a [i64], u64, u64, &'a [i64]);

    #[test]
    fn the_worked_examples() {
        let cases: [Case; 8] = [
            (&[0, 0, 0], &[10, 100, 0], 30, 0, &[10, 20, 0]),
            (&[0, 0], &[1000, 10], 100, 0, &[90, 10]),
            (&[0, 0, 0], &[100, 100, 100], 10, 0, &[4, 3, 3]),
            (&[0, 0, 0], &[100, 100, 100], 2, 0, &[1, 1, 0]),
            (&[100, 200, 0], &[150, 260, 40], 1000, 0, &[150, 260, 40]),
            (&[0, 0, 0, 0], &[3, 50, 50, 0], 20, 0, &[3, 10, 7, 0]),
            (&[5, 5], &[5, 5], 20, 0, &[5, 5]),
            // Smaller shares, more rounds over the partitions: the last ones get less when the limit cuts.
            (&[0, 0], &[10, 10], 5, 5, &[3, 2]),
        ];
        for (from, end, limit, min_partitions, want) in cases {
            let got = allocate(&by_partition(from), &by_partition(end), limit, min_partitions);
            let until: Vec<i64> = got.iter().map(|r| r.until).collect();
            assert_eq!(until, want, "{from:?} -> {end:?}, limit {limit}");
            assert_eq!(got.iter().map(|r| r.from).collect::<Vec<_>>(), from);
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost_or_given_twice(
            lanes in proptest::collection::vec((0i64..50, 0i64..200), 1..9), limit in 1u64..300, min in 0u64..20,
        ) {
            let from = by_partition(&lanes.iter().map(|l| l.0).collect::<Vec<_>>());
            let end = by_partition(&lanes.iter().map(|l| l.0 + l.1).collect::<Vec<_>>());
            let available: u64 = lanes.iter().map(|l| l.1 as u64).sum();
            let ranges = allocate(&from, &end, limit, min);
            let given: u64 = ranges.iter().map(OffsetRange::len).sum();
            proptest::prop_assert_eq!(given, available.min(limit));
            for r in &ranges {
                proptest::prop_assert!(r.from == from[&r.partition] && r.until <= end[&r.partition]);
            }
        }
    }
}
