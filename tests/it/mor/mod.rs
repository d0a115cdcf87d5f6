//! Merge-on-read tables: a file a behaviour, all against one model (`model`). Most want Hudi on Spark and hudi-rs, so they
//! run under `HUDI_PEERS_TESTS=1`.

mod compaction;
mod continuous;
mod golden;
mod job;
mod merging;
mod model;
mod scenario;

use crate::support::*;
use job::MorJob;
use model::{MorModel, Writer};

const BY_EVENT_TIME: &str = "org.apache.hudi.common.model.DefaultHoodieRecordPayload";
const OVERWRITE: &str = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload";

/// Keys, ordering values, two values, a partition, and the flag of deletes.
const SCHEMA: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},
 {"name":"v","type":["null","string"],"default":null},{"name":"n","type":["null","double"],"default":null},
 {"name":"p","type":"string"},{"name":"_hoodie_is_deleted","type":["null","boolean"],"default":null}]}"#;
const COLUMNS: [&str; 6] = ["id", "ts", "v", "n", "p", "_hoodie_is_deleted"];

/// The row of key number `key`, which is in one of three partitions for good.
fn event(key: i64, ts: i64) -> Row {
    row! {"id": format!("k{key:03}"), "ts": ts, "v": format!("v{key}-{ts}"), "n": key as f64 / 4.0, "p": format!("p{}", key % 3)}
}

fn gone(key: i64, ts: i64) -> Row {
    row! {"id": format!("k{key:03}"), "ts": ts, "p": format!("p{}", key % 3), "_hoodie_is_deleted": true}
}

/// Small numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    /// One of `0..sides`.
    fn roll(&mut self, sides: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % sides as u64) as i64
    }
}
