//! One structured line a run of archiving: what left the timeline, and how long it took.

use super::Metrics;
use std::time::Duration;

/// What a run of archiving did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchiveReport {
    pub instants: u64,
    /// Files of the timeline that have gone.
    pub files: u64,
    /// The oldest and the newest of the instants.
    pub first: String,
    pub last: String,
    /// File of the archived timeline that was written last; empty where a run that died had written everything.
    pub written: String,
    /// Why older instants stay than are to be kept; empty: nothing keeps them.
    pub held_by: String,
    pub took: Duration,
}

impl ArchiveReport {
    /// Writes the line, and counts it.
    pub fn emit(&self, metrics: &Metrics) {
        tracing::info!(
            instants = self.instants,
            files = self.files,
            first = self.first,
            last = self.last,
            written = self.written,
            held_by = self.held_by,
            duration_ms = self.took.as_millis() as u64,
            "instants archived"
        );
        metrics.archived(self);
    }
}
