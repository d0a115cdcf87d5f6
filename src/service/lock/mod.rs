//! The lock of a table that several writers share: who holds it may change the timeline.
//!
//! Sees storage and ZooKeeper, never the table. Look at [`Locks`] first: it asks, in turns, with a message when it takes
//! long; what is asked is a provider, one a file: `zookeeper`, `file`, `object`, and `local`, which stands before the
//! others too, so that tasks of this process wait for each other without asking anybody. Each respects what Hudi's provider
//! of that name does, and is respected by it.
//!
//! Invariants: nobody's lock but our own is ever released; a lock that was lost while it was held is told by [`Held::check`].
//!
//! A lock is not a fence. Between the last [`Held::check`] and the write that it stands before, a process may be stopped
//! for longer than the lock lasts without it (ZooKeeper's session time-out, the validity of a lock on an object store), and
//! go on as if it still held it; Hudi's writers have the same window. Instants are created exclusively, so that even then
//! nobody overwrites another's; what may be missed is a conflict between two writes to one file group.

mod file;
mod local;
mod object;
#[cfg(test)]
mod tests;
mod zookeeper;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::config::{ConcurrencyConfig, LockConfig, LockProvider};
use crate::storage::Storage;
use file::FileLock;
use local::{Local, Turn};
use object::ObjectLock;
use zookeeper::ZooKeeper;

/// A wait that is longer than this is told, and then each time that as much has gone by.
const LONG: Duration = Duration::from_secs(30);

/// What must be undone when a job is interrupted needs the lock, too: one that is free is had within this.
const LAST_CHANCE: Duration = Duration::from_secs(1);

/// The lock of one table. Cheap to clone; nothing is connected to before the first lock.
#[derive(Clone, Default)]
pub struct Locks {
    lock: Option<Arc<Lock>>,
    /// Waiting ends with it.
    cancel: CancellationToken,
}

struct Lock {
    name: String,
    config: LockConfig,
    local: Local,
    provider: Option<Box<dyn Provider>>,
}

/// What a lock is kept with.
#[async_trait]
trait Provider: Send + Sync {
    /// Waits for the lock, no longer than `wait`.
    async fn try_lock(&self, doing: &'static str, wait: Duration) -> Result<Answer>;
}

/// What came of a try.
enum Answer {
    Got(Box<dyn Grip>),
    /// Somebody else has it; who, as far as can be known, and what to do if that one is dead.
    Busy(String),
}

/// A lock that is held. Dropped, it is released in the background, as far as that is possible.
#[async_trait]
trait Grip: Send + Sync {
    /// Fails where somebody else may have it by now.
    async fn check(&self) -> Result<()>;
    /// Fails where it was lost before; the lock is not held afterwards in either case.
    async fn release(self: Box<Self>) -> Result<()>;
}

/// The lock, held until it is released or dropped.
#[must_use = "a lock is released when this is dropped"]
pub struct Held {
    grip: Option<Box<dyn Grip>>,
    // After the grip: who is next in this process must find the lock released.
    _turn: Option<Turn>,
}

/// Why a lock is not held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(
        "{doing}: lock {lock} was not to be had in {seconds} s and {tries} tries \
         (hoodie.write.lock.client.num_retries): {holder}"
    )]
    NotObtained { doing: &'static str, lock: String, seconds: u64, tries: u32, holder: String },
    #[error("{doing}: interrupted before lock {lock} was to be had")]
    GivenUp { doing: &'static str, lock: String },
    #[error("{doing}: lock {lock} was lost while it was held: {why}; what was to be written under it is not")]
    Lost { doing: &'static str, lock: String, why: String },
    #[error("{doing} lock {lock}: {cause}")]
    Failed { doing: &'static str, lock: String, cause: String },
    #[error("{provider} cannot be used for {table}: {why}")]
    Unsuitable { provider: &'static str, table: String, why: String },
    #[error(transparent)]
    Storage(#[from] crate::storage::Error),
}

impl Error {
    /// Stable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Error::NotObtained { .. } => "lock-not-obtained",
            Error::GivenUp { .. } => "lock-given-up",
            Error::Lost { .. } => "lock-lost",
            Error::Failed { .. } => "lock-failed",
            Error::Unsuitable { .. } => "lock-provider-unsuitable",
            Error::Storage(e) => e.code(),
        }
    }

    /// Whether it may be had later without anybody's help.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::NotObtained { .. } | Error::Lost { .. } | Error::Failed { .. } => true,
            Error::GivenUp { .. } | Error::Unsuitable { .. } => false,
            Error::Storage(e) => e.is_retryable(),
        }
    }
}

/// Result of this room.
pub type Result<T> = std::result::Result<T, Error>;

impl Locks {
    /// Of a table that has one writer: every lock is had at once, and costs nothing.
    pub fn none() -> Locks {
        Locks::default()
    }

    /// That gives up waiting soon after `cancel` is cancelled.
    pub fn until(self, cancel: CancellationToken) -> Locks {
        Locks { cancel, ..self }
    }

    /// Of the table at the root of `storage`.
    pub fn open(config: &ConcurrencyConfig, storage: &Storage, table_name: &str) -> Result<Locks> {
        let Some(config) = &config.lock else { return Ok(Locks::none()) };
        let table = storage.absolute("");
        let (name, provider): (String, Option<Box<dyn Provider>>) = match &config.provider {
            LockProvider::InProcess => (storage.display(""), None),
            LockProvider::ZooKeeper(config) => of(ZooKeeper::new(config, table_name), ZooKeeper::name),
            LockProvider::FileSystem(config) => of(FileLock::new(config, storage)?, FileLock::name),
            LockProvider::Storage(config) => of(ObjectLock::new(config, storage)?, ObjectLock::name),
        };
        let lock = Lock { local: Local::of(&table), name, config: config.clone(), provider };
        Ok(Locks { lock: Some(Arc::new(lock)), cancel: CancellationToken::new() })
    }

    /// Whether there are other writers to keep out.
    pub fn are_shared(&self) -> bool {
        self.lock.is_some()
    }

    /// Waits for the lock. A task that holds it already waits in vain, and gets an error in the end.
    pub async fn lock(&self, doing: &'static str) -> Result<Held> {
        let Some(lock) = &self.lock else { return Ok(Held { grip: None, _turn: None }) };
        tokio::select! {
            biased;
            held = lock.lock(doing) => held,
            () = self.given_up() => Err(Error::GivenUp { doing, lock: lock.name.clone() }),
        }
    }

    async fn given_up(&self) {
        self.cancel.cancelled().await;
        tokio::time::sleep(LAST_CHANCE).await;
    }
}

fn of<P: Provider + 'static>(provider: P, name: impl Fn(&P) -> String) -> (String, Option<Box<dyn Provider>>) {
    (name(&provider), Some(Box::new(provider)))
}

