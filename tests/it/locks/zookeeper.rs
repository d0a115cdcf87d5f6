//! `ZookeeperBasedLockProvider`: Hudi's, by Apache Curator, and ours on one server.

use std::sync::Arc;

use hudi_streamer::config::ZooKeeperConfig;
use tokio::sync::Mutex;
use zookeeper_client::Client;

use super::*;

const CLASS: &str = "ZookeeperBasedLockProvider";

/// The folder of the locks of these tests; each has a key of its own.
const BASE: &str = "/hudi/locks";

/// Of the table `table`, whose lock has the name `key`.
fn ours(server: &str, scratch: &Scratch, table: &str, key: &str, wait: Duration, session: Duration) -> Locks {
    let config = ZooKeeperConfig {
        servers: server.to_string(),
        base_path: BASE.to_string(),
        lock_key: Some(key.to_string()),
        session_timeout: session,
        connection_timeout: Duration::from_secs(5),
    };
    locks(LockProvider::ZooKeeper(config), scratch, table, wait)
}

fn hudis(version: &str, server: &str, key: &str) -> HudiLock {
    let properties = [
        ("hoodie.write.lock.zookeeper.url", server),
        ("hoodie.write.lock.zookeeper.base_path", BASE),
        ("hoodie.write.lock.zookeeper.lock_key", key),
        ("hoodie.write.lock.zookeeper.session_timeout_ms", "10000"),
        ("hoodie.write.lock.zookeeper.connection_timeout_ms", "5000"),
        ("hoodie.write.lock.wait_time_ms_between_retry", "1000"),
        ("hoodie.write.lock.max_wait_time_ms_between_retry", "1000"),
        ("hoodie.write.lock.num_retries", "3"),
    ];
    HudiLock::new(version, CLASS, &properties)
}

/// Those that have the lock or wait for it.
async fn contenders(server: &str, key: &str) -> usize {
    let client = Client::connect(server).await.expect("ZooKeeper listens");
    client.list_children(&format!("{BASE}/{key}")).await.map_or(0, |children| children.len())
}

#[tokio::test]
async fn hudis_zookeeper_lock_and_ours_keep_each_other_out() {
    needs_peers!();
    let server = ZooKeeper::shared().endpoint();
    for version in LOCK_VERSIONS {
        let scratch = Scratch::new();
        let ours = |wait| ours(server, &scratch, "t", version, wait, Duration::from_secs(10));
        let mut hudi = hudis(version, server, version);
        assert!(hudi.lock(10_000), "{version}: nobody has it");
        let error = ours(SHORT).lock("commit").await.err().expect("Hudi has it");
        assert_eq!(error.code(), "lock-not-obtained", "{version}");
        for word in [BASE, version, "-lock-0", "session"] {
            assert!(error.to_string().contains(word), "{word} is missing in {error}");
        }
        // One that waits gets it when Hudi lets go.
        let waiting = ours(LONG);
        let waiting = tokio::spawn(async move { waiting.lock("commit").await });
        hudi.unlock();
        let held = waiting.await.expect("no panic").expect("Hudi has released it");
        assert!(!hudi.lock(300), "{version}: we have it");
        held.check().await.expect("ours");
        held.release().await.expect("ours");
        assert!(hudi.lock(10_000), "{version}: we have released it");
        hudi.unlock();
        assert_eq!(contenders(server, version).await, 0, "{version}: nobody is left");
    }
}

