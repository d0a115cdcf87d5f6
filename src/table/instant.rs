//! Instants: time, action, state, their file names, and the clock that draws new ones (timeline.md §4).

use chrono::{DateTime, Local, NaiveDateTime, TimeDelta, Utc};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// `yyyyMMddHHmmssSSS` (or 14 digits on old tables); compares as text. Shared: timelines are cloned in every round.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstantTime(Arc<str>);

impl InstantTime {
    /// `None` unless 14 or 17 digits (or a longer metadata-table instant, also digits only).
    pub fn parse(text: &str) -> Option<InstantTime> {
        (text.len() >= 14 && text.bytes().all(|b| b.is_ascii_digit())).then(|| InstantTime(text.into()))
    }

    /// Before every instant.
    pub fn least() -> InstantTime {
        InstantTime("0".repeat(17).into())
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whole seconds from `earlier` to this instant on their common clock (`parsedToSeconds` of Hudi's compaction triggers);
    /// `None` where one of them is no date.
    pub fn seconds_since(&self, earlier: &InstantTime) -> Option<i64> {
        let second = |time: &InstantTime| NaiveDateTime::parse_from_str(time.0.get(..14)?, "%Y%m%d%H%M%S").ok();
        Some((second(self)? - second(earlier)?).num_seconds())
    }

    /// The instant of a moment on the clock of the timeline's zone.
    fn of(time: NaiveDateTime) -> InstantTime {
        InstantTime(time.format("%Y%m%d%H%M%S%3f").to_string().into())
    }

    /// So many milliseconds earlier; `None` where it is no date to the millisecond.
    pub fn millis_before(&self, millis: u32) -> Option<InstantTime> {
        let seconds = NaiveDateTime::parse_from_str(self.0.get(..14)?, "%Y%m%d%H%M%S").ok()?;
        let time = seconds + TimeDelta::milliseconds(self.0.get(14..)?.parse().ok()?);
        Some(InstantTime::of(time.checked_sub_signed(TimeDelta::milliseconds(millis.into()))?))
    }

    /// The least instant that is greater: one millisecond later. Seconds-only instants stand for their last millisecond
    /// (`HoodieInstantTimeGenerator` 0.15).
    fn next(&self) -> InstantTime {
        let seconds = self.0.get(..14).and_then(|s| NaiveDateTime::parse_from_str(s, "%Y%m%d%H%M%S").ok());
        let millis = self.0.get(14..17).map_or(Some(999), |ms| ms.parse::<i64>().ok());
        match (seconds, millis) {
            (Some(seconds), Some(millis)) => InstantTime::of(seconds + TimeDelta::milliseconds(millis + 1)),
            // Digits that are no date (reserved instants, foreign files): any greater text will do.
            _ => InstantTime(format!("{}0", self.0).into()),
        }
    }
}

impl std::fmt::Display for InstantTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The zone whose wall clock instants are drawn from, `hoodie.table.timeline.timezone`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimelineZone {
    /// The zone of the machine, Hudi's default.
    Local,
    /// UTC.
    Utc,
}

impl TimelineZone {
    fn now(self) -> NaiveDateTime {
        self.wall_clock(Utc::now())
    }

    fn wall_clock(self, moment: DateTime<Utc>) -> NaiveDateTime {
        match self {
            TimelineZone::Local => moment.with_timezone(&Local).naive_local(),
            TimelineZone::Utc => moment.naive_utc(),
        }
    }
}

/// The instant that stands for a moment: not drawn, so that it may be anybody's.
pub(super) fn at(zone: TimelineZone, moment: DateTime<Utc>) -> InstantTime {
    InstantTime::of(zone.wall_clock(moment))
}

/// Draws an instant greater than `newest` and than any that this process has drawn for `table`, whatever the clock does
/// (a step back, the hour that comes twice in autumn, another writer's clock that is ahead).
pub(super) fn draw(table: &str, zone: TimelineZone, newest: Option<&InstantTime>) -> InstantTime {
    static DRAWN: LazyLock<Mutex<HashMap<String, InstantTime>>> = LazyLock::new(Mutex::default);
    let mut drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner);
    let time = after(InstantTime::of(zone.now()), [newest, drawn.get(table)]);
    drawn.insert(table.to_string(), time.clone());
    time
}

fn after(clock: InstantTime, taken: [Option<&InstantTime>; 2]) -> InstantTime {
    match taken.into_iter().flatten().max() {
        Some(taken) if *taken >= clock => taken.next(),
        _ => clock,
    }
}

/// What an instant does (`HoodieTimeline` actions).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    Commit,
    DeltaCommit,
    ReplaceCommit,
    Compaction,
    LogCompaction,
    Clean,
    Rollback,
    Restore,
    Savepoint,
    Indexing,
}

