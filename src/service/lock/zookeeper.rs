//! `ZookeeperBasedLockProvider`: the lock of Apache Curator's `InterProcessMutex` (recipes 2.13, as Hudi 0.15 and 1.0.2 use
//! it), so that its writers and ours keep each other out.
//!
//! Who wants the lock creates `<base path>/<lock key>/_c_<uuid>-lock-<sequence>`, an ephemeral node; the lowest sequence has
//! the lock, and each of the others watches the one before it. The node goes with the session of who made it. The session is
//! ours alone while we hold the lock or wait for it: whatever goes wrong, dropping the client ends the session, and no node
//! stays behind that others would wait for.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use uuid::Uuid;
use zookeeper_client::{Acls, Client, CreateMode, Error as ZooKeeperError, SessionState, Stat};

use super::{Answer, Error, Grip, Provider, Result};
use crate::config::ZooKeeperConfig;
use crate::service::owner;

/// `InterProcessMutex.LOCK_NAME`, Curator 2.13; what stands before the sequence.
const LOCK_NAME: &str = "lock-";

/// Other people's words in our messages are cut to so many characters.
const LONGEST_WORD: usize = 200;

pub(super) struct ZooKeeper {
    config: ZooKeeperConfig,
    /// `<base path>/<lock key>`
    folder: String,
    /// A session that nobody uses, for the next lock.
    idle: std::sync::Arc<Mutex<Option<Client>>>,
}

/// A node of ours, and the session that it lives by.
struct Contender {
    client: Client,
    node: String,
}

struct Lease {
    contender: Contender,
    name: String,
    doing: &'static str,
    idle: std::sync::Arc<Mutex<Option<Client>>>,
}

impl ZooKeeper {
    pub fn new(config: &ZooKeeperConfig, table_name: &str) -> ZooKeeper {
        let key = config.lock_key.as_deref().unwrap_or(table_name);
        let folder = format!("{}/{key}", config.base_path);
        ZooKeeper { config: config.clone(), folder, idle: Default::default() }
    }

    /// For messages.
    pub fn name(&self) -> String {
        format!("{} of ZooKeeper {}", self.folder, self.config.servers)
    }

    fn failed(&self, doing: &'static str, error: ZooKeeperError) -> Error {
        Error::Failed { doing, lock: self.name(), cause: error.to_string() }
    }