impl Lock {
    /// As Hudi's manager does (`LockManager`, 0.15): tries of a certain length with pauses between them.
    async fn lock(&self, doing: &'static str) -> Result<Held> {
        let begin = Instant::now();
        let mut told = None::<Instant>;
        let mut number = 1;
        loop {
            let answer = self.try_lock(doing).await;
            let why = match answer {
                Ok(Attempt::Held(held)) => return Ok(self.got(held, begin)),
                Ok(Attempt::Busy(holder)) => Error::NotObtained {
                    doing,
                    lock: self.name.clone(),
                    seconds: begin.elapsed().as_secs(),
                    tries: number,
                    holder,
                },
                Err(error) => error,
            };
            if number > self.config.retries {
                return Err(why);
            }
            // What fails is told at once: it need not pass.
            let failed = !matches!(why, Error::NotObtained { .. });
            if told.map_or(failed || begin.elapsed() >= LONG, |told| told.elapsed() >= LONG) {
                told = Some(Instant::now());
                tracing::warn!(lock = self.name, doing, %why, "still waiting for the lock");
            }
            tokio::time::sleep(self.config.pause).await;
            number += 1;
        }
    }

    async fn try_lock(&self, doing: &'static str) -> Result<Attempt> {
        let begin = Instant::now();
        let turn = match self.local.turn(doing, self.config.wait).await {
            Ok(turn) => turn,
            Err(holder) => return Ok(Attempt::Busy(holder)),
        };
        let Some(provider) = &self.provider else {
            return Ok(Attempt::Held(Held { grip: None, _turn: Some(turn) }));
        };
        let left = self.config.wait.saturating_sub(begin.elapsed());
        Ok(match provider.try_lock(doing, left).await? {
            Answer::Got(grip) => Attempt::Held(Held { grip: Some(grip), _turn: Some(turn) }),
            Answer::Busy(holder) => Attempt::Busy(holder),
        })
    }

    fn got(&self, held: Held, begin: Instant) -> Held {
        if begin.elapsed() >= LONG {
            tracing::info!(lock = self.name, seconds = begin.elapsed().as_secs(), "got the lock");
        }
        held
    }
}

enum Attempt {
    Held(Held),
    Busy(String),
}

impl Held {
    /// Fails where the lock was lost. To be called right before that is written which must not be written without it.
    pub async fn check(&self) -> Result<()> {
        match &self.grip {
            Some(grip) => grip.check().await,
            None => Ok(()),
        }
    }

    /// Fails where the lock was lost before, so that somebody else may have written meanwhile.
    pub async fn release(mut self) -> Result<()> {
        match self.grip.take() {
            Some(grip) => grip.release().await,
            None => Ok(()),
        }
    }
}
