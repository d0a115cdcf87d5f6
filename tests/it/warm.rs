//! What a running job remembers of keys is never taken for the truth: others write to its table between its rounds.

use crate::support::*;

const SCHEMA: &str = r#"{"type":"record","name":"trip","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},{"name":"v","type":["null","string"],"default":null},
 {"name":"part","type":"string"}]}"#;

/// Bytes of the cache: for all files, and for none of some.
const ENOUGH: &str = "1000000";
const TOO_FEW: &str = "400";

/// `shift` moves rows to other partitions.
fn rows(keys: std::ops::Range<i64>, ts: i64, shift: i64) -> Vec<Row> {
    let part = |i: i64| format!("p{}", (i + shift) % 3);
    keys.map(|i| row! {"id": format!("k{i:03}"), "ts": ts, "v": format!("{i}-{ts}"), "part": part(i)}).collect()
}

/// A kind of table and an index, and what is remembered.
type Setting = (&'static str, &'static str, &'static str);

/// Rounds of a running job, by turns with another writer, to whom rows are given and who says the instant. Each finds what
/// the other has written.
fn by_turns((table_type, index, cache): Setting, mut other: impl FnMut(&Job, &[Row]) -> String) -> Job {
    let global = index.starts_with("GLOBAL");
    let model = Model::new(&["id", "ts", "v", "part"]).partitioned("part");
    let mut job = Job::new(SCHEMA, if global { model.global() } else { model }, |call| {
        let call = call.flag("--table-type", table_type).switch("--continuous").partitioned("part");
        let call = call.conf("hoodie.index.type", index).conf("hoodie.streamer.index.cache.max.bytes", cache);
        match table_type {
            // No file takes new rows: updates go to log files.
            "MERGE_ON_READ" => call.switch("--disable-compaction").conf("hoodie.parquet.small.file.limit", "0"),
            _ => call,
        }
    });
    let running = job.call.start();
    for turn in 0..3 {
        let first = 10 * turn;
        let shift = if global { turn } else { 0 };
        let ours = rows(first..first + 30, 2 * turn, shift);
        job.move_in(&ours);
        let report =
            || running.said().lines().filter(|l| l.contains("round committed")).nth(turn as usize).map(str::to_owned);
        wait_for("the round's report", || report().is_some());
        let report = report().expect("just seen");
        // The first turn finds nothing; of the other's keys the next lack five.
        let new = if turn == 0 { 30 } else { 5 };
        let counts = [format!("inserted={new} "), format!("updated={} ", 30 - new)];
        assert!(global || counts.iter().all(|count| report.contains(count)), "turn {turn}: {report}");
        let instant = report.split("instant=\"").nth(1).and_then(|text| text.split('"').next());
        job.model.upsert(instant.expect("a report names its instant"), &ours);
        let theirs = rows(first + 15..first + 35, 2 * turn + 1, shift);
        let instant = other(&job, &theirs);
        job.model.upsert(&instant, &theirs);
    }
    running.signal("TERM");
    running.finish().ok();
    job
}

/// The other writer is a second process of ours, which keeps no position, and a third that compacts.
#[test]
fn keys_that_another_process_writes_are_found() {
    for setting in [
        ("COPY_ON_WRITE", "SIMPLE", ENOUGH),
        ("COPY_ON_WRITE", "BLOOM", ENOUGH),
        ("COPY_ON_WRITE", "SIMPLE", TOO_FEW),
        ("MERGE_ON_READ", "SIMPLE", ENOUGH),
    ] {
        let mut turn = 0;
        by_turns(setting, |job, rows| {
            turn += 1;
            job.scratch.lines(&format!("other-{turn}/rows.json"), rows);
            let call = job.call.clone().without("--continuous").flag("--ignore-checkpoint", format!("turn {turn}"));
            let call = call.conf("hoodie.streamer.source.dfs.root", job.scratch.path(&format!("other-{turn}")));
            call.conf("hoodie.streamer.checkpoint.force.skip", "true").run().ok();
            let instant = job.table.last_commit();
            if setting.0 == "MERGE_ON_READ" && turn == 2 {
                let compact = job.call.clone().conf("hoodie.compact.inline.max.delta.commits", "1");
                compact.after(&["compact", "--mode", "scheduleAndExecute"]).run().ok();
                assert!(job.table.timeline().iter().any(|name| name.ends_with(".commit")), "nothing was compacted");
            }
            instant
        });
    }
}

#[test]
fn keys_that_spark_writes_are_found() {
    needs_peers!();
    for setting in [
        ("COPY_ON_WRITE", "SIMPLE", ENOUGH),
        ("COPY_ON_WRITE", "GLOBAL_BLOOM", TOO_FEW),
        ("MERGE_ON_READ", "SIMPLE", ENOUGH),
    ] {
        let settings = [
            format!("hoodie.index.type={}", setting.1),
            "hoodie.metadata.enable=false".to_owned(),
            "hoodie.bloom.index.update.partition.path=true".to_owned(),
            "hoodie.compact.inline=false".to_owned(),
        ];
        let job = by_turns(setting, |job, rows| {
            let input = job.scratch.lines("spark.json", rows);
            oracle(SPARK_0_15).write(job.table.str(), "upsert", &input, &settings.each_ref().map(String::as_str))
        });
        job.check();
        oracle(SPARK_0_15).validate(job.table.str(), false);
    }
}
