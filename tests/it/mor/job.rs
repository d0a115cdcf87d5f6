//! A merge-on-read job in the making: files go in, rounds run and die, Spark lends a hand, and the model keeps pace.

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};

use super::*;

/// What every writer of these tables is told: new keys go to files of their own, so that the model knows what lies where.
const NO_SMALL_FILES: (&str, &str) = ("hoodie.parquet.small.file.limit", "0");

pub struct MorJob {
    job: Job<MorModel>,
    /// Rows that were fed and are in no commit: the next round reads them with its own.
    unread: Vec<Row>,
    payload: &'static str,
    /// The newest delta commit of which the model does not know every change.
    loaded: String,
}

const PAYLOAD: &str = "hoodie.datasource.write.payload.class";

fn rule(payload: &str) -> Rule {
    if payload == BY_EVENT_TIME { Rule::EventTime } else { Rule::Arrival }
}

/// What the timeline has, by name.
struct Seen {
    deltas: Vec<String>,
    compactions: Vec<String>,
}

impl MorJob {
    /// A partitioned table of [`SCHEMA`] that is not there yet, under the merge rule of `payload`.
    pub fn new(payload: &'static str, with: impl FnOnce(Streamer) -> Streamer) -> MorJob {
        let model = MorModel::new(rule(payload), &COLUMNS).partitioned("p");
        let call = |call: Streamer| {
            let call = call.flag("--table-type", "MERGE_ON_READ").flag("--payload-class", payload).partitioned("p");
            with(call.conf(NO_SMALL_FILES.0, NO_SMALL_FILES.1))
        };
        MorJob { job: Job::new(SCHEMA, model, call), unread: Vec::new(), payload, loaded: String::new() }
    }

    /// A golden table, under the merge rule that it records; it has the place of golden tables for itself until the first
    /// part is dropped.
    pub fn on(golden: Golden, schema: &str, with: impl FnOnce(MorModel) -> MorModel) -> (impl Drop, MorJob) {
        let payload =
            if golden.option(PAYLOAD).is_some_and(|class| class == BY_EVENT_TIME) { BY_EVENT_TIME } else { OVERWRITE };
        let mut model = with(MorModel::new(rule(payload), &[]));
        model.load(&golden.rows_of("read_optimized"));
        if let [plan] = &golden.table.pending_compactions()[..] {
            // What it takes: the table as it was by then.
            let until =
                golden.table.delta_commits().into_iter().rfind(|instant| instant < plan).expect("a delta commit");
            let then = ["--query", "time_travel", "--as-of", &until];
            model.load_logs(&oracle(SPARK_0_15).query(golden.table.str(), &then));
            model.plan(plan);
        }
        model.load_logs(&golden.rows());
        let call = golden.streamer(schema).flag("--table-type", "MERGE_ON_READ");
        let (lock, job) = golden.into_job(call.conf(NO_SMALL_FILES.0, NO_SMALL_FILES.1), model);
        let loaded = job.table.last_write();
        (lock, MorJob { job, unread: Vec::new(), payload, loaded })
    }

    /// One round over `rows` and whatever is unread: one delta commit, and the compactions that it brings.
    #[track_caller]
    pub fn upsert(&mut self, rows: &[Row]) -> String {
        self.upsert_by(&self.call.clone(), rows)
    }

    #[track_caller]
    pub fn upsert_by(&mut self, call: &Streamer, rows: &[Row]) -> String {
        self.put(rows);
        let seen = self.seen();
        let run = call.run().ok();
        let instants = self.settle(&seen);
        let [instant] = &instants[..] else { panic!("expected one delta commit, found {instants:?}\n{run}") };
        instant.clone()
    }

    /// As [`MorJob::upsert`], killed at a fault point; whatever it did is there, and the rest unread.
    #[track_caller]
    pub fn upsert_killed_at(&mut self, point: &str, rows: &[Row]) {
        self.put(rows);
        let seen = self.seen();
        self.call.clone().env("HUDI_STREAMER_FAULT", point).run().killed();
        self.settle(&seen);
    }

    /// Runs a call that reads nothing, e.g. a compaction, and tells the model what came of it.
    #[track_caller]
    pub fn run(&mut self, call: &Streamer) -> Run {
        let seen = self.seen();
        let run = call.run().ok();
        assert_eq!(self.settle(&seen), Vec::<String>::new(), "no delta commit was expected\n{run}");
        run
    }

