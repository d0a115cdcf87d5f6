//! Whose a file is that says "I am at work", and how one that a dead process left is taken over.
//!
//! A process names itself so that another one on this machine can see whether it runs still; of one on another machine
//! nothing is known but how long it has been silent.

use crate::storage::{Error, Result, Storage, fault_point};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::fmt;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

/// A file this old is a dead one's: `hoodie.client.heartbeat.interval_in_ms` × `….tolerable.misses` of Hudi 0.15.
pub(super) const HEARTBEAT_EXPIRES_MS: i64 = 2 * 60_000;

/// First word of one whose owner has given up: nobody need wait for it.
pub(super) const GIVEN_UP: &str = "given-up";

/// What the machine tells of its processes (`proc(5)`).
const PROC: &str = "/proc";

/// Ids of this process's owners that live: a file of this process that has none of them is left over.
static LIVING: Mutex<BTreeSet<Uuid>> = Mutex::new(BTreeSet::new());

/// Shown: `<boot> <process id space> <process id> <start time> <id> <user>`, which nothing else has, on this machine or
/// elsewhere.
pub(super) struct Owner {
    process: String,
    id: Uuid,
}

impl Owner {
    pub fn new() -> Owner {
        let id = Uuid::new_v4();
        LIVING.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        Owner { process: this_process(), id }
    }

    pub fn id(&self) -> Uuid {
        self.id
    }

    pub fn text(&self) -> Bytes {
        Bytes::from(self.to_string())
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.process, self.id, this_user())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        LIVING.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// Whether the owner of that text is at work. `None`: it is of another machine or container, of which nothing can be known
/// from here.
pub(super) fn is_alive(owner: &str) -> Option<bool> {
    let [boot, space, process, start, id, ref user @ ..] = owner.split(' ').collect::<Vec<_>>()[..] else {
        return None;
    };
    if boot == GIVEN_UP {
        return Some(false);
    }
    if place()? != format!("{boot} {space}") {
        return None;
    }
    let process = process.parse().ok()?;
    let runs = match seen_in(Path::new(PROC), process, user.first() == Some(&this_user().as_str())) {
        Seen::Runs(now) => now.to_string() == start,
        Seen::Gone => false,
        Seen::Hidden => return None,
    };
    Some(runs && (process != std::process::id() || is_living(id)))
}

fn is_living(id: &str) -> bool {
    let living = LIVING.lock().unwrap_or_else(PoisonError::into_inner);
    id.parse().is_ok_and(|id| living.contains(&id))
}

/// Makes a file `new` whose content `found` has shown it to be a dead one's: of several that find it so, one succeeds.
pub(super) async fn replace(storage: &Storage, path: &str, found: &[u8], new: Bytes) -> Result<bool> {
    claimed(storage, path, found, storage.put(path, new)).await
}

/// Removes a file whose owner is gone, or is about to be, if it is `ours` still and nobody is about to take it over.
pub(super) async fn remove(storage: &Storage, path: &str, ours: &Bytes) -> Result<bool> {
    claimed(storage, path, ours, storage.delete(path)).await
}

/// Does it if the file is `found` still. Of several, the one with the claim looks again, and does it.
async fn claimed(storage: &Storage, path: &str, found: &[u8], work: impl Future<Output = Result<()>>) -> Result<bool> {
    let (owner, claim) = (Owner::new(), format!("{path}.claim"));
    loop {
        match storage.create(&claim, owner.text()).await {
            Ok(()) => break,
            Err(Error::AlreadyExists { .. }) if remove_dead(storage, &claim).await? => {}
            Err(Error::AlreadyExists { .. }) => return Ok(false),
            Err(e) => return Err(e),
        }
    }
    fault_point("in-claim");
    let done = if_unchanged(storage, path, found, work).await;
    storage.delete(&claim).await?;
    done
}

/// Removes the claim of one that died with it, by a claim on the claim: a bare delete might hit the one that came after.
async fn remove_dead(storage: &Storage, claim: &str) -> Result<bool> {
    let Some(found) = storage.get_opt(claim).await? else { return Ok(true) };
    let Some((_, silent_ms)) = silence(storage, claim).await? else { return Ok(true) };
    Ok(!lives(&found, silent_ms) && Box::pin(claimed(storage, claim, &found, storage.delete(claim))).await?)
}

/// Whether the owner of a file with that content is at work; of one on another machine its silence tells.
pub(super) fn lives(content: &[u8], silent_ms: i64) -> bool {
    is_alive(&String::from_utf8_lossy(content)).unwrap_or(silent_ms < HEARTBEAT_EXPIRES_MS)
}

async fn if_unchanged(
    storage: &Storage,
    path: &str,
    found: &[u8],
    work: impl Future<Output = Result<()>>,
) -> Result<bool> {
    let unchanged = storage.get_opt(path).await?.is_some_and(|now| now == found);
    if unchanged {
        work.await?;
    }
    Ok(unchanged)
}

/// When a file was last written (milliseconds since 1970), and how many milliseconds ago that is. `None`: it has gone.
pub(super) async fn silence(storage: &Storage, path: &str) -> Result<Option<(i64, i64)>> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let listed = storage.list(folder).await?.files;
    let file = listed.iter().find(|file| file.path == path);
    let now = chrono::Utc::now().timestamp_millis();
    Ok(file.map(|file| (file.modified_ms, now.saturating_sub(file.modified_ms))))
}

