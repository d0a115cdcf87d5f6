//! The active timeline: instants in order, each in its highest state (timeline.md §11).

use super::{Action, Instant, InstantTime, State};
use std::cmp::Reverse;

/// The instants that are in `.hoodie` (the archived timeline is not looked at).
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Sorted by time; one entry an instant, in its highest state. A savepoint is an entry beside the commit of its time.
    pub instants: Vec<Instant>,
}

impl Timeline {
    /// From the names of the files in `.hoodie`; names that are no instant are passed over.
    pub fn from_file_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Timeline {
        let mut found: Vec<_> = names.into_iter().filter_map(Instant::parts).collect();
        found.sort_unstable_by_key(|&(time, action, state)| (time, action.comparable(), Reverse(state), action));
        found.dedup_by_key(|&mut (time, action, _)| (time, action.comparable()));
        let instants = found
            .into_iter()
            .filter_map(|(time, action, state)| Some(Instant::new(InstantTime::parse(time)?, action, state)));
        Timeline { instants: instants.collect() }
    }

    /// Completed commits, deltacommits and replacecommits, oldest first.
    pub fn completed_writes(&self) -> impl DoubleEndedIterator<Item = &Instant> {
        self.instants.iter().filter(|i| i.action.is_write() && !i.is_pending())
    }

    /// Requested or inflight commits, deltacommits, replacecommits: what a failed write leaves (or, for a replacecommit,
    /// clustering that waits).
    pub fn pending_writes(&self) -> impl DoubleEndedIterator<Item = &Instant> {
        self.instants.iter().filter(|i| i.action.is_write() && i.is_pending())
    }

    /// Requested or inflight instants of one action, oldest first.
    pub fn pending(&self, action: Action) -> impl DoubleEndedIterator<Item = &Instant> {
        self.instants.iter().filter(move |i| i.action == action && i.is_pending())
    }

    /// Completed replacecommits, oldest first: each hides file groups.
    pub fn completed_replacements(&self) -> impl DoubleEndedIterator<Item = &Instant> {
        self.completed_writes().filter(|i| i.action == Action::ReplaceCommit)
    }

    /// The newest completed write.
    pub fn last_completed_write(&self) -> Option<&Instant> {
        self.completed_writes().next_back()
    }

    /// The greatest time of any instant, pending ones included.
    pub fn newest(&self) -> Option<&InstantTime> {
        self.instants.last().map(|i| &i.time)
    }

    /// The entry of a time among the writes (a compaction that is pending is none).
    pub fn write_at(&self, time: &InstantTime) -> Option<&Instant> {
        self.at(time).iter().find(|i| i.action.is_write())
    }

    /// Whether data written by this instant counts: completed here, or older than the timeline's start (then archived,
    /// and so complete). The start is the first completed write without a savepoint, because archival may leave
    /// savepointed ones standing alone; where all of them have one, as after a restore, the newest.
    pub fn is_valid(&self, time: &InstantTime) -> bool {
        let mut at = self.at(time).iter().filter(|i| i.action.comparable().is_write()).peekable();
        if at.peek().is_some() {
            return at.any(|i| i.state == State::Completed);
        }
        self.start().is_some_and(|start| time < start)
    }

    /// Whether file slices on this instant are any: log files come on those of pending compactions as well.
    pub fn has_slices_on(&self, time: &InstantTime) -> bool {
        self.is_valid(time) || self.pending(Action::Compaction).any(|compaction| compaction.time == *time)
    }

    /// Whether what was written then has left the timeline, and nobody can tell any more where.
    pub fn starts_after(&self, time: &InstantTime) -> bool {
        self.start().is_none_or(|start| time < start)
    }

    /// The first of the instants that [`Timeline::is_valid`] goes by.
    pub(super) fn start(&self) -> Option<&InstantTime> {
        let first = self.completed_writes().map(|i| &i.time).find(|time| !self.is_savepointed(time));
        first.or(self.last_completed_write().map(|i| &i.time))
    }

    /// Completed savepoints, oldest first.
    pub fn savepoints(&self) -> impl DoubleEndedIterator<Item = &Instant> {
        self.instants.iter().filter(|i| i.action == Action::Savepoint && !i.is_pending())
    }

