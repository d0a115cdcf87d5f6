//! The copy-on-write merge of one file group (semantics.md §7; `HoodieMergeHandle`, `HoodieConcatHandle`, Hudi 0.15).
//!
//! Merge-on-read tables come here where a group takes inserts, or where a log would not say what is meant: then its log, if it
//! has one, is merged on the way.
//!
//! The old file streams past a hash table of the incoming rows. Its row groups stay what they are where no row of them is
//! deleted: only the columns that change are decoded and encoded. Others are merged row by row, as logs are.

use super::create::gather;
use super::data_file::{DataFile, Run};
use super::meta::{COMMIT_TIME, FILE_NAME, RECORD_KEY};
use super::row_groups::{join_small, touched};
use super::status::WriteStatus;
use super::{BATCH_ROWS, Result};
use crate::index::{KeyTable, incoming_ordering, is_deleted};
use crate::record::{KeyedBatch, RowRef, ordering_column, top_level};
use crate::schema::rewrite;
use crate::slice::{self, SliceOptions};
use crate::table::base_file::{Patch, Reader, RowGroup};
use crate::table::{BaseFile, FileSlice, META_COLUMNS, MarkerType};
use arrow::array::{Array, AsArray, BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::{interleave_record_batch, take};
use arrow::error::ArrowError;
use std::ops::Range;
use std::sync::Arc;

/// Bytes for the rows of a log that is merged on the way.
const LOG_MEMORY: usize = 64 << 20;

/// What happens to one file group.
#[derive(Debug, PartialEq)]
pub(super) struct MergeTask {
    pub slice: Arc<FileSlice>,
    /// Updates of stored records, and inserts that are packed into the file.
    pub rows: Vec<RowRef>,
    /// How many of the rows, the last ones, have keys that the index has looked for and that the file does not hold.
    pub new_rows: usize,
    /// Rows whose stored record leaves for another partition.
    pub moved_away: Vec<RowRef>,
    /// INSERT into a small file: rows are added, whatever keys the file holds.
    pub keeps_duplicates: bool,
}

impl MergeTask {
    pub(super) fn new(slice: Arc<FileSlice>, keeps_duplicates: bool) -> MergeTask {
        MergeTask { slice, rows: Vec::new(), new_rows: 0, moved_away: Vec::new(), keeps_duplicates }
    }
}

/// Writes the group's next slice.
pub(super) fn merge(run: &Arc<Run>, batches: &Arc<Vec<KeyedBatch>>, task: MergeTask) -> Result<WriteStatus> {
    let slice = &task.slice;
    let old_path = slice.base_file.as_ref().map_or_else(|| slice.file_id.clone(), BaseFile::path);
    let merged = || -> Result<DataFile> {
        let mut file = DataFile::create(run, &slice.partition, &slice.file_id, MarkerType::Merge)?;
        file.stat().prev_commit = slice.base_instant.to_string();
        let mut incoming = Incoming::new(batches.clone(), &task);
        match &slice.base_file {
            Some(base) if slice.log_files.is_empty() => merge_file(run, &mut file, &mut incoming, base)?,
            _ => {
                run.context.key_cache.iter().for_each(|cache| cache.forget(&old_path));
                merge_slice(run, &mut file, &mut incoming, slice)?;
            }
        }
        for rows in incoming.never_met().chunks(BATCH_ROWS) {
            let (keys, columns) = gather(batches, rows)?;
            file.append(keys, &columns)?;
        }
        Ok(file)
    };
    merged().map_err(|e| e.in_file("merge into", &old_path))?.finish()
}

/// Base file and logs, if there are any.
fn merge_slice(run: &Run, file: &mut DataFile, incoming: &mut Incoming, slice: &FileSlice) -> Result<()> {
    if slice.log_files.is_empty() {
        return Ok(());
    }
    let context = &run.context;
    let options = SliceOptions {
        schema: run.file_schema().clone(),
        rule: context.rule,
        ordering_field: context.table.properties.precombine_field().map(str::to_string),
        memory: LOG_MEMORY,
        batch_rows: BATCH_ROWS,
    };
    for batch in slice::merge(&context.table, &context.timeline, slice, &options)? {
        merge_rows(run, file, incoming, &batch?.rows)?;
    }
    Ok(())
}

/// A base file without logs, row group by row group.
fn merge_file(run: &Run, file: &mut DataFile, incoming: &mut Incoming, base: &BaseFile) -> Result<()> {
    let reader = Reader::open(&run.context.table.storage, &base.path(), base.size)?;
    let groups = reader.row_groups();
    let (touched, joined) = match file.takes_row_groups_of(&reader) {
        true => incoming.plan(&groups, run.options().block_size),
        false => (Vec::new(), vec![true; groups.len()]),
    };
    file.replaces(base, &reader, !incoming.delete_any());
    for group in 0..groups.len() {
        let patch = match (joined[group], touched.get(group)) {
            (false, Some(true)) => incoming.patch(run, file, &reader, group)?,
            (joined, _) => (!joined).then(Patch::default),
        };
        match patch {
            Some(patch) => file.copy(&reader, group, &patch)?,
            None => {
                for batch in reader.batches_of(group..group + 1, None, BATCH_ROWS)? {
                    merge_rows(run, file, incoming, &rewrite(&batch?, &run.file_schema().arrow)?)?;
                }
            }
        }
    }
    Ok(())
}

fn merge_rows(run: &Run, file: &mut DataFile, incoming: &mut Incoming, old: &RecordBatch) -> Result<()> {
    let fates = incoming.fates(run, old)?;
    let new = merge_batch(file, incoming, old, &fates)?;
    file.write_stored(&new)
}

/// The columns by which it is decided what becomes of stored rows.
fn deciding_columns(run: &Run) -> Vec<&str> {
    let schema = &run.file_schema().arrow;
    let field = run.context.ordering_field.as_deref().filter(|_| run.context.rule.needs_stored_ordering());
    [Some(META_COLUMNS[RECORD_KEY]), field.and_then(|field| top_level(schema, field))].into_iter().flatten().collect()
}

/// What becomes of a stored row that an incoming one meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
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
    /// Positions of rows that the old file cannot hold.
    new: Range<usize>,
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
        let moved_away_from = task.rows.len();
        let new = match task.keeps_duplicates {
            true => 0..rows.len(),
            false => moved_away_from - task.new_rows.min(moved_away_from)..moved_away_from,
        };
        Incoming { batches, table, rows, moved_away_from, new, settled }
    }

    /// Positions of rows whose keys the old file may hold.
    fn sought(&self) -> impl Iterator<Item = u32> {
        (0..self.new.start as u32).chain(self.new.end as u32..self.rows.len() as u32)
    }

    /// Whether a stored row may be gone afterwards.
    fn delete_any(&self) -> bool {
        self.sought().any(|position| self.deletes(position))
    }

    /// For each row group of the old file whether it can hold one of the keys, and whether its rows join those beside them.
    fn plan(&self, groups: &[RowGroup], block_size: u64) -> (Vec<bool>, Vec<bool>) {
        let mut sought: Vec<&str> = self.sought().map(|position| self.table.key(position)).collect();
        sought.sort_unstable();
        let touched = touched(groups, &sought);
        let stored: (u64, u64) =
            groups.iter().fold((0, 0), |(bytes, rows), group| (bytes + group.bytes, rows + group.rows));
        let coming = self.new.len() as u64 * stored.0.div_ceil(stored.1.max(1));
        let joined = join_small(groups, &touched, coming, block_size);
        (touched, joined)
    }

    /// What comes into a row group in the place of its rows; `None`: rows are deleted from it.
    fn patch(&mut self, run: &Run, file: &mut DataFile, reader: &Reader, group: usize) -> Result<Option<Patch>> {
        let mut patch = Patch::default();
        let (mut replacing, mut start) = (Vec::new(), 0);
        for batch in reader.batches_of(group..group + 1, Some(&deciding_columns(run)), BATCH_ROWS)? {
            let batch = batch?;
            for (row, fate) in self.fates(run, &batch)? {
                match fate {
                    Fate::Kept => {}
                    Fate::Deleted => return Ok(None),
                    Fate::Replaced(position) => {
                        patch.rows.push(start + row);
                        replacing.push(self.rows[position as usize]);
                    }
                }
            }
            start += batch.num_rows() as u32;
        }
        if !replacing.is_empty() {
            let (keys, columns) = gather(&self.batches, &replacing)?;
            let first = file.rows();
            patch.with = Some(file.with_meta(keys, &columns, patch.rows.iter().map(|row| first + u64::from(*row)))?);
            file.stat().num_update_writes += replacing.len() as u64;
        }
        Ok(Some(patch))
    }

    fn deletes(&self, position: u32) -> bool {
        let row = self.rows[position as usize];
        position as usize >= self.moved_away_from || is_deleted(&self.batches[row.batch as usize], row.row as usize)
    }

    /// The fate of each row of `old` that an incoming one meets, in their order.
    fn fates(&mut self, run: &Run, old: &RecordBatch) -> Result<Vec<(u32, Fate)>> {
        let keys = old.column_by_name(META_COLUMNS[RECORD_KEY]).map(|keys| keys.as_string::<i32>());
        let mut matches: Vec<(u32, u32)> = Vec::new();
        for (row, key) in (0..).zip(keys.into_iter().flatten()) {
            matches.extend(key.into_iter().flat_map(|key| self.table.find(key)).map(|position| (row, position)));
        }
        if matches.is_empty() {
            return Ok(Vec::new());
        }
        for (_, position) in &matches {
            self.settled[*position as usize] = true;
        }
        let kept = self.kept_by_rule(run, old, &matches)?;
        let fate = |(at, (row, position)): (usize, (u32, u32))| {
            // Whether a record moves away was decided with the rule already.
            let rule_applies = (position as usize) < self.moved_away_from;
            let is_kept = kept.as_ref().is_some_and(|kept| kept.is_valid(at) && kept.value(at));
            match (rule_applies && is_kept, self.deletes(position)) {
                (true, _) => (row, Fate::Kept),
                (false, true) => (row, Fate::Deleted),
                (false, false) => (row, Fate::Replaced(position)),
            }
        };
        Ok(matches.into_iter().enumerate().map(fate).collect())
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
fn merge_batch(
    file: &mut DataFile,
    incoming: &Incoming,
    old: &RecordBatch,
    fates: &[(u32, Fate)],
) -> Result<RecordBatch> {
    if fates.iter().all(|(_, fate)| *fate == Fate::Kept) {
        return Ok(with_file_name(file, old)?);
    }
    let mut picks: Vec<(usize, usize)> = Vec::with_capacity(old.num_rows());
    let (mut replacing, mut positions) = (Vec::new(), Vec::new());
    let mut next = 0;
    for (row, fate) in fates {
        picks.extend((next..*row as usize).map(|row| (0, row)));
        next = *row as usize + 1;
        match *fate {
            Fate::Kept => picks.push((0, *row as usize)),
            Fate::Deleted => file.stat().num_deletes += 1,
            Fate::Replaced(position) => {
                positions.push(file.rows() + picks.len() as u64);
                picks.push((1, replacing.len()));
                replacing.push(incoming.rows[position as usize]);
            }
        }
    }
    picks.extend((next..old.num_rows()).map(|row| (0, row)));
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
    debug_assert_eq!(batch.schema_ref().field(COMMIT_TIME).name(), META_COLUMNS[COMMIT_TIME]);
    columns[FILE_NAME] = file.meta().file_name(batch.num_rows());
    RecordBatch::try_new(batch.schema(), columns)
}
