use super::*;
use proptest::prelude::*;

fn at(time: u32) -> InstantTime {
    InstantTime::parse(&format!("{time:0>17}")).expect("digits")
}

/// Slices on these instants, newest first.
fn slices(times: &[u32]) -> Vec<SliceFiles> {
    let slice =
        |time: &u32| SliceFiles { base_instant: at(*time), names: vec![format!("base-{time}"), format!("log-{time}")] };
    let mut slices: Vec<SliceFiles> = times.iter().map(slice).collect();
    slices.sort_by(|a, b| b.base_instant.cmp(&a.base_instant));
    slices
}

/// What goes, by instant.
fn gone(times: &[u32], replaced_at: Option<u32>, compacted_from: Option<u32>, keep: Kept, kept: &[u32]) -> Vec<u32> {
    let slices = slices(times);
    let (replaced_at, compacted_from) = (replaced_at.map(at), compacted_from.map(at));
    let group = Group { slices: &slices, replaced_at: replaced_at.as_ref(), compacted_from: compacted_from.as_ref() };
    let kept = kept.iter().map(|time| format!("log-{time}")).collect();
    let earliest;
    let keep = match keep {
        Kept::Since(time) => {
            earliest = at(time);
            Keep::ReadersSince(&earliest)
        }
        Kept::Newest(count) => Keep::Newest(count),
    };
    let gone = unneeded(group, keep, &kept).into_iter();
    gone.map(|slice| slice.base_instant.as_str().parse().expect("a number")).collect()
}

#[derive(Debug, Clone, Copy)]
enum Kept {
    Since(u32),
    Newest(usize),
}
use Kept::{Newest, Since};

#[test]
fn what_goes_is_what_goes_in_hudi() {
    for (name, times, replaced_at, compacted_from, keep, kept, want) in [
        ("the only one stays", &[1][..], None, None, Since(9), &[][..], &[][..]),
        ("what a reader of the earliest sees stays", &[1, 3, 5, 7], None, None, Since(6), &[], &[3, 1]),
        ("the earliest's own slice is not before it", &[1, 3, 5], None, None, Since(5), &[], &[1]),
        ("nothing is old", &[5, 7], None, None, Since(5), &[], &[]),
        ("savepoints keep a whole slice", &[1, 3, 5, 7], None, None, Since(6), &[1], &[3]),
        ("compaction keeps what it reads", &[1, 2, 3], None, Some(2), Since(9), &[], &[1]),
        ("a replaced group goes", &[1, 3], Some(4), None, Since(5), &[], &[3, 1]),
        ("one that a reader may see does not", &[1, 3], Some(5), None, Since(5), &[], &[]),
        ("nor what a savepoint keeps of it", &[1, 3], Some(4), None, Since(5), &[3], &[1]),
        ("versions", &[1, 3, 5, 7], None, None, Newest(2), &[], &[3, 1]),
        ("savepointed versions count", &[1, 3, 5, 7], None, None, Newest(2), &[7], &[3, 1]),
        ("savepointed old versions stay", &[1, 3, 5, 7], None, None, Newest(2), &[3], &[1]),
        ("what compaction makes one of counts as one", &[1, 3, 5, 7], None, Some(5), Newest(2), &[], &[1]),
        ("a replaced group has no versions", &[1, 3], Some(4), None, Newest(3), &[], &[3, 1]),
    ] {
        assert_eq!(gone(times, replaced_at, compacted_from, keep, kept), want, "{name}");
    }
}

/// The same in the words of the rule: a slice goes if it is old, and neither the newest, nor the newest that is old, nor
/// anybody else's.
fn twin(times: &[u32], replaced_at: Option<u32>, compacted_from: Option<u32>, keep: Kept, kept: &[u32]) -> Vec<u32> {
    let waits = |time: u32| compacted_from.is_some_and(|from| time >= from);
    let mut gone: Vec<u32> = Vec::new();
    for &time in times {
        let newer = |bound: u32| times.iter().any(|&other| other > time && other < bound);
        let free = match (keep, replaced_at) {
            (Since(earliest), Some(replaced)) => replaced < earliest,
            (Newest(_), Some(_)) => true,
            (Since(earliest), None) => time < earliest && newer(earliest),
            (Newest(count), None) => {
                let newer = times.iter().filter(|&&other| other > time && !waits(other)).count();
                newer + usize::from(compacted_from.is_some()) >= count
            }
        };
        if free && !waits(time) && !kept.contains(&time) {
            gone.push(time);
        }
    }
    gone.sort_by(|a, b| b.cmp(a));
    gone
}

proptest! {
    #[test]
    fn what_goes_is_what_the_rule_says(
        times in proptest::collection::btree_set(1u32..30, 1..8),
        replaced_at in proptest::option::weighted(0.2, 30u32..40),
        compacted in proptest::option::weighted(0.3, any::<prop::sample::Index>()),
        keep in prop_oneof![(1u32..45).prop_map(Since), (1usize..5).prop_map(Newest)],
        kept in proptest::collection::vec(1u32..30, 0..4),
    ) {
        let times: Vec<u32> = times.into_iter().collect();
        let compacted_from = compacted.map(|index| *index.get(&times));
        let got = gone(&times, replaced_at, compacted_from, keep, &kept);
        prop_assert_eq!(&got, &twin(&times, replaced_at, compacted_from, keep, &kept));
        // Whoever reads as of a retained write finds his slice.
        if let (Since(earliest), None) = (keep, replaced_at) {
            for reader in earliest..45 {
                let sees = times.iter().filter(|time| **time <= reader).max();
                prop_assert!(sees.is_none_or(|slice| !got.contains(slice)), "as of {reader}: {got:?}");
            }
        }
        if replaced_at.is_none() && compacted_from.is_none() {
            prop_assert!(!got.contains(&times[times.len() - 1]), "the newest stays");
        }
        prop_assert!(compacted_from.is_none_or(|from| got.iter().all(|time| *time < from)));
    }
}
