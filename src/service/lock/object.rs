//! `StorageBasedLockProvider`: an object beside the table, replaced only by whom has seen its latest version (Hudi 1.0.2).
//!
//! `<base>/.hoodie/.locks/table_lock.json` is `{"expired":…,"validUntil":…,"owner":…}`. Who finds none, or one that is
//! expired or not renewed in time, writes his own in its place; who holds it renews it. Release marks it expired.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use uuid::Uuid;

use super::{Answer, Error, Grip, Provider, Result};
use crate::config::StorageLockConfig;
use crate::service::owner;
use crate::storage::{self, Storage, Version};

/// `HoodieTableMetaClient.LOCKS_FOLDER_NAME` and `StorageBasedLockProvider.DEFAULT_TABLE_LOCK_FILE_NAME`, 1.0.2.
const PATH: &str = ".hoodie/.locks/table_lock.json";

/// Clocks of two machines may differ by so much (`StorageBasedLockProvider.CLOCK_DRIFT_BUFFER_MS`, 1.0.2).
const CLOCK_DRIFT_MS: i64 = 500;

/// Between two looks at a lock that another one has (`LockConfiguration.DEFAULT_LOCK_ACQUIRE_RETRY_WAIT_TIME_IN_MILLIS`).
const POLL: Duration = Duration::from_secs(1);

const TAKEN: &str = "another writer has taken it";

pub(super) struct ObjectLock {
    storage: Storage,
    config: StorageLockConfig,
    /// What stands in our locks.
    owner: Arc<str>,
}

/// What is in the object (`StorageLockData`, 1.0.2); other fields may come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LockData {
    expired: bool,
    /// Milliseconds since 1970.
    valid_until: i64,
    owner: String,
}

impl LockData {
    fn of(owner: &str, validity: Duration) -> LockData {
        LockData { expired: false, valid_until: now_ms() + validity.as_millis() as i64, owner: owner.to_string() }
    }

    fn parse(content: &[u8], storage: &Storage) -> Result<LockData> {
        serde_json::from_slice(content).map_err(|e| Error::Failed {
            doing: "read",
            lock: storage.display(PATH),
            cause: format!("{e}; if no writer runs, remove the object"),
        })
    }

    /// By Hudi's rule.
    fn is_held(&self, now_ms: i64) -> bool {
        !self.expired && now_ms <= self.valid_until.saturating_add(CLOCK_DRIFT_MS)
    }

    fn bytes(&self) -> Bytes {
        Bytes::from(serde_json::to_vec(self).unwrap_or_default())
    }
}

/// What is known of a lock of ours.
struct State {
    version: Version,
    /// Nobody else takes it before.
    until: Instant,
    lost: Option<&'static str>,
}

struct ObjectGrip {
    storage: Storage,
    owner: Arc<str>,
    doing: &'static str,
    state: Arc<Mutex<State>>,
    renewing: AbortHandle,
    released: bool,
}

impl ObjectLock {
    pub fn new(config: &StorageLockConfig, storage: &Storage) -> Result<ObjectLock> {
        if storage.is_local() {
            return Err(Error::Unsuitable {
                provider: "StorageBasedLockProvider",
                table: storage.display(""),
                why: "local disks cannot replace a file only if it is unchanged; use ZookeeperBasedLockProvider or \
                      FileSystemBasedLockProvider"
                    .into(),
            });
        }
        let owner = format!("{} (hudi-streamer on {})", Uuid::new_v4(), owner::shown());
        Ok(ObjectLock { storage: storage.clone(), config: *config, owner: owner.into() })
    }

    pub fn name(&self) -> String {
        self.storage.display(PATH)
    }

    /// Takes it, or says who has it.
    async fn take(&self, doing: &'static str) -> Result<std::result::Result<ObjectGrip, String>> {
        let found = self.storage.get_versioned(PATH).await?;
        if let Some((content, _)) = &found {
            let data = LockData::parse(content, &self.storage)?;
            // One of our own is left of a try whose answer got lost: in this process it is our turn.
            if data.is_held(now_ms()) && data.owner != *self.owner {
                return Ok(Err(holder(&data, now_ms())));
            }
        }
        let begin = Instant::now();
        let data = LockData::of(&self.owner, self.config.validity);
        let written = match &found {
            None => self.storage.create_versioned(PATH, data.bytes()).await,
            Some((_, version)) => self.storage.replace_if(PATH, data.bytes(), version).await,
        };
        let version = match written {
            Ok(version) => version,
            Err(storage::Error::AlreadyExists { .. } | storage::Error::Conflict { .. }) => {
                return Ok(Err("another writer was quicker".into()));
            }
            Err(error) => return Err(error.into()),
        };
        let state = Arc::new(Mutex::new(State { version, until: begin + self.config.validity, lost: None }));
        let (storage, owner) = (self.storage.clone(), Arc::clone(&self.owner));
        let renewing = renew(storage.clone(), self.config, Arc::clone(&owner), Arc::clone(&state));
        let renewing = tokio::spawn(renewing).abort_handle();
        Ok(Ok(ObjectGrip { storage, owner, doing, state, renewing, released: false }))
    }
}

