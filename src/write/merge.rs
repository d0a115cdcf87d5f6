//! The copy-on-write merge of one file group (semantics.md §7; `HoodieMergeHandle`, `HoodieConcatHandle`, Hudi 0.15).
//!
//! Merge-on-read tables come here where a group takes inserts, or where a log would not say what is meant: then its log, if it
//! has one, is merged on the way.
//!
//! The old file streams past a hash table of the incoming rows. Of a batch that no incoming row touches only the column
//! `_hoodie_file_name` changes.

use super::create::gather;
use super::data_file::{DataFile, Run};
use super::meta::{COMMIT_TIME, FILE_NAME, RECORD_KEY};
use super::status::WriteStatus;
use super::{BATCH_ROWS, Result};
use crate::index::{KeyTable, incoming_ordering, is_deleted};
use crate::record::{KeyedBatch, RowRef, ordering_column};
use crate::schema::rewrite;
use crate::slice::{self, SliceOptions};
use crate::table::base_file::Reader;
use crate::table::{BaseFile, FileSlice, MarkerType};
use arrow::array::{Array, AsArray, BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::{interleave_record_batch, take};
use arrow::error::ArrowError;
use std::sync::Arc;

/// Bytes for the rows of a log that is merged on the way.
const LOG_MEMORY: usize = 64 << 20;

/// What happens to one file group.
#[derive(Debug, PartialEq)]
pub(super) struct MergeTask {
    pub slice: FileSlice,
    /// Updates of stored records, and inserts that are packed into the file.
    pub rows: Vec<RowRef>,
    /// Rows whose stored record leaves for another partition.
    pub moved_away: Vec<RowRef>,
    /// INSERT into a small file: rows are added, whatever keys the file holds.
    pub keeps_duplicates: bool,
}

impl MergeTask {
    pub(super) fn new(slice: FileSlice, keeps_duplicates: bool) -> MergeTask {
        MergeTask { slice, rows: Vec::new(), moved_away: Vec::new(), keeps_duplicates }
    }
}

/// Writes the group's next slice.
pub(super) fn merge(run: &Arc<Run>, batches: &Arc<Vec<KeyedBatch>>, task: MergeTask) -> Result<WriteStatus> {
    let slice = &task.slice;
    let old_path = slice.base_file.as_ref().map_or_else(|| slice.file_id.clone(), BaseFile::path);
    let merged = || -> Result<DataFile> {
        let mut file = DataFile::create(run, &slice.partition, &slice.file_id, MarkerType::Merge)?;
        file.stat().prev_commit = slice.base_instant.to_string();
        run.context.key_cache.iter().for_each(|cache| cache.forget(&old_path));
        let mut incoming = Incoming::new(batches.clone(), &task);
        for old in stored(run, slice)? {
            let old = old?;
            let fates = incoming.fates(run, &old)?;
            let new = merge_batch(&mut file, &incoming, &old, &fates)?;
            file.write(&new)?;
        }
        for rows in incoming.never_met().chunks(BATCH_ROWS) {
            let (keys, columns) = gather(batches, rows)?;
            file.append(keys, &columns)?;
        }
        Ok(file)
    };
    merged().map_err(|e| e.in_file("merge into", &old_path))?.finish()
}

/// The rows that are there, in the schema of the files.
fn stored<'a>(run: &'a Run, slice: &FileSlice) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + 'a>> {
    let context = &run.context;
    if !slice.log_files.is_empty() {
        let options = SliceOptions {
            schema: run.file_schema().clone(),
            rule: context.rule,
            ordering_field: context.table.properties.precombine_field().map(str::to_string),
            memory: LOG_MEMORY,
            batch_rows: BATCH_ROWS,
        };
        let merged = slice::merge(&context.table, &context.timeline, slice, &options)?;
        return Ok(Box::new(merged.map(|batch| Ok(batch?.rows))));
    }
    let Some(base) = &slice.base_file else { return Ok(Box::new(std::iter::empty())) };
    let reader = Reader::open(&context.table.storage, &base.path(), base.size)?;
    let batches = reader.batches(None, BATCH_ROWS)?;
    Ok(Box::new(batches.map(|batch| Ok(rewrite(&batch?, &run.file_schema().arrow)?))))
}

/// What becomes of a stored row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Copied,
    Deleted,
    /// By the incoming row at this position.
    Replaced(u32),
}

/// The rows that come to the file group.
struct Incoming {
    batches: Arc<Vec<KeyedBatch>>,
    table: KeyTable,
    rows: Arc<Vec<RowRef>>,
    /// From this position on, rows only delete.
    moved_away_from: usize,
    /// Rows that are not to be added at the end: their key was met in the old file, or a later row has it too.
    settled: Vec<bool>,
}

