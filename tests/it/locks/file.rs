//! `FileSystemBasedLockProvider`: Hudi's and ours over one file.

use hudi_streamer::config::FileLockConfig;

use super::*;

const CLASS: &str = "FileSystemBasedLockProvider";

fn ours(scratch: &Scratch, expire: Option<Duration>, wait: Duration) -> Locks {
    locks(LockProvider::FileSystem(FileLockConfig { folder: None, expire }), scratch, "t", wait)
}

fn hudis(version: &str, scratch: &Scratch, expire: &str) -> HudiLock {
    let table = scratch.path("t");
    let table = table.to_str().expect("UTF-8");
    HudiLock::new(version, CLASS, &[("hoodie.base.path", table), ("hoodie.write.lock.filesystem.expire", expire)])
}

#[tokio::test]
async fn hudis_file_lock_and_ours_keep_each_other_out() {
    needs_peers!();
    for version in LOCK_VERSIONS {
        let scratch = Scratch::new();
        std::fs::create_dir_all(scratch.path("t/.hoodie")).expect("a folder");
        let mut hudi = hudis(version, &scratch, "0");
        assert!(hudi.lock(1000), "{version}: nobody has it");
        let error = ours(&scratch, None, SHORT).lock("commit").await.err().expect("Hudi has it");
        assert_eq!(error.code(), "lock-not-obtained", "{version}");
        assert!(error.to_string().contains("t/.hoodie/lock"), "the file to look at: {error}");
        hudi.unlock();
        let held = ours(&scratch, None, LONG).lock("commit").await.expect("Hudi has released it");
        assert!(!hudi.lock(100), "{version}: we have it");
        held.check().await.expect("ours");
        held.release().await.expect("ours");
        assert!(hudi.lock(1000), "{version}: we have released it");
        hudi.unlock();
        hudi.close();
        assert_eq!(
            std::fs::read_dir(scratch.path("t/.hoodie")).expect("a folder").count(),
            0,
            "{version}: all is gone"
        );
    }
}

#[tokio::test]
async fn a_hudi_writer_that_closes_takes_our_file_lock_away_and_we_say_so() {
    needs_peers!();
    for version in LOCK_VERSIONS {
        let scratch = Scratch::new();
        std::fs::create_dir_all(scratch.path("t/.hoodie")).expect("a folder");
        let mut hudi = hudis(version, &scratch, "0");
        assert!(hudi.lock(1000));
        hudi.unlock();
        let held = ours(&scratch, None, LONG).lock("commit").await.expect("Hudi has released it");
        hudi.close();
        let error = held.check().await.expect_err("Hudi has removed the file");
        assert_eq!(error.code(), "lock-lost", "{version}: {error}");
    }
}

#[tokio::test]
async fn expired_file_locks_pass_to_hudi_and_from_hudi() {
    needs_peers!();
    let minute = Duration::from_secs(60);
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.path("t/.hoodie")).expect("a folder");
    let age = || {
        let file = std::fs::File::options().write(true).open(scratch.path("t/.hoodie/lock")).expect("a lock");
        file.set_modified(std::time::SystemTime::now() - 2 * minute).expect("set its time");
    };
    let mut hudi = hudis("0.15.0", &scratch, "1");
    assert!(hudi.lock(1000));
    age();
    let held = ours(&scratch, Some(minute), SHORT).lock("commit").await.expect("it has expired");
    held.check().await.expect("ours");
    age();
    assert!(hudi.lock(1000), "ours has expired, too");
    assert_eq!(held.check().await.expect_err("it is Hudi's").code(), "lock-lost");
    assert_eq!(held.release().await.expect_err("it is Hudi's").code(), "lock-lost");
    assert!(scratch.path("t/.hoodie/lock").exists(), "Hudi's lock stays");
}
