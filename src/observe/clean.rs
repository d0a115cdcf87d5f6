//! One structured line a clean: what has gone.

use super::Metrics;
use std::time::Duration;

/// What a clean did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CleanReport {
    /// Its instant.
    pub instant: String,
    pub policy: String,
    pub files_deleted: u64,
    /// Partitions in which files were to go, and those that have gone with them.
    pub partitions: u64,
    pub partitions_deleted: u64,
    /// The earliest write whose readers find all they need; empty for policies that go by versions.
    pub earliest_retained: String,
    pub took: Duration,
}

impl CleanReport {
    /// Writes the line, and counts it.
    pub fn emit(&self, metrics: &Metrics) {
        tracing::info!(
            instant = self.instant,
            policy = self.policy,
            files_deleted = self.files_deleted,
            partitions = self.partitions,
            partitions_deleted = self.partitions_deleted,
            earliest_retained = self.earliest_retained,
            duration_ms = self.took.as_millis() as u64,
            "clean completed"
        );
        metrics.cleaned(self);
    }
}
