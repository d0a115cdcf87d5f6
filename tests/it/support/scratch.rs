//! A folder of its own for each test, kept for a look when the test fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use tempfile::TempDir;

use super::Row;

/// Schema of the cases: a string key, a numeric ordering value, one nullable column.
pub const BASE_SCHEMA: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},
 {"name":"v","type":["null","string"],"default":null}]}"#;

pub struct Scratch {
    dir: Option<TempDir>,
}

impl Scratch {
    pub fn new() -> Scratch {
        Scratch { dir: Some(TempDir::with_prefix("hudi-streamer-").expect("make a temporary folder")) }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.as_ref().expect("there until dropped").path().join(name)
    }

    /// All of it, times included, in a folder of its own.
    pub fn copy(&self) -> Scratch {
        let copy = Scratch::new();
        let mut command = Command::new("cp");
        command.arg("-a").arg(self.path(".")).arg(copy.path("."));
        assert!(command.status().expect("run cp").success(), "{command:?}");
        copy
    }

    /// Writes `text` to `name`, making the folders above it.
    pub fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("inside the scratch folder")).expect("make the folder");
        fs::write(&path, text).expect("write a file");
        path
    }

    /// One JSON object a line.
    pub fn lines(&self, name: &str, rows: &[Row]) -> PathBuf {
        let text: String = rows.iter().map(|r| serde_json::to_string(r).expect("a row is JSON") + "\n").collect();
        self.file(name, text)
    }

    /// Sets the modification time that the DFS source goes by.
    pub fn touch(&self, name: &str, epoch_ms: u64) {
        touch(&self.path(name), epoch_ms);
    }
}

fn touch(path: &Path, epoch_ms: u64) {
    let file = fs::File::options().write(true).open(path).expect("open to set its time");
    file.set_modified(UNIX_EPOCH + Duration::from_millis(epoch_ms)).expect("set the modification time");
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(dir) = self.dir.take()
        {
            eprintln!("the files of this test are kept in {}", dir.keep().display());
        }
    }
}
