//! Rows that make no record: gathered over a whole batch, handed to whoever keeps count of them, and taken out.

use super::{Error, KeyedBatch, PartitionColumn, Result};
use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::compute::{filter, filter_record_batch};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A row that makes no record.
#[derive(Debug)]
pub struct Refused<'a> {
    /// The batch that it stands in, without the hidden columns.
    pub rows: &'a RecordBatch,
    pub row: usize,
    pub cause: Error,
}

type Taker = dyn Fn(Refused<'_>) -> ControlFlow<()> + Send + Sync;

/// Takes note of rows that make no record, and says whether to go on.
#[derive(Clone)]
pub struct Refuse(Arc<Taker>);

impl Refuse {
    pub fn new(taker: impl Fn(Refused<'_>) -> ControlFlow<()> + Send + Sync + 'static) -> Refuse {
        Refuse(Arc::new(taker))
    }
}

impl std::fmt::Debug for Refuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Refuse")
    }
}

/// What is wrong with the rows of a batch: of each row the first thing that was found.
#[derive(Debug, Default)]
pub(super) struct Faults {
    found: BTreeMap<usize, Error>,
    spared: Option<BooleanArray>,
}

impl Faults {
    pub fn add(&mut self, row: usize, cause: impl FnOnce() -> Error) {
        if self.spared.as_ref().is_none_or(|spared| !spared.value(row)) {
            self.found.entry(row).or_insert_with(cause);
        }
    }

    /// From now on finds nothing wrong with these rows.
    pub fn spare(&mut self, rows: BooleanArray) {
        self.spared = Some(rows);
    }

    /// The records that are left; without anybody to take them, the first fault is an error.
    pub fn take_out(mut self, keyed: KeyedBatch, refuse: Option<&Refuse>) -> Result<KeyedBatch> {
        if self.found.is_empty() {
            return Ok(keyed);
        }
        let Some(Refuse(taker)) = refuse else {
            return self.found.pop_first().map_or(Ok(keyed), |(_, cause)| Err(cause));
        };
        let good: BooleanArray = (0..keyed.rows.num_rows()).map(|row| Some(!self.found.contains_key(&row))).collect();
        for (row, cause) in self.found {
            if taker(Refused { rows: &keyed.rows, row, cause }).is_break() {
                return Err(Error::Stopped);
            }
        }
        keyed.keep(&good)
    }
}

impl KeyedBatch {
    fn keep(self, good: &BooleanArray) -> Result<KeyedBatch> {
        let failed = |e: arrow::error::ArrowError| Error::Unsupported { what: format!("take bad rows out: {e}") };
        let deleted = self.deleted.map(|d| filter(&d, good)).transpose().map_err(failed)?;
        Ok(KeyedBatch {
            rows: filter_record_batch(&self.rows, good).map_err(failed)?,
            keys: filter(&self.keys, good).map_err(failed)?.as_string().clone(),
            partitions: self.partitions.keep(good),
            ordering: self.ordering.map(|o| filter(&o, good)).transpose().map_err(failed)?,
            deleted: deleted.map(|d| d.as_boolean().clone()).filter(|d| d.true_count() > 0),
        })
    }
}

impl PartitionColumn {
    fn keep(self, good: &BooleanArray) -> PartitionColumn {
        let left = self.ids.iter().zip(good.values()).filter(|(_, good)| *good);
        PartitionColumn::renumbered(&self.paths, left.map(|(&id, _)| id))
    }

    /// Gives the marked rows the empty path.
    pub(super) fn without_path(self, marked: &BooleanArray) -> PartitionColumn {
        let mut paths = Arc::unwrap_or_clone(self.paths);
        let root = paths.iter().position(String::is_empty).unwrap_or_else(|| {
            paths.push(String::new());
            paths.len() - 1
        });
        let ids = self.ids.iter().zip(marked.values());
        PartitionColumn::renumbered(&paths, ids.map(|(&id, marked)| if marked { root as u32 } else { id }))
    }

    /// Forgets the paths that no row is left in: they may be bad ones.
    fn renumbered(paths: &[String], ids: impl Iterator<Item = u32>) -> PartitionColumn {
        let mut new: Vec<Option<u32>> = vec![None; paths.len()];
        let mut left = Vec::new();
        let ids = ids.map(|id| {
            *new[id as usize].get_or_insert_with(|| {
                left.push(paths[id as usize].clone());
                left.len() as u32 - 1
            })
        });
        let ids = ids.collect();
        PartitionColumn { ids, paths: Arc::new(left) }
    }
}
