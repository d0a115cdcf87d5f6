//! Case 08's moments, as they are written and as they are read.

use super::{Row, row};

pub const TICKS: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},
 {"name":"tm","type":["null",{"type":"long","logicalType":"timestamp-millis"}],"default":null},
 {"name":"tu","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null},
 {"name":"d","type":["null",{"type":"int","logicalType":"date"}],"default":null}]}"#;
pub const TICK_COLUMNS: [&str; 5] = ["id", "ts", "tm", "tu", "d"];

/// The moment of r1 to r3 as a number, under a key.
pub fn tick_written(id: &str, ts: i64) -> Row {
    row! {"id": id, "ts": ts, "tm": 1709937000123_i64, "tu": 1709937000123456_i64, "d": 19790}
}

pub fn tick_read(id: &str, ts: i64) -> Row {
    row! {"id": id, "ts": ts, "tm": "2024-03-08T22:30:00.123000Z", "tu": "2024-03-08T22:30:00.123456Z", "d": "2024-03-08"}
}

/// r1 to r5: numbers, texts with and without another zone, nulls, just before 1970.
pub fn ticks_written(ts: i64) -> [Row; 5] {
    [
        tick_written("r1", ts),
        row! {"id": "r2", "ts": ts, "tm": "2024-03-08T22:30:00.123Z", "tu": "2024-03-08T22:30:00.123456Z", "d": "2024-03-08"},
        row! {"id": "r3", "ts": ts, "tm": "2024-03-09T04:00:00.123+05:30", "tu": "2024-03-09T04:00:00.123456+05:30", "d": "2024-03-08"},
        row! {"id": "r4", "ts": ts, "tm": null, "tu": null, "d": null},
        row! {"id": "r5", "ts": ts, "tm": -1, "tu": -1, "d": -1},
    ]
}

pub fn ticks_read(ts: i64) -> [Row; 5] {
    let none = row! {"id": "r4", "ts": ts};
    let before = row! {"id": "r5", "ts": ts, "tm": "1969-12-31T23:59:59.999000Z", "tu": "1969-12-31T23:59:59.999999Z", "d": "1969-12-31"};
    [tick_read("r1", ts), tick_read("r2", ts), tick_read("r3", ts), none, before]
}
