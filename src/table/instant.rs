//! Instants: time, action, state, and their file names.

/// `yyyyMMddHHmmssSSS` (or 14 digits on old tables); compares as text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstantTime(String);

impl InstantTime {
    /// `None` unless 14 or 17 digits (or a longer metadata-table instant, also digits only).
    pub fn parse(text: &str) -> Option<InstantTime> {
        (text.len() >= 14 && text.bytes().all(|b| b.is_ascii_digit())).then(|| InstantTime(text.to_string()))
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for InstantTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    Requested,
    Inflight,
    Completed,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Instant {
    pub time: InstantTime,
    pub action: Action,
    pub state: State,
}
