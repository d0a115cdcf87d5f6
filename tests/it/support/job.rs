//! A job in the making: files go in, rounds run, and the model keeps pace with the table.

use super::{Model, Row, Run, SPARK_0_15, Scratch, Streamer, Table, oracle};

/// What a row becomes must not depend on them.
pub const TABLE_TYPES: [&str; 2] = ["COPY_ON_WRITE", "MERGE_ON_READ"];

/// Modification time of the first input file; each further one is a second newer.
pub const BASE_TIME_MS: u64 = 1_700_000_000_000;

pub struct Job<M = Model> {
    pub scratch: Scratch,
    pub call: Streamer,
    pub table: Table,
    pub model: M,
    fed: u64,
}

impl<M> Job<M> {
    /// The base call with `schema`, changed by `with`.
    pub fn new(schema: &str, model: M, with: impl FnOnce(Streamer) -> Streamer) -> Job<M> {
        let scratch = Scratch::new();
        scratch.file("schema.avsc", schema);
        let call = with(Streamer::json(&scratch));
        let table = Table::at(scratch.path("table"));
        Job { scratch, call, table, model, fed: 0 }
    }

    /// A job that goes on with a table that is there.
    pub fn on(scratch: Scratch, call: Streamer, table: Table, model: M) -> Job<M> {
        Job { scratch, call, table, model, fed: 0 }
    }

    /// The same job elsewhere: its own copy of input, table and model.
    pub fn copy(&self) -> Job<M>
    where
        M: Clone,
    {
        let scratch = self.scratch.copy();
        let call = self.call.clone().moved(&self.scratch.path(""), &scratch.path(""));
        let table = Table::at(scratch.path("table"));
        Job { scratch, call, table, model: self.model.clone(), fed: self.fed }
    }

    /// One more input file, newer than those before it; its name below `in/`.
    pub fn feed(&mut self, rows: &[Row]) -> String {
        let name = self.next_name();
        self.scratch.lines(&format!("in/{name}"), rows);
        self.scratch.touch(&format!("in/{name}"), BASE_TIME_MS + 1000 * self.fed);
        name
    }

    /// As [`Job::feed`], with lines as they are.
    pub fn feed_text(&mut self, text: &str) -> String {
        let name = self.next_name();
        self.scratch.file(&format!("in/{name}"), text);
        self.scratch.touch(&format!("in/{name}"), BASE_TIME_MS + 1000 * self.fed);
        name
    }

    /// As [`Job::feed`], for a job that runs: the file is whole before it is seen, as an operator would move one in.
    pub fn move_in(&mut self, rows: &[Row]) {
        let name = self.next_name();
        let staged = format!("staged-{name}");
        self.scratch.lines(&staged, rows);
        self.scratch.touch(&staged, BASE_TIME_MS + 1000 * self.fed);
        std::fs::rename(self.scratch.path(&staged), self.scratch.path(&format!("in/{name}")))
            .expect("move the file in");
    }

    fn next_name(&mut self) -> String {
        self.fed += 1;
        format!("round-{:03}.json", self.fed)
    }

    /// The checkpoint after all that was fed is read.
    pub fn position(&self) -> String {
        (BASE_TIME_MS + 1000 * self.fed).to_string()
    }

    /// Runs a round over what was fed; it must commit exactly once. The instant it made.
    #[track_caller]
    pub fn round(&self, op: &str) -> String {
        self.commits(&self.call.clone().op(op))
    }

    /// As [`Job::round`], with another call.
    #[track_caller]
    pub fn commits(&self, call: &Streamer) -> String {
        // The oldest may be archived meanwhile.
        let before = self.table.writes().pop().unwrap_or_default();
        let run = call.run().ok();
        let new: Vec<String> = self.table.writes().into_iter().filter(|instant| *instant > before).collect();
        let [instant] = &new[..] else { panic!("expected one commit after {before:?}, found {new:?}\n{run}") };
        instant.clone()
    }

    /// `hudi-streamer compact` of this job's table, of all that has log files.
    pub fn compact(&self, mode: &str) -> Streamer {
        Streamer::bare()
            .after(&["compact"])
            .flag("--target-base-path", &self.table.path)
            .flag("--mode", mode)
            .conf("hoodie.compact.inline.max.delta.commits", "1")
    }

    /// A run that must leave the table as it is.
    #[track_caller]
    pub fn makes_no_instant(&self, call: &Streamer) -> Run {
        let before = self.table.timeline();
        let run = call.run().ok();
        assert_eq!(before, self.table.timeline(), "no instant was expected\n{run}");
        run
    }
}

impl Job {
    #[track_caller]
    pub fn upsert(&mut self, rows: &[Row]) -> String {
        self.feed(rows);
        let instant = self.round("UPSERT");
        self.model.upsert(&instant, rows);
        instant
    }

    #[track_caller]
    pub fn insert(&mut self, rows: &[Row]) -> String {
        self.feed(rows);
        let instant = self.round("INSERT");
        self.model.insert(&instant, rows);
        instant
    }

    #[track_caller]
    pub fn bulk_insert(&mut self, rows: &[Row]) -> String {
        self.feed(rows);
        let instant = self.round("BULK_INSERT");
        self.model.insert(&instant, rows);
        instant
    }

    /// All readers see the model.
    #[track_caller]
    pub fn check(&self) {
        self.model.assert_equals(&self.table);
    }

    /// All readers see the model and nothing is at fault; in a merge-on-read table that has log files, after their
    /// compaction too.
    #[track_caller]
    pub fn check_through_compaction(&self) {
        self.check();
        oracle(SPARK_0_15).validate(self.table.str(), false);
        if self.table.is_merge_on_read() {
            self.compacts();
            self.check();
        }
    }

    /// Compacts all log files, of which there must be some, and leaves nothing at fault.
    #[track_caller]
    pub fn compacts(&self) {
        assert!(!self.table.log_files().is_empty(), "no row of this test is in a log file");
        let before = self.table.compactions().len();
        let run = self.compact("scheduleAndExecute").run().ok();
        assert_eq!(self.table.compactions().len(), before + 1, "a compaction was due\n{run}");
        oracle(SPARK_0_15).validate(self.table.str(), false);
    }
}
