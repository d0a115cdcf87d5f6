//! Who executes a compaction says so beside it: an inflight file alone does not tell a live executor from a dead one.
//!
//! The file is Hudi's heartbeat (table-services.md §7.3), which is empty there. Ours names the process, so that one that
//! died on this machine need not be waited for.

use crate::service::rollback::{HEARTBEAT_EXPIRES_MS, HEARTBEATS};
use crate::service::{Error, Result};
use crate::storage::{self, Storage};
use crate::table::InstantTime;
use bytes::Bytes;
use std::time::Duration;
use tokio::task::JoinHandle;

/// `hoodie.client.heartbeat.interval_in_ms`, Hudi 0.15.
const INTERVAL: Duration = Duration::from_secs(60);

/// Beats until it is ended or dropped; dropped, its file stays until it is found to be a dead one's.
pub(super) struct Heartbeat {
    storage: Storage,
    instant: InstantTime,
    owner: String,
    beating: JoinHandle<()>,
}

impl Heartbeat {
    /// Refuses where somebody else's is alive.
    pub(super) async fn begin(storage: &Storage, instant: &InstantTime) -> Result<Heartbeat> {
        let owner = format!("{} {}", this_process(), uuid::Uuid::new_v4());
        let path = path_of(instant);
        for _ in 0..2 {
            match storage.create(&path, Bytes::from(owner.clone())).await {
                Ok(()) => {
                    let beating = tokio::spawn(beat(storage.clone(), path, owner.clone()));
                    return Ok(Heartbeat { storage: storage.clone(), instant: instant.clone(), owner, beating });
                }
                Err(storage::Error::AlreadyExists { .. }) => bury(storage, instant).await?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::CompactorAlive { instant: instant.to_string(), seconds: 0 })
    }

    /// Fails where another process has taken this one for dead: what it does now must not be mixed with what we did.
    pub(super) async fn check(&self) -> Result<()> {
        match self.storage.get_opt(&path_of(&self.instant)).await? {
            Some(owner) if owner == self.owner.as_bytes() => Ok(()),
            _ => Err(Error::CompactionTaken { instant: self.instant.to_string() }),
        }
    }

    pub(super) async fn end(self) -> Result<()> {
        self.beating.abort();
        self.check().await?;
        Ok(self.storage.delete(&path_of(&self.instant)).await?)
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.beating.abort();
    }
}

fn path_of(instant: &InstantTime) -> String {
    format!("{HEARTBEATS}/{instant}")
}

async fn beat(storage: Storage, path: String, owner: String) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        // A beat that fails is made good by the next one; the owner looks before it commits.
        match storage.get_opt(&path).await {
            Ok(Some(found)) if found == owner.as_bytes() => {
                if let Err(e) = storage.put(&path, Bytes::from(owner.clone())).await {
                    tracing::warn!(error = %e, "heartbeat of a compaction failed; the next one is in a minute");
                }
            }
            Ok(_) => return,
            Err(e) => tracing::warn!(error = %e, "heartbeat of a compaction failed; the next one is in a minute"),
        }
    }
}

/// Removes a dead executor's heartbeat.
async fn bury(storage: &Storage, instant: &InstantTime) -> Result<()> {
    let path = path_of(instant);
    let Some(owner) = storage.get_opt(&path).await? else { return Ok(()) };
    let listed = storage.list(HEARTBEATS).await?.files;
    let Some(file) = listed.iter().find(|file| file.path == path) else { return Ok(()) };
    let silent_ms = chrono::Utc::now().timestamp_millis().saturating_sub(file.modified_ms);
    let alive = is_alive(&String::from_utf8_lossy(&owner)).unwrap_or(silent_ms < HEARTBEAT_EXPIRES_MS);
    if alive {
        return Err(Error::CompactorAlive { instant: instant.to_string(), seconds: silent_ms / 1000 });
    }
    Ok(storage.delete(&path).await?)
}

/// `<boot> <process id space> <process id> <start time>`: what no other process has, on this machine or elsewhere.
fn this_process() -> String {
    let place = place().unwrap_or_else(|| "- -".to_string());
    let id = std::process::id();
    format!("{place} {id} {}", started(id).unwrap_or_default())
}

/// `None`: a process of another machine or container, of which nothing can be known from here.
fn is_alive(owner: &str) -> Option<bool> {
    let [boot, space, id, start, ..] = owner.split(' ').collect::<Vec<_>>()[..] else { return None };
    if place()? != format!("{boot} {space}") {
        return None;
    }
    Some(started(id.parse().ok()?).is_some_and(|now| now.to_string() == start))
}

/// This run of the machine, and the space that process ids are unique in.
fn place() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let space = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), space.to_str()?.replace(' ', "")))
}

/// When a living process started, in clock ticks since the machine did (`proc(5)`, field 22 of `stat`).
fn started(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in brackets, may hold anything; a zombie is dead.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant() -> InstantTime {
        InstantTime::parse("20260101000000000").expect("digits")
    }

    fn storage() -> (tempfile::TempDir, Storage) {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = Storage::open(folder.path().to_str().expect("UTF-8")).expect("storage");
        (folder, storage)
    }

    #[tokio::test]
    async fn one_executor_at_a_time() {
        let (_folder, storage) = storage();
        let first = Heartbeat::begin(&storage, &instant()).await.expect("nobody else");
        let second = Heartbeat::begin(&storage, &instant()).await.err().expect("one is alive");
        assert_eq!(second.code(), "service-compactor-alive");
        first.end().await.expect("ours");
        Heartbeat::begin(&storage, &instant()).await.expect("it has ended").end().await.expect("ours");
    }

    #[tokio::test]
    async fn the_dead_are_replaced_and_notice_it() {
        let (_folder, storage) = storage();
        let first = Heartbeat::begin(&storage, &instant()).await.expect("nobody else");
        // As if it had been another process, which has ended since: no process has this start.
        let place = first.owner.rsplitn(3, ' ').last().expect("words");
        let dead = format!("{place} never x");
        storage.put(&path_of(&instant()), Bytes::from(dead)).await.expect("put");
        let second = Heartbeat::begin(&storage, &instant()).await.expect("the first is dead");
        assert_eq!(first.check().await.expect_err("taken over").code(), "service-compaction-taken");
        second.check().await.expect("ours");
    }

    #[tokio::test]
    async fn nothing_is_known_of_other_machines() {
        let (_folder, storage) = storage();
        for owner in ["", "other-boot pid:[1] 1 5"] {
            assert_eq!(is_alive(owner), None, "{owner}");
            storage.put(&path_of(&instant()), Bytes::from(owner)).await.expect("put");
            let young = Heartbeat::begin(&storage, &instant()).await.err().expect("it may be alive");
            assert_eq!(young.code(), "service-compactor-alive", "{owner}");
        }
    }
}
