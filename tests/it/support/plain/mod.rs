//! A reader as slow and as obvious as can be, without the program's own code: what a table holds, what of it nobody
//! accounts for, and how its files stand. For tests that read hundreds of tables; what Spark says of a few of them is asked
//! apart.
//!
//! Knows what those tables have: columns of text, whole numbers and truth values, the rule that the newer row wins, direct
//! markers. Panics on the rest.

mod avro_log;
mod parquet_file;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use self::avro_log::{Block, Kind};
use super::{META, Row, Table, Value, text};

/// A table's files at one moment.
pub struct Plain {
    root: PathBuf,
    files: BTreeSet<String>,
    /// Completed instants and their actions.
    completed: BTreeMap<String, String>,
    /// Instants that have begun and are not completed.
    pending: BTreeSet<String>,
}

/// `<file id>_<token>_<instant>.parquet`
struct BaseFile<'a> {
    path: &'a str,
    group: &'a str,
    instant: &'a str,
}

/// `.<file id>_<base instant>.log.<version>_<token>`
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct LogFile<'a> {
    base_instant: &'a str,
    version: u32,
    token: &'a str,
    group: &'a str,
    path: &'a str,
}

/// Of a file group: what a reader of now opens.
struct Slice<'a> {
    base: Option<BaseFile<'a>>,
    logs: Vec<LogFile<'a>>,
}

const WRITES: [&str; 3] = ["commit", "deltacommit", "replacecommit"];
const ACTIONS: [&str; 7] = ["commit", "deltacommit", "replacecommit", "clean", "rollback", "savepoint", "restore"];

impl Plain {
    pub fn read(table: &Table) -> Plain {
        let files = table.files();
        let (mut completed, mut begun) = (BTreeMap::new(), BTreeSet::new());
        for (instant, ending) in files.iter().filter_map(|file| timeline_file(file)) {
            if ACTIONS.contains(&ending) {
                // A savepoint has the instant of a write, which comes first.
                completed.entry(instant.to_owned()).or_insert_with(|| ending.to_owned());
            }
            begun.insert(instant.to_owned());
        }
        let pending = begun.into_iter().filter(|instant| !completed.contains_key(instant)).collect();
        Plain { root: table.path.clone(), files, completed, pending }
    }

    /// Every row of the table now, Hudi's columns included.
    pub fn rows(&self) -> Vec<Row> {
        self.slices().into_values().flat_map(|slice| self.rows_of(&slice)).collect()
    }

    fn rows_of(&self, slice: &Slice) -> Vec<Row> {
        let key = |row: &Row| text(&row[META[2]]);
        let mut rows: Vec<Row> =
            slice.base.iter().flat_map(|base| parquet_file::rows(&self.root.join(base.path))).collect();
        for block in self.live_blocks(slice) {
            match block.kind {
                Kind::Rows(new) => {
                    for row in new {
                        let old = rows.iter().position(|old| key(old) == key(&row));
                        let gone = row.get("_hoodie_is_deleted") == Some(&Value::Bool(true));
                        match (old, gone) {
                            (Some(old), true) => drop(rows.remove(old)),
                            (Some(old), false) => rows[old] = row,
                            (None, true) => {}
                            (None, false) => rows.push(row),
                        }
                    }
                }
                Kind::Deletes(keys) => rows.retain(|row| !keys.contains(&key(row))),
                Kind::Rollback { .. } | Kind::Corrupt => {}
            }
        }
        rows
    }

    /// The blocks of a slice that count, as Hudi's `AbstractHoodieLogRecordReader` finds them.
    fn live_blocks(&self, slice: &Slice) -> Vec<Block> {
        let newest = self.writes().next_back().map_or("", |(instant, _)| instant);
        let mut live: Vec<Block> = Vec::new();
        for block in slice.logs.iter().flat_map(|log| avro_log::blocks(&self.root.join(log.path))) {
            if !matches!(block.kind, Kind::Corrupt) && block.instant.as_str() > newest {
                break;
            }
            match &block.kind {
                Kind::Rollback { target } => {
                    live.retain(|block| !matches!(block.kind, Kind::Corrupt) && block.instant != *target);
                }
                Kind::Corrupt => live.push(block),
                Kind::Rows(_) | Kind::Deletes(_) if self.counts(&block.instant) => live.push(block),
                Kind::Rows(_) | Kind::Deletes(_) => {}
            }
        }
        live
    }

