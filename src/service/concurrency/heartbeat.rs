//! A writer among several says that it lives (table-services.md §7.3): whoever is silent for too long is rolled back, and must
//! not commit any more when it wakes up.
//!
//! The file is Hudi's heartbeat, which is empty there. Ours names the process, so that one that died on this machine need not
//! be waited for.

use crate::config::HeartbeatConfig;
use crate::service::owner::{GIVEN_UP, Owner, is_alive};
use crate::service::{Error, Result};
use crate::storage::{self, Storage};
use crate::table::{InstantTime, Timeline};
use bytes::Bytes;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Folder of all heartbeats.
pub(in crate::service) const HEARTBEATS: &str = ".hoodie/.heartbeat";

/// Beats until it is ended or dropped; dropped, its file stays until it is found to be a dead one's.
pub(super) struct Heartbeat {
    pulse: Arc<Pulse>,
    /// Living as long as this beats.
    _owner: Owner,
    beating: JoinHandle<()>,
}

/// What the beating task and its owner share.
struct Pulse {
    storage: Storage,
    instant: InstantTime,
    content: Bytes,
    tolerance: Duration,
    last: Mutex<Beat>,
    /// Cancelled when others may take this writer for dead: what it writes is to end.
    lost: CancellationToken,
}

/// On both clocks: the one stops while the machine sleeps, the other may be set.
#[derive(Clone, Copy)]
struct Beat(Instant, SystemTime);

impl Beat {
    fn now() -> Beat {
        Beat(Instant::now(), SystemTime::now())
    }

    fn age(self) -> Duration {
        self.0.elapsed().max(self.1.elapsed().unwrap_or_default())
    }
}

impl Heartbeat {
    /// The first beat is written before anything of the instant is. `lost` is cancelled once the writer counts as dead. `None`:
    /// the instant is somebody else's.
    pub(super) async fn begin(
        storage: &Storage,
        instant: &InstantTime,
        config: &HeartbeatConfig,
        lost: CancellationToken,
    ) -> Result<Option<Heartbeat>> {
        let owner = Owner::new();
        let content = owner.text();
        let last = Mutex::new(Beat::now());
        let (storage, instant) = (storage.clone(), instant.clone());
        let pulse = Arc::new(Pulse { storage, instant, content, tolerance: tolerance(config), last, lost });
        match pulse.storage.create(&path_of(&pulse.instant), pulse.content.clone()).await {
            Err(storage::Error::AlreadyExists { .. }) => return Ok(None),
            created => created?,
        }
        let beating = tokio::spawn(beat(pulse.clone(), config.interval));
        Ok(Some(Heartbeat { pulse, _owner: owner, beating }))
    }

    /// Fails where others may take this writer for dead, and may have begun to roll it back: a beat that comes late brings
    /// nothing back.
    pub(super) async fn check(&self) -> Result<()> {
        self.pulse.check_silence()?;
        match self.pulse.is_ours().await? {
            true => Ok(()),
            false => Err(Error::WriteTaken { instant: self.pulse.instant.to_string() }),
        }
    }

    /// The instant is completed, or rolled back.
    pub(super) async fn end(self) -> Result<()> {
        self.beating.abort();
        Ok(self.pulse.storage.delete(&path_of(&self.pulse.instant)).await?)
    }

    /// What was written is left to be rolled back by others, who need not wait.
    pub(super) async fn give_up(self) -> Result<()> {
        self.beating.abort();
        if !self.pulse.is_ours().await? {
            return Ok(());
        }
        let given_up = [GIVEN_UP.as_bytes(), b" ", &self.pulse.content].concat();
        Ok(self.pulse.storage.put(&path_of(&self.pulse.instant), given_up.into()).await?)
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.beating.abort();
    }
}

impl Pulse {
    fn check_silence(&self) -> Result<()> {
        let age = self.last.lock().unwrap_or_else(PoisonError::into_inner).age();
        if age < self.tolerance && !self.lost.is_cancelled() {
            return Ok(());
        }
        self.lost.cancel();
        Err(Error::WriterExpired { instant: self.instant.to_string(), seconds: age.as_secs() })
    }

