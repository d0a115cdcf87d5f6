//! A table's files as the tests look at them, without the program's own code: names, commit metadata, leftovers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Both spellings of the checkpoint in a commit's extra metadata (Hudi's StreamerCheckpointV1 and V2).
pub const CHECKPOINT_KEYS: [&str; 2] = ["deltastreamer.checkpoint.key", "streamer.checkpoint.key.v2"];

#[derive(Clone)]
pub struct Table {
    pub path: PathBuf,
}

impl Table {
    pub fn at(path: impl Into<PathBuf>) -> Table {
        Table { path: path.into() }
    }

    pub fn str(&self) -> &str {
        self.path.to_str().expect("test paths are UTF-8")
    }

    /// Names of the timeline's files, sorted; none when the table is not there.
    pub fn timeline(&self) -> BTreeSet<String> {
        let Ok(entries) = fs::read_dir(self.path.join(".hoodie")) else { return BTreeSet::new() };
        let names = entries.map(|e| e.expect("list the timeline").file_name().to_string_lossy().into_owned());
        names.filter(|n| n.starts_with(|c: char| c.is_ascii_digit())).collect()
    }

    /// Instants of completed `commit`s, `replacecommit`s and `deltacommit`s, oldest first.
    pub fn commits(&self) -> Vec<String> {
        self.instants(&["commit", "replacecommit", "deltacommit"])
    }

    pub fn is_merge_on_read(&self) -> bool {
        fs::read_to_string(self.path.join(".hoodie/hoodie.properties"))
            .is_ok_and(|text| text.contains("=MERGE_ON_READ"))
    }

    /// As [`Table::commits`], without compactions, which bring no rows and carry no checkpoint.
    pub fn writes(&self) -> Vec<String> {
        if self.is_merge_on_read() { self.delta_commits() } else { self.commits() }
    }

    pub fn last_write(&self) -> String {
        self.writes().pop().unwrap_or_else(|| panic!("no completed commit in {}", self.str()))
    }

    /// Instants of completed delta commits, oldest first.
    pub fn delta_commits(&self) -> Vec<String> {
        self.instants(&["deltacommit"])
    }

    /// Instants of a merge-on-read table's completed compactions, oldest first.
    pub fn compactions(&self) -> Vec<String> {
        self.instants(&["commit"])
    }

    /// Instants of compactions that are planned and not completed, begun or not.
    pub fn pending_compactions(&self) -> Vec<String> {
        let done = self.compactions();
        self.instants(&["compaction.requested"]).into_iter().filter(|instant| !done.contains(instant)).collect()
    }

    /// Instants with a timeline file that ends in one of these.
    fn instants(&self, endings: &[&str]) -> Vec<String> {
        let split = |n: &String| n.split_once('.').map(|(instant, ending)| (instant.to_owned(), ending.to_owned()));
        self.timeline()
            .iter()
            .filter_map(split)
            .filter(|(_, e)| endings.contains(&e.as_str()))
            .map(|(i, _)| i)
            .collect()
    }

    pub fn last_commit(&self) -> String {
        self.commits().pop().unwrap_or_else(|| panic!("no completed commit in {}", self.str()))
    }

    /// Instants that have begun and are not completed. A file of the timeline that was never named (`…#1`) is no instant: a
    /// later start sweeps it.
    pub fn pending(&self) -> Vec<String> {
        let timeline = self.timeline();
        let named = timeline.iter().filter(|name| !name.contains('#'));
        let begun: BTreeSet<&str> = named.filter_map(|n| n.split_once('.')).map(|(i, _)| i).collect();
        let done = |i: &str| {
            ["commit", "deltacommit", "replacecommit", "clean", "rollback", "restore"]
                .iter()
                .any(|a| timeline.contains(&format!("{i}.{a}")))
        };
        begun.into_iter().filter(|i| !done(i)).map(str::to_owned).collect()
    }

    pub fn rollbacks(&self) -> usize {
        self.timeline().iter().filter(|n| n.ends_with(".rollback")).count()
    }

    /// The metadata of a completed commit.
    pub fn commit_metadata(&self, instant: &str) -> Value {
        let files = ["commit", "deltacommit", "replacecommit"].map(|action| format!("{instant}.{action}"));
        let file = files.iter().find(|file| self.timeline().contains(*file));
        let file = file.unwrap_or_else(|| panic!("{instant} is no completed commit of {}", self.str()));
        let path = self.path.join(".hoodie").join(file);
        let text = fs::read(&path).unwrap_or_else(|e| panic!("read {}: {e}", path.display()));
        serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{} is no JSON: {e}", path.display()))
    }

    /// The newest commit's checkpoint.
    pub fn checkpoint(&self) -> String {
        self.checkpoint_of(&self.last_write())
    }

    /// A commit's checkpoint; both spellings must say the same.
    pub fn checkpoint_of(&self, instant: &str) -> String {
        let metadata = self.commit_metadata(instant);
        let [old, new] = CHECKPOINT_KEYS.map(|key| metadata["extraMetadata"][key].as_str().map(str::to_owned));
        assert_eq!(old, new, "the two spellings of the checkpoint differ");
        old.expect("the commit carries a checkpoint")
    }

    /// The base files that a commit wrote, relative to the table.
    pub fn written_by(&self, instant: &str) -> BTreeSet<String> {
        let metadata = self.commit_metadata(instant);
        let partitions = metadata["partitionToWriteStats"].as_object().expect("partitions").values();
        let stats = partitions.flat_map(|stats| stats.as_array().expect("write stats"));
        stats.map(|stat| stat["path"].as_str().expect("a path").to_owned()).collect()
    }

    /// Every parquet file outside `.hoodie`, relative to the table.
    pub fn base_files(&self) -> BTreeSet<String> {
        self.files().into_iter().filter(|f| f.ends_with(".parquet") && !f.starts_with(".hoodie")).collect()
    }

    /// Every log file outside `.hoodie`, relative to the table.
    pub fn log_files(&self) -> BTreeSet<String> {
        self.files().into_iter().filter(|f| f.contains(".log.") && !f.starts_with(".hoodie")).collect()
    }

    /// Every file, relative to the table.
    pub fn files(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        walk(&self.path, &self.path, &mut found);
        found
    }
}

fn walk(root: &Path, folder: &Path, found: &mut BTreeSet<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("list the table").path();
        if path.is_dir() {
            walk(root, &path, found);
        } else {
            found.insert(path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned());
        }
    }
}
