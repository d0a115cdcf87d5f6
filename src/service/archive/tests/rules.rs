//! Which instants go: known cases, and a slow twin that asks of each write whether anything forbids it.

use proptest::prelude::*;

use super::super::rules::*;
use crate::config::ArchiveConfig;
use crate::table::{Action, Instant, InstantTime, Timeline};

fn time(number: usize) -> InstantTime {
    InstantTime::parse(&format!("{number:0>17}")).expect("digits")
}

/// Entries like `3.commit`; a number alone is a commit.
fn timeline(entries: &str) -> Timeline {
    let full = entries.split_whitespace().map(|entry| match entry.split_once('.') {
        Some((time, rest)) => format!("{time:0>17}.{rest}"),
        None => format!("{entry:0>17}.commit"),
    });
    let names: Vec<String> = full.collect();
    Timeline::from_file_names(names.iter().map(String::as_str))
}

fn rules(min: usize, max: usize) -> Rules {
    Rules { min, max, delta_commits: None, replaced: Replaced::Never, metadata: MetadataTable::None }
}

/// Their numbers, with a letter for what they are.
fn names<'a>(instants: impl IntoIterator<Item = &'a Instant>) -> String {
    let name = |instant: &Instant| instant.time.as_str().trim_start_matches('0').to_string();
    instants.into_iter().map(name).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_oldest_go_unless_something_holds_them() {
    let plain = rules(2, 4);
    let deltas = Rules { delta_commits: Some(3), ..plain.clone() };
    let cleaned = Rules { replaced: Replaced::Until(time(3)), ..plain.clone() };
    let with_metadata = |metadata| Rules { metadata, ..plain.clone() };
    let never = with_metadata(MetadataTable::NeverCompacted);
    let compacted = with_metadata(MetadataTable::Compacted(time(3)));
    let d = |numbers: std::ops::RangeInclusive<u32>| numbers.map(|n| format!("{n}.deltacommit ")).collect::<String>();
    let after_compaction = format!("{}3.commit {}", d(1..=2), d(4..=6));
    let savepoint = |time_| Some(Hold::Savepoint(time(time_)));
    let pending = |time_, action| Some(Hold::Pending(time(time_), action));
    for (name, rules, entries, want, hold) in [
        ("as many as may stay", &plain, "1 2 3 4", "", None),
        ("one more", &plain, "1 2 3 4 5", "1 2 3", None),
        ("pending and other instants do not count", &plain, "1 2 3 4 5.inflight 6.clean 7.rollback", "", None),
        ("a savepoint", &plain, "1 2 2.savepoint 3 4 5", "1", savepoint(2)),
        ("a savepoint in the making", &plain, "1 2 2.savepoint.inflight 3 4 5", "1", savepoint(2)),
        ("a savepoint of what stays anyway", &plain, "1 2 3 4 4.savepoint 5", "1 2 3", None),
        ("a write without a savepoint stays", &plain, "1 2 3 4 4.savepoint 5 5.savepoint", "1 2", savepoint(4)),
        ("a pending write keeps the one before it", &plain, "1 2 3.inflight 4 5 6", "1", pending(3, Action::Commit)),
        ("a pending write before all", &plain, "1.inflight 2 3 4 5 6", "", pending(1, Action::Commit)),
        ("a pending write that is new", &plain, "1 2 3 4 5 6.inflight", "1 2 3", None),
        (
            "clustering that waits",
            &plain,
            "1 2 3.replacecommit.requested 4 5 6",
            "1",
            pending(3, Action::ReplaceCommit),
        ),
        (
            "a compaction that waits",
            &plain,
            "1.deltacommit 2.deltacommit 3.compaction.requested 4.deltacommit 5.deltacommit 6.deltacommit",
            "1",
            pending(3, Action::Compaction),
        ),
        ("what the next compaction counts", &deltas, &d(1..=5), "1 2", Some(Hold::Compaction(time(3)))),
        (
            "the last compaction while few have come since",
            &deltas,
            &format!("{}3.commit {}", d(1..=2), d(4..=5)),
            "1 2",
            Some(Hold::Compaction(time(3))),
        ),
        ("enough since the last compaction", &deltas, &after_compaction, "1 2 3", Some(Hold::Compaction(time(4)))),
        (
            "no compaction, and too few",
            &Rules { delta_commits: Some(9), ..plain.clone() },
            &d(1..=5),
            "",
            Some(Hold::Compaction(time(1))),
        ),
        ("a replacecommit, never cleaned", &plain, "1 2.replacecommit 3 4 5", "1", Some(Hold::Replaced(time(2)))),
        ("cleaned up to there", &cleaned, "1 2.replacecommit 3 4 5", "1 2 3", None),
        ("not cleaned as far", &cleaned, "1 2 3.replacecommit 4 5", "1 2", Some(Hold::Replaced(time(3)))),
        ("a metadata table that was never compacted", &never, "1 2 3 4 5", "", Some(Hold::MetadataTable)),
        ("up to the metadata table's compaction", &compacted, "1 2 3 4 5", "1 2", Some(Hold::MetadataTable)),
    ] {
        let chosen = choose(&timeline(entries), rules);
        assert_eq!((names(&chosen.writes).as_str(), chosen.hold), (want, hold), "{name}");
    }
}

#[test]
fn cleans_and_rollbacks_are_counted_by_themselves() {
    let entries = "1 2.clean 3.clean 4.clean 5.clean 6.clean 7.clean.inflight 8.rollback 9.rollback 1.savepoint";
    let chosen = choose(&timeline(entries), &rules(2, 4));
    assert_eq!(
        (names(&chosen.cleans), names(&chosen.rollbacks), names(&chosen.writes)),
        ("2 3 4".into(), "".into(), "".into())
    );
    let chosen = choose(&timeline("2.rollback 3.rollback 4.rollback"), &rules(1, 2));
    assert_eq!(names(&chosen.rollbacks), "2 3");
    let compacted = Rules { metadata: MetadataTable::Compacted(time(3)), ..rules(1, 2) };
    assert_eq!(names(&choose(&timeline("2.clean 3.clean 4.clean"), &compacted).cleans), "2");
}

fn config(min_commits: usize, max_commits: usize) -> ArchiveConfig {
    ArchiveConfig { automatic: true, min_commits, max_commits, batch: 10, file_bytes: 0 }
}

#[test]
fn what_the_cleaner_retains_stays() {
    let timeline = timeline("1 2 3 4 5 6 7 8");
    for (earliest, want) in [(None, (2, 4)), (Some(8), (2, 4)), (Some(7), (3, 5)), (Some(3), (7, 9))] {
        let earliest = earliest.map(time);
        assert_eq!(limits(&config(2, 4), &timeline, earliest.as_ref()), want, "{earliest:?}");
    }
}

#[test]
fn whether_there_is_anything_to_do_is_seen_at_a_glance() {
    for (entries, want) in [
        ("1 2 3", false),
        ("1 2 3 4", true),
        ("1 2 3 4.inflight", false),
        ("1.clean 2.clean 3.clean 4.clean", true),
        ("1.rollback 2.rollback 3.rollback 4.clean 5", false),
    ] {
        assert_eq!(may_be_due(&config(1, 3), &timeline(entries)), want, "{entries}");
    }
}

fn a_timeline() -> impl Strategy<Value = Timeline> {
    let words: &[&str] = &[
        "deltacommit",
        "deltacommit",
        "deltacommit",
        "deltacommit",
        "commit",
        "commit",
        "replacecommit",
        "clean",
        "rollback",
        "deltacommit.inflight",
        "inflight",
        "replacecommit.requested",
        "compaction.requested",
        "compaction.inflight",
    ];
    // What is pending is rare, and savepoints are.
    let entry = (prop_oneof![8 => 0..9usize, 1 => 9..words.len()], proptest::bool::weighted(0.1));
    proptest::collection::vec(entry, 0..24).prop_map(move |entries| {
        let names = entries.iter().enumerate().flat_map(|(number, (word, savepointed))| {
            let name = format!("{:0>17}.{}", number + 1, words[*word]);
            let savepoint = format!("{:0>17}.savepoint", number + 1);
            let is_completed_write = *word < 7;
            [Some(name), (*savepointed && is_completed_write).then_some(savepoint)].into_iter().flatten()
        });
        let names: Vec<String> = names.collect();
        Timeline::from_file_names(names.iter().map(String::as_str))
    })
}

fn some_rules() -> impl Strategy<Value = Rules> {
    let replaced = prop_oneof![Just(Replaced::Never), (0..24usize).prop_map(|n| Replaced::Until(time(n)))];
    let metadata = prop_oneof![
        6 => Just(MetadataTable::None),
        1 => Just(MetadataTable::NeverCompacted),
        2 => (0..24usize).prop_map(|n| MetadataTable::Compacted(time(n))),
    ];
    let counts = (1..6usize, 1..4usize, proptest::option::of(1..6usize));
    (counts, replaced, metadata).prop_map(|((min, more, delta_commits), replaced, metadata)| Rules {
        min,
        max: min + more,
        delta_commits,
        replaced,
        metadata,
    })
}

/// Whether nothing forbids that a write goes, each rule in its own words.
fn may_go(write: &Instant, timeline: &Timeline, rules: &Rules) -> bool {
    let writes: Vec<&Instant> = timeline.completed_writes().collect();
    let all = &timeline.instants;
    let newer = |other: &Instant| other.time > write.time;
    let is_savepointed = |write: &Instant| all.iter().any(|i| i.action == Action::Savepoint && i.time == write.time);
    let enough_stay = writes.len() > rules.max && writes.iter().filter(|w| newer(w)).count() >= rules.min;
    let kept_by_savepoint = all.iter().any(|i| i.action == Action::Savepoint && i.time <= write.time);
    let a_start_stays = writes.iter().any(|w| newer(w) && !is_savepointed(w));
    let is_pending = |i: &&Instant| i.is_pending() && (i.action.is_write() || i.action == Action::Compaction);
    let before_all_pending = all.iter().filter(is_pending).all(|pending| {
        let between = |w: &&&Instant| newer(w) && w.time < pending.time;
        writes.iter().any(|w| between(&w))
    });
    let compaction = writes.iter().rfind(|w| w.action == Action::Commit);
    let since = |w: &Instant| w.action == Action::DeltaCommit && compaction.is_none_or(|c| w.time > c.time);
    let next_comes_due = rules.delta_commits.is_none_or(|count| {
        let left = writes.iter().filter(|w| since(w) && newer(w)).count();
        let first = compaction.or_else(|| writes.iter().find(|w| since(w)));
        left >= count || (writes.iter().filter(|w| since(w)).count() < count && first.is_none_or(|first| newer(first)))
    });
    let is_uncleaned = |i: &Instant| match &rules.replaced {
        Replaced::Never => true,
        Replaced::Until(time) => i.time >= *time,
    };
    let hides_nothing =
        !all.iter().any(|i| i.action == Action::ReplaceCommit && is_uncleaned(i) && i.time <= write.time);
    let is_in_metadata = match &rules.metadata {
        MetadataTable::None => true,
        MetadataTable::NeverCompacted => false,
        MetadataTable::Compacted(time) => write.time < *time,
    };
    enough_stay
        && !kept_by_savepoint
        && a_start_stays
        && before_all_pending
        && next_comes_due
        && hides_nothing
        && is_in_metadata
}

proptest! {
    #[test]
    fn exactly_those_go_that_nothing_holds(timeline in a_timeline(), rules in some_rules()) {
        let chosen = choose(&timeline, &rules);
        let want: Vec<&Instant> = timeline.completed_writes().filter(|w| may_go(w, &timeline, &rules)).collect();
        prop_assert_eq!(chosen.writes.iter().collect::<Vec<_>>(), want);

        // To a reader nothing has changed.
        let gone: Vec<&Instant> = chosen.instants().collect();
        let left: Vec<Instant> = timeline.instants.iter().filter(|i| !gone.contains(i)).cloned().collect();
        let left = Timeline { instants: left };
        for instant in timeline.instants.iter().filter(|i| i.action.is_write()) {
            prop_assert_eq!(left.is_valid(&instant.time), timeline.is_valid(&instant.time), "{:?}", instant);
        }
        if gone.is_empty() {
            prop_assert!(chosen.is_empty());
        } else {
            prop_assert!(left.completed_writes().count() >= rules.min.min(timeline.completed_writes().count()));
        }
        // And the next look finds nothing more.
        prop_assert!(choose(&left, &rules).is_empty());
    }
}