impl Incoming {
    fn new(batches: Arc<Vec<KeyedBatch>>, task: &MergeTask) -> Incoming {
        let rows: Arc<Vec<RowRef>> = Arc::new(task.rows.iter().chain(&task.moved_away).copied().collect());
        let mut settled = vec![false; rows.len()];
        let mut table = KeyTable::new(batches.clone(), rows.clone());
        if !task.keeps_duplicates {
            for position in 0..rows.len() as u32 {
                if let Some(earlier) = table.replace(position) {
                    settled[earlier as usize] = true;
                }
            }
        }
        Incoming { batches, table, rows, moved_away_from: task.rows.len(), settled }
    }

    fn deletes(&self, position: u32) -> bool {
        let row = self.rows[position as usize];
        position as usize >= self.moved_away_from || is_deleted(&self.batches[row.batch as usize], row.row as usize)
    }

    /// The fate of each row of `old`; empty if all are copied.
    fn fates(&mut self, run: &Run, old: &RecordBatch) -> Result<Vec<Fate>> {
        let keys = old.column(RECORD_KEY).as_string::<i32>();
        let mut matches: Vec<(u32, u32)> = Vec::new();
        for row in 0..keys.len() {
            if keys.is_valid(row) {
                matches.extend(self.table.find(keys.value(row)).map(|position| (row as u32, position)));
            }
        }
        if matches.is_empty() {
            return Ok(Vec::new());
        }
        for (_, position) in &matches {
            self.settled[*position as usize] = true;
        }
        let kept = self.kept_by_rule(run, old, &matches)?;
        let mut fates = vec![Fate::Copied; keys.len()];
        for (at, (row, position)) in matches.into_iter().enumerate() {
            // Whether a record moves away was decided with the rule already.
            let rule_applies = (position as usize) < self.moved_away_from;
            let is_kept = kept.as_ref().is_some_and(|kept| kept.is_valid(at) && kept.value(at));
            if !(rule_applies && is_kept) {
                fates[row as usize] = if self.deletes(position) { Fate::Deleted } else { Fate::Replaced(position) };
            }
        }
        Ok(fates)
    }

    /// For each match whether the stored row stays; `None`: none does.
    fn kept_by_rule(&self, run: &Run, old: &RecordBatch, matches: &[(u32, u32)]) -> Result<Option<BooleanArray>> {
        let context = &run.context;
        let Some(field) = context.ordering_field.as_ref().filter(|_| context.rule.needs_stored_ordering()) else {
            return Ok(None);
        };
        if self.batches.iter().any(|batch| batch.ordering.is_none()) {
            return Ok(None);
        }
        let stored_rows = UInt32Array::from_iter_values(matches.iter().map(|(row, _)| *row));
        let stored = take(&ordering_column(old, field)?, &stored_rows, None)?;
        let incoming =
            incoming_ordering(&self.batches, matches.iter().map(|(_, position)| self.rows[*position as usize]))?;
        Ok(Some(context.rule.keeps_stored(&stored, &incoming)?))
    }

    /// The rows to be added at the end, in arrival order.
    fn never_met(&self) -> Vec<RowRef> {
        (0..self.rows.len() as u32)
            .filter(|position| !self.settled[*position as usize] && !self.deletes(*position))
            .map(|position| self.rows[position as usize])
            .collect()
    }
}

/// The rows of `old` as they go into `file`, whose counts are brought up to date.
fn merge_batch(file: &mut DataFile, incoming: &Incoming, old: &RecordBatch, fates: &[Fate]) -> Result<RecordBatch> {
    if fates.iter().all(|fate| *fate == Fate::Copied) {
        return Ok(with_file_name(file, old)?);
    }
    let mut picks: Vec<(usize, usize)> = Vec::with_capacity(fates.len());
    let (mut replacing, mut positions) = (Vec::new(), Vec::new());
    for (row, fate) in fates.iter().enumerate() {
        match *fate {
            Fate::Copied => picks.push((0, row)),
            Fate::Deleted => file.stat().num_deletes += 1,
            Fate::Replaced(position) => {
                positions.push(file.rows() + picks.len() as u64);
                picks.push((1, replacing.len()));
                replacing.push(incoming.rows[position as usize]);
            }
        }
    }
    file.stat().num_update_writes += replacing.len() as u64;
    let merged = if replacing.is_empty() {
        interleave_record_batch(&[old], &picks)?
    } else {
        let (keys, columns) = gather(&incoming.batches, &replacing)?;
        let new = file.with_meta(keys, &columns, positions.into_iter())?;
        interleave_record_batch(&[old, &new], &picks)?
    };
    Ok(with_file_name(file, &merged)?)
}

/// Stored rows as they go into `file`.
pub(super) fn with_file_name(file: &mut DataFile, batch: &RecordBatch) -> std::result::Result<RecordBatch, ArrowError> {
    let mut columns = batch.columns().to_vec();
    debug_assert_eq!(batch.schema_ref().field(COMMIT_TIME).name(), crate::table::META_COLUMNS[COMMIT_TIME]);
    columns[FILE_NAME] = file.meta().file_name(batch.num_rows());
    RecordBatch::try_new(batch.schema(), columns)
}