    async fn is_ours(&self) -> Result<bool> {
        let found = self.storage.get_opt(&path_of(&self.instant)).await?;
        Ok(found.is_some_and(|found| found == self.content))
    }

    /// `false`: somebody has taken the heartbeat away.
    async fn beat(&self) -> Result<bool> {
        let now = Beat::now();
        if !self.is_ours().await? {
            return Ok(false);
        }
        self.storage.put(&path_of(&self.instant), self.content.clone()).await?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = now;
        Ok(true)
    }
}

async fn beat(pulse: Arc<Pulse>, interval: Duration) {
    let mut wait = interval;
    loop {
        tokio::time::sleep(wait).await;
        if pulse.check_silence().is_err() {
            return;
        }
        wait = match pulse.beat().await {
            Ok(true) => interval,
            Ok(false) => return pulse.lost.cancel(),
            Err(e) => {
                tracing::warn!(error = %e, instant = %pulse.instant, "a heartbeat failed; trying again soon");
                (interval / 10).max(Duration::from_millis(100))
            }
        };
    }
}

/// Silence for longer is death (`HoodieHeartbeatClient.isHeartbeatExpired`, Hudi 0.15).
pub(in crate::service) fn tolerance(config: &HeartbeatConfig) -> Duration {
    config.interval.saturating_mul(config.tolerable_misses)
}

pub(in crate::service) fn path_of(instant: &InstantTime) -> String {
    format!("{HEARTBEATS}/{instant}")
}

/// What the heartbeat of an instant says of its writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::service) enum Life {
    /// It has none: it is not one of several, or it is dead.
    None,
    Alive {
        silent_ms: i64,
    },
    Expired,
}

/// The heartbeats of a table as one listing shows them.
pub(in crate::service) struct Lives {
    storage: Storage,
    /// By instant, when it was last written, milliseconds since 1970.
    beats: Vec<(String, i64)>,
    tolerance_ms: i64,
}

impl Lives {
    pub(in crate::service) async fn look(storage: &Storage, config: &HeartbeatConfig) -> Result<Lives> {
        let listed = storage.list(HEARTBEATS).await?.files;
        let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_string();
        Ok(Lives {
            storage: storage.clone(),
            beats: listed.iter().map(|file| (name(&file.path), file.modified_ms)).collect(),
            tolerance_ms: i64::try_from(tolerance(config).as_millis()).unwrap_or(i64::MAX),
        })
    }

    pub(in crate::service) async fn of(&self, instant: &InstantTime) -> Result<Life> {
        let Some((_, beat_ms)) = self.beats.iter().find(|(name, _)| name == instant.as_str()) else {
            return Ok(Life::None);
        };
        let silent_ms = chrono::Utc::now().timestamp_millis().saturating_sub(*beat_ms);
        if silent_ms > self.tolerance_ms {
            return Ok(Life::Expired);
        }
        // Gone since the listing: its writer has just completed, which the timeline tells, or has given up.
        let Some(content) = self.storage.get_opt(&path_of(instant)).await? else { return Ok(Life::None) };
        match is_alive(&String::from_utf8_lossy(&content)) {
            Some(false) => Ok(Life::Expired),
            _ => Ok(Life::Alive { silent_ms }),
        }
    }

