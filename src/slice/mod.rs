//! A file slice as merged rows: a base file and the log files on top of it (log-file.md §10, semantics.md §3).
//!
//! ```text
//! log files ─▶ blocks ─▶ which count ─▶ fold ─▶ one winner a key ─┐
//!                                                                ├─▶ MergedBatch
//! base file ─▶ batches, in file order ───────────────────────────┘
//! ```
//!
//! Reads, writes nothing; sees records, schemas and tables, no indexes and no services. Look at [`merge`] first. Invariants:
//! a row comes out as Hudi's own reader has it, whatever the budget of memory; rows keep the meta columns that they were
//! stored with; memory follows the budget and the number of keys in the logs, never the base file.

mod blocks;
mod error;
mod fold;
mod merge;
mod ordering;
mod rows;
#[cfg(test)]
pub(crate) mod tests;
mod window;

pub use error::{Error, Fault, Result};
pub use merge::{Merged, Part, WholeGroups};

use crate::record::{MergeRule, ordering_column, top_level};
use crate::schema::TableSchema;
use crate::table::base_file::Reader;
use crate::table::log_file::BlockKind;
use crate::table::{FileSlice, Table, Timeline};
use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema};
use blocks::LogBlocks;
use fold::{Deciding, IS_DELETED, What, Winners};
use merge::Group;
use rows::Contents;
use std::sync::Arc;
use window::Window;

pub(crate) use fold::RECORD_KEY;

/// What rows come out as, and what decides between records of one key.
#[derive(Debug, Clone)]
pub struct SliceOptions {
    /// The rows' schema, with meta columns. It may have fewer columns than the files, but always `_hoodie_record_key`, and
    /// the ordering field and `_hoodie_is_deleted` where the table has them.
    pub schema: TableSchema,
    pub rule: MergeRule,
    /// `hoodie.table.precombine.field`. As in Hudi a dotted path means nothing among log records, of which the last wins
    /// then; against the base file it does.
    pub ordering_field: Option<String>,
    /// Bytes for rows of the logs and the table of their keys. What does not fit is read from the logs again, window by
    /// window of the base file.
    pub memory: usize,
    /// Rows in a batch.
    pub batch_rows: usize,
}

impl SliceOptions {
    /// The same for who wants to know which records there are, and their ordering values, and nothing else. `compared`: the
    /// dotted paths of what the caller compares by besides.
    pub fn keys_only(mut self, compared: &[&str]) -> SliceOptions {
        let schema = &self.schema.arrow;
        let own = [Some(RECORD_KEY), Some(IS_DELETED), self.ordering_field.as_deref()];
        let paths = || own.into_iter().flatten().chain(compared.iter().copied());
        let wanted = |field: &&FieldRef| paths().any(|path| top_level(schema, path) == Some(field.name().as_str()));
        let fields: Vec<FieldRef> = schema.fields().iter().filter(wanted).cloned().collect();
        self.schema.arrow = Arc::new(Schema::new(fields));
        self
    }
}

/// Rows of a slice, and what was done to get them.
#[derive(Debug)]
pub struct MergedBatch {
    /// In the schema of the options, meta columns as they are stored: `_hoodie_file_name` says where a row was.
    pub rows: RecordBatch,
    /// Rows of the base file that log records took the place of.
    pub updates: u64,
    /// Rows of log records that the base file did not have: all of the batch, or none.
    pub inserts: u64,
    /// Rows of the base file that are gone.
    pub deletes: u64,
}

/// What was read of the logs, as Hudi counts it for the statistics of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogTotals {
    pub log_files: u64,
    pub log_bytes: u64,
    pub log_blocks: u64,
    pub corrupt_blocks: u64,
    /// Blocks that rollbacks took away.
    pub rollback_blocks: u64,
    /// Records in the data blocks that count.
    pub log_records: u64,
    /// Keys that the logs say something of.
    pub updated_records: u64,
    /// Time that reading the logs and folding them took.
    pub scan_ms: u64,
}

