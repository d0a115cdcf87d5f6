//! One base file against its name, its footer and its commit.

use super::super::Result;
use super::expected::Written;
use super::finding::{Findings, Kind};
use super::keys::Feed;
use super::snapshot::Snapshot;
use crate::storage;
use crate::table::base_file::{KeyFooter, KeyRange, Reader};
use crate::table::{self, BaseFile, InstantTime, META_COLUMNS, Table};
use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use std::collections::HashMap;

/// Rows read at a time.
const BATCH_ROWS: usize = 8192;

/// What is asked of a base file.
pub(super) struct Question<'a> {
    pub table: &'a Table,
    pub snapshot: &'a Snapshot,
    pub file: &'a BaseFile,
    /// What its commit says, if that is on the active timeline.
    pub written: Option<&'a Written>,
    pub all_columns: bool,
}

/// Its rows.
pub(super) fn check(question: &Question, keys: Option<&mut Feed>, findings: &mut Findings) -> Result<u64> {
    let path = question.file.path();
    match read(question, keys, findings) {
        Ok(rows) => Ok(rows),
        Err(Stop::Failed(e)) => Err(e),
        Err(Stop::Table(error)) => {
            fault(error, &path, findings)?;
            Ok(0)
        }
    }
}

/// What ends the reading of a file.
enum Stop {
    /// The file is at fault.
    Table(table::Error),
    Failed(super::super::Error),
}

impl From<table::Error> for Stop {
    fn from(error: table::Error) -> Stop {
        Stop::Table(error)
    }
}

impl From<super::super::Error> for Stop {
    fn from(error: super::super::Error) -> Stop {
        Stop::Failed(error)
    }
}

/// Names a file that cannot be read; an error that may pass is one of the looking, not of the table.
pub(super) fn fault(error: table::Error, path: &str, findings: &mut Findings) -> Result<()> {
    match error {
        table::Error::Storage(storage::Error::NotFound { .. }) => {
            findings.add(Kind::FileMissing, path, "it was listed, and is not there any more");
        }
        table::Error::Storage(e) if e.is_retryable() => return Err(e.into()),
        table::Error::Storage(e) => findings.add(Kind::FileUnreadable, path, e.to_string()),
        table::Error::BaseFile(e) => findings.add(Kind::BaseFile, path, why(e)),
        table::Error::LogBlock { offset, error, .. } => {
            findings.add(Kind::LogBlock, path, format!("block at byte {offset}: {error}"));
        }
        other => return Err(other.into()),
    }
    Ok(())
}

/// Without the path, which a finding has already.
fn why(error: table::base_file::Error) -> String {
    match error {
        table::base_file::Error::Corrupt { cause, .. } => {
            format!("{cause}; it is torn, or was changed after its commit: restore it, or roll its commit back")
        }
        other => other.to_string(),
    }
}

fn read(question: &Question, mut keys: Option<&mut Feed>, findings: &mut Findings) -> std::result::Result<u64, Stop> {
    let Question { table, file, written, .. } = question;
    let path = file.path();
    let reader = Reader::open(&table.storage, &path, file.size)?;
    let rows = reader.rows();
    if let Some(written) = written.filter(|written| written.name == file.name && written.rows != rows) {
        let told = format!("it has {rows} rows, and commit {} says {}", written.by, written.rows);
        findings.add(Kind::FileRows, &path, told);
    }
    let has_meta = table.properties.has_meta_fields();
    let columns: Option<&[&str]> = if question.all_columns { None } else { Some(&META_COLUMNS) };
    if !has_meta && columns.is_some() {
        return Ok(rows);
    }
    let footer = match reader.key_footer() {
        Ok(footer) => Some(footer),
        // The rows are told of all the same.
        Err(table::Error::BaseFile(e)) => {
            findings.add(Kind::BloomFilter, &path, why(e));
            None
        }
        Err(e) => return Err(e.into()),
    };
    let mut seen = Seen::default();
    for batch in reader.batches(columns, BATCH_ROWS)? {
        let batch = batch?;
        if has_meta {
            seen.take(question, footer.as_ref(), &batch, keys.as_deref_mut())?;
        }
    }
    if let Some(keys) = keys {
        keys.finish()?;
    }
    if has_meta {
        seen.tell(footer.as_ref(), &path, rows, findings);
    }
    Ok(rows)
}

/// How many rows, and one of them.
#[derive(Default)]
struct Some1 {
    rows: u64,
    example: String,
}

