//! Storage fails at any call of a round: every call in turn, not some. The round ends well, or with an error that has a name,
//! or is dead; and the next one, without a fault, ends with the table as if nothing had been.

mod commands;
mod every;
mod local;
mod s3;

use crate::support::*;
use every::Scenario;

/// Keys, ordering values, a value, one of two partitions, and the flag of deletes.
const SCHEMA: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},
 {"name":"v","type":["null","string"],"default":null},{"name":"p","type":"string"},
 {"name":"_hoodie_is_deleted","type":["null","boolean"],"default":null}]}"#;
const COLUMNS: [&str; 5] = ["id", "ts", "v", "p", "_hoodie_is_deleted"];

/// New and changed rows of these key numbers.
fn batch(keys: std::ops::Range<i64>, ts: i64) -> Vec<Row> {
    keys.map(|key| row! {"id": format!("k{key}"), "ts": ts, "v": format!("v{key}-{ts}"), "p": format!("p{}", key % 2)})
        .collect()
}

/// The same, and the keys `gone` deleted.
fn batch_and_gone(keys: std::ops::Range<i64>, gone: &[i64], ts: i64) -> Vec<Row> {
    let deleted = gone
        .iter()
        .map(|key| row! {"id": format!("k{key}"), "ts": ts, "p": format!("p{}", key % 2), "_hoodie_is_deleted": true});
    batch(keys, ts).into_iter().chain(deleted).collect()
}

/// What keeps a table small, at settings that let each round do it.
fn services(call: Streamer) -> Streamer {
    call.conf("hoodie.clean.commits.retained", "1")
        .conf("hoodie.keep.min.commits", "3")
        .conf("hoodie.keep.max.commits", "4")
        // Changes go to log files, new keys to files of their own.
        .conf("hoodie.parquet.small.file.limit", "0")
}

/// A partitioned table that is not there yet.
fn new_job(table_type: &str, with: impl FnOnce(Streamer) -> Streamer) -> Job {
    let call = |call: Streamer| with(services(call.flag("--table-type", table_type).partitioned("p")));
    Job::new(SCHEMA, Model::new(&COLUMNS).partitioned("p"), call)
}

/// Writes the same few keys so often.
fn written(mut job: Job, rounds: i64) -> Job {
    (1..=rounds).for_each(|round| drop(job.upsert(&batch(1..5, round))));
    job
}

/// The next rounds of such a job.
fn upsert(job: Job) -> Scenario {
    // Not the key that is gone: whether its file group takes it back depends on when that was compacted.
    let (batch, next) = (batch_and_gone(4..8, &[1], 20), batch(2..4, 21));
    Scenario { job, folder: None, op: "UPSERT", batch, next }
}

/// A compaction behind every other round.
fn compacting(call: Streamer) -> Streamer {
    call.conf("hoodie.compact.inline.max.delta.commits", "2")
}

/// In the rounds of the scenario.
fn assert_all_services_run(scenario: &Scenario) {
    let (before, job) = (Plain::read(&scenario.job.table), scenario.sound());
    let after = Plain::read(&job.table);
    let last = before.made().pop_last().expect("a write");
    let new = after.completed_after(&last);
    assert!(new.iter().any(|action| action == "clean"), "no clean among {new:?}");
    assert!(
        !job.table.is_merge_on_read() || new.iter().any(|action| action == "commit"),
        "no compaction among {new:?}"
    );
    assert!(after.archived().len() > before.archived().len(), "nothing new is archived");
}
