//! Locks that several writers share, Hudi's own among them.

mod file;
mod object;
mod zookeeper;

use std::time::Duration;

use hudi_streamer::config::{
    ConcurrencyConfig, ConcurrencyMode, FailedWritesPolicy, HeartbeatConfig, LockConfig, LockProvider,
};
use hudi_streamer::service::lock::Locks;
use hudi_streamer::storage::Storage;

use crate::support::*;

/// No longer than a busy machine needs to notice that a lock is free.
const LONG: Duration = Duration::from_secs(60);
/// Long enough to see that one is not.
const SHORT: Duration = Duration::from_millis(500);

/// `wait` for the one try that there is.
fn writers(provider: LockProvider, wait: Duration) -> ConcurrencyConfig {
    ConcurrencyConfig {
        mode: ConcurrencyMode::Optimistic,
        failed_writes: FailedWritesPolicy::Lazy,
        retries_on_conflict: 0,
        heartbeat: HeartbeatConfig { interval: Duration::from_secs(60), tolerable_misses: 2 },
        lock: Some(LockConfig { provider, wait, retries: 0, pause: Duration::ZERO }),
    }
}

/// Of the table in that folder, which need not be one.
fn locks(provider: LockProvider, scratch: &Scratch, table: &str, wait: Duration) -> Locks {
    let storage = Storage::open(scratch.path(table).to_str().expect("UTF-8")).expect("a local folder");
    Locks::open(&writers(provider, wait), &storage, table).expect("a provider that suits local disks")
}