    /// Whether readers see what the instant wrote: it is completed, or so old that it is off the timeline.
    fn counts(&self, instant: &str) -> bool {
        let mut writes = self.writes();
        let before_all = writes.next().is_some_and(|(first, _)| instant < first);
        let completed = self.completed.get(instant).is_some_and(|action| WRITES.contains(&action.as_str()));
        completed || before_all && !self.pending.contains(instant)
    }

    /// Completed writes and compactions, oldest first.
    fn writes(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        let instants = self.completed.iter().map(|(instant, action)| (instant.as_str(), action.as_str()));
        instants.filter(|(_, action)| WRITES.contains(action))
    }

    /// By partition and file id.
    fn slices(&self) -> BTreeMap<(&str, &str), Slice<'_>> {
        let mut slices: BTreeMap<(&str, &str), Slice> = BTreeMap::new();
        let empty = || Slice { base: None, logs: Vec::new() };
        for file in self.base_files().filter(|file| self.counts(file.instant)) {
            let slice = slices.entry((folder(file.path), file.group)).or_insert_with(empty);
            if slice.base.as_ref().is_none_or(|base| base.instant < file.instant) {
                slice.base = Some(file);
            }
        }
        for log in self.log_files() {
            slices.entry((folder(log.path), log.group)).or_insert_with(empty).logs.push(log);
        }
        for slice in slices.values_mut() {
            let base = slice.base.as_ref().map_or("", |base| base.instant);
            slice.logs.retain(|log| log.base_instant >= base);
            slice.logs.sort();
        }
        slices
    }

    fn base_files(&self) -> impl Iterator<Item = BaseFile<'_>> {
        self.files.iter().filter_map(|path| base_file(path))
    }

    fn log_files(&self) -> impl Iterator<Item = LogFile<'_>> {
        self.files.iter().filter_map(|path| log_file(path))
    }

    /// What a job that is at rest does not leave: files that no instant speaks of, instants without an end, blocks that no
    /// rollback has cancelled.
    pub fn strays(&self) -> Vec<String> {
        let written = self.written();
        let is_stray = |file: &&String| match file.as_str() {
            ".hoodie/hoodie.properties" => false,
            file if file.starts_with(".hoodie/archived/.commits_.archive.") => false,
            file if timeline_file(file).is_some() => !self.is_of_whole_instant(file),
            file if file.starts_with(".hoodie/") => true,
            file if file.ends_with(".hoodie_partition_metadata") => false,
            file => match (base_file(file), log_file(file)) {
                (Some(base), _) if self.completed.contains_key(base.instant) => !written.contains(file),
                (Some(base), _) => !self.counts(base.instant),
                (None, Some(_)) => false,
                (None, None) => true,
            },
        };
        let files = self.files.iter().filter(is_stray).cloned();
        let pending = self.pending.iter().map(|instant| format!("pending {instant}"));
        files.chain(pending).chain(self.uncancelled()).collect()
    }

    /// A completed instant has all three of its files.
    fn is_of_whole_instant(&self, file: &str) -> bool {
        let Some((instant, ending)) = timeline_file(file) else { return false };
        let Some(action) = self.completed.get(instant) else { return false };
        let has = |ending: &str| self.files.contains(&format!(".hoodie/{instant}.{ending}"));
        match action.as_str() {
            _ if ending.starts_with("savepoint") => has("savepoint") && has("savepoint.inflight"),
            "commit" if has("compaction.requested") => has("compaction.inflight"),
            "commit" => has("commit.requested") && has("inflight"),
            action => has(&format!("{action}.requested")) && has(&format!("{action}.inflight")),
        }
    }

    /// Data files in the statistics of writes.
    fn written(&self) -> BTreeSet<String> {
        let mut written = BTreeSet::new();
        for (instant, action) in self.writes() {
            let path = self.root.join(".hoodie").join(format!("{instant}.{action}"));
            let bytes = fs::read(&path).unwrap_or_else(|e| panic!("read {}: {e}", path.display()));
            let metadata: Value =
                serde_json::from_slice(&bytes).unwrap_or_else(|e| panic!("{} is torn: {e}", path.display()));
            written.extend(paths_of(&metadata));
        }
        written
    }

    /// Blocks of writes that failed and whose slice has no rollback of them: they would come to life once the timeline begins
    /// behind them.
    fn uncancelled(&self) -> Vec<String> {
        let mut slices: BTreeMap<(&str, &str, &str), Vec<LogFile>> = BTreeMap::new();
        for log in self.log_files() {
            slices.entry((folder(log.path), log.group, log.base_instant)).or_default().push(log);
        }
        let mut found = Vec::new();
        for mut logs in slices.into_values() {
            logs.sort();
            let mut waiting: Vec<String> = Vec::new();
            for log in logs {
                for block in avro_log::blocks(&self.root.join(log.path)) {
                    match block.kind {
                        Kind::Rollback { target } => {
                            waiting.retain(|line| !line.contains(&target) && !line.contains("torn"))
                        }
                        Kind::Corrupt => waiting.push(format!("torn block in {}", log.path)),
                        Kind::Rows(_) | Kind::Deletes(_) if self.counts(&block.instant) => {}
                        Kind::Rows(_) | Kind::Deletes(_) => {
                            waiting.push(format!("block of {} in {}", block.instant, log.path))
                        }
                    }
                }
            }
            found.extend(waiting);
        }
        found
    }

    /// How many base files and log files with living blocks each file group has: what a clean leaves and a rollback must not
    /// change.
    pub fn outline(&self) -> Vec<String> {
        let mut count: BTreeMap<&str, BTreeMap<&str, u32>> = BTreeMap::new();
        self.base_files().for_each(|f| *count.entry(folder(f.path)).or_default().entry(f.group).or_default() += 1);
        let lines = count.into_iter().map(|(partition, groups)| {
            let mut sizes: Vec<u32> = groups.into_values().collect();
            sizes.sort_unstable();
            format!("{partition}: base files of each file group {sizes:?}")
        });
        let live = self.slices().values().map(|slice| self.live_blocks(slice).len()).sum::<usize>();
        lines.chain([format!("living blocks: {live}")]).collect()
    }

    /// The completed actions in their order: tables of one history look the same to a reader.
    pub fn history(&self) -> String {
        let actions: Vec<&str> = self.completed.values().map(String::as_str).collect();
        actions.join(" ")
    }

    /// Actions of what was completed after `instant`.
    pub fn completed_after(&self, instant: &str) -> Vec<String> {
        self.completed.iter().filter(|(time, _)| time.as_str() > instant).map(|(_, action)| action.clone()).collect()
    }

    /// Writes and compactions that the table has ever completed.
    pub fn made(&self) -> BTreeSet<String> {
        self.writes().map(|(instant, _)| instant.to_owned()).chain(self.archived()).collect()
    }

    /// Instants of the archived timeline.
    pub fn archived(&self) -> BTreeSet<String> {
        let archives = self.files.iter().filter(|file| file.starts_with(".hoodie/archived/.commits_.archive."));
        archives.flat_map(|file| avro_log::archived_instants(&self.root.join(file))).collect()
    }
}