    /// Whether the write of this time has a savepoint, or is about to get one.
    pub fn is_savepointed(&self, time: &InstantTime) -> bool {
        self.at(time).iter().any(|i| i.action == Action::Savepoint)
    }

    /// Whether there is anything at this time.
    pub fn has(&self, time: &InstantTime) -> bool {
        !self.at(time).is_empty()
    }

    /// Adds an instant, or takes it as it is now.
    pub(super) fn put(&mut self, instant: Instant) {
        let key = |i: &Instant| (i.time.clone(), i.action.comparable());
        match self.instants.binary_search_by_key(&key(&instant), key) {
            Ok(at) => self.instants[at] = instant,
            Err(at) => self.instants.insert(at, instant),
        }
    }

    /// What was on the timeline at the time of `last`, later ones left out.
    pub fn until(&self, last: &InstantTime) -> Timeline {
        Timeline { instants: self.instants.iter().filter(|i| i.time <= *last).cloned().collect() }
    }

    /// The entries of a time.
    fn at(&self, time: &InstantTime) -> &[Instant] {
        let from = self.instants.partition_point(|i| i.time < *time);
        let count = self.instants[from..].iter().take_while(|i| i.time == *time).count();
        &self.instants[from..from + count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t(text: &str) -> InstantTime {
        InstantTime::parse(text).expect("digits")
    }

    #[test]
    fn each_instant_is_seen_in_its_highest_state() {
        let timeline = Timeline::from_file_names([
            "20260101000000003.commit.requested",
            "20260101000000003.inflight",
            "20260101000000001.commit.requested",
            "20260101000000001.inflight",
            "20260101000000001.commit",
            "20260101000000001.savepoint",
            "20260101000000002.compaction.requested",
            "20260101000000002.compaction.inflight",
            "20260101000000002.commit",
            "20260101000000004.replacecommit.requested",
            "20260101000000005.rollback.inflight",
            "hoodie.properties",
            "20260101000000003.commit.tmp",
        ]);
        let seen: Vec<String> = timeline.instants.iter().map(Instant::file_name).collect();
        assert_eq!(
            seen,
            [
                "20260101000000001.commit",
                "20260101000000001.savepoint",
                "20260101000000002.commit",
                "20260101000000003.inflight",
                "20260101000000004.replacecommit.requested",
                "20260101000000005.rollback.inflight",
            ]
        );
        let pending: Vec<_> = timeline.pending_writes().rev().map(|i| i.time.as_str()).collect();
        assert_eq!(pending, ["20260101000000004", "20260101000000003"]);
        assert_eq!(timeline.last_completed_write().map(|i| i.time.as_str()), Some("20260101000000002"));
        assert_eq!(timeline.newest(), Some(&t("20260101000000005")));
        assert_eq!(timeline.pending(Action::Rollback).count(), 1);
    }

    #[test]
    fn data_counts_when_completed_or_archived() {
        let timeline = Timeline::from_file_names([
            "20260101000000002.commit",
            "20260101000000002.savepoint",
            "20260101000000004.inflight",
            "20260101000000006.commit",
            "20260101000000008.compaction.requested",
        ]);
        for (time, want, why) in [
            ("20260101000000001", true, "before the start"),
            ("20260101000000002", true, "completed"),
            ("20260101000000003", true, "archived between a savepointed commit and the start"),
            ("20260101000000004", false, "pending, though before the start"),
            ("20260101000000006", true, "completed"),
            ("20260101000000007", false, "not on the timeline, after the start"),
            ("20260101000000008", false, "pending compaction"),
        ] {
            assert_eq!(timeline.is_valid(&t(time)), want, "{time}: {why}");
        }
        assert!(!Timeline::default().is_valid(&t("20260101000000001")), "nothing counts on an empty timeline");
        let restored = ["20260101000000002.commit", "20260101000000002.savepoint", "20260101000000003.restore"];
        let restored = Timeline::from_file_names(restored);
        for (time, want) in [("20260101000000001", true), ("20260101000000002", true), ("20260101000000003", false)] {
            assert_eq!(restored.is_valid(&t(time)), want, "{time}: restored to the only commit that is not archived");
        }
    }
}
