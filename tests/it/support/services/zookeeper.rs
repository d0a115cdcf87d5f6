//! ZooKeeper, which keeps locks.

use std::sync::OnceLock;

use super::Held;

/// One server; it ticks every 500 ms, so a session can be as short as a second.
pub struct ZooKeeper {
    held: Held,
}

impl ZooKeeper {
    /// The one of this test run.
    pub fn shared() -> &'static ZooKeeper {
        static ZOOKEEPER: OnceLock<ZooKeeper> = OnceLock::new();
        ZOOKEEPER.get_or_init(ZooKeeper::start)
    }

    /// One for a test that takes it down.
    pub fn start() -> ZooKeeper {
        ZooKeeper { held: Held::start(&["zookeeper"]) }
    }

    /// `127.0.0.1:PORT`.
    pub fn endpoint(&self) -> &str {
        self.held.endpoint(0)
    }

    /// The port alone, as `hoodie.write.lock.zookeeper.port` has it.
    pub fn port(&self) -> &str {
        self.endpoint().rsplit_once(':').expect("host:port").1
    }

    /// Takes it down; what it stored stays.
    pub fn stop(&self) {
        self.held.stop("zookeeper");
    }

    /// Starts it again at the same address, with what it stored.
    pub fn restart(&self) {
        self.held.restart("zookeeper", self.endpoint());
    }
}
