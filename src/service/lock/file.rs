//! `FileSystemBasedLockProvider`: a file whose existence is the lock (Hudi 0.15 and 1.0.2: `LockInfo`, pretty JSON).
//!
//! Hudi's own is a weak lock, and stays one beside us: on local disks Hadoop looks whether the file is there and creates it in
//! two steps; a Hudi writer removes it when it closes, whoever has it by then; and one that has expired is removed by several
//! at a time. What we can do about it we do: ours is created in one step, holds its owner, is looked at again before each
//! commit, and is never taken for anybody else's.
//!
//! A writer that is killed leaves its lock behind. One of ours on this machine is known to be dead and taken over. Of others
//! nothing is known: their lock stays until `hoodie.write.lock.filesystem.expire` allows to take it, or a person removes it.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Answer, Error, Grip, Provider, Result};
use crate::config::{FileLockConfig, StorageConfig};
use crate::service::owner::{self, Owner};
use crate::storage::{self, Storage};

/// `FileSystemBasedLockProvider.LOCK_FILE_NAME`, and where it is as a rule.
const PATH: &str = "lock";
const FOLDER: &str = ".hoodie";

/// Looks at a lock that another one has: as often as there is something to see for a person.
const POLL: Duration = Duration::from_millis(500);

/// How long a Hudi writer may take from finding no file to creating one, over what is there by then.
const SETTLE: Duration = Duration::from_millis(50);

/// Of an expiring lock this part is not used: others may be about to take it.
const MARGIN: u32 = 10;

/// What stands before our owners in the list that Hudi shows.
const OWNER: &str = "hudi-streamer owner ";

pub(super) struct FileLock {
    /// The folder of the file.
    storage: Storage,
    expire: Option<Duration>,
}

/// What Hudi writes into the file and shows to whom it keeps waiting.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LockInfo {
    lock_create_time: String,
    lock_thread_name: String,
    lock_stacks_info: Vec<String>,
}

struct FileGrip {
    storage: Storage,
    content: Bytes,
    /// When it is no longer ours for sure.
    until: Option<Instant>,
    doing: &'static str,
    released: bool,
    _owner: Owner,
}

impl FileLock {
    pub fn new(config: &FileLockConfig, storage: &Storage) -> Result<FileLock> {
        // A lock need not outlive a power cut.
        let quick = StorageConfig { fsync: false, ..StorageConfig::default() };
        let storage = match &config.folder {
            Some(folder) => Storage::open_with(folder, &quick)?,
            None if storage.is_local() => Storage::open_with(&storage.absolute(FOLDER), &quick)?,
            None => storage.clone(),
        };
        if !storage.is_local() {
            return Err(Error::Unsuitable {
                provider: "FileSystemBasedLockProvider",
                table: storage.display(""),
                why: "Hudi's writers cannot create a file there without overwriting another's; use ZookeeperBasedLockProvider, \
                      or StorageBasedLockProvider (Hudi 1.0.2 and later)"
                    .into(),
            });
        }
        Ok(FileLock { storage, expire: config.expire })
    }

    pub fn name(&self) -> String {
        self.storage.display(PATH)
    }