impl Some1 {
    #[cold]
    fn add(&mut self, example: &str) {
        if self.rows == 0 {
            self.example = example.chars().take(200).collect();
        }
        self.rows += 1;
    }
}

/// What the rows of a file have come to.
#[derive(Default)]
struct Seen {
    rows: u64,
    range: KeyRange,
    nulls: u64,
    other_partition: Some1,
    other_file: Some1,
    other_instant: Some1,
    filtered_out: Some1,
    not_text: Option<String>,
    /// Commit times that were met, and whether they count.
    instants: HashMap<String, bool>,
}

impl Seen {
    fn take(
        &mut self,
        question: &Question,
        footer: Option<&KeyFooter>,
        batch: &RecordBatch,
        keys: Option<&mut Feed>,
    ) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        let mut columns = Vec::with_capacity(META_COLUMNS.len());
        for name in META_COLUMNS {
            let Some(column) = batch.column_by_name(name).and_then(|column| column.as_string_opt::<i32>()) else {
                self.not_text.get_or_insert_with(|| name.to_string());
                return Ok(());
            };
            self.nulls += column.null_count() as u64;
            columns.push(column);
        }
        let [time, _, key, partition, file] = columns[..] else { return Ok(()) };
        for text in others(partition, &question.file.partition) {
            self.other_partition.add(text);
        }
        for text in others(file, &question.file.name) {
            self.other_file.add(text);
        }
        self.times(question, time);
        if key.null_count() > 0 {
            return Ok(());
        }
        self.range.add_all(key);
        if let Some(bloom) = footer.and_then(|footer| footer.bloom.as_ref()) {
            for key in key.iter().flatten().filter(|key| !bloom.might_contain(key)) {
                self.filtered_out.add(key);
            }
        }
        if let Some(feed) = keys {
            for key in key.iter().flatten() {
                feed.add(key)?;
            }
        }
        Ok(())
    }

    fn times(&mut self, question: &Question, times: &StringArray) {
        let mut before = ("", true);
        for time in times.iter().flatten() {
            if before.0 != time {
                let counts = *self.instants.entry(time.to_string()).or_insert_with(|| {
                    InstantTime::parse(time).is_some_and(|time| question.snapshot.timeline.is_valid(&time))
                });
                before = (time, counts);
            }
            if !before.1 {
                self.other_instant.add(time);
            }
        }
    }

    fn tell(self, footer: Option<&KeyFooter>, path: &str, rows: u64, findings: &mut Findings) {
        if let Some(name) = self.not_text {
            findings.add(Kind::MetaColumns, path, format!("{name} is missing, or no text"));
            return;
        }
        if self.rows != rows {
            let told = format!("its footer says {rows} rows, and it has {}", self.rows);
            findings.add(Kind::BaseFile, path, told);
        }
        if self.nulls > 0 {
            findings.add(Kind::MetaColumns, path, format!("{} nulls in Hudi's columns", self.nulls));
        }
        let mut tell = |kind, Some1 { rows, example }: Some1, what: &str| {
            if rows > 0 {
                findings.add(kind, path, format!("{}, as {example:?}, {what}", super::super::text::count(rows, "row")));
            }
        };
        tell(Kind::MetaColumns, self.other_partition, "say in _hoodie_partition_path that they are elsewhere");
        tell(Kind::MetaColumns, self.other_file, "say in _hoodie_file_name that they are in another file");
        tell(Kind::MetaColumns, self.other_instant, "have a _hoodie_commit_time of no completed commit");
        tell(
            Kind::BloomFilter,
            self.filtered_out,
            "have keys that the bloom filter leaves out: they would be stored twice",
        );
        let Some(footer) = footer else { return };
        if footer.bloom.is_none() {
            let told = "it has no bloom filter: Hudi's index BLOOM fails on it";
            findings.add(Kind::NoBloomFilter, path, told);
        }
        if let (Some((min, max)), Some(low), Some(high)) = (self.range.into_inner(), &footer.min_key, &footer.max_key)
            && (&min, &max) != (low, high)
        {
            let told =
                format!("its footer says keys {low:.100?} to {high:.100?}, and it has {min:.100?} to {max:.100?}");
            findings.add(Kind::KeyRange, path, told);
        }
    }
}

/// Texts that are not this one.
fn others<'a>(column: &'a StringArray, one: &str) -> impl Iterator<Item = &'a str> {
    column.iter().flatten().filter(move |text| *text != one)
}
