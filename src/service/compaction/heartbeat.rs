//! Who executes a compaction says so beside it: an inflight file alone does not tell a live executor from a dead one.
//!
//! The file is Hudi's heartbeat (table-services.md §7.3), which is empty there. Ours names the process, so that one that
//! died on this machine need not be waited for.

use crate::service::concurrency::{HEARTBEATS, path_of};
use crate::service::owner::{self, GIVEN_UP, HEARTBEAT_EXPIRES_MS, Owner};
use crate::service::{Error, Result};
use crate::storage::{self, Storage};
use crate::table::InstantTime;
use bytes::Bytes;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// `hoodie.client.heartbeat.interval_in_ms`, Hudi 0.15.
const INTERVAL: Duration = Duration::from_secs(60);

/// Looks at a file that others come and go by.
const TRIES: u32 = 3;

/// Beats until it is ended or dropped; dropped, its file stays until it is found to be a dead one's.
pub(super) struct Heartbeat {
    storage: Storage,
    instant: InstantTime,
    owner: Owner,
    beating: JoinHandle<()>,
    /// Last sign of the dead one whose place this one has taken, milliseconds since 1970.
    before: Option<i64>,
}

impl Heartbeat {
    /// Refuses where somebody else's is alive. `lost`: to be cancelled when somebody else takes this one for dead.
    pub(super) async fn begin(storage: &Storage, instant: &InstantTime, lost: CancellationToken) -> Result<Heartbeat> {
        let owner = Owner::new();
        let path = path_of(instant);
        for _ in 0..TRIES {
            let before = match storage.create(&path, owner.text()).await {
                Ok(()) => None,
                Err(storage::Error::AlreadyExists { .. }) => match take_over(storage, instant, &owner).await? {
                    Some(before) => Some(before),
                    None => continue,
                },
                Err(error) => return Err(error.into()),
            };
            let beating = tokio::spawn(beat(storage.clone(), path, owner.text(), lost));
            let (storage, instant) = (storage.clone(), instant.clone());
            return Ok(Heartbeat { storage, instant, owner, beating, before });
        }
        Err(Error::CompactorAlive { instant: instant.to_string(), seconds: 0 })
    }

    /// A number that other attempts at the instant do not have: their files must never have one name.
    pub(super) fn attempt(&self) -> u32 {
        // Hudi takes the parts of a write token for Java's int.
        self.owner.id().as_u128() as u32 & 0x7fff_ffff
    }

    /// Whether an attempt that began then (milliseconds since 1970) was that of the dead one before this one.
    pub(super) fn follows(&self, began_ms: i64) -> bool {
        self.before.is_some_and(|last_sign| began_ms <= last_sign.saturating_add(HEARTBEAT_EXPIRES_MS))
    }

    /// Fails where another process has taken this one for dead: what it does now must not be mixed with what we did.
    pub(super) async fn check(&self) -> Result<()> {
        match self.storage.get_opt(&path_of(&self.instant)).await? {
            Some(owner) if owner == self.owner.text() => Ok(()),
            _ => Err(Error::CompactionTaken { instant: self.instant.to_string() }),
        }
    }

    /// Nothing is left to be done at the instant, or to be rolled back.
    pub(super) async fn end(self) -> Result<()> {
        self.beating.abort();
        self.check().await?;
        Ok(self.storage.delete(&path_of(&self.instant)).await?)
    }

    /// What the attempt has left is to be rolled back by the next one, which need not wait.
    pub(super) async fn give_up(self) -> Result<()> {
        self.beating.abort();
        self.check().await?;
        let given_up = Bytes::from(format!("{GIVEN_UP} {}", self.owner));
        Ok(self.storage.put(&path_of(&self.instant), given_up).await?)
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.beating.abort();
    }
}

async fn beat(storage: Storage, path: String, owner: Bytes, lost: CancellationToken) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        // A beat that fails is made good by the next one; the owner looks before it commits.
        match storage.get_opt(&path).await {
            Ok(Some(found)) if found == owner => {
                if let Err(e) = storage.put(&path, owner.clone()).await {
                    tracing::warn!(error = %e, "heartbeat of a compaction failed; the next one is in a minute");
                }
            }
            Ok(_) => return lost.cancel(),
            Err(e) => tracing::warn!(error = %e, "heartbeat of a compaction failed; the next one is in a minute"),
        }
    }
}