/// The rows of a slice: those of the base file in its order, then those that only the logs have, in the order in which
/// their keys came.
///
/// Folds the logs before it returns; the base file is read as batches are taken. Blocks count if their instant is completed
/// on `timeline`; those behind the newest completed write or rollback are left out (§10.1 says why rollbacks are asked
/// too). For a blocking thread inside a tokio runtime.
pub fn merge(table: &Table, timeline: &Timeline, slice: &FileSlice, options: &SliceOptions) -> Result<Merged> {
    let begun = std::time::Instant::now();
    let group = Group { partition: slice.partition.clone(), file_id: slice.file_id.clone() };
    let deciding = Deciding::of(options).map_err(|e| group.fault(e))?;
    let blocks = LogBlocks::scan(&table.storage, timeline, slice)?;
    let mut totals = blocks.totals;
    let mut contents = Contents::new(blocks, options.memory / 4);
    let winners;
    (winners, totals.log_records) = fold::fold(&mut contents, &deciding, options.batch_rows)?;
    totals.updated_records = winners.entries.len() as u64;
    totals.scan_ms = begun.elapsed().as_millis() as u64;

    let compares = compared_field(options);
    let base = match &slice.base_file {
        Some(file) => Some(Reader::open(&table.storage, &file.path(), file.size)?),
        None => None,
    };
    let mut window = Window::new(contents, &winners, options);
    let entries = 0..winners.entries.len() as u32;
    let wanted = entries.clone().filter(|entry| winners.is_wanted(*entry, compares.is_some())).collect();
    if !window.expect_all(&winners, wanted) {
        window.expect(order(&group, &winners, base.as_ref(), compares.is_some(), options)?);
    }
    let met = vec![false; winners.entries.len()];
    Ok(Merged {
        options: options.clone(),
        totals,
        group,
        winners,
        window,
        compares,
        base,
        next_group: 0,
        rows: None,
        waiting: None,
        met,
        asked: 0,
        next: 0,
        ended: false,
    })
}

/// Keys that the logs of a slice have deleted and not brought back.
pub struct DeletedKeys(Option<Winners>);

impl DeletedKeys {
    /// By a delete block.
    pub fn contains(&self, key: &str) -> bool {
        self.last_word(key) == Some(What::Deleted)
    }

    /// By a delete block, or by a record that says so of itself, which under a rule that compares may yet lose to the base
    /// file's.
    pub fn may_contain(&self, key: &str) -> bool {
        matches!(self.last_word(key), Some(What::Deleted | What::FlaggedRow))
    }

    fn last_word(&self, key: &str) -> Option<What> {
        let winners = self.0.as_ref()?;
        Some(winners.entries[winners.find(key)? as usize].what)
    }
}

/// See [`DeletedKeys`]. Records are read only where something can be deleted. For a blocking thread inside a tokio runtime.
pub fn deleted_keys(
    table: &Table,
    timeline: &Timeline,
    slice: &FileSlice,
    options: &SliceOptions,
) -> Result<DeletedKeys> {
    let blocks = LogBlocks::scan(&table.storage, timeline, slice)?;
    let group = Group { partition: slice.partition.clone(), file_id: slice.file_id.clone() };
    let deciding = Deciding::of(options).map_err(|e| group.fault(e))?;
    if !deciding.has_flags() && blocks.blocks.iter().all(|log| log.block.kind != BlockKind::Delete) {
        return Ok(DeletedKeys(None));
    }
    let mut contents = Contents::new(blocks, options.memory / 4);
    let (winners, _) = fold::fold(&mut contents, &deciding, options.batch_rows)?;
    Ok(DeletedKeys(Some(winners)))
}

/// The field by which stored rows are compared with those of the logs, if they are.
fn compared_field(options: &SliceOptions) -> Option<String> {
    let field = options.ordering_field.as_ref().filter(|_| options.rule.needs_stored_ordering())?;
    // As in Hudi: without such a column stored rows have no value, and lose.
    ordering_column(&RecordBatch::new_empty(options.schema.arrow.clone()), field).is_ok().then(|| field.clone())
}

/// The entries whose rows will be needed, in that order: as the base file has the keys, then what it does not have.
fn order(
    group: &Group,
    winners: &Winners,
    base: Option<&Reader>,
    compares: bool,
    options: &SliceOptions,
) -> Result<Vec<u32>> {
    let mut met = vec![false; winners.entries.len()];
    let mut order = Vec::new();
    if let Some(reader) = base {
        for batch in reader.batches(Some(&[RECORD_KEY]), options.batch_rows)? {
            for (_, entry) in winners.matches(merge::keys(&batch?).map_err(|e| group.fault(e))?) {
                met[entry as usize] = true;
                order.extend(Some(entry).filter(|entry| winners.is_wanted(*entry, compares)));
            }
        }
    }
    let entries = (0..).zip(&winners.entries);
    order.extend(entries.filter(|(at, entry)| entry.what == What::Row && !met[*at as usize]).map(|(at, _)| at));
    Ok(order)
}