impl Action {
    const ALL: [Action; 10] = [
        Action::Commit,
        Action::DeltaCommit,
        Action::ReplaceCommit,
        Action::Compaction,
        Action::LogCompaction,
        Action::Clean,
        Action::Rollback,
        Action::Restore,
        Action::Savepoint,
        Action::Indexing,
    ];

    /// Hudi's word for it, as in file names, plans and metadata.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Commit => "commit",
            Action::DeltaCommit => "deltacommit",
            Action::ReplaceCommit => "replacecommit",
            Action::Compaction => "compaction",
            Action::LogCompaction => "logcompaction",
            Action::Clean => "clean",
            Action::Rollback => "rollback",
            Action::Restore => "restore",
            Action::Savepoint => "savepoint",
            Action::Indexing => "indexing",
        }
    }

    /// Reads Hudi's word.
    pub fn parse(word: &str) -> Option<Action> {
        Action::ALL.into_iter().find(|a| a.as_str() == word)
    }

    /// A commit, deltacommit or replacecommit: it changes what a reader sees.
    pub fn is_write(self) -> bool {
        matches!(self, Action::Commit | Action::DeltaCommit | Action::ReplaceCommit)
    }

    /// What it is once completed: a compaction completes as a commit, so both are states of one instant
    /// (`HoodieInstant.getComparableAction` 0.15).
    pub fn comparable(self) -> Action {
        match self {
            Action::Compaction => Action::Commit,
            Action::LogCompaction => Action::DeltaCommit,
            other => other,
        }
    }
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How far an instant has come; each state is a file of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    Requested,
    Inflight,
    Completed,
}

/// One state of one action on the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Instant {
    pub time: InstantTime,
    pub action: Action,
    pub state: State,
}

impl Instant {
    /// An instant in a state.
    pub fn new(time: InstantTime, action: Action, state: State) -> Instant {
        Instant { time, action, state }
    }

    /// Reads the name of a file in `.hoodie`; `None` for what is no instant (temporary files, foreign files).
    pub fn parse(file_name: &str) -> Option<Instant> {
        let (time, action, state) = Instant::parts(file_name)?;
        Some(Instant { time: InstantTime::parse(time)?, action, state })
    }

    /// The same, without a copy of the time, which is not looked at.
    pub(super) fn parts(file_name: &str) -> Option<(&str, Action, State)> {
        let (time, rest) = file_name.split_once('.')?;
        let (action, state) = match rest {
            "inflight" => (Action::Commit, State::Inflight),
            _ => match rest.split_once('.') {
                // A completed compaction is a commit, and the inflight file of a commit has no action in its name.
                None => (Action::parse(rest).filter(|action| action.comparable() == *action)?, State::Completed),
                Some((action, "inflight")) if action != Action::Commit.as_str() => {
                    (Action::parse(action)?, State::Inflight)
                }
                Some((action, "requested")) => (Action::parse(action)?, State::Requested),
                Some(_) => return None,
            },
        };
        Some((time, action, state))
    }

    /// Name of its file in `.hoodie`, table version 6.
    pub fn file_name(&self) -> String {
        let time = &self.time;
        match (self.state, self.action) {
            (State::Requested, action) => format!("{time}.{action}.requested"),
            (State::Inflight, Action::Commit) => format!("{time}.inflight"),
            (State::Inflight, action) => format!("{time}.{action}.inflight"),
            (State::Completed, action) => format!("{time}.{}", action.comparable()),
        }
    }