/// Makes a dead executor's heartbeat `owner`'s, and says when it beat last. `None`: it has gone, or is another's by now.
async fn take_over(storage: &Storage, instant: &InstantTime, owner: &Owner) -> Result<Option<i64>> {
    let path = path_of(instant);
    let Some(found) = storage.get_opt(&path).await? else { return Ok(None) };
    let Some((beat_ms, silent_ms)) = owner::silence(storage, &path).await? else { return Ok(None) };
    if owner::lives(&found, silent_ms) {
        return Err(Error::CompactorAlive { instant: instant.to_string(), seconds: silent_ms / 1000 });
    }
    let taken = owner::replace(storage, &path, &found, owner.text()).await?;
    Ok(taken.then_some(beat_ms))
}

/// Removes the heartbeats of compactions that are completed, and claims on them: their executors died right after.
pub(super) async fn remove_stale(storage: &Storage, is_done: impl Fn(&InstantTime) -> bool) -> Result<()> {
    for name in storage.names(HEARTBEATS).await? {
        let instant = name.split_once('.').map_or(name.as_str(), |(instant, _)| instant);
        if InstantTime::parse(instant).is_some_and(|time| is_done(&time)) {
            storage.delete(&format!("{HEARTBEATS}/{name}")).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant() -> InstantTime {
        InstantTime::parse("20260101000000000").expect("digits")
    }

    async fn begin(storage: &Storage) -> Result<Heartbeat> {
        Heartbeat::begin(storage, &instant(), CancellationToken::new()).await
    }

    fn storage() -> (tempfile::TempDir, Storage) {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = Storage::open(folder.path().to_str().expect("UTF-8")).expect("storage");
        (folder, storage)
    }

    #[tokio::test]
    async fn one_executor_at_a_time() {
        let (_folder, storage) = storage();
        let first = begin(&storage).await.expect("nobody else");
        assert!(!first.follows(0), "nobody was there before");
        let second = begin(&storage).await.err().expect("one is alive");
        assert_eq!(second.code(), "service-compactor-alive");
        let attempt = first.attempt();
        first.end().await.expect("ours");
        let next = begin(&storage).await.expect("it has ended");
        assert_ne!(next.attempt(), attempt);
        next.end().await.expect("ours");
    }

    #[tokio::test]
    async fn the_next_one_knows_when_the_last_one_was_there() {
        let (_folder, storage) = storage();
        begin(&storage).await.expect("nobody else").give_up().await.expect("ours");
        let second = begin(&storage).await.expect("it has given up");
        let now = chrono::Utc::now().timestamp_millis();
        assert!(second.follows(now) && !second.follows(now + 2 * HEARTBEAT_EXPIRES_MS));
        // As if its file could not be removed.
        drop(second);
        let third = begin(&storage).await.expect("ours, and none of those that live");
        third.end().await.expect("ours");
        assert_eq!(storage.names(HEARTBEATS).await.expect("names"), Vec::<String>::new());
    }

    #[tokio::test]
    async fn one_of_those_that_find_a_dead_one_takes_its_place() {
        let (_folder, storage) = storage();
        begin(&storage).await.expect("nobody else").give_up().await.expect("ours");
        let begun = futures::future::join_all((0..8).map(|_| begin(&storage))).await;
        let (taken, left): (Vec<_>, Vec<_>) = begun.into_iter().partition(|begun| begun.is_ok());
        assert_eq!(
            taken.len(),
            1,
            "the others were refused: {:?}",
            left.iter().map(|l| l.is_err()).collect::<Vec<_>>()
        );
        taken.into_iter().flatten().next().expect("one").check().await.expect("its own");
    }

    #[tokio::test]
    async fn the_dead_are_replaced_and_notice_it() {
        let (_folder, storage) = storage();
        let first = begin(&storage).await.expect("nobody else");
        // As if it had been another process, which has ended since: no process has this start.
        let owner = first.owner.to_string();
        let place = owner.rsplitn(3, ' ').last().expect("words");
        let dead = format!("{place} never x");
        storage.put(&path_of(&instant()), Bytes::from(dead)).await.expect("put");
        let second = begin(&storage).await.expect("the first is dead");
        assert_eq!(first.check().await.expect_err("taken over").code(), "service-compaction-taken");
        second.check().await.expect("ours");
    }

    #[tokio::test]
    async fn nothing_is_known_of_other_machines() {
        let (_folder, storage) = storage();
        for owner in ["", "other-boot pid:[1] 1 5"] {
            storage.put(&path_of(&instant()), Bytes::from(owner)).await.expect("put");
            let young = begin(&storage).await.err().expect("it may be alive");
            assert_eq!(young.code(), "service-compactor-alive", "{owner}");
        }
    }
}