    async fn client(&self, wait: Duration) -> Result<Client> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(client) = idle.filter(|client| client.state() == SessionState::SyncConnected) {
            return Ok(client);
        }
        let servers = self.config.servers.split(',').count() as u32;
        // Each server is tried once: a manager that waits between its tries stands above.
        let connecting = Client::connector()
            .with_session_timeout(self.config.session_timeout)
            .with_connection_timeout(self.config.connection_timeout / servers)
            .with_fail_eagerly()
            .connect(&self.config.servers);
        let wait = wait.min(self.config.connection_timeout);
        match tokio::time::timeout(wait, connecting).await {
            Ok(connected) => connected.map_err(|e| self.failed("connect to ZooKeeper for", e)),
            Err(_) => {
                let cause = format!("no answer in {} ms (hoodie.write.lock.zookeeper.*)", wait.as_millis());
                Err(Error::Failed { doing: "connect to ZooKeeper for", lock: self.name(), cause })
            }
        }
    }

    async fn enter(&self, client: Client, doing: &'static str) -> Result<Contender> {
        let prefix = format!("{}/_c_{}-{LOCK_NAME}", self.folder, Uuid::new_v4());
        let word = format!("hudi-streamer on {}: {doing}", owner::shown());
        loop {
            let mode = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
            match client.create(&prefix, word.as_bytes(), &mode).await {
                Ok((_, sequence)) => return Ok(Contender { client, node: format!("{prefix}{sequence}") }),
                // A lock's folder may be one that ZooKeeper removes when it is empty (Curator makes it so).
                Err(ZooKeeperError::NoNode) => {
                    let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
                    client.mkdir(&self.folder, &persistent).await.map_err(|e| self.failed("make the folder of", e))?;
                }
                // The node may be there all the same; it goes with the session, which goes with the client.
                Err(error) => return Err(self.failed("ask for", error)),
            }
        }
    }

    /// Until nobody stands before us. `told` gets who does.
    async fn wait(&self, contender: &Contender, told: &Mutex<String>) -> Result<()> {
        let failed = |error| self.failed("wait for", error);
        let (_, own) = contender.node.rsplit_once('/').unwrap_or_default();
        loop {
            let children = contender.client.list_children(&self.folder).await.map_err(failed)?;
            let queue = queue(children);
            let place = queue.iter().position(|node| node == own);
            let Some(place) = place else { return Err(failed(ZooKeeperError::SessionExpired)) };
            let Some(before) = place.checked_sub(1).map(|before| format!("{}/{}", self.folder, queue[before])) else {
                return Ok(());
            };
            let holder = format!("{}/{}", self.folder, queue[0]);
            if let Ok((word, stat)) = contender.client.get_data(&holder).await {
                *told.lock().unwrap_or_else(PoisonError::into_inner) = self.holder(&holder, &word, &stat);
            }
            match contender.client.get_and_watch_data(&before).await {
                Ok((_, _, watcher)) => drop(watcher.changed().await),
                Err(ZooKeeperError::NoNode) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    fn holder(&self, node: &str, word: &[u8], stat: &Stat) -> String {
        let word: String = String::from_utf8_lossy(word).chars().take(LONGEST_WORD).collect();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis() as i64;
        let seconds = now.saturating_sub(stat.ctime).max(0) / 1000;
        format!(
            "{word} has it, and asked for it {seconds} s ago (node {node}, session {:#x}); if it is dead, ZooKeeper gives the \
             lock on when its session ends",
            stat.ephemeral_owner
        )
    }
}

/// The nodes that want a lock, who has it first, as Curator sorts them (`LockInternals`, 2.13).
fn queue(mut nodes: Vec<String>) -> Vec<String> {
    let sequence = |node: &str| node.rfind(LOCK_NAME).map(|at| node[at + LOCK_NAME.len()..].to_string());
    nodes.retain(|node| sequence(node).is_some());
    nodes.sort_by_key(|node| sequence(node));
    nodes
}

#[async_trait]
impl Provider for ZooKeeper {
    async fn try_lock(&self, doing: &'static str, wait: Duration) -> Result<Answer> {
        let told = Mutex::new("who has it is not known".to_string());
        let got = tokio::time::timeout(wait, async {
            let contender = self.enter(self.client(wait).await?, doing).await?;
            self.wait(&contender, &told).await?;
            Ok(contender)
        });
        match got.await {
            Ok(Ok(contender)) => {
                let idle = std::sync::Arc::clone(&self.idle);
                Ok(Answer::Got(Box::new(Lease { contender, name: self.name(), doing, idle })))
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Ok(Answer::Busy(told.into_inner().unwrap_or_else(PoisonError::into_inner))),
        }
    }
}

impl Lease {
    fn lost(&self, why: impl Into<String>) -> Error {
        Error::Lost { doing: self.doing, lock: self.name.clone(), why: why.into() }
    }
}

#[async_trait]
impl Grip for Lease {
    /// Asks ZooKeeper: the client itself believes in its session for longer than the server does.
    async fn check(&self) -> Result<()> {
        let Contender { client, node } = &self.contender;
        let asked = tokio::time::timeout(client.session_timeout(), async {
            loop {
                // A server that lags behind the others answers after it has caught up.
                let _ = client.sync(node).await;
                match client.check_stat(node).await {
                    Err(ZooKeeperError::ConnectionLoss) => tokio::time::sleep(Duration::from_millis(100)).await,
                    answer => return answer,
                }
            }
        });
        match asked.await {
            Ok(Ok(Some(stat))) if stat.ephemeral_owner == client.session_id().0 => Ok(()),
            Ok(Ok(_)) => Err(self.lost("its node is gone")),
            Ok(Err(error)) => Err(self.lost(error.to_string())),
            Err(_) => Err(self.lost("ZooKeeper does not answer, and the session may have expired")),
        }
    }

    async fn release(self: Box<Self>) -> Result<()> {
        let Contender { client, node } = &self.contender;
        let deleted = tokio::time::timeout(client.session_timeout(), client.delete(node, None)).await;
        match deleted {
            Ok(Ok(())) => {
                let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                *idle = Some(client.clone());
                Ok(())
            }
            Ok(Err(ZooKeeperError::NoNode | ZooKeeperError::SessionExpired)) => {
                Err(self.lost("its session has expired"))
            }
            // The node goes with the session, which ends with the client.
            Ok(Err(error)) => {
                Err(Error::Failed { doing: "release", lock: self.name.clone(), cause: error.to_string() })
            }
            Err(_) => Err(Error::Failed { doing: "release", lock: self.name.clone(), cause: "no answer".into() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_sequence_is_first_whoever_made_it() {
        let nodes = [
            "_c_ffffffff-ffff-4fff-8fff-ffffffffffff-lock-0000000003",
            "_c_00000000-0000-4000-8000-000000000000-lock-0000000010",
            "lock-0000000002",
            "leases",
        ];
        let queue = queue(nodes.map(String::from).to_vec());
        assert_eq!(queue, [nodes[2], nodes[0], nodes[1]]);
    }
}
