//! `hoodie.write.concurrency.mode`, `hoodie.write.lock.*` and what becomes of writes that failed.

use super::choices::LockProviderKind;
use super::*;

/// A lock that is renewed less often than this many times within its validity is refused, as Hudi does
/// (`StorageBasedLockConfig`, 1.0.2).
const RENEWALS_IN_VALIDITY: u64 = 10;

impl Loader<'_> {
    pub(super) fn concurrency(&mut self) -> ConcurrencyConfig {
        let mode = self.key_choice(&keys::CONCURRENCY, &choices::CONCURRENCY_MODES, ConcurrencyMode::SingleWriter);
        let chosen = self.given(&keys::FAILED_WRITES).is_some();
        let policy = self.key_choice(&keys::FAILED_WRITES, &choices::FAILED_WRITES, FailedWritesPolicy::Eager);
        let several = mode == ConcurrencyMode::Optimistic;
        if several && chosen && policy != FailedWritesPolicy::Lazy {
            let text = format!(
                "{}: {}={} has no effect: with several writers failed writes are rolled back LAZY",
                self.origin(&keys::FAILED_WRITES),
                keys::FAILED_WRITES.name,
                self.text(&keys::FAILED_WRITES)
            );
            self.settings.warnings.push(text);
        }
        ConcurrencyConfig {
            mode,
            failed_writes: if several { FailedWritesPolicy::Lazy } else { policy },
            retries_on_conflict: self.number(&keys::CONFLICT_RETRIES, "a number of tries"),
            heartbeat: HeartbeatConfig {
                interval: Duration::from_millis(self.positive(&keys::HEARTBEAT_INTERVAL, "a number of milliseconds")),
                tolerable_misses: self.positive(&keys::HEARTBEAT_MISSES, "a number of heartbeats"),
            },
            lock: several.then(|| self.lock()),
        }
    }

    /// The flags and keys that say which checkpoint is meant.
    pub(super) fn checkpoint(&mut self) -> CheckpointConfig {
        let id = self.given(&keys::CHECKPOINT_ID);
        let is_name = |id: &String| id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
        if let Some(bad) = id.as_ref().filter(|id| !is_name(id)) {
            let text = format!(
                "{}: {}={bad:.200} is no name: it may have letters, digits, `_`, `-` and `.`",
                self.origin(&keys::CHECKPOINT_ID),
                keys::CHECKPOINT_ID.name
            );
            self.problem("config-bad-value", text);
        }
        CheckpointConfig {
            checkpoint: self.raw.value("--checkpoint").map(str::to_string),
            ignore_checkpoint: self.raw.value("--ignore-checkpoint").map(str::to_string),
            id,
            carried_prefixes: self.list(&keys::META_PREFIXES),
            ..CheckpointConfig::default()
        }
    }

    fn lock(&mut self) -> LockConfig {
        let zookeeper = LockProviderKind::ZooKeeper;
        let provider = match self.key_choice(&keys::LOCK_PROVIDER, &choices::LOCK_PROVIDERS, zookeeper) {
            LockProviderKind::ZooKeeper => LockProvider::ZooKeeper(self.zookeeper()),
            LockProviderKind::FileSystem => LockProvider::FileSystem(FileLockConfig {
                folder: self.given(&keys::LOCK_FOLDER),
                expire: Some(60 * self.number::<u32>(&keys::LOCK_EXPIRE, "a number of minutes") as u64)
                    .filter(|seconds| *seconds > 0)
                    .map(Duration::from_secs),
            }),
            LockProviderKind::InProcess => LockProvider::InProcess,
            LockProviderKind::Storage => LockProvider::Storage(self.storage_lock()),
        };
        LockConfig {
            provider,
            wait: Duration::from_millis(self.positive(&keys::LOCK_WAIT, "a number of milliseconds")),
            retries: self.number(&keys::LOCK_RETRIES, "a number of tries"),
            pause: Duration::from_millis(self.number(&keys::LOCK_PAUSE, "a number of milliseconds")),
        }
    }

    fn zookeeper(&mut self) -> ZooKeeperConfig {
        let servers = self.required(&keys::ZOOKEEPER_URL);
        self.check_port(&servers);
        ZooKeeperConfig {
            servers,
            base_path: self.zookeeper_path(),
            lock_key: self.given(&keys::ZOOKEEPER_KEY),
            session_timeout: Duration::from_millis(self.positive(&keys::ZOOKEEPER_SESSION, "a number of milliseconds")),
            connection_timeout: Duration::from_millis(
                self.positive(&keys::ZOOKEEPER_CONNECTION, "a number of milliseconds"),
            ),
        }
    }

    fn zookeeper_path(&mut self) -> String {
        let path = self.required(&keys::ZOOKEEPER_PATH);
        let good = path.starts_with('/') && path.len() > 1 && !path.ends_with('/') && !path.contains("//");
        if !good && !path.is_empty() {
            let text = format!(
                "{}: {}={path} is not a path of ZooKeeper, as /hudi/locks",
                self.origin(&keys::ZOOKEEPER_PATH),
                keys::ZOOKEEPER_PATH.name
            );
            self.problem("config-bad-value", text);
        }
        path
    }

    /// Hudi does not look at the port (`BaseZookeeperBasedLockProvider`, 1.0.2); so one that is not that of the hosts is told.
    fn check_port(&mut self, servers: &str) {
        let Some(port) = self.given(&keys::ZOOKEEPER_PORT) else { return };
        let hosts = servers.split_once('/').map_or(servers, |(hosts, _)| hosts);
        let of = |host: &str| match host.rsplit_once(':') {
            Some((_, port)) if port.bytes().all(|b| b.is_ascii_digit()) => port.to_string(),
            _ => "2181".to_string(),
        };
        if hosts.split(',').any(|host| of(host.trim()) != port) {
            let text = format!(
                "{}: {}={port} has no effect, as in Hudi: the ports of {} count (2181 where a host has none)",
                self.origin(&keys::ZOOKEEPER_PORT),
                keys::ZOOKEEPER_PORT.name,
                keys::ZOOKEEPER_URL.name
            );
            self.settings.warnings.push(text);
        }
    }

    fn storage_lock(&mut self) -> StorageLockConfig {
        let validity: u64 = self.positive(&keys::LOCK_VALIDITY, "a number of seconds");
        let renewed: u64 = self.positive(&keys::LOCK_RENEWAL, "a number of seconds");
        if validity < renewed.saturating_mul(RENEWALS_IN_VALIDITY) {
            let text = format!(
                "{}={validity} is to be {RENEWALS_IN_VALIDITY} times {}={renewed} or more, as in Hudi",
                keys::LOCK_VALIDITY.name,
                keys::LOCK_RENEWAL.name
            );
            self.problem("config-conflict", text);
        }
        StorageLockConfig { validity: Duration::from_secs(validity), renew_interval: Duration::from_secs(renewed) }
    }
}
