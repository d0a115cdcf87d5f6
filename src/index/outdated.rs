//! Rows that are older than what the run at hand has stored itself.
//!
//! A run that takes its input in several rounds comes to what it would in one: of the rows of a key the greatest ordering value
//! wins, whatever the merge rule makes of rows that were stored before. (But for a delete: nothing is left of it to compare
//! with.)

use super::key_table::KeyTable;
use super::ordering::incoming_ordering;
use super::{Error, Merging, Result, Tagged, pool};
use crate::config::PayloadClass;
use crate::record::{KeyedBatch, MergeRule, RowRef, ordering_column};
use crate::slice::{self, RECORD_KEY};
use crate::table::base_file::Reader;
use crate::table::{FileSlice, InstantTime, META_COLUMNS, Table};
use arrow::array::{AsArray, RecordBatch, UInt32Array};
use arrow::compute::take;
use std::collections::HashSet;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

const COMMIT_TIME: &str = META_COLUMNS[0];
const READ_BATCH_ROWS: usize = 8192;

/// What the run at hand has stored.
#[derive(Debug, Clone)]
pub struct OwnRows {
    /// The run's first instant.
    pub since: InstantTime,
    /// Dotted path of the ordering field.
    pub ordering_field: String,
}

/// Leaves out the rows that are older than the run's own of their key, and says how many. Reads three columns of the files
/// that the run has written and that rows come to. `merging`: `None` for a table without log files.
pub async fn leave_out_outdated(
    table: &Table,
    own: OwnRows,
    merging: Option<Merging>,
    workers: usize,
    mut tagged: Tagged,
) -> Result<(Tagged, u64)> {
    let mut coming: Vec<Vec<RowRef>> = vec![Vec::new(); tagged.groups.len()];
    let found = tagged.rows.iter().filter_map(|tagged| Some((tagged.row, tagged.group?)));
    for (row, group) in found.chain(tagged.moves.iter().map(|gone| (gone.row, gone.group))) {
        coming[group as usize].push(row);
    }
    let batches = Arc::new(std::mem::take(&mut tagged.batches));
    let compared = [COMMIT_TIME, own.ordering_field.as_str()];
    let merging = merging.map(|m| Merging { options: m.options.keys_only(&compared), ..m });
    let may_be_own = |slice: &FileSlice| !slice.log_files.is_empty() || slice.base_instant >= own.since;
    let groups = tagged.groups.iter().cloned().zip(coming);
    let tasks = groups.filter(|(slice, rows)| !rows.is_empty() && may_be_own(slice)).collect();
    let stored = Arc::new(Stored { table: table.clone(), merging, own, batches: batches.clone() });
    let work = move |(slice, rows): (Arc<FileSlice>, Vec<RowRef>)| stored.newer_than(&slice, rows);
    let outdated: HashSet<RowRef> =
        pool::run(workers, &CancellationToken::new(), tasks, work).await?.into_iter().flatten().collect();
    tagged.batches = Arc::unwrap_or_clone(batches);
    tagged.rows.retain(|tagged| !outdated.contains(&tagged.row));
    tagged.moves.retain(|gone| !outdated.contains(&gone.row));
    Ok((tagged, outdated.len() as u64))
}

struct Stored {
    table: Table,
    merging: Option<Merging>,
    own: OwnRows,
    batches: Arc<Vec<KeyedBatch>>,
}

impl Stored {
    /// Those of the rows whose stored one is newer.
    fn newer_than(&self, slice: &FileSlice, rows: Vec<RowRef>) -> Result<Vec<RowRef>> {
        if self.batches.iter().any(|batch| batch.ordering.is_none()) {
            return Ok(Vec::new());
        }
        let rows = Arc::new(rows);
        let mut keys = KeyTable::new(self.batches.clone(), rows.clone());
        (0..rows.len() as u32).for_each(|position| keys.add(position));
        let mut newer = Vec::new();
        match (&self.merging, &slice.base_file) {
            (Some(merging), _) if !slice.log_files.is_empty() => {
                for batch in slice::merge(&self.table, &merging.timeline, slice, &merging.options)? {
                    self.compare(slice, &keys, &batch?.rows, &mut newer)?;
                }
            }
            (_, Some(file)) => {
                let field = self.own.ordering_field.as_str();
                let reader = Reader::open(&self.table.storage, &file.path(), file.size)?;
                let schema = reader.schema();
                let top = field.split('.').next().unwrap_or(field);
                let wanted = [field, top].into_iter().find(|name| schema.column_with_name(name).is_some());
                // A field that came into the schema after the file has no values in it.
                let Some(wanted) = wanted else { return Ok(newer) };
                for batch in reader.batches(Some(&[COMMIT_TIME, RECORD_KEY, wanted]), READ_BATCH_ROWS)? {
                    self.compare(slice, &keys, &batch?, &mut newer)?;
                }
            }
            _ => {}
        }
        Ok(newer)
    }

    fn compare(&self, slice: &FileSlice, keys: &KeyTable, stored: &RecordBatch, newer: &mut Vec<RowRef>) -> Result<()> {
        let text = |name: &str| stored.column_by_name(name).and_then(|column| column.as_string_opt::<i32>());
        let (Some(times), Some(stored_keys)) = (text(COMMIT_TIME), text(RECORD_KEY)) else { return Ok(()) };
        let (mut rows, mut found) = (Vec::new(), Vec::new());
        for (row, (time, key)) in times.iter().zip(stored_keys).enumerate() {
            let (Some(time), Some(key)) = (time, key) else { continue };
            if time >= self.own.since.as_str() {
                let positions = keys.find(key);
                positions.for_each(|position| {
                    rows.push(row as u32);
                    found.push(keys.row(position));
                });
            }
        }
        if found.is_empty() {
            return Ok(());
        }
        let path = || slice.base_file.as_ref().map_or_else(|| slice.file_id.clone(), |file| file.path());
        let ordering = |source| Error::Ordering { path: path(), source };
        let compare = |source| Error::Compare { path: path(), source };
        let stored = ordering_column(stored, &self.own.ordering_field).map_err(compare)?;
        let stored = take(&stored, &UInt32Array::from(rows), None).map_err(ordering)?;
        let incoming = incoming_ordering(&self.batches, found.iter().copied()).map_err(ordering)?;
        let kept = MergeRule(PayloadClass::DefaultHoodieRecord).keeps_stored(&stored, &incoming).map_err(compare)?;
        newer.extend(found.into_iter().zip(kept.iter()).filter(|(_, kept)| *kept == Some(true)).map(|(row, _)| row));
        Ok(())
    }
}
