//! The active timeline: instants in order, each in its highest state (timeline.md §11).

use super::{Instant, InstantTime};

#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Sorted by time; one entry an instant, in its highest state.
    pub instants: Vec<Instant>,
}

impl Timeline {
    /// Completed commits, deltacommits and replacecommits, oldest first.
    pub fn completed_writes(&self) -> impl DoubleEndedIterator<Item = &Instant> {
        self.instants.iter().filter(|_| todo!())
    }
    /// Requested or inflight commits, deltacommits, replacecommits: what a failed write leaves.
    pub fn pending_writes(&self) -> impl DoubleEndedIterator<Item = &Instant> {
        self.instants.iter().filter(|_| todo!())
    }
    /// Whether data written by this instant counts: completed here, or older than the timeline's start.
    pub fn is_valid(&self, _time: &InstantTime) -> bool {
        todo!()
    }
}