    /// Path of its file, relative to the table.
    pub fn path(&self) -> String {
        format!("{}/{}", super::META_FOLDER, self.file_name())
    }

    /// Not completed.
    pub fn is_pending(&self) -> bool {
        self.state != State::Completed
    }

    /// The same instant in another state.
    pub fn in_state(&self, state: State) -> Instant {
        Instant { state, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> InstantTime {
        InstantTime::parse(text).expect("digits")
    }

    #[test]
    fn names_of_all_states_are_read_and_written() {
        use {Action::*, State::*};
        let t = "20261130011747741";
        for (name, want) in [
            (".commit.requested", Some((Commit, Requested))),
            (".inflight", Some((Commit, Inflight))),
            (".commit", Some((Commit, Completed))),
            (".deltacommit.inflight", Some((DeltaCommit, Inflight))),
            (".deltacommit", Some((DeltaCommit, Completed))),
            (".compaction.requested", Some((Compaction, Requested))),
            (".compaction.inflight", Some((Compaction, Inflight))),
            (".logcompaction.inflight", Some((LogCompaction, Inflight))),
            (".replacecommit.requested", Some((ReplaceCommit, Requested))),
            (".clean", Some((Clean, Completed))),
            (".rollback.inflight", Some((Rollback, Inflight))),
            (".restore.requested", Some((Restore, Requested))),
            (".savepoint", Some((Savepoint, Completed))),
            (".indexing.inflight", Some((Indexing, Inflight))),
            (".commit.inflight", None),
            (".compaction", None),
            (".commit.tmp", None),
            (".commit.6f1c6f5e-8d0c-4f0e-9d77-6d4e4a3f1f5e", None),
            (".commit.requested.crc", None),
            (".unknown", None),
            ("", None),
        ] {
            let name = format!("{t}{name}");
            let got = Instant::parse(&name);
            assert_eq!(got.as_ref().map(|i| (i.action, i.state)), want, "{name}");
            if let Some(instant) = got {
                assert_eq!(instant.file_name(), name);
            }
        }
        assert_eq!(Instant::parse("hoodie.properties"), None);
        assert_eq!(Instant::parse("2026.commit"), None, "too short for an instant");
    }

    #[test]
    fn a_new_instant_is_greater_than_what_is_taken() {
        for (name, clock, taken, want) in [
            ("clock ahead", "20261130011747741", "20261130011747740", "20261130011747741"),
            ("same millisecond", "20261130011747741", "20261130011747741", "20261130011747742"),
            ("clock went back over a minute", "20261130011659999", "20261130011659999", "20261130011700000"),
            ("clock went back over a year", "20250101000000000", "20261231235959999", "20270101000000000"),
            ("seconds only", "20250101000000000", "20261231235959", "20270101000000000"),
            ("no date", "20250101000000000", "99999999999999999", "999999999999999990"),
        ] {
            let got = after(time(clock), [Some(&time(taken)), None]);
            assert_eq!(got.as_str(), want, "{name}");
            assert!(got > time(taken), "{name}");
        }
    }

    #[test]
    fn an_instant_may_be_told_from_a_later_one() {
        for (at, millis, want) in [
            ("20261130011747741", 1, Some("20261130011747740")),
            ("20260101000000000", 1, Some("20251231235959999")),
            ("20261130011747741", 0, Some("20261130011747741")),
            ("20261130011747", 1, None),
            ("99999999999999999", 1, None),
        ] {
            assert_eq!(time(at).millis_before(millis).as_ref().map(InstantTime::as_str), want, "{at} - {millis}");
        }
    }

    #[test]
    fn instants_of_one_table_never_repeat() {
        let drawn: Vec<_> = (0..1000).map(|_| draw("file:/a", TimelineZone::Utc, None)).collect();
        assert!(drawn.windows(2).all(|w| w[0] < w[1]));
        let far = time("29991231235959999");
        assert_eq!(draw("file:/b", TimelineZone::Utc, Some(&far)).as_str(), "30000101000000000");
        assert!(draw("file:/a", TimelineZone::Utc, None) < far, "another table's instants do not push ours");
    }
}
