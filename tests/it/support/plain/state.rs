//! A table in words, without those that are others each time (instants, file ids, write tokens): where two tables are told by the same
//! words, a job comes to the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::LazyLock;

use regex::Regex;

use super::avro_log::{self, Kind};
use super::{META, Plain, Value, paths_of};
use crate::support::CHECKPOINT_KEYS;

static STAGED: LazyLock<Regex> = LazyLock::new(|| regex("#[0-9]+"));
static INSTANT: LazyLock<Regex> = LazyLock::new(|| regex("[0-9]{17}"));
static TOKEN: LazyLock<Regex> = LazyLock::new(|| regex("_[0-9]+-[0-9]+-[0-9]+"));
static FILE_ID: LazyLock<Regex> = LazyLock::new(|| regex("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern")
}

impl Plain {
    pub fn state(&self) -> String {
        let files = self.files.iter().map(|file| format!("{file}: {}", self.content(file)));
        let rows = self.rows().into_iter().map(|mut row| {
            row.remove(META[1]);
            Value::Object(row).to_string()
        });
        let settled = |line: String| TOKEN.replace_all(&STAGED.replace_all(&line, "#"), "_W").into_owned();
        let lines: Vec<String> = files.chain(rows).map(settled).collect();

        let instants: BTreeSet<&str> =
            lines.iter().flat_map(|line| INSTANT.find_iter(line)).map(|i| i.as_str()).collect();
        let number = |instant: &str| instants.iter().position(|known| *known == instant).unwrap_or_default();
        let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for line in &lines {
            let id = FILE_ID.find(line).map_or("", |id| id.as_str());
            let line = INSTANT.replace_all(line, |found: &regex::Captures| format!("T{:03}", number(&found[0])));
            groups.entry(id).or_default().push(FILE_ID.replace_all(&line, "F").into_owned());
        }
        let mut groups: Vec<Vec<String>> = groups.into_values().collect();
        groups.iter_mut().for_each(|lines| lines.sort());
        groups.sort();
        groups.concat().join("\n")
    }

    /// What makes a difference of what is in a file.
    fn content(&self, file: &str) -> String {
        let path = self.root.join(file);
        let bytes = fs::read(&path).unwrap_or_else(|e| panic!("read {}: {e}", path.display()));
        if file.contains('#') {
            return String::new();
        }
        if file.contains(".log.") || file.contains("/.commits_.archive.") {
            let told = |block: avro_log::Block| match block.kind {
                Kind::Rows(rows) => format!("{} rows of {:?}", rows.len(), instants_of(&block.instant, &rows)),
                Kind::Deletes(keys) => format!("without {keys:?}, of {}", block.instant),
                Kind::Rollback { target } => format!("not {target}"),
                Kind::Corrupt => "torn".to_owned(),
            };
            return avro_log::blocks(&path).into_iter().map(told).collect::<Vec<_>>().join(", ");
        }
        if file.ends_with("commit") {
            let metadata: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            return format!("{} {:?}", metadata["extraMetadata"][CHECKPOINT_KEYS[0]], paths_of(&metadata));
        }
        if bytes.is_empty() { "empty".to_owned() } else { "filled".to_owned() }
    }
}

/// In the archived timeline it is the rows that are of instants.
fn instants_of(block: &str, rows: &[super::Row]) -> Vec<String> {
    match block {
        "" => rows.iter().map(|row| format!("{}.{}", row["commitTime"], row["actionType"])).collect(),
        instant => vec![instant.to_owned()],
    }
}
