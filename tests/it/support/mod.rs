//! What the tests share: a folder of their own, the program under test, Hudi as oracle and second writer, and a naive
//! model of a table to compare with.

mod cable;
mod compare;
mod golden;
mod http;
mod hudi_lock;
mod job;
mod kafka;
mod model;
mod oracle;
mod plain;
mod scratch;
mod services;
mod streamer;
mod stub;
mod table;
mod ticks;
mod trips;

pub use cable::Cable;
pub use compare::{META, assert_rows, text};
pub use golden::Golden;
pub use http::{Exposition, http_get};
pub use hudi_lock::{HudiLock, LOCK_VERSIONS};
pub use job::{BASE_TIME_MS, Job, TABLE_TYPES};
pub use kafka::{Broker, End, KafkaJob, Message, Registry, Topic};
pub use model::{Model, Rule};
pub use oracle::{HUDI_RS, READERS, Reader, SPARK_0_15, SPARK_1_0, oracle, peers_enabled};
pub use plain::Plain;
pub use scratch::{BASE_SCHEMA, Scratch};
pub use services::{Gate, Requests, S3, Spoil, ZooKeeper};
pub use streamer::{Run, Running, Streamer};
pub use stub::Stub;
pub use table::{CHECKPOINT_KEYS, Table};
pub use ticks::{TICK_COLUMNS, TICKS, tick_read, tick_written, ticks_read, ticks_written};
pub use trips::{TRIP_COLUMNS, TRIPS, trip, trips};

pub use serde_json::{Map, Value, json};

/// A row as a reader or an input file has it.
pub type Row = Map<String, Value>;

/// Leaves the test, loudly, when the peers are not switched on.
macro_rules! needs_peers {
    () => {
        if !$crate::support::peers_enabled() {
            return;
        }
    };
}
pub(crate) use needs_peers;

/// A row from `json!`-like text.
macro_rules! row {
    ($($json:tt)+) => {
        match $crate::support::json!({ $($json)+ }) {
            $crate::support::Value::Object(row) => row,
            _ => unreachable!("braces make an object"),
        }
    };
}
pub(crate) use row;

/// How much of something a longer run of a test wants.
pub fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text}")))
}

/// Waits until `condition` holds; fails when that takes longer than any machine needs.
#[track_caller]
pub fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
