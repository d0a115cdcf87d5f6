//! A write that did not get to its commit: rolled back before the failure is reported.

use crate::observe::Metrics;
use crate::service::lock::Held;
use crate::service::{self, OpenWrite, Writers};
use crate::table::Table;
use std::time::Instant;

/// Rolls back; where that fails too, the next start does it, or another writer.
pub(super) async fn undo(table: &Table, mut write: OpenWrite, writers: &Writers, metrics: &Metrics) {
    write.unlock().await;
    let started = Instant::now();
    let instant = write.time.clone();
    let ended = match service::rollback(table, &write.instant(), writers).await {
        Ok(done) => {
            done.iter().for_each(|done| metrics.rolled_back(started.elapsed(), done.files_deleted));
            write.end().await
        }
        Err(e) => {
            tracing::error!(error = %e, %instant, "the failed write could not be rolled back; the next start does it");
            write.give_up().await
        }
    };
    tell(ended, &instant);
}

/// A commit that stands: what is left is housekeeping, which the next start can do as well.
pub(super) async fn end(write: OpenWrite) {
    let instant = write.time.clone();
    tell(write.end().await, &instant);
}

fn tell(ended: service::Result<()>, instant: &crate::table::InstantTime) {
    if let Err(e) = ended {
        tracing::warn!(error = %e, %instant, "the heartbeat could not be removed; it does no harm");
    }
}

/// After the commit point, or where it was not reached; a lock that was lost right before it may have let another writer in,
/// which is to be known.
pub(super) async fn release(held: Held) {
    if let Err(e) = held.release().await {
        tracing::warn!(error = %e, "the lock was not released in order; a commit under it stands");
    }
}
