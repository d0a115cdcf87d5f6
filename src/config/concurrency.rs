//! How several writers of one table keep out of each other's way.

use std::time::Duration;

/// `hoodie.write.concurrency.mode` and what goes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConcurrencyConfig {
    pub mode: ConcurrencyMode,
    /// What becomes of writes that died.
    pub failed_writes: FailedWritesPolicy,
    /// `hoodie.write.num.retries.on.conflict.failures`: times that a round is done again which lost against another writer.
    pub retries_on_conflict: u32,
    pub heartbeat: HeartbeatConfig,
    /// What the writers lock; `None`: there is one writer.
    pub lock: Option<LockConfig>,
}

/// Who may write (`WriteConcurrencyMode`, Hudi 0.15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConcurrencyMode {
    SingleWriter,
    Optimistic,
}

/// `hoodie.cleaner.policy.failed.writes`, `hoodie.clean.failed.writes.policy` (`HoodieFailedWritesCleaningPolicy`, Hudi 0.15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedWritesPolicy {
    /// The next write rolls them back: nobody else can be writing.
    Eager,
    /// They are rolled back when the heartbeat of their writer has expired.
    Lazy,
    /// They stay.
    Never,
}

/// `hoodie.client.heartbeat.*`: how a writer says that it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatConfig {
    /// `.interval_in_ms`
    pub interval: Duration,
    /// `.tolerable.misses`: silence of more intervals is death.
    pub tolerable_misses: u32,
}

impl Default for HeartbeatConfig {
    /// Hudi's (0.15).
    fn default() -> HeartbeatConfig {
        HeartbeatConfig { interval: Duration::from_secs(60), tolerable_misses: 2 }
    }
}

/// `hoodie.write.lock.*`: the lock of a table, and how it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockConfig {
    pub provider: LockProvider,
    /// `.wait_time_ms`: how long one try waits.
    pub wait: Duration,
    /// `.client.num_retries`: further tries.
    pub retries: u32,
    /// `.client.wait_time_ms_between_retry`: between tries.
    pub pause: Duration,
}

/// `hoodie.write.lock.provider`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockProvider {
    /// `ZookeeperBasedLockProvider`
    ZooKeeper(ZooKeeperConfig),
    /// `FileSystemBasedLockProvider`
    FileSystem(FileLockConfig),
    /// `InProcessLockProvider`: there are no other processes.
    InProcess,
    /// `StorageBasedLockProvider` (Hudi 1.0.2)
    Storage(StorageLockConfig),
}

/// `hoodie.write.lock.zookeeper.*`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZooKeeperConfig {
    /// `.url`: hosts with ports, as ZooKeeper's clients take them.
    pub servers: String,
    /// `.base_path`: all writers of the table must name the same.
    pub base_path: String,
    /// `.lock_key`; `None`: the name of the table.
    pub lock_key: Option<String>,
    /// `.session_timeout_ms`: a writer that is silent for longer has lost its lock.
    pub session_timeout: Duration,
    /// `.connection_timeout_ms`
    pub connection_timeout: Duration,
}

/// `hoodie.write.lock.filesystem.*`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLockConfig {
    /// `.path`: the folder of the file `lock`; `None`: the table's `.hoodie`.
    pub folder: Option<String>,
    /// `.expire`: a lock that is older is nobody's any more; `None`: never.
    pub expire: Option<Duration>,
}

/// `hoodie.write.lock.storage.*`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageLockConfig {
    /// `.validity.timeout.secs`: a lock that is not renewed for longer is nobody's any more.
    pub validity: Duration,
    /// `.renew.interval.secs`
    pub renew_interval: Duration,
}
