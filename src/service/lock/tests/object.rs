//! The lock that is an object, on a store in memory.

use super::*;
use crate::config::StorageLockConfig;
use crate::service::lock::object::ObjectLock;
use bytes::Bytes;
use serde_json::{Value, json};

const PATH: &str = ".hoodie/.locks/table_lock.json";

const MINUTES: StorageLockConfig =
    StorageLockConfig { validity: Duration::from_secs(300), renew_interval: Duration::from_secs(30) };

/// As another process has it, which has not heard of this one's turns.
fn writer(storage: &Storage, config: StorageLockConfig) -> ObjectLock {
    ObjectLock::new(&config, storage).expect("an object store")
}

async fn ask(lock: &ObjectLock) -> std::result::Result<Box<dyn Grip>, String> {
    match lock.try_lock("commit", Duration::ZERO).await.expect("the store answers") {
        Answer::Got(grip) => Ok(grip),
        Answer::Busy(holder) => Err(holder),
    }
}

async fn content(storage: &Storage) -> Value {
    let bytes = storage.get(PATH).await.expect("an object");
    serde_json::from_slice(&bytes).expect("JSON")
}

async fn put(storage: &Storage, content: Value) {
    storage.put(PATH, Bytes::from(content.to_string())).await.expect("write");
}

fn now_ms() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

#[tokio::test]
async fn one_of_two_writers_has_it_until_it_lets_go() {
    let storage = Storage::in_memory();
    let (one, other) = (writer(&storage, MINUTES), writer(&storage, MINUTES));
    let held = ask(&one).await.expect("free");
    let now = content(&storage).await;
    assert_eq!(now["expired"], false);
    let left = now["validUntil"].as_i64().expect("milliseconds") - now_ms();
    assert!((290_000..=300_000).contains(&left), "{left}");
    let holder = ask(&other).await.err().expect("the first has it");
    assert!(holder.contains(now["owner"].as_str().expect("text")), "{holder}");
    held.check().await.expect("ours");
    held.release().await.expect("ours");
    assert_eq!(content(&storage).await["expired"], true, "it stays, for whom comes next");
    let held = ask(&other).await.expect("free again");
    assert!(ask(&one).await.is_err());
    // Dropped, it is released all the same.
    drop(held);
    let deadline = Instant::now() + Duration::from_secs(60);
    while ask(&one).await.is_err() {
        assert!(Instant::now() < deadline, "a lock that was dropped is not released");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn hudis_lock_is_respected_as_long_as_hudi_says() {
    let storage = Storage::in_memory();
    let cases = [(false, now_ms() + 60_000, false), (true, now_ms() + 60_000, true), (false, now_ms() - 60_000, true)];
    for (expired, valid_until, free) in cases {
        put(&storage, json!({ "expired": expired, "validUntil": valid_until, "owner": "hudis" })).await;
        let got = ask(&writer(&storage, MINUTES)).await;
        assert_eq!(got.is_ok(), free, "{expired} {valid_until}");
        if let Err(holder) = got {
            assert!(holder.contains("hudis"), "{holder}");
        }
    }
}

#[tokio::test]
async fn one_that_another_writer_took_is_told_and_left_to_it() {
    let storage = Storage::in_memory();
    let lock = writer(&storage, MINUTES);
    let held = ask(&lock).await.expect("free");
    let others = json!({ "expired": false, "validUntil": now_ms() + 60_000, "owner": "other" });
    put(&storage, others.clone()).await;
    assert_eq!(held.check().await.expect_err("it is the other's").code(), "lock-lost");
    assert_eq!(held.release().await.expect_err("it is the other's").code(), "lock-lost");
    assert_eq!(content(&storage).await, others);
}

#[tokio::test]
async fn it_is_renewed_while_it_is_held() {
    let storage = Storage::in_memory();
    let quick = StorageLockConfig { validity: Duration::from_secs(300), renew_interval: Duration::from_millis(1) };
    let held = ask(&writer(&storage, quick)).await.expect("free");
    let first = content(&storage).await["validUntil"].as_i64();
    let deadline = Instant::now() + Duration::from_secs(60);
    while content(&storage).await["validUntil"].as_i64() == first {
        assert!(Instant::now() < deadline, "it is not renewed");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    held.check().await.expect("ours");
    held.release().await.expect("what was renewed is the version to replace");
    assert_eq!(content(&storage).await["expired"], true);
}

#[tokio::test]
async fn one_that_could_not_be_renewed_is_not_relied_on() {
    let storage = Storage::in_memory();
    let short = StorageLockConfig { validity: Duration::from_millis(1), renew_interval: Duration::from_secs(60) };
    let held = ask(&writer(&storage, short)).await.expect("free");
    let deadline = Instant::now() + Duration::from_secs(60);
    while held.check().await.is_ok() {
        assert!(Instant::now() < deadline, "it has been good for long enough");
    }
    assert_eq!(held.check().await.expect_err("too old").code(), "lock-lost");
}

#[tokio::test]
async fn what_is_left_of_a_writers_own_try_does_not_stop_it() {
    let storage = Storage::in_memory();
    let lock = writer(&storage, MINUTES);
    let owner = {
        let held = ask(&lock).await.expect("free");
        let owner = content(&storage).await["owner"].clone();
        held.release().await.expect("ours");
        owner
    };
    put(&storage, json!({ "expired": false, "validUntil": now_ms() + 60_000, "owner": owner })).await;
    ask(&lock).await.expect("its answer got lost").release().await.expect("ours");
}

#[tokio::test]
async fn an_object_that_is_no_lock_is_named() {
    let storage = Storage::in_memory();
    put(&storage, json!("no lock")).await;
    let error = writer(&storage, MINUTES).try_lock("commit", Duration::ZERO).await.err().expect("what is that");
    assert_eq!(error.code(), "lock-failed");
    assert!(error.to_string().contains("table_lock.json"), "{error}");
}
