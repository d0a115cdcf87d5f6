//! Several writers of one table, who share a lock: what one does not know of the other is found before it commits.

mod conflicts;
mod jobs;
mod kills;

use crate::support::*;

const SCHEMA: &str = r#"{"type":"record","name":"event","fields":[
  {"name":"id","type":"string"},{"name":"p","type":"string"},{"name":"ts","type":"long"},
  {"name":"v","type":["null","string"],"default":null}]}"#;
const COLUMNS: [&str; 4] = ["id", "p", "ts", "v"];
const BY_EVENT_TIME: &str = "org.apache.hudi.common.model.DefaultHoodieRecordPayload";
/// A table and its writers: each has a folder of input, and a name for its checkpoints.
pub struct Writers {
    scratch: Scratch,
    table: Table,
    lock: Vec<(String, String)>,
    table_type: &'static str,
}

impl Writers {
    /// With a lock of the file system.
    fn new(table_type: &'static str) -> Writers {
        let lock = [
            ("hoodie.write.lock.provider", "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"),
            ("hoodie.write.lock.wait_time_ms_between_retry", "50"),
        ];
        Writers::sharing(table_type, &lock)
    }

    fn sharing(table_type: &'static str, lock: &[(&str, &str)]) -> Writers {
        let scratch = Scratch::new();
        scratch.file("schema.avsc", SCHEMA);
        let table = Table::at(scratch.path("table"));
        let several = [("hoodie.write.concurrency.mode", "optimistic_concurrency_control")];
        let lock = several.iter().chain(lock).map(|(key, value)| (key.to_string(), value.to_string())).collect();
        Writers { scratch, table, lock, table_type }
    }

    /// A job without a name of its own over `in-<name>`.
    fn unnamed(&self, name: &str) -> Streamer {
        let folder = self.scratch.path(&format!("in-{name}"));
        std::fs::create_dir_all(&folder).expect("make the input folder");
        let call = Streamer::json(&self.scratch)
            .flag("--table-type", self.table_type)
            .flag("--payload-class", BY_EVENT_TIME)
            .partitioned("p")
            .conf("hoodie.streamer.source.dfs.root", folder);
        self.lock.iter().fold(call, |call, (key, value)| call.conf(key, value))
    }

    fn job(&self, name: &str) -> Streamer {
        self.unnamed(name).conf("hoodie.streamer.multiwriter.source.checkpoint.id", name)
    }

    /// The `number`th file of a writer's input, whole before it is seen.
    fn feed(&self, name: &str, number: u64, rows: &[Row]) {
        let staged = format!("staged-{name}-{number}.json");
        self.scratch.lines(&staged, rows);
        self.scratch.touch(&staged, BASE_TIME_MS + 1000 * number);
        std::fs::create_dir_all(self.scratch.path(&format!("in-{name}"))).expect("make the input folder");
        let name = self.scratch.path(&format!("in-{name}/{number:05}.json"));
        std::fs::rename(self.scratch.path(&staged), name).expect("move the file in");
    }

    /// Starts a writer that stops itself at a fault point.
    fn stopped_at(&self, point: &str, call: &Streamer) -> Running {
        let running = call.clone().env("HUDI_STREAMER_FAULT", &format!("stop:{point}")).start();
        wait_for("it to be stopped", || running.is_stopped());
        running
    }

    /// Nothing of a write that did not complete is left.
    fn check_clean(&self) {
        assert_eq!(self.table.pending(), Vec::<String>::new());
        let left: Vec<_> = self.table.files().into_iter().filter(|f| is_temporary(f)).collect();
        assert_eq!(left, Vec::<String>::new());
    }

    /// By one reader: that all read what we write is proved where one writes alone.
    fn check(&self, model: &Model) {
        if peers_enabled() {
            model.assert_read_by(&self.table, &[SPARK_0_15]);
            oracle(SPARK_0_15).validate(self.table.str(), false);
        }
    }
}

fn is_temporary(file: &str) -> bool {
    [".hoodie/.temp/", ".hoodie/.heartbeat/", ".hoodie/lock"].iter().any(|prefix| file.starts_with(prefix))
}

fn goes_on(running: Running) -> Run {
    running.signal("CONT");
    running.finish()
}

fn event(id: i64, ts: i64, v: &str) -> Row {
    row! {"id": format!("k{id:06}"), "p": format!("p{}", id % 3), "ts": ts, "v": v}
}

fn events(ids: std::ops::Range<i64>, ts: i64, v: &str) -> Vec<Row> {
    ids.map(|id| event(id, ts, v)).collect()
}

fn model() -> Model {
    Model::new(&COLUMNS).rule(Rule::EventTime).partitioned("p")
}