/// Whose processes we see in any case.
fn this_user() -> String {
    std::fs::metadata("/proc/self").map_or_else(|_| "-".to_string(), |me| me.uid().to_string())
}

fn this_process() -> String {
    let place = place().unwrap_or_else(|| "- -".to_string());
    let id = std::process::id();
    let start = if let Seen::Runs(start) = seen_in(Path::new(PROC), id, true) { start } else { 0 };
    format!("{place} {id} {start}")
}

/// This run of the machine, and the space that process ids are unique in.
fn place() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let space = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), space.to_str()?.replace(' ', "")))
}

/// What this process can see of another one.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    /// When it started, in clock ticks since the machine did.
    Runs(u64),
    Gone,
    /// `hidepid` keeps those of other users from us.
    Hidden,
}

fn seen_in(proc: &Path, process: u32, is_ours: bool) -> Seen {
    match std::fs::read_to_string(proc.join(process.to_string()).join("stat")) {
        Ok(stat) => started(&stat).map_or(Seen::Gone, Seen::Runs),
        Err(_) if is_ours => Seen::Gone,
        Err(e) if e.kind() == ErrorKind::PermissionDenied => Seen::Hidden,
        // Whether those of others are shown is told by the first process, which always runs.
        Err(_) if std::fs::read_to_string(proc.join("1/stat")).is_err() => Seen::Hidden,
        Err(_) => Seen::Gone,
    }
}

/// Field 22 of `stat` (`proc(5)`); `None` of a zombie, which is dead.
fn started(stat: &str) -> Option<u64> {
    // The name, in brackets, may hold anything.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// The machine's name and the process, for messages: `host, process 7`.
pub(super) fn shown() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = if name.trim().is_empty() { "this machine" } else { name.trim() };
    format!("{name}, process {}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_known_to_live_as_long_as_it_does() {
        let owner = Owner::new();
        let text = owner.to_string();
        assert_eq!(is_alive(&text), Some(true));
        drop(owner);
        assert_eq!(is_alive(&text), Some(false));
        for (unknown, why) in
            [("", "no owner"), ("other-boot pid:[1] 1 5 x", "another machine"), ("- - 1 5", "too short")]
        {
            assert_eq!(is_alive(unknown), None, "{why}");
        }
    }

    #[tokio::test]
    async fn what_somebody_is_about_to_take_over_is_not_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = Storage::open(folder.path().to_str().expect("text")).expect("a storage");
        let (ours, theirs) = (Bytes::from("ours"), Bytes::from("theirs"));
        for (name, content, claim, want) in [
            ("ours", Some(&ours), None, true),
            ("ours, and claimed", Some(&ours), Some(&theirs), false),
            ("another's by now", Some(&theirs), None, false),
            ("gone", None, None, false),
        ] {
            for (path, content) in [("lock", content), ("lock.claim", claim)] {
                storage.delete(path).await.expect("deleted");
                if let Some(content) = content {
                    storage.create(path, content.clone()).await.expect("created");
                }
            }
            assert_eq!(remove(&storage, "lock", &ours).await.expect("asked"), want, "{name}");
            assert_eq!(storage.get_opt("lock").await.expect("read").as_ref(), content.filter(|_| !want), "{name}");
            assert_eq!(storage.get_opt("lock.claim").await.expect("read").as_ref(), claim, "{name}");
        }
    }

    #[tokio::test]
    async fn a_claim_outlives_its_process_for_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = Storage::open(folder.path().to_str().expect("text")).expect("a storage");
        let [dead, new] = ["dead", "new"].map(Bytes::from);
        let dead_owner = Owner::new().text();
        for claims in [&[][..], &["lock.claim"], &["lock.claim", "lock.claim.claim"]] {
            storage.put("lock", dead.clone()).await.expect("put");
            for claim in claims {
                storage.create(claim, dead_owner.clone()).await.expect("created");
            }
            let all = (0..8).map(|_| replace(&storage, "lock", &dead, new.clone()));
            let done = futures::future::join_all(all).await;
            let done: Vec<bool> = done.into_iter().map(|done| done.expect("asked")).collect();
            assert_eq!(done.iter().filter(|done| **done).count(), 1, "{claims:?}: {done:?}");
            assert_eq!(storage.names("").await.expect("names"), ["lock"], "{claims:?}");
        }
        let alive = Owner::new();
        storage.create("lock.claim", alive.text()).await.expect("created");
        assert!(!replace(&storage, "lock", &new, dead).await.expect("asked"), "the claim's owner is at work");
    }

    #[test]
    fn one_that_cannot_be_seen_is_not_taken_for_dead() {
        let proc = tempfile::tempdir().expect("a folder");
        let process = |id: u32, state: &str| {
            let folder = proc.path().join(id.to_string());
            std::fs::create_dir_all(&folder).expect("a folder");
            let stat = format!("{id} (a ) b) {state} {}77 0", "0 ".repeat(18));
            std::fs::write(folder.join("stat"), stat).expect("a file");
        };
        process(8, "S");
        process(7, "Z");
        let seen = |process, is_ours| seen_in(proc.path(), process, is_ours);
        assert_eq!((seen(8, false), seen(7, false)), (Seen::Runs(77), Seen::Gone), "a zombie is dead");
        assert_eq!((seen(9, false), seen(9, true)), (Seen::Hidden, Seen::Gone), "not even the first one can be seen");
        process(1, "S");
        assert_eq!((seen(9, false), seen(9, true)), (Seen::Gone, Seen::Gone));
    }
}
