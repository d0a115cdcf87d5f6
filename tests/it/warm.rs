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

/// Rounds of a running job, by turns with another writer, to whom rows are given and who says the instant. Each finds what
/// the other has written.
fn by_turns(index: &str, cache: &str, mut other: impl FnMut(&Job, &[Row]) -> String) -> Job {
    let global = index.starts_with("GLOBAL");
    let model = Model::new(&["id", "ts", "v", "part"]).partitioned("part");
    let mut job = Job::new(SCHEMA, if global { model.global() } else { model }, |call| {
        call.partitioned("part")
            .conf("hoodie.index.type", index)
            .conf("hoodie.streamer.index.cache.max.bytes", cache)
            .switch("--continuous")
    });
    let running = job.call.start();
    for turn in 0..3 {
        let first = 10 * turn;
        let shift = if global { turn } else { 0 };
        let ours = rows(first..first + 30, 2 * turn, shift);
        let before = job.table.commits().len();
        job.move_in(&ours);
        wait_for("the next commit", || job.table.commits().len() > before);
        job.model.upsert(&job.table.last_commit(), &ours);
        // The first turn finds nothing; of the others' keys all but the last ten are there.
        let new = if turn == 0 { 30 } else { 5 };
        let (inserted, updated) = (format!("inserted={new} "), format!("updated={} ", 30 - new));
        if !global {
            wait_for("the round's report", || running.said().matches("round committed").count() as i64 > turn);
            let said = running.said();
            let last = said.lines().rfind(|line| line.contains("round committed")).expect("just seen");
            assert!(last.contains(&inserted) && last.contains(&updated), "turn {turn}: {last}");
        }
        let theirs = rows(first + 15..first + 35, 2 * turn + 1, shift);
        let instant = other(&job, &theirs);
        job.model.upsert(&instant, &theirs);
    }
    running.signal("TERM");
    running.finish().ok();
    job
}

/// The other writer is a second process of ours, which keeps no position.
#[test]
fn keys_that_another_process_writes_are_found() {
    for (index, cache) in [("SIMPLE", ENOUGH), ("BLOOM", ENOUGH), ("SIMPLE", TOO_FEW)] {
        let mut turn = 0;
        by_turns(index, cache, |job, rows| {
            turn += 1;
            job.scratch.lines(&format!("other-{turn}/rows.json"), rows);
            let call = job.call.clone().without("--continuous").flag("--ignore-checkpoint", format!("turn {turn}"));
            let call = call.conf("hoodie.streamer.source.dfs.root", job.scratch.path(&format!("other-{turn}")));
            call.conf("hoodie.streamer.checkpoint.force.skip", "true").run().ok();
            job.table.last_commit()
        });
    }
}

#[test]
fn keys_that_spark_writes_are_found() {
    needs_peers!();
    for (index, cache) in [("SIMPLE", ENOUGH), ("GLOBAL_BLOOM", TOO_FEW)] {
        let settings = [
            format!("hoodie.index.type={index}"),
            "hoodie.metadata.enable=false".to_owned(),
            format!(
                "hoodie.{}.index.update.partition.path=true",
                if index.ends_with("BLOOM") { "bloom" } else { "simple" }
            ),
        ];
        let job = by_turns(index, cache, |job, rows| {
            let input = job.scratch.lines("spark.json", rows);
            oracle(SPARK_0_15).write(job.table.str(), "upsert", &input, &settings.each_ref().map(String::as_str))
        });
        job.check();
        oracle(SPARK_0_15).validate(job.table.str(), false);
    }
}