    /// As [`MorJob::run`], killed at a fault point.
    #[track_caller]
    pub fn killed_at(&mut self, point: &str, call: &Streamer) {
        let seen = self.seen();
        call.clone().env("HUDI_STREAMER_FAULT", point).run().killed();
        self.settle(&seen);
    }

    /// Whether the next delta commit is the fifth since the last compaction.
    pub fn compaction_is_due(&self) -> bool {
        let last = self.table.compactions().pop().unwrap_or_default();
        self.table.delta_commits().iter().filter(|instant| **instant > last).count() + 1 >= 5
    }

    /// Spark upserts `rows`; it does not compact on its own.
    #[track_caller]
    pub fn spark_upserts(&mut self, spark: Reader, rows: &[Row]) -> String {
        let instant = self.spark_writes(spark, "upsert", rows);
        self.model.upsert(&instant, rows, Writer::Spark);
        instant
    }

    /// Spark's `delete` operation over the keys of `rows`.
    #[track_caller]
    pub fn spark_deletes(&mut self, spark: Reader, rows: &[Row]) -> String {
        let instant = self.spark_writes(spark, "delete", rows);
        let ids: Vec<String> = rows.iter().map(|row| text(&row["id"])).collect();
        self.model.delete(&instant, &ids.iter().map(String::as_str).collect::<Vec<_>>());
        instant
    }

    #[track_caller]
    fn spark_writes(&mut self, spark: Reader, op: &str, rows: &[Row]) -> String {
        let file = self.scratch.lines("spark.json", rows);
        let payload = format!("{PAYLOAD}={}", self.payload);
        let small = format!("{}={}", NO_SMALL_FILES.0, NO_SMALL_FILES.1);
        let conf = [payload.as_str(), &small, "hoodie.compact.inline=false", "hoodie.metadata.enable=false"];
        oracle(spark).write(self.table.str(), op, &file, &conf)
    }

    /// Spark runs a table service of compaction, whatever is due.
    #[track_caller]
    pub fn spark_compacts(&mut self, spark: Reader, action: &str) {
        let seen = self.seen();
        let conf = ["hoodie.compact.inline.max.delta.commits=1", "hoodie.metadata.enable=false"];
        oracle(spark).service(self.table.str(), action, &conf);
        self.settle(&seen);
    }

    /// Everything that readers can see is as the model says; incremental queries since the last few delta commits.
    #[track_caller]
    pub fn check(&self) {
        let deltas = self.table.delta_commits();
        let begins: BTreeSet<&String> =
            [2, 6].into_iter().map(|back| &deltas[deltas.len().saturating_sub(back)]).collect();
        let begins: Vec<String> = begins.into_iter().filter(|begin| **begin >= self.loaded).cloned().collect();
        self.model.check(&self.table, &begins);
    }

    fn put(&mut self, rows: &[Row]) {
        self.job.feed(rows);
        self.unread.extend_from_slice(rows);
    }

    fn seen(&self) -> Seen {
        Seen { deltas: self.table.delta_commits(), compactions: self.table.compactions() }
    }

    /// Tells the model what is new since `seen`: the unread rows in a delta commit, compactions planned and done. The new
    /// delta commits.
    #[track_caller]
    fn settle(&mut self, seen: &Seen) -> Vec<String> {
        let new = |now: Vec<String>, then: &[String]| -> Vec<String> {
            now.into_iter().filter(|instant| !then.contains(instant)).collect()
        };
        let deltas = new(self.table.delta_commits(), &seen.deltas);
        for instant in &deltas {
            let rows = std::mem::take(&mut self.unread);
            self.model.upsert(instant, &rows, Writer::Ours);
        }
        let done = new(self.table.compactions(), &seen.compactions);
        for instant in done.iter().chain(&self.table.pending_compactions()) {
            if self.model.pending() != Some(instant) {
                self.model.plan(instant);
            }
            if done.contains(instant) {
                self.model.complete(instant);
            }
        }
        deltas
    }
}

impl Deref for MorJob {
    type Target = Job<MorModel>;

    fn deref(&self) -> &Job<MorModel> {
        &self.job
    }
}

impl DerefMut for MorJob {
    fn deref_mut(&mut self) -> &mut Job<MorModel> {
        &mut self.job
    }
}
