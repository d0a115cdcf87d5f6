//! Several writers, and the lock that they share.

use super::*;

impl Call {
    fn concurrency(&self) -> (ConcurrencyConfig, Vec<Problem>, Vec<String>) {
        let env = |name: &str| self.env.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
        let mut loader = Loader::new(&self.raw, &env);
        let config = loader.concurrency();
        (config, loader.settings.problems, loader.settings.warnings)
    }

    fn several(self) -> Call {
        self.conf("hoodie.write.concurrency.mode=optimistic_concurrency_control")
    }

    fn zookeeper(self) -> Call {
        self.several()
            .conf("hoodie.write.lock.zookeeper.url=zk1:2181,zk2:2181")
            .conf("hoodie.write.lock.zookeeper.base_path=/hudi/locks")
    }

    fn lock(&self) -> LockConfig {
        let (config, problems, _) = self.concurrency();
        assert_eq!(problems, []);
        config.lock.expect("several writers")
    }
}

#[test]
fn one_writer_locks_nothing() {
    let (config, problems, warnings) = Call::new().conf("hoodie.write.lock.zookeeper.url=zk1").concurrency();
    assert_eq!((problems, warnings), (Vec::new(), Vec::new()));
    assert_eq!((config.mode, config.failed_writes), (ConcurrencyMode::SingleWriter, FailedWritesPolicy::Eager));
    assert_eq!((config.lock, config.retries_on_conflict), (None, 0));
    assert_eq!((config.heartbeat.interval, config.heartbeat.tolerable_misses), (Duration::from_secs(60), 2));
}

#[test]
fn several_writers_roll_back_lazily_whatever_is_said() {
    for (key, told) in [("hoodie.clean.failed.writes.policy", true), ("hoodie.cleaner.policy.failed.writes", true)] {
        let (config, problems, warnings) = Call::new().zookeeper().conf(&format!("{key}=EAGER")).concurrency();
        assert_eq!(problems, []);
        assert_eq!(config.failed_writes, FailedWritesPolicy::Lazy);
        assert_eq!(warnings.iter().any(|w| w.contains("EAGER") && w.contains("LAZY")), told, "{warnings:?}");
    }
    let (config, _, warnings) = Call::new().zookeeper().conf("hoodie.clean.failed.writes.policy=LAZY").concurrency();
    assert_eq!((config.failed_writes, warnings), (FailedWritesPolicy::Lazy, Vec::new()));
}

#[test]
fn hudis_defaults_of_a_lock_hold() {
    let lock = Call::new().zookeeper().lock();
    assert_eq!((lock.wait, lock.retries, lock.pause), (Duration::from_secs(60), 50, Duration::from_secs(5)));
    let LockProvider::ZooKeeper(zookeeper) = lock.provider else { panic!("the default provider") };
    assert_eq!((zookeeper.servers.as_str(), zookeeper.lock_key), ("zk1:2181,zk2:2181", None));
    assert_eq!(zookeeper.base_path, "/hudi/locks");
    assert_eq!(zookeeper.session_timeout, Duration::from_secs(60));
    assert_eq!(zookeeper.connection_timeout, Duration::from_secs(15));
}

#[test]
fn every_provider_is_named_by_its_class() {
    const PACKAGE: &str = "org.apache.hudi.client.transaction.lock";
    let of = |class: &str| Call::new().several().conf(&format!("hoodie.write.lock.provider={class}"));
    let files = of(&format!("{PACKAGE}.FileSystemBasedLockProvider"));
    let wanted = FileLockConfig { folder: None, expire: None };
    assert_eq!(files.lock().provider, LockProvider::FileSystem(wanted));
    let files = files.conf("hoodie.write.lock.filesystem.path=/locks/t").conf("hoodie.write.lock.filesystem.expire=5");
    let wanted = FileLockConfig { folder: Some("/locks/t".into()), expire: Some(Duration::from_secs(300)) };
    assert_eq!(files.lock().provider, LockProvider::FileSystem(wanted));
    assert_eq!(of("InProcessLockProvider").lock().provider, LockProvider::InProcess);
    let objects = of(&format!("{PACKAGE}.StorageBasedLockProvider"));
    let wanted = StorageLockConfig { validity: Duration::from_secs(300), renew_interval: Duration::from_secs(30) };
    assert_eq!(objects.lock().provider, LockProvider::Storage(wanted));
    // The name that 1.0.2 had for it.
    let objects = objects.conf("hoodie.write.lock.storage.heartbeat.poll.secs=7");
    let wanted = StorageLockConfig { renew_interval: Duration::from_secs(7), ..wanted };
    assert_eq!(objects.lock().provider, LockProvider::Storage(wanted));
}

#[test]
fn what_cannot_lock_a_table_is_refused_by_name() {
    let cases: &[(&[&str], &str, &[&str])] = &[
        (
            &["provider=org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider"],
            "config-unsupported",
            &["Dynamo"],
        ),
        (
            &["provider=org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"],
            "config-unsupported",
            &["Hive"],
        ),
        (&["provider=com.example.OurLock"], "config-unsupported", &["com.example.OurLock", "not a class of Hudi"]),
        (&["zookeeper.base_path=/x"], "config-missing", &["zookeeper.url"]),
        (&["zookeeper.url=zk1"], "config-missing", &["zookeeper.base_path"]),
        (&["zookeeper.url=zk1", "zookeeper.base_path=hudi"], "config-bad-value", &["zookeeper.base_path", "hudi"]),
        (&["zookeeper.url=zk1", "zookeeper.base_path=/hudi/"], "config-bad-value", &["/hudi/"]),
        (&["zookeeper.url=zk1", "zookeeper.base_path=/x", "client.num_retries=many"], "config-bad-value", &["many"]),
        (&["provider=FileSystemBasedLockProvider", "filesystem.expire=-1"], "config-bad-value", &["filesystem.expire"]),
        (
            &["provider=StorageBasedLockProvider", "storage.validity.timeout.secs=60"],
            "config-conflict",
            &["storage.validity.timeout.secs=60", "renew.interval.secs=30"],
        ),
    ];
    for (confs, code, words) in cases {
        let call =
            confs.iter().fold(Call::new().several(), |call, conf| call.conf(&format!("hoodie.write.lock.{conf}")));
        let (_, problems, _) = call.concurrency();
        let problem = problems.iter().find(|p| p.code == *code).unwrap_or_else(|| panic!("{confs:?}: {problems:?}"));
        words.iter().for_each(|w| assert!(problem.text.contains(w), "{confs:?}: {w:?} is missing in {}", problem.text));
    }
}

#[test]
fn a_port_that_counts_for_nothing_is_told() {
    let cases = [
        ("zk1:2181,zk2:2181", "2181", false),
        ("zk1", "2181", false),
        ("zk1", "2182", true),
        ("zk1:1/chroot", "2", true),
    ];
    for (servers, port, told) in cases {
        let call = Call::new().zookeeper().conf(&format!("hoodie.write.lock.zookeeper.url={servers}"));
        let (_, problems, warnings) = call.conf(&format!("hoodie.write.lock.zookeeper.port={port}")).concurrency();
        assert_eq!(problems, []);
        assert_eq!(warnings.iter().any(|w| w.contains("no effect")), told, "{servers} {port}: {warnings:?}");
    }
}
