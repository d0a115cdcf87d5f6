//! Two jobs and Spark at one table, through ZooKeeper, and one of the jobs is killed again and again.
//!
//! `HUDI_STREAMER_WRITERS_KILLS` sets how often.

use super::*;
use std::collections::BTreeMap;

/// Once at each moment.
const KILLS: usize = 2 * MOMENTS;
/// Fault points, and as many things that are seen from outside.
const MOMENTS: usize = 5;
const KEYS: i64 = 120;
/// A killed one's lock is free so much later.
const SESSION_MS: &str = "4000";

/// What the table must hold: of each key the row with the greatest ordering value, whoever wrote it and when.
#[derive(Default)]
struct Fed {
    ts: i64,
    rows: BTreeMap<(String, String), Row>,
}

impl Fed {
    /// Updates of keys that all writers share, and a few that nobody has had before.
    fn batch(&mut self, writer: &str) -> Vec<Row> {
        self.ts += 1;
        let (ts, v) = (self.ts, format!("{writer}-{}", self.ts));
        let shared = (0..20).map(|i| (ts * 31 + i * 17) % KEYS);
        let new = (0..3).map(|i| KEYS + ts / 2 * 3 + i);
        let rows: Vec<Row> = shared.chain(new).map(|id| event(id, ts, &v)).collect();
        for row in &rows {
            let key = (row["p"].to_string(), row["id"].to_string());
            self.rows.insert(key, row.clone());
        }
        rows
    }

    fn assert_read_by(&self, reader: Reader, table: &Table) {
        let read = oracle(reader).read(table.str());
        let mut seen: BTreeMap<(String, String), Row> = BTreeMap::new();
        for row in read {
            let row: Row = row.into_iter().filter(|(name, _)| COLUMNS.contains(&name.as_str())).collect();
            let key = (row["p"].to_string(), row["id"].to_string());
            assert!(seen.insert(key.clone(), row).is_none(), "{reader:?}: {key:?} is there twice in {}", table.str());
        }
        assert_eq!(seen, self.rows, "{reader:?} reads {}", table.str());
    }
}

/// Moments at which a job is killed: at a fault point, or from outside once something is seen of it.
fn killed(writers: &Writers, number: usize, call: &Streamer, running: Running, feed: &mut dyn FnMut()) {
    let points: [&str; MOMENTS] =
        ["under-lock", "before-complete", "while-writing", "after-complete", "before-inflight"];
    if number.is_multiple_of(2) {
        // It has nothing to do but what comes now.
        running.signal("KILL");
        running.finish().killed();
        let dying = call.clone().env("HUDI_STREAMER_FAULT", points[number / 2 % MOMENTS]).start();
        feed();
        dying.finish().killed();
        return;
    }
    feed();
    let seen: [&str; MOMENTS] = ["requested", "inflight", "marker", ".heartbeat/", ".parquet"];
    let seen = seen[number / 2 % MOMENTS];
    let before = writers.table.files();
    wait_for(seen, || writers.table.files().iter().any(|file| file.contains(seen) && !before.contains(file)));
    running.signal("KILL");
    running.finish().killed();
}

fn through_zookeeper(table_type: &'static str) {
    let kills = from_env("HUDI_STREAMER_WRITERS_KILLS").map_or(KILLS, |kills| kills as usize);
    let zookeeper = ZooKeeper::shared();
    let key = format!("kills-{table_type}");
    let lock = [
        ("hoodie.write.lock.provider", "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"),
        ("hoodie.write.lock.zookeeper.url", zookeeper.endpoint()),
        ("hoodie.write.lock.zookeeper.base_path", "/hudi/writers"),
        ("hoodie.write.lock.zookeeper.lock_key", &key),
        ("hoodie.write.lock.zookeeper.session_timeout_ms", SESSION_MS),
        ("hoodie.write.num.retries.on.conflict.failures", "3"),
    ];
    let writers = Writers::sharing(table_type, &lock);
    let mut spark: Vec<String> = writers.lock.iter().map(|(key, value)| format!("{key}={value}")).collect();
    spark.push("hoodie.cleaner.policy.failed.writes=LAZY".to_string());
    spark.push("hoodie.metadata.enable=false".to_string());
    // On merge-on-read tables 0.15 takes the files of writes that are not complete for small ones, and then does not find them.
    spark.push("hoodie.parquet.small.file.limit=0".to_string());
    let spark: Vec<&str> = spark.iter().map(String::as_str).collect();
    let job = |name: &str| {
        let call = writers.job(name).switch("--continuous").flag("--min-sync-interval-seconds", "0");
        call.conf("hoodie.compact.inline.max.delta.commits", "3")
    };

    let mut fed = Fed::default();
    let mut files = 0;
    let mut feed = |name: &str, fed: &mut Fed| {
        files += 1;
        writers.feed(name, files, &fed.batch(name));
    };
    for name in ["a", "b"] {
        feed(name, &mut fed);
        writers.job(name).run().ok();
    }
    let mut running: Vec<(&str, Running)> = ["a", "b"].map(|name| (name, job(name).start())).into_iter().collect();
    for number in 0..kills {
        let (victim, dying) = running.remove(0);
        feed(running[0].0, &mut fed);
        killed(&writers, number, &job(victim), dying, &mut || feed(victim, &mut fed));
        running.push((victim, job(victim).start()));
        if number % 4 == 1 {
            // All three at once.
            feed("a", &mut fed);
            feed("b", &mut fed);
            let rows = fed.batch("spark");
            let file = writers.scratch.lines(&format!("spark-{number}.json"), &rows);
            let tries =
                (0..20).find_map(|_| oracle(SPARK_0_15).tries_to_write(writers.table.str(), "upsert", &file, &spark));
            tries.expect("Spark gets through in the end");
        }
    }
    for (_, running) in running {
        wait_for("the job to be up", || running.said().contains("merge rule in force"));
        running.signal("TERM");
        running.finish().ok();
    }
    for name in ["a", "b", "a", "b"] {
        writers.job(name).run().ok();
    }
    fed.assert_read_by(SPARK_0_15, &writers.table);
    fed.assert_read_by(SPARK_1_0, &writers.table);
    oracle(SPARK_0_15).validate(writers.table.str(), false);
    println!("{table_type}: {} commits, {} rollbacks", writers.table.writes().len(), writers.table.rollbacks());
    assert!(writers.table.rollbacks() > 0, "nobody died in the middle");
    assert!(!writers.table.files().contains(".hoodie/lock"), "ZooKeeper has the lock");
}

#[test]
fn killed_again_and_again_two_jobs_and_spark_lose_nothing_of_a_merge_on_read_table() {
    needs_peers!();
    through_zookeeper("MERGE_ON_READ");
}

#[test]
fn killed_again_and_again_two_jobs_and_spark_lose_nothing_of_a_copy_on_write_table() {
    needs_peers!();
    through_zookeeper("COPY_ON_WRITE");
}