    async fn take(&self, doing: &'static str) -> Result<Option<FileGrip>> {
        let owner = Owner::new();
        let content = content(&owner, doing);
        let until = self.expire.map(|expire| Instant::now() + (expire - expire / MARGIN));
        // From here on: a task that is dropped as it waits for the disk leaves no lock behind.
        let storage = self.storage.clone();
        let mut grip = FileGrip { storage, content, until, doing, released: false, _owner: owner };
        match self.storage.create(PATH, grip.content.clone()).await {
            Ok(()) => {}
            Err(storage::Error::AlreadyExists { .. }) => {
                if !self.take_over(&grip.content).await? {
                    grip.released = true;
                    return Ok(None);
                }
            }
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(SETTLE).await;
        Ok(grip.is_ours().await?.then_some(grip))
    }

    /// Puts our content in the place of a lock that was left behind.
    async fn take_over(&self, content: &Bytes) -> Result<bool> {
        let Some(found) = self.storage.get_opt(PATH).await? else { return Ok(false) };
        let dead = owner_of(&found).is_some_and(|owner| owner::is_alive(&owner) == Some(false));
        let Some((_, age_ms)) = owner::silence(&self.storage, PATH).await? else { return Ok(false) };
        let expired = self.expire.is_some_and(|expire| age_ms > expire.as_millis() as i64);
        if !dead && !expired {
            return Ok(false);
        }
        let taken = owner::replace(&self.storage, PATH, &found, content.clone()).await?;
        if taken {
            tracing::warn!(
                lock = self.name(),
                age_ms,
                dead,
                expired,
                holder = shown(&found),
                "took over a lock left behind"
            );
        }
        Ok(taken)
    }

    async fn holder(&self) -> Result<String> {
        let Some(found) = self.storage.get_opt(PATH).await? else { return Ok("it is free again".into()) };
        let age_ms = owner::silence(&self.storage, PATH).await?.map_or(0, |(_, age_ms)| age_ms);
        Ok(format!(
            "{} has it for {} s; if it is dead, remove the file (hoodie.write.lock.filesystem.expire would have it taken over \
             after that many minutes)",
            shown(&found),
            age_ms / 1000
        ))
    }
}

#[async_trait]
impl Provider for FileLock {
    async fn try_lock(&self, doing: &'static str, wait: Duration) -> Result<Answer> {
        let begin = Instant::now();
        loop {
            if let Some(grip) = self.take(doing).await? {
                return Ok(Answer::Got(Box::new(grip)));
            }
            if begin.elapsed() + POLL > wait {
                return Ok(Answer::Busy(self.holder().await?));
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

impl FileGrip {
    async fn is_ours(&self) -> Result<bool> {
        Ok(self.storage.get_opt(PATH).await?.is_some_and(|found| found == self.content))
    }

    fn lost(&self, why: &str) -> Error {
        Error::Lost { doing: self.doing, lock: self.storage.display(PATH), why: why.into() }
    }
}

#[async_trait]
impl Grip for FileGrip {
    async fn check(&self) -> Result<()> {
        if self.until.is_some_and(|until| Instant::now() >= until) {
            return Err(self.lost("it is about to expire (hoodie.write.lock.filesystem.expire)"));
        }
        match self.is_ours().await? {
            true => Ok(()),
            false => {
                Err(self
                    .lost("the file is gone, or another's: a Hudi writer removes it when it closes, whoever has it"))
            }
        }
    }

    async fn release(mut self: Box<Self>) -> Result<()> {
        self.released = true;
        match self.is_ours().await? {
            true => Ok(self.storage.delete(PATH).await?),
            false => Err(self.lost("the file is gone, or another's")),
        }
    }
}

impl Drop for FileGrip {
    fn drop(&mut self) {
        if self.released {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (storage, content) = (self.storage.clone(), self.content.clone());
        // The next one here need not wait for it. Not done where the process ends first: the lock is then found to be a dead
        // one's.
        runtime.spawn(async move {
            let _ = owner::remove(&storage, PATH, &content).await;
        });
    }
}

fn content(owner: &Owner, doing: &'static str) -> Bytes {
    let info = LockInfo {
        lock_create_time: chrono::Local::now().format("%Y-%m-%d %H:%M:%S%.3f").to_string(),
        lock_thread_name: format!("hudi-streamer on {}: {doing}", owner::shown()),
        lock_stacks_info: vec![format!("{OWNER}{owner}")],
    };
    Bytes::from(serde_json::to_vec_pretty(&info).unwrap_or_default())
}

/// `None`: not one of ours.
fn owner_of(content: &[u8]) -> Option<String> {
    let info: LockInfo = serde_json::from_slice(content).ok()?;
    info.lock_stacks_info.first()?.strip_prefix(OWNER).map(str::to_string)
}

/// Who has it, as far as the file tells.
fn shown(content: &[u8]) -> String {
    match serde_json::from_slice::<LockInfo>(content) {
        Ok(info) => {
            let name: String = info.lock_thread_name.chars().take(200).collect();
            let time: String = info.lock_create_time.chars().take(40).collect();
            match owner_of(content) {
                Some(_) => format!("{name} (since {time})"),
                None => format!("a Hudi writer's thread {name} (since {time}, its time zone)"),
            }
        }
        Err(_) => "somebody who does not tell who".to_string(),
    }
}