/// Data files in the statistics of a write.
fn paths_of(metadata: &Value) -> BTreeSet<String> {
    let stats = metadata["partitionToWriteStats"].as_object().into_iter().flat_map(|p| p.values());
    let stats = stats.flat_map(|stats| stats.as_array().into_iter().flatten());
    stats.filter_map(|stat| stat["path"].as_str().map(str::to_owned)).collect()
}

/// Instant and ending of a timeline's file, of whatever state.
fn timeline_file(path: &str) -> Option<(&str, &str)> {
    let name = path.strip_prefix(".hoodie/").filter(|name| name.starts_with(|c: char| c.is_ascii_digit()))?;
    let (instant, ending) = name.split_once('.')?;
    let state = ending.strip_suffix(".requested").or(ending.strip_suffix(".inflight")).unwrap_or(ending);
    let known = ACTIONS.contains(&state) || ["inflight", "compaction"].contains(&state);
    (known && instant.bytes().all(|b| b.is_ascii_digit())).then_some((instant, ending))
}

fn base_file(path: &str) -> Option<BaseFile<'_>> {
    let mut parts = name(path).strip_suffix(".parquet")?.split('_');
    let (group, _token, instant) = (parts.next()?, parts.next()?, parts.next()?);
    (parts.next().is_none() && !path.starts_with(".hoodie/")).then_some(BaseFile { path, group, instant })
}

fn log_file(path: &str) -> Option<LogFile<'_>> {
    let (slice, rest) = name(path).strip_prefix('.')?.split_once(".log.")?;
    let (group, base_instant) = slice.rsplit_once('_')?;
    let (version, token) = rest.split_once('_')?;
    let token = Some(token).filter(|token| token.bytes().all(|b| b.is_ascii_digit() || b == b'-'))?;
    Some(LogFile { base_instant, version: version.parse().ok()?, token, group, path })
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
