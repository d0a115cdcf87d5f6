//! Tables that Hudi itself made (`tests/tables/`): unpacked, with what is known of them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;

use super::{Job, Row, Scratch, Streamer, Table};

/// Hudi keeps full paths in clean, rollback and clustering files, so these tables work only where they were made.
const HOME: &str = "/tmp/hudi-golden";

pub struct Golden {
    pub table: Table,
    pub scratch: Scratch,
    spec: Value,
    home: MutexGuard<'static, ()>,
}

impl Golden {
    /// Unpacks `name`; one golden table at a time, since they all live in one place.
    pub fn open(name: &str) -> Golden {
        static ONE: Mutex<()> = Mutex::new(());
        let home = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables");
        let spec = fs::read_to_string(tables.join(format!("{name}.json"))).expect("the table's description");
        let path = Path::new(HOME).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(HOME).expect("make the folder of golden tables");
        let archive = tables.join(format!("{name}.tar.zst"));
        let tar = Command::new("tar").arg("-C").arg(HOME).args(["-I", "zstd", "-xf"]).arg(archive).status();
        assert!(tar.expect("run tar").success(), "unpack {name} (is zstd installed?)");
        Golden {
            table: Table::at(path),
            scratch: Scratch::new(),
            spec: serde_json::from_str(&spec).expect("the description is JSON"),
            home,
        }
    }

    /// The rows that the writing version itself read.
    pub fn rows(&self) -> Vec<Row> {
        self.rows_of("snapshot")
    }

    /// As [`Golden::rows`], by another query: `read_optimized`.
    pub fn rows_of(&self, query: &str) -> Vec<Row> {
        let rows = self.spec["expected"][query].as_array().expect("rows of a query");
        rows.iter().map(|r| r.as_object().expect("a row").clone()).collect()
    }

    /// The base call for this table: its own keys and partitions, and `schema` (Avro) for what comes in.
    pub fn streamer(&self, schema: &str) -> Streamer {
        self.scratch.file("schema.avsc", schema);
        let mut call = Streamer::json(&self.scratch)
            .flag("--target-base-path", &self.table.path)
            .flag("--target-table", self.spec["name"].as_str().expect("a name"));
        for (key, value) in self.spec["options"].as_object().expect("options") {
            let ours = key.starts_with("hoodie.datasource.write.")
                && !key.contains("precombine")
                && !key.contains("commitmeta");
            if ours || key.starts_with("hoodie.keygen") {
                call = call.conf(key, value.as_str().expect("options are text"));
            }
        }
        self.index().into_iter().fold(call, |call, (key, value)| call.conf(&key, value))
    }

    /// What its writer was told.
    pub fn option(&self, key: &str) -> Option<&str> {
        self.spec["options"][key].as_str()
    }

    /// Settings of a global index or of buckets, which every writer of the table has to give: the table does not keep them.
    pub fn index(&self) -> Vec<(String, String)> {
        let options = self.spec["options"].as_object().expect("options");
        let options = options.iter().map(|(k, v)| (k.clone(), v.as_str().expect("options are text").to_owned()));
        options
            .filter(|(k, v)| match k.as_str() {
                "hoodie.index.type" => v.starts_with("GLOBAL") || v == "BUCKET",
                k => k.ends_with(".update.partition.path") || k.starts_with("hoodie.bucket.index."),
            })
            .collect()
    }

    /// A job on this table; it has the place of golden tables for itself until the first part is dropped.
    pub fn into_job<M>(self, call: Streamer, model: M) -> (impl Drop, Job<M>) {
        (self.home, Job::on(self.scratch, call, self.table, model))
    }
}
