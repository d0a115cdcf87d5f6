//! What the tests share: a folder of their own, the program under test, Hudi as oracle and second writer, and a naive
//! model of a table to compare with.

mod golden;
mod model;
mod oracle;
mod scratch;
mod streamer;
mod table;

pub use golden::Golden;
pub use model::{Model, Rule, assert_same_rows, normal};
pub use oracle::{READERS, Reader, SPARK_0_15, SPARK_1_0, oracle, peers_enabled};
pub use scratch::Scratch;
pub use streamer::{Run, Running, Streamer};
pub use table::Table;

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
