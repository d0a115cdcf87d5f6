//! A continuous job and the compactions beside it: they take turns, stop together, die and go on.

use super::*;

/// A continuous job over files that comes back for more at once, and compacts after every `every` delta commits.
fn job(every: &str, with: impl FnOnce(Streamer) -> Streamer) -> Live {
    let model = Model::new(&COLUMNS).rule(Rule::EventTime).partitioned("p");
    let job = Job::new(SCHEMA, model, |call| {
        let call = call.flag("--table-type", "MERGE_ON_READ").flag("--payload-class", BY_EVENT_TIME).partitioned("p");
        let call = call.conf("hoodie.compact.inline.max.delta.commits", every);
        with(call.switch("--continuous").flag("--min-sync-interval-seconds", "0"))
    });
    Live { job, fed: 0 }
}

/// The model keeps the snapshot, which no compaction changes.
struct Live {
    job: Job,
    fed: u64,
}

impl Live {
    /// Starts the job and waits until it listens to signals. Its first file must be there: without any it would commit its
    /// position at once.
    fn start(&self) -> Running {
        assert!(self.fed > 0, "no file yet");
        let running = self.job.call.start();
        wait_for("the job to be up", || running.said().contains("merge rule in force"));
        running
    }

    /// One more input file, complete before it is seen.
    fn put(&mut self, rows: &[Row]) {
        self.fed += 1;
        let Job { scratch, .. } = &self.job;
        scratch.lines("staged.json", rows);
        scratch.touch("staged.json", BASE_TIME_MS + 1000 * self.fed);
        let name = scratch.path(&format!("in/{:05}.json", self.fed));
        std::fs::rename(scratch.path("staged.json"), name).expect("move the file in");
    }

    /// As [`Live::put`], until it is committed.
    fn upsert(&mut self, rows: &[Row]) {
        self.put(rows);
        self.committed(rows);
    }

    /// Waits for the delta commit that is not yet in the model.
    fn committed(&mut self, rows: &[Row]) {
        let number = self.fed as usize;
        wait_for(&format!("delta commit {number}"), || self.job.table.delta_commits().len() >= number);
        let deltas = self.job.table.delta_commits();
        assert_eq!(deltas.len(), number, "a file a commit");
        self.job.model.upsert(&deltas[number - 1], rows);
    }

    /// At rest: all readers see the model, and after everything is compacted base files alone have it.
    fn check(&self) {
        let Job { table, model, .. } = &self.job;
        oracle(SPARK_0_15).validate(table.str(), false);
        model.assert_read_by(table, &[SPARK_0_15, SPARK_1_0]);
        self.job.compact("execute").run().ok();
        assert_eq!(table.pending(), Vec::<String>::new(), "no compaction waits for long");
        self.job.compact("scheduleAndExecute").run().ok();
        self.job.check();
        oracle(SPARK_0_15).validate(table.str(), false);
        let mut spark = oracle(SPARK_0_15);
        let [now, compacted] =
            ["snapshot", "read_optimized"].map(|query| spark.query(table.str(), &["--query", query]));
        assert_eq!(now, compacted);
    }
}

fn rows(keys: std::ops::Range<i64>, ts: i64) -> Vec<Row> {
    keys.map(|key| event(key, ts)).collect()
}

#[test]
fn compactions_run_beside_ingestion_and_no_more_wait_than_are_allowed() {
    needs_peers!();
    let mut live = job("1", |call| call.flag("--max-pending-compactions", "1"));
    live.put(&rows(0..3000, 1));
    let running = live.start();
    live.committed(&rows(0..3000, 1));
    for round in 2..12 {
        live.upsert(&rows(round * 10..round * 10 + 1500, round));
        let waiting = live.job.table.pending_compactions();
        assert!(waiting.len() <= 2, "one may wait, one more be planned by the round that finds out: {waiting:?}");
    }
    wait_for("compactions", || live.job.table.compactions().len() > 2);
    running.signal("TERM");
    running.finish().ok();
    live.check();
}

#[test]
fn a_job_that_is_told_to_stop_leaves_a_compaction_whole_or_waiting() {
    needs_peers!();
    let mut live = job("2", |call| call);
    live.put(&rows(0..30_000, 1));
    let running = live.start();
    live.committed(&rows(0..30_000, 1));
    live.upsert(&rows(0..20_000, 2));
    let begun = |name: &String| name.ends_with(".compaction.inflight");
    wait_for("a compaction that has begun", || live.job.table.timeline().iter().any(begun));
    running.signal("TERM");
    running.finish().ok();
    let left = live.job.table.pending();
    assert_eq!(left, live.job.table.pending_compactions(), "nothing else is left");

    let running = live.start();
    live.upsert(&rows(10_000..10_100, 3));
    wait_for("the compaction", || live.job.table.pending_compactions().is_empty());
    running.signal("TERM");
    running.finish().ok();
    live.check();
}

#[test]
fn a_compaction_that_dies_beside_ingestion_is_done_again() {
    needs_peers!();
    for point in ["after-plan", "in-compaction", "before-compaction-complete", "after-compaction-complete"] {
        println!("killed {point}");
        let mut live = job("2", |call| call);
        live.put(&rows(0..300, 1));
        let dying = live.job.call.clone().env("HUDI_STREAMER_FAULT", point).start();
        live.committed(&rows(0..300, 1));
        live.put(&rows(0..200, 2));
        dying.finish().killed();
        let pending = live.job.table.pending_compactions().len();
        assert_eq!(pending, usize::from(point != "after-compaction-complete"), "{point}");

        let running = live.start();
        live.committed(&rows(0..200, 2));
        live.upsert(&rows(100..400, 3));
        live.upsert(&rows(50..150, 2));
        wait_for("the compaction", || live.job.table.pending_compactions().is_empty());
        running.signal("TERM");
        running.finish().ok();
        live.check();
    }
}

#[test]
fn without_compaction_logs_only_grow() {
    let mut live = job("1", |call| call.switch("--disable-compaction"));
    live.put(&rows(0..20, 1));
    let running = live.start();
    live.committed(&rows(0..20, 1));
    for round in 2..5 {
        live.upsert(&rows(0..20, round));
    }
    running.signal("TERM");
    running.finish().ok();
    let table = &live.job.table;
    assert!(!table.timeline().iter().any(|name| name.contains(".compaction.")), "{:?}", table.timeline());
    assert_eq!(table.log_files().len(), 9, "three more a round, one in each partition");
}