#[tokio::test]
async fn who_waits_in_vain_leaves_nobody_waiting() {
    needs_peers!();
    let (server, key, scratch) = (ZooKeeper::shared().endpoint(), "in-vain", Scratch::new());
    let ours = |table: &str, wait| ours(server, &scratch, table, key, wait, Duration::from_secs(10));
    let held = ours("one", LONG).lock("commit").await.expect("free");
    ours("other", SHORT).lock("commit").await.err().expect("one has it");
    // Given up before it was through, wherever it was.
    for _ in 0..20 {
        let _ = tokio::time::timeout(Duration::from_millis(3), ours("other", LONG).lock("commit")).await;
    }
    held.check().await.expect("ours");
    drop(held);
    let next = ours("third", LONG).lock("commit").await.expect("dropped");
    let deadline = std::time::Instant::now() + LONG;
    while contenders(server, key).await > 1 {
        assert!(std::time::Instant::now() < deadline, "somebody is left that others wait for");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    next.release().await.expect("ours");
}

/// Read and written in two steps: without the lock some of the steps would get lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_at_a_time_has_the_lock() {
    needs_peers!();
    let (server, scratch) = (ZooKeeper::shared().endpoint(), Arc::new(Scratch::new()));
    let count = Arc::new(Mutex::new(0));
    let step = |table: usize| {
        // A table of its own: tasks of one table take turns before they ask.
        let locks = ours(server, &scratch, &format!("t{table}"), "count", LONG, Duration::from_secs(10));
        let count = Arc::clone(&count);
        tokio::spawn(async move {
            for _ in 0..10 {
                let held = locks.lock("count").await.expect("within a minute");
                let now = *count.lock().await;
                held.check().await.expect("ours");
                tokio::task::yield_now().await;
                *count.lock().await = now + 1;
                held.release().await.expect("ours");
            }
        })
    };
    for task in (0..4).map(step).collect::<Vec<_>>() {
        task.await.expect("no panic");
    }
    assert_eq!(*count.lock().await, 40);
}

#[tokio::test]
async fn one_that_was_cut_off_while_it_held_the_lock_is_told_before_it_commits() {
    needs_peers!();
    let (server, scratch) = (ZooKeeper::shared().endpoint(), Scratch::new());
    let cable = Cable::to(server).await;
    let held = ours(&cable.endpoint(), &scratch, "one", "cut", LONG, Duration::from_secs(2)).lock("commit").await;
    let held = held.expect("free");
    held.check().await.expect("ours");
    cable.cut();
    let next = ours(server, &scratch, "other", "cut", LONG, Duration::from_secs(10)).lock("commit").await;
    let next = next.expect("the session of the first has expired");
    let error = held.check().await.expect_err("nobody answers");
    assert_eq!(error.code(), "lock-lost", "{error}");
    cable.mend();
    let error = held.check().await.expect_err("it is the other's");
    assert_eq!(error.code(), "lock-lost", "{error}");
    assert!(held.release().await.is_err(), "it is the other's");
    next.check().await.expect("nobody takes it away");
}

#[tokio::test]
async fn a_short_break_loses_no_lock() {
    needs_peers!();
    let (server, scratch) = (ZooKeeper::shared().endpoint(), Scratch::new());
    let cable = Cable::to(server).await;
    let locks = ours(&cable.endpoint(), &scratch, "t", "break", LONG, Duration::from_secs(10));
    let held = locks.lock("commit").await.expect("free");
    cable.cut();
    let checking = tokio::spawn(async move {
        held.check().await.expect("it waits until it is connected again");
        held
    });
    cable.mend();
    checking.await.expect("no panic").release().await.expect("ours");
}

#[tokio::test]
async fn a_lock_outlives_a_restart_of_zookeeper() {
    needs_peers!();
    let (zookeeper, scratch) = (ZooKeeper::start(), Scratch::new());
    let ours =
        |table: &str, wait| ours(zookeeper.endpoint(), &scratch, table, "restart", wait, Duration::from_secs(40));
    let held = ours("one", LONG).lock("commit").await.expect("free");
    zookeeper.stop();
    let error = ours("other", LONG).lock("commit").await.err().expect("nobody listens");
    assert_eq!(error.code(), "lock-failed");
    assert!(error.to_string().contains(zookeeper.endpoint()), "whom it asked: {error}");
    zookeeper.restart();
    held.check().await.expect("the session is stored");
    ours("other", SHORT).lock("commit").await.err().expect("it is held");
    held.release().await.expect("ours");
}
