//! Who gets a lock, who does not, and what each of them is told.

mod object;

use super::*;
use crate::config::{ConcurrencyMode, FailedWritesPolicy, FileLockConfig, HeartbeatConfig, StorageLockConfig};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

fn config(provider: LockProvider) -> LockConfig {
    LockConfig { provider, wait: Duration::from_millis(60), retries: 1, pause: Duration::from_millis(1) }
}

fn writers(lock: LockConfig) -> ConcurrencyConfig {
    ConcurrencyConfig {
        mode: ConcurrencyMode::Optimistic,
        failed_writes: FailedWritesPolicy::Lazy,
        retries_on_conflict: 0,
        heartbeat: HeartbeatConfig { interval: Duration::from_secs(60), tolerable_misses: 2 },
        lock: Some(lock),
    }
}

/// A table's folder, and its lock file.
struct Place {
    _folder: tempfile::TempDir,
    storage: Storage,
    file: PathBuf,
}

fn place() -> Place {
    let folder = tempfile::tempdir().expect("a folder");
    let storage = Storage::open(folder.path().to_str().expect("UTF-8")).expect("a local folder");
    let file = folder.path().join(".hoodie/lock");
    std::fs::create_dir(folder.path().join(".hoodie")).expect("a folder");
    Place { _folder: folder, storage, file }
}

impl Place {
    fn locks(&self, provider: LockProvider) -> Locks {
        Locks::open(&writers(config(provider)), &self.storage, "t").expect("a provider that suits local disks")
    }

    fn files(&self, expire: Option<Duration>) -> Locks {
        self.locks(LockProvider::FileSystem(FileLockConfig { folder: None, expire }))
    }

    fn put(&self, content: &str) {
        std::fs::write(&self.file, content).expect("write");
    }

    fn content(&self) -> Option<String> {
        std::fs::read_to_string(&self.file).ok()
    }
}

/// As Hudi 0.15 writes it.
const HUDIS: &str = "{\n  \"lockCreateTime\" : \"2026-01-02 03:04:05.678\",\n  \"lockThreadName\" : \"main\",\n  \
                     \"lockStacksInfo\" : [ \"java.lang.Thread.getStackTrace (Thread.java:1610)\" ]\n}";

#[tokio::test]
async fn a_single_writer_locks_nothing() {
    let locks = Locks::none();
    assert!(!locks.are_shared());
    let first = locks.lock("first").await.expect("at once");
    let second = locks.lock("second").await.expect("at once, too");
    first.check().await.expect("nothing can be lost");
    first.release().await.and(second.release().await).expect("nothing can be lost");
}

