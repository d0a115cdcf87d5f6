//! Rows that tests agree on.

use super::{Row, row};

pub const TRIPS: &str = r#"{"type":"record","name":"Trip","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},
 {"name":"dt","type":"string"},{"name":"rider","type":["null","string"],"default":null},{"name":"fare","type":["null","double"],"default":null}]}"#;
pub const TRIP_COLUMNS: [&str; 5] = ["id", "ts", "dt", "rider", "fare"];

pub fn trip(i: usize, ts: i64) -> Row {
    row! {"id": format!("k{i:03}"), "ts": ts, "dt": format!("2024-01-0{}", 1 + i % 3), "rider": format!("rider-{i}-{ts}"), "fare": i as f64 + 0.25}
}

pub fn trips(numbers: std::ops::Range<usize>, ts: i64) -> Vec<Row> {
    numbers.map(|i| trip(i, ts)).collect()
}
