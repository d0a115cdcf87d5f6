//! Rows that were read against rows that were expected.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use regex::Regex;
use serde_json::{Map, Value};

use super::{Row, Table};

/// Hudi's own columns, in the order that files have them.
pub const META: [&str; 5] = [
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
];

/// Exactly the rows of `want` were read: commit time, record key and partition path among their columns, those of
/// `ignored` left out. Sequence numbers and file names are the writer's choice, and only as they must be in any table.
#[track_caller]
pub fn assert_rows(who: &str, table: &Table, want: &[Row], got: Vec<Row>, ignored: &[String]) {
    assert_meta_columns(who, table, &got);
    let compared = |mut row: Row| {
        [META[1], META[4]].into_iter().chain(ignored.iter().map(String::as_str)).for_each(|c| drop(row.remove(c)));
        row
    };
    let want: Vec<Row> = want.iter().cloned().map(compared).collect();
    assert_same_rows(who, &want, &got.into_iter().map(compared).collect::<Vec<_>>());
}

/// What is true of Hudi's columns in any table: the row is in the file it names (a row of a log file names its file
/// group), in the partition it names, and its sequence number is its instant's and its alone.
#[track_caller]
fn assert_meta_columns(who: &str, table: &Table, rows: &[Row]) {
    let seqno = Regex::new(r"^\d+_\d+_\d+$").expect("a good pattern");
    let (mut seen, mut named) = (BTreeSet::new(), BTreeMap::new());
    for row in rows {
        let [instant, number, _, partition, file] = META.map(|c| text(row.get(c).unwrap_or(&Value::Null)));
        assert!(
            seqno.is_match(&number) && number.starts_with(&instant),
            "{who}: sequence number {number} of {instant}"
        );
        assert!(seen.insert(number.clone()), "{who}: sequence number {number} twice");
        let named = named.entry(partition).or_insert_with_key(|partition| names_in(table, partition));
        assert!(named.contains(&file), "{who}: a row names the file {file}, which is not there");
    }
}

/// Names of base files, and ids of file groups that have log files.
fn names_in(table: &Table, partition: &str) -> BTreeSet<String> {
    let Ok(files) = fs::read_dir(table.path.join(partition)) else { return BTreeSet::new() };
    let names = files.map(|file| file.expect("list a partition").file_name().to_string_lossy().into_owned());
    let named = |name: String| match name.strip_prefix('.') {
        Some(log) => log.split_once('_').map(|(group, _)| group.to_owned()).unwrap_or_default(),
        None => name,
    };
    names.map(named).collect()
}

/// The same rows, in any order; the message lists what is missing and what is too much.
#[track_caller]
fn assert_same_rows(who: &str, want: &[Row], got: &[Row]) {
    let count = |rows: &[Row]| {
        let mut counted: BTreeMap<String, i64> = BTreeMap::new();
        rows.iter().for_each(|r| *counted.entry(normal(r)).or_default() += 1);
        counted
    };
    let (want, got) = (count(want), count(got));
    let lines = |a: &BTreeMap<String, i64>, b: &BTreeMap<String, i64>, sign: &str| -> String {
        let more = a.iter().filter(|(row, n)| **n > b.get(*row).copied().unwrap_or(0));
        more.map(|(row, n)| format!("{sign} {n} x {row}\n")).take(10).collect()
    };
    assert!(want == got, "{who}\n{}{}", lines(&want, &got, "- expected"), lines(&got, &want, "+ got     "));
}

/// One text for one value: keys sorted at every level, whole floats as integers.
fn normal(row: &Row) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(map) => {
                let by_name: BTreeMap<_, _> = map.iter().collect();
                Value::Object(by_name.into_iter().map(|(k, v)| (k.clone(), sorted(v))).collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
            Value::Number(n) => match n.as_f64() {
                Some(f) if n.is_f64() && f.fract() == 0.0 && f.abs() < 1e15 => Value::from(f as i64),
                _ => value.clone(),
            },
            other => other.clone(),
        }
    }
    sorted(&Value::Object(Map::from_iter(row.clone()))).to_string()
}

/// A key or partition value as text.
pub fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
