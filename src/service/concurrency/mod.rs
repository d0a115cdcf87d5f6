//! Several writers of one table: who may take whom for dead, and who of two that wrote to one place may commit
//! (table-services.md §7.3, §8).
//!
//! ```text
//! lock ┊ timeline, instant, heartbeat, T.requested ┊      what the write is based on is what is complete here
//!      read, tag, write                                   beside everybody else
//! lock ┊ timeline, conflicts? heartbeat? lock? T.commit ┊
//! ```
//!
//! Look at [`Writers`] first, then at [`Conflicts`], which is where this program looks closer than Hudi: also for keys that
//! two writers have put into new file groups of their own, for rows that readers would not see behind blocks of a greater
//! instant, and for checkpoints (that is the streamer's). With one writer nothing of it costs anything.
//!
//! Invariants: an instant is drawn and requested under the lock, greater than all that the timeline has; a write that others
//! may have taken for dead is never committed; whatever has become complete since a write began is held against it, whatever
//! its instant.

mod conflict;
mod heartbeat;
mod keys;
mod masked;
#[cfg(test)]
mod tests;

pub use conflict::Conflicts;
pub use keys::Inserted;

pub(super) use heartbeat::{HEARTBEATS, Life, Lives, path_of, tolerance};

use super::lock::{Held, Locks};
use super::{Error, Result};
use crate::config::{ConcurrencyConfig, FailedWritesPolicy, HeartbeatConfig};
use crate::storage::Storage;
use crate::table::{self, Action, Instant, InstantTime, State, Table, Timeline};
use heartbeat::Heartbeat;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Instants that are drawn anew because others have taken the same millisecond.
const TRIES: u32 = 10;

/// The other writers of a table: how to keep out of their way.
#[derive(Clone)]
pub struct Writers {
    pub locks: Locks,
    pub failed_writes: FailedWritesPolicy,
    pub heartbeat: HeartbeatConfig,
}

impl Writers {
    /// One writer, who rolls back at once what a crash has left.
    pub fn none() -> Writers {
        Writers {
            locks: Locks::none(),
            failed_writes: FailedWritesPolicy::Eager,
            heartbeat: HeartbeatConfig::default(),
        }
    }

    /// Of the table at the root of `storage`.
    pub fn open(config: &ConcurrencyConfig, storage: &Storage, table_name: &str) -> Result<Writers> {
        Ok(Writers {
            locks: Locks::open(config, storage, table_name)?,
            failed_writes: config.failed_writes,
            heartbeat: config.heartbeat,
        })
    }

    /// Whether there may be others.
    pub fn are_several(&self) -> bool {
        self.locks.are_shared()
    }

    /// Opens a write: its instant is on the timeline from here on. `known`: what it is based on, where that has been looked at
    /// already; else it is what is there under the lock. `alone`: the lock is kept until the commit, so that nobody can stand in
    /// its way. `cancel` is cancelled once others may take this writer for dead.
    pub async fn begin(
        &self,
        table: &Table,
        known: Option<&Timeline>,
        alone: bool,
        cancel: CancellationToken,
    ) -> Result<OpenWrite> {
        let held = self.locks.lock("begin a write").await?;
        let mut now = match known {
            Some(known) if !self.are_several() => known.clone(),
            _ => table.timeline().await?,
        };
        let based_on = known.cloned().unwrap_or_else(|| now.clone());
        let action = table.write_action();
        for _ in 0..TRIES {
            let time = table.new_instant(&now);
            let mut heartbeat = None;
            if self.failed_writes == FailedWritesPolicy::Lazy {
                heartbeat = Heartbeat::begin(&table.storage, &time, &self.heartbeat, cancel.clone()).await?;
                if heartbeat.is_none() {
                    now = table.timeline().await?;
                    continue;
                }
            }
            held.check().await?;
            match table.request(&time, action).await {
                Ok(()) => {
                    let attempt = if self.are_several() { random_attempt() } else { 0 };
                    let mut write =
                        OpenWrite { time, action, timeline: based_on, attempt, cancel, heartbeat, held: Some(held) };
                    if !alone {
                        // Whoever had it meanwhile has drawn an instant of his own; the conflicts are looked for all the same.
                        write.unlock().await;
                    }
                    return Ok(write);
                }
                Err(e) => {
                    if let Some(heartbeat) = heartbeat {
                        heartbeat.end().await?;
                    }
                    match e {
                        table::Error::InstantExists { .. } => now = table.timeline().await?,
                        e => return Err(e.into()),
                    }
                }
            }
        }
        Err(Error::InstantsTaken { table: table.storage.display(""), tries: TRIES })
    }
}

/// A write whose instant is requested, or inflight.
pub struct OpenWrite {
    pub time: InstantTime,
    pub action: Action,
    /// What it is based on: whatever has become complete since is news.
    pub timeline: Timeline,
    /// For the names of its files, which must not be those of another writer's: both may be at the log files of one group.
    pub attempt: u32,
    /// Ends the write early.
    pub cancel: CancellationToken,
    heartbeat: Option<Heartbeat>,
    held: Option<Held>,
}

/// Hudi takes the parts of a write token for Java's int.
fn random_attempt() -> u32 {
    Uuid::new_v4().as_u128() as u32 & 0x7fff_ffff
}

impl OpenWrite {
    /// As an instant that others have to undo.
    pub fn instant(&self) -> Instant {
        Instant::new(self.time.clone(), self.action, State::Inflight)
    }

    /// Fails where others may take this writer for dead.
    pub async fn check_alive(&self) -> Result<()> {
        match &self.heartbeat {
            Some(heartbeat) => heartbeat.check().await,
            None => Ok(()),
        }
    }

    /// The lock for the commit, which this write may have kept.
    pub async fn lock(&mut self, writers: &Writers) -> Result<Held> {
        match self.held.take() {
            Some(held) => Ok(held),
            None => Ok(writers.locks.lock("commit").await?),
        }
    }

    /// Lets others go on where the lock was kept.
    pub async fn unlock(&mut self) {
        let Some(held) = self.held.take() else { return };
        if let Err(e) = held.release().await {
            tracing::warn!(error = %e, instant = %self.time, "the lock was not released in order");
        }
    }

    /// After it has been completed, or rolled back.
    pub async fn end(self) -> Result<()> {
        match self.heartbeat {
            Some(heartbeat) => heartbeat.end().await,
            None => Ok(()),
        }
    }

    /// It could not be rolled back, and is left to others.
    pub async fn give_up(self) -> Result<()> {
        match self.heartbeat {
            Some(heartbeat) => heartbeat.give_up().await,
            None => Ok(()),
        }
    }
}