#[tokio::test]
async fn tasks_of_a_process_take_turns_and_say_who_has_it() {
    let place = place();
    let (one, other) = (place.locks(LockProvider::InProcess), place.locks(LockProvider::InProcess));
    let held = one.lock("commit 1").await.expect("free");
    let error = other.lock("commit 2").await.err().expect("one has it");
    assert_eq!(error.code(), "lock-not-obtained");
    let text = error.to_string();
    for word in ["commit 2", "2 tries", "this process", "commit 1", "num_retries"] {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
    held.release().await.expect("ours");
    drop(other.lock("commit 2").await.expect("free again"));
    drop(one.lock("commit 3").await.expect("dropped"));
}

#[tokio::test]
async fn another_table_has_another_lock() {
    let (one, other) = (place(), place());
    let _held = one.locks(LockProvider::InProcess).lock("commit").await.expect("free");
    drop(other.locks(LockProvider::InProcess).lock("commit").await.expect("another table"));
}

#[tokio::test]
async fn a_file_is_there_while_the_lock_is_held() {
    let place = place();
    let held = place.files(None).lock("commit 7").await.expect("free");
    let content = place.content().expect("a file");
    let told: serde_json::Value = serde_json::from_str(&content).expect("JSON");
    assert!(told["lockThreadName"].as_str().expect("text").contains("commit 7"), "{content}");
    assert!(told["lockCreateTime"].is_string() && told["lockStacksInfo"][0].is_string(), "{content}");
    held.check().await.expect("ours");
    held.release().await.expect("ours");
    assert_eq!(place.content(), None);
    // Claims, uploads: nothing else stays.
    assert_eq!(place.storage.names(".hoodie").await.expect("names"), Vec::<String>::new());
}

#[tokio::test]
async fn a_lock_of_a_hudi_writer_is_respected_and_named() {
    let place = place();
    for (content, words) in
        [(HUDIS, ["thread main", "2026-01-02 03:04:05.678"]), ("", ["does not tell", "remove the file"])]
    {
        place.put(content);
        for expire in [None, Some(Duration::from_secs(3600))] {
            let error = place.files(expire).lock("commit").await.err().expect("it is Hudi's");
            assert_eq!(error.code(), "lock-not-obtained");
            words.iter().for_each(|word| assert!(error.to_string().contains(word), "{word}: {error}"));
        }
        assert_eq!(place.content().as_deref(), Some(content), "not ours to touch");
    }
}

#[tokio::test]
async fn an_expired_lock_is_taken_over_by_one() {
    let place = place();
    place.put(HUDIS);
    let old = std::time::SystemTime::now() - Duration::from_secs(100);
    std::fs::File::options().write(true).open(&place.file).and_then(|f| f.set_modified(old)).expect("an old file");
    place.files(None).lock("commit").await.err().expect("without an expiry nothing expires");
    let held = place.files(Some(Duration::from_secs(60))).lock("commit").await.expect("it has expired");
    held.check().await.expect("ours");
    held.release().await.expect("ours");
    assert_eq!(place.content(), None);
}

#[tokio::test]
async fn a_dead_process_of_ours_on_this_machine_holds_nothing() {
    let place = place();
    let held = place.files(None).lock("commit").await.expect("free");
    let content = place.content().expect("a file");
    drop(held);
    // As if the process had been killed: the file is there, its owner is not.
    place.put(&content);
    let next = place.files(None).lock("commit").await.expect("taken over");
    next.check().await.expect("ours");
    next.release().await.expect("ours");
}

#[tokio::test]
async fn one_that_was_taken_away_is_told_and_left_to_who_has_it() {
    let place = place();
    for taken in [None, Some(HUDIS)] {
        let held = place.files(None).lock("commit").await.expect("free");
        std::fs::remove_file(&place.file).expect("remove");
        taken.iter().for_each(|content| place.put(content));
        let error = held.check().await.expect_err("it is not ours");
        assert_eq!(error.code(), "lock-lost");
        assert!(error.to_string().contains("is not"), "what becomes of the commit: {error}");
        assert_eq!(held.release().await.expect_err("not ours").code(), "lock-lost");
        assert_eq!(place.content().as_deref(), taken, "another's lock stays");
    }
}

#[tokio::test]
async fn one_that_may_have_expired_is_not_relied_on() {
    let place = place();
    let held = place.files(Some(Duration::from_millis(1))).lock("commit").await.expect("free");
    let error = held.check().await.expect_err("others may take it");
    assert!(error.to_string().contains("expire"), "{error}");
}

#[test]
fn a_lock_on_an_object_store_cannot_be_on_a_disk() {
    let place = place();
    let of_objects = StorageLockConfig { validity: Duration::from_secs(300), renew_interval: Duration::from_secs(30) };
    let config = writers(config(LockProvider::Storage(of_objects)));
    let error = Locks::open(&config, &place.storage, "t").err().expect("no versions there");
    assert_eq!(error.code(), "lock-provider-unsuitable");
    assert!(error.to_string().contains("ZookeeperBasedLockProvider"), "{error}");
}

/// Refuses so many times.
struct Stubborn(AtomicU32);

#[async_trait]
impl Provider for Stubborn {
    async fn try_lock(&self, _: &'static str, _: Duration) -> Result<Answer> {
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)) {
            Ok(1) => Err(Error::Failed { doing: "ask for", lock: "x".into(), cause: "the network broke".into() }),
            Ok(_) => Ok(Answer::Busy("a writer has it".into())),
            Err(_) => Ok(Answer::Got(Box::new(Nothing))),
        }
    }
}

struct Nothing;

#[async_trait]
impl Grip for Nothing {
    async fn check(&self) -> Result<()> {
        Ok(())
    }

    async fn release(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn tries_are_made_as_often_as_the_manager_is_told() {
    let cases = [(0, 0, None), (2, 2, None), (2, 1, Some("lock-failed")), (3, 1, Some("lock-not-obtained"))];
    for (refusals, retries, code) in cases {
        let provider: Option<Box<dyn Provider>> = Some(Box::new(Stubborn(AtomicU32::new(refusals))));
        let config = LockConfig { retries, ..config(LockProvider::InProcess) };
        let lock = Lock { name: "x".into(), config, local: Local::default(), provider };
        let locks = Locks { lock: Some(Arc::new(lock)), ..Locks::none() };
        let got = locks.lock("commit").await.err().map(|e| e.code());
        assert_eq!(got, code, "{refusals} refusals, {retries} retries");
    }
}

#[tokio::test]
async fn waiting_ends_when_the_job_does() {
    let place = place();
    let lock = LockConfig { wait: Duration::from_secs(600), ..config(LockProvider::InProcess) };
    let locks = Locks::open(&writers(lock), &place.storage, "t").expect("a provider that suits local disks");
    let held = locks.lock("commit 1").await.expect("free");
    let ended = CancellationToken::new();
    let waiting = locks.clone().until(ended.clone());
    let waiting = tokio::spawn(async move { waiting.lock("commit 2").await.map(drop) });
    ended.cancel();
    assert_eq!(waiting.await.expect("no panic").expect_err("one has it").code(), "lock-given-up");
    held.release().await.expect("ours");
    drop(locks.until(ended).lock("commit 3").await.expect("what is free is had all the same"));
}