#[async_trait]
impl Provider for ObjectLock {
    async fn try_lock(&self, doing: &'static str, wait: Duration) -> Result<Answer> {
        let begin = Instant::now();
        loop {
            let holder = match self.take(doing).await? {
                Ok(grip) => return Ok(Answer::Got(Box::new(grip))),
                Err(holder) => holder,
            };
            if begin.elapsed() + POLL > wait {
                return Ok(Answer::Busy(holder));
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

/// Until it is lost. A renewal that fails is made good by the next one, as long as the lock is good for.
async fn renew(storage: Storage, config: StorageLockConfig, owner: Arc<str>, state: Arc<Mutex<State>>) {
    loop {
        tokio::time::sleep(config.renew_interval).await;
        let mut state = state.lock().await;
        let begin = Instant::now();
        let renewed = storage.replace_if(PATH, LockData::of(&owner, config.validity).bytes(), &state.version).await;
        match renewed {
            Ok(version) => (state.version, state.until) = (version, begin + config.validity),
            Err(storage::Error::Conflict { .. } | storage::Error::NotFound { .. }) => {
                match latest(&storage, &owner).await {
                    // A renewal went through whose answer got lost.
                    Ok(Some(version)) => state.version = version,
                    Ok(None) => {
                        state.lost = Some(TAKEN);
                        return;
                    }
                    Err(error) => tracing::warn!(%error, "a lock was not renewed; tried again"),
                }
            }
            Err(error) => tracing::warn!(%error, "a lock was not renewed; tried again"),
        }
    }
}

/// The version of the lock that is there, if it is that owner's.
async fn latest(storage: &Storage, owner: &str) -> Result<Option<Version>> {
    let Some((content, version)) = storage.get_versioned(PATH).await? else { return Ok(None) };
    let data = LockData::parse(&content, storage)?;
    Ok((!data.expired && data.owner == owner).then_some(version))
}

impl ObjectGrip {
    fn lost(&self, why: &str) -> Error {
        Error::Lost { doing: self.doing, lock: self.storage.display(PATH), why: why.into() }
    }

    fn expired(&self) -> Bytes {
        LockData { expired: true, valid_until: now_ms(), owner: self.owner.to_string() }.bytes()
    }
}

#[async_trait]
impl Grip for ObjectGrip {
    /// Looks at the object, too: another one's clock may be ahead of ours.
    async fn check(&self) -> Result<()> {
        let state = self.state.lock().await;
        match state.lost {
            Some(why) => Err(self.lost(why)),
            None if Instant::now() >= state.until => {
                Err(self.lost("it was not renewed in time (hoodie.write.lock.storage.validity.timeout.secs)"))
            }
            None if latest(&self.storage, &self.owner).await?.is_none() => Err(self.lost(TAKEN)),
            None => Ok(()),
        }
    }

    async fn release(mut self: Box<Self>) -> Result<()> {
        self.released = true;
        // Not while it is being renewed.
        let state = self.state.lock().await;
        self.renewing.abort();
        if let Some(why) = state.lost {
            return Err(self.lost(why));
        }
        match self.storage.replace_if(PATH, self.expired(), &state.version).await {
            Err(storage::Error::Conflict { .. } | storage::Error::NotFound { .. }) => {
                let Some(version) = latest(&self.storage, &self.owner).await? else { return Err(self.lost(TAKEN)) };
                self.storage.replace_if(PATH, self.expired(), &version).await?;
                Ok(())
            }
            written => Ok(written.map(drop)?),
        }
    }
}

impl Drop for ObjectGrip {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return self.renewing.abort() };
        if self.released {
            return self.renewing.abort();
        }
        let (storage, state, expired) = (self.storage.clone(), Arc::clone(&self.state), self.expired());
        let renewing = self.renewing.clone();
        // Not done where the process ends first: the lock is then taken when it has not been renewed in time.
        runtime.spawn(async move {
            let state = state.lock().await;
            renewing.abort();
            if state.lost.is_none() {
                let _ = storage.replace_if(PATH, expired, &state.version).await;
            }
        });
    }
}

fn holder(data: &LockData, now_ms: i64) -> String {
    let owner: String = data.owner.chars().take(200).collect();
    let seconds = (data.valid_until + CLOCK_DRIFT_MS - now_ms) / 1000;
    format!("{owner} has it; if that one is dead, the lock is free in {seconds} s")
}

fn now_ms() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_until_it_expires_by_anybodys_clock() {
        let data = |expired, valid_until| LockData { expired, valid_until, owner: "x".into() };
        let cases = [
            (data(false, 1_000), 1_000, true),
            (data(false, 1_000), 1_500, true),
            (data(false, 1_000), 1_501, false),
            (data(true, 9_000), 1_000, false),
            (data(false, i64::MAX), i64::MAX, true),
        ];
        for (data, now, held) in cases {
            assert_eq!(data.is_held(now), held, "{data:?} at {now}");
        }
    }

    #[test]
    fn hudis_objects_are_read_and_ours_have_its_names() {
        let hudis = br#"{"expired":false,"validUntil":1767322800000,"owner":"0b0d","later":1}"#;
        let data: LockData = serde_json::from_slice(hudis).expect("other fields may come");
        let ours = String::from_utf8(data.bytes().to_vec()).expect("UTF-8");
        assert_eq!(ours, r#"{"expired":false,"validUntil":1767322800000,"owner":"0b0d"}"#);
    }
}