    /// Removes those that say nothing any more: of completed writes, whose writers died right after, and of expired ones that
    /// never got on to the timeline.
    pub(in crate::service) async fn remove_stale(&self, timeline: &Timeline) -> Result<()> {
        for (name, _) in &self.beats {
            let Some(instant) = InstantTime::parse(name) else { continue };
            let at = || timeline.instants.iter().filter(|i| i.time == instant);
            let done = at().any(|i| !i.is_pending());
            if done || (at().next().is_none() && self.of(&instant).await? == Life::Expired) {
                self.storage.delete(&path_of(&instant)).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: HeartbeatConfig = HeartbeatConfig { interval: Duration::from_secs(60), tolerable_misses: 2 };

    fn instant() -> InstantTime {
        InstantTime::parse("20260101000000000").expect("digits")
    }

    fn storage() -> (tempfile::TempDir, Storage) {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = Storage::open(folder.path().to_str().expect("UTF-8")).expect("storage");
        (folder, storage)
    }

    async fn begin(storage: &Storage, config: &HeartbeatConfig) -> (Heartbeat, CancellationToken) {
        let lost = CancellationToken::new();
        let begun = Heartbeat::begin(storage, &instant(), config, lost.clone()).await.expect("begun");
        (begun.expect("nobody else has it"), lost)
    }

    async fn life(storage: &Storage) -> Life {
        Lives::look(storage, &CONFIG).await.expect("looked").of(&instant()).await.expect("a life")
    }

    #[tokio::test]
    async fn a_living_writer_is_seen_and_one_that_has_ended_is_not() {
        let (_folder, storage) = storage();
        assert_eq!(life(&storage).await, Life::None);
        let (heartbeat, _) = begin(&storage, &CONFIG).await;
        assert!(matches!(life(&storage).await, Life::Alive { silent_ms } if silent_ms < 60_000));
        let second = Heartbeat::begin(&storage, &instant(), &CONFIG, CancellationToken::new()).await.expect("looked");
        assert!(second.is_none(), "the instant is the first one's");
        heartbeat.check().await.expect("alive");
        heartbeat.end().await.expect("ended");
        assert_eq!(life(&storage).await, Life::None);
    }

    #[tokio::test]
    async fn a_writer_whose_heartbeat_somebody_removed_is_dead() {
        let (_folder, storage) = storage();
        let config = HeartbeatConfig { interval: Duration::from_millis(20), tolerable_misses: 1000 };
        let (heartbeat, lost) = begin(&storage, &config).await;
        storage.delete(&path_of(&instant())).await.expect("deleted");
        assert_eq!(heartbeat.check().await.expect_err("dead").code(), "service-write-taken");
        lost.cancelled().await;
        assert_eq!(heartbeat.check().await.expect_err("for good").code(), "service-writer-expired");
        assert_eq!(storage.names(HEARTBEATS).await.expect("names"), [""; 0], "it is not brought back");
    }

    #[tokio::test]
    async fn a_writer_that_was_silent_for_too_long_stays_dead() {
        let (_folder, storage) = storage();
        let config = HeartbeatConfig { interval: Duration::from_secs(60), tolerable_misses: 0 };
        let (heartbeat, lost) = begin(&storage, &config).await;
        assert_eq!(heartbeat.check().await.expect_err("expired").code(), "service-writer-expired");
        assert!(lost.is_cancelled());
    }

    #[tokio::test]
    async fn the_dead_of_this_machine_are_known_at_once_and_others_by_their_silence() {
        let (folder, storage) = storage();
        let (heartbeat, _) = begin(&storage, &CONFIG).await;
        // As if the process had ended since: no process has this start.
        let place = String::from_utf8_lossy(&heartbeat.pulse.content).into_owned();
        let place = place.rsplitn(3, ' ').last().expect("words");
        storage.put(&path_of(&instant()), Bytes::from(format!("{place} never x"))).await.expect("put");
        assert_eq!(life(&storage).await, Life::Expired);
        // Hudi's, of which nothing is known but its time.
        storage.put(&path_of(&instant()), Bytes::new()).await.expect("put");
        assert!(matches!(life(&storage).await, Life::Alive { .. }));
        let file = std::fs::File::options().write(true).open(folder.path().join(path_of(&instant()))).expect("opened");
        file.set_modified(SystemTime::now() - Duration::from_secs(121)).expect("set");
        assert_eq!(life(&storage).await, Life::Expired);
    }

    #[tokio::test]
    async fn heartbeats_that_say_nothing_any_more_go() {
        let (_folder, storage) = storage();
        let names = ["20260101000000001", "20260101000000002", "20260101000000003", "20260101000000004"];
        for name in names {
            let content = if name == names[3] { "given-up x 1 1 1" } else { "" };
            storage.put(&format!("{HEARTBEATS}/{name}"), Bytes::from(content)).await.expect("put");
        }
        let timeline = Timeline::from_file_names(["20260101000000001.commit", "20260101000000002.commit.requested"]);
        let lives = Lives::look(&storage, &CONFIG).await.expect("looked");
        lives.remove_stale(&timeline).await.expect("removed");
        let mut left = storage.names(HEARTBEATS).await.expect("names");
        left.sort();
        assert_eq!(left, names[1..3], "the open one, and one that may be about to begin");
    }
}
