//! `StorageBasedLockProvider`: an object of a real S3 server, replaced on a condition.

use hudi_streamer::config::{S3Config, S3Keys, S3Settings, Secret, StorageConfig, StorageLockConfig};

use super::*;

/// `scheme`: tasks of this process that name a table alike take turns before they ask the store.
fn ours(scheme: &str, folder: &str, wait: Duration) -> Locks {
    let s3 = S3::shared();
    let environment = s3.environment(s3.endpoint());
    let said = |name: &str| environment.iter().find(|(n, _)| *n == name).expect("said").1;
    let keys = S3Keys {
        access: Secret::new(said("AWS_ACCESS_KEY_ID")),
        secret: Secret::new(said("AWS_SECRET_ACCESS_KEY")),
        session: None,
    };
    let all = S3Settings {
        keys: Some(keys),
        endpoint: Some(s3.endpoint().to_string()),
        region: Some(said("AWS_REGION").to_string()),
        path_style: Some(true),
        ..S3Settings::default()
    };
    let config = StorageConfig { s3: S3Config { all, ..S3Config::default() }, ..StorageConfig::default() };
    let uri = s3.uri(folder).replacen("s3a", scheme, 1);
    let storage = Storage::open_with(&uri, &config).expect("the settings suffice");
    let provider = LockProvider::Storage(StorageLockConfig {
        validity: Duration::from_secs(300),
        renew_interval: Duration::from_secs(30),
    });
    Locks::open(&writers(provider, wait), &storage, "t").expect("an object store")
}

#[tokio::test]
async fn an_object_of_s3_is_a_lock() {
    needs_peers!();
    let folder = S3::shared().folder("lock");
    let held = ours("s3a", &folder, LONG).lock("commit").await.expect("free");
    let file = S3::shared().path(&format!("{folder}/.hoodie/.locks/table_lock.json"));
    let now: Value = serde_json::from_slice(&std::fs::read(&file).expect("an object")).expect("JSON");
    assert!(now["expired"] == false && now["validUntil"].is_i64() && now["owner"].is_string(), "{now}");
    let error = ours("s3", &folder, SHORT).lock("commit").await.err().expect("it is held");
    assert_eq!(error.code(), "lock-not-obtained");
    held.check().await.expect("ours");
    held.release().await.expect("ours");
    ours("s3", &folder, LONG).lock("commit").await.expect("free again").release().await.expect("ours");
}

#[tokio::test]
async fn of_many_that_ask_at_once_one_has_it() {
    needs_peers!();
    let folder = S3::shared().folder("lock");
    let schemes = ["s3", "s3a", "s3n"];
    let asked = schemes.map(|scheme| {
        let locks = ours(scheme, &folder, Duration::ZERO);
        async move { locks.lock("commit").await }
    });
    let got = futures::future::join_all(asked).await;
    assert_eq!(got.iter().filter(|got| got.is_ok()).count(), 1, "one");
}
