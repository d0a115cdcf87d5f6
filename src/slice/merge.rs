//! The third pass: the winners on top of the base file, batch by batch (semantics.md §3, `HoodieMergeHandle` in a compaction).

use super::fold::{Entry, Match, RECORD_KEY, What, Winners};
use super::rows::present;
use super::window::Window;
use super::{Error, Fault, LogTotals, MergedBatch, Result, SliceOptions};
use crate::record::{ordering_column, top_level};
use crate::schema::{self, rewrite};
use crate::table::base_file::{Patch, Reader};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, StringArray, UInt32Array};
use arrow::compute::{interleave, interleave_record_batch, take};
use arrow::error::ArrowError;

pub(super) type Batches = Box<dyn Iterator<Item = crate::table::Result<RecordBatch>> + Send>;

/// See [`merge`](super::merge). Ends after an error.
pub struct Merged {
    pub(super) options: SliceOptions,
    pub(super) totals: LogTotals,
    pub(super) group: Group,
    pub(super) winners: Winners,
    pub(super) window: Window,
    /// What the rule compares stored rows by; `None`: it does not.
    pub(super) compares: Option<String>,
    pub(super) base: Option<Reader>,
    /// The row group of the base file that comes next.
    pub(super) next_group: usize,
    /// Of the one before it.
    pub(super) rows: Option<Batches>,
    /// Rows of the base file that wait for the next window.
    pub(super) waiting: Option<RecordBatch>,
    /// Entries whose key the base file has.
    pub(super) met: Vec<bool>,
    /// Rows of winners that have been asked for.
    pub(super) asked: usize,
    /// The entry that is appended next.
    pub(super) next: u32,
    pub(super) ended: bool,
}

/// What comes next of a slice.
pub enum Part {
    Rows(MergedBatch),
    /// A row group of the base file, none of whose rows is gone, and what comes in the place of some.
    RowGroup {
        base: Reader,
        group: usize,
        patch: Patch,
    },
}

/// Which row groups are to come as [`Part::RowGroup`].
#[derive(Debug, Clone, Default)]
pub struct WholeGroups {
    /// By row group.
    pub whole: Vec<bool>,
    /// The last one is not if that many rows follow that the base file does not have.
    pub last_joins: u64,
}

/// The file group, for messages.
pub(super) struct Group {
    pub partition: String,
    pub file_id: String,
}

impl Group {
    pub fn fault(&self, fault: impl Into<Fault>) -> Error {
        let Group { partition, file_id } = self;
        Error::Group { partition: partition.clone(), file_id: file_id.clone(), fault: Box::new(fault.into()) }
    }
}

/// What becomes of a row of the base file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Copied,
    Deleted,
    /// By the winner of this entry.
    Replaced(u32),
}

impl Merged {
    pub fn totals(&self) -> LogTotals {
        self.totals
    }

    pub fn base(&self) -> Option<&Reader> {
        self.base.as_ref()
    }

    /// Whether a row of the base file may be gone.
    pub fn deletes_any(&self) -> bool {
        self.winners.entries.iter().any(|entry| entry.what != What::Row)
    }

    /// As [`Iterator::next`], for who can do with whole row groups: those of a base file that has all columns of the
    /// options, in their types. They come only if the rows of the logs are all in memory.
    pub fn next_part(&mut self, groups: &WholeGroups) -> Result<Option<Part>> {
        if self.ended {
            return Ok(None);
        }
        let step = self.step(groups);
        self.ended = !matches!(step, Ok(Some(_)));
        step
    }

    fn step(&mut self, groups: &WholeGroups) -> Result<Option<Part>> {
        if let Some(batch) = self.waiting.take() {
            return Ok(Some(Part::Rows(self.merge(batch)?)));
        }
        loop {
            if let Some(batch) = self.rows.as_mut().and_then(Iterator::next) {
                let batch = rewrite(&batch?, &self.options.schema.arrow).map_err(|e| self.group.fault(e))?;
                return Ok(Some(Part::Rows(self.merge(batch)?)));
            }
            self.rows = None;
            let group = self.next_group;
            let Some(base) = self.base.clone().filter(|base| group < base.row_group_count()) else {
                return Ok(self.append()?.map(Part::Rows));
            };
            self.next_group += 1;
            if groups.whole.get(group) == Some(&true)
                && let Some(patch) = self.patch(&base, group)?
            {
                let is_last = self.next_group == groups.whole.len();
                if !is_last || self.rows_that_follow() < groups.last_joins.max(1) {
                    return Ok(Some(Part::RowGroup { base, group, patch }));
                }
            }
            let columns = present(&base, &self.options.schema);
            self.rows = Some(base.batches_of(group..group + 1, Some(&columns), self.options.batch_rows)?);
        }
    }

    /// What comes in the place of rows of a row group; `None`: some are gone, or not all that comes is in memory.
    fn patch(&mut self, base: &Reader, group: usize) -> Result<Option<Patch>> {
        if !self.window.is_whole() {
            return Ok(None);
        }
        if self.window.ready(self.asked) == 0 {
            self.window.load(&self.winners, &self.options, self.asked)?;
        }
        let compared = self.compares.as_deref().and_then(|field| top_level(&self.options.schema.arrow, field));
        let columns = [Some(RECORD_KEY), compared];
        let columns: Vec<&str> = columns.into_iter().flatten().collect();
        let (mut patch, mut logged, mut start) = (Patch::default(), Vec::new(), 0);
        for batch in base.batches_of(group..group + 1, Some(&columns), self.options.batch_rows)? {
            let batch = batch?;
            let matches = self.winners.matches(keys(&batch).map_err(|e| self.group.fault(e))?);
            for (_, entry) in &matches {
                self.met[*entry as usize] = true;
            }
            for (row, fate) in (start..).zip(self.fates(&batch, &matches)?) {
                match fate {
                    Fate::Copied => {}
                    Fate::Deleted => return Ok(None),
                    Fate::Replaced(entry) => {
                        patch.rows.push(row);
                        logged.push(entry);
                    }
                }
            }
            start += batch.num_rows() as u32;
        }
        if !logged.is_empty() {
            let mut picks = Picks::new(None, &self.window);
            logged.into_iter().for_each(|entry| picks.logged(entry));
            patch.with = Some(picks.rows().map_err(|e| self.group.fault(e))?);
        }
        Ok(Some(patch))
    }

    /// Behind the base file's rows, when all of them are known.
    fn rows_that_follow(&self) -> u64 {
        let follows = |(entry, met): &(&Entry, &bool)| entry.what == What::Row && !**met;
        self.winners.entries.iter().zip(&self.met).filter(follows).count() as u64
    }

    /// Merges the rows of `batch` that need no rows of the next window; the others wait.
    fn merge(&mut self, mut batch: RecordBatch) -> Result<MergedBatch> {
        let mut matches = self.winners.matches(keys(&batch).map_err(|e| self.group.fault(e))?);
        let mut wanted = matches.iter().filter(|(_, entry)| self.winners.is_wanted(*entry, self.compares.is_some()));
        let ready = self.window.ready(self.asked);
        let here = wanted.by_ref().take(ready).count();
        if let Some((row, _)) = wanted.next() {
            let cut = *row as usize;
            if cut == 0 {
                self.window.load(&self.winners, &self.options, self.asked)?;
                if self.window.ready(self.asked) == 0 {
                    let why = "the base file has more keys of the logs than it had before";
                    return Err(self.group.fault(schema::Error::internal("read the rows of a window", why)));
                }
                return self.merge(batch);
            }
            self.waiting = Some(batch.slice(cut, batch.num_rows() - cut));
            batch = batch.slice(0, cut);
            matches.retain(|(row, _)| (*row as usize) < cut);
        }
        self.asked += here;
        for (_, entry) in &matches {
            self.met[*entry as usize] = true;
        }
        let fates = self.fates(&batch, &matches)?;
        self.build(&batch, &fates).map_err(|e| self.group.fault(e))
    }

    /// The fate of each row; empty if all are copied.
    fn fates(&self, base: &RecordBatch, matches: &[Match]) -> Result<Vec<Fate>> {
        if matches.is_empty() {
            return Ok(Vec::new());
        }
        let comparable: Vec<Match> = match &self.compares {
            Some(_) => matches.iter().filter(|(_, entry)| self.what(*entry) != What::Deleted).copied().collect(),
            None => Vec::new(),
        };
        let stays = self.kept_by_rule(base, &comparable)?;
        let mut stays =
            comparable.iter().zip(stays.iter()).filter(|(_, stays)| *stays == Some(true)).map(|(m, _)| m.0).peekable();
        let mut fates = vec![Fate::Copied; base.num_rows()];
        for (row, entry) in matches {
            if stays.next_if_eq(row).is_none() {
                fates[*row as usize] = match self.what(*entry) {
                    What::Row => Fate::Replaced(*entry),
                    What::FlaggedRow | What::Deleted => Fate::Deleted,
                };
            }
        }
        Ok(fates)
    }

    fn what(&self, entry: u32) -> What {
        self.winners.entries[entry as usize].what
    }

    /// For each match, whose rows are all in memory, whether the stored row stays.
    fn kept_by_rule(&self, base: &RecordBatch, matches: &[Match]) -> Result<BooleanArray> {
        let Some(field) = self.compares.as_ref().filter(|_| !matches.is_empty()) else {
            return Ok(BooleanArray::from(vec![false; matches.len()]));
        };
        let failed = |e| self.group.fault(Fault::Compare(e));
        let rows = UInt32Array::from_iter_values(matches.iter().map(|(row, _)| *row));
        let stored = ordering_column(base, field).map_err(failed)?;
        let stored = take(&stored, &rows, None).map_err(|e| self.group.fault(e))?;
        let mut picks = Picks::new(None, &self.window);
        matches.iter().for_each(|(_, entry)| picks.logged(*entry));
        let logged = picks.sources.iter().map(|batch| ordering_column(batch, field));
        let logged = logged.collect::<crate::record::Result<Vec<ArrayRef>>>().map_err(failed)?;
        let logged: Vec<&dyn Array> = logged.iter().map(|column| column.as_ref()).collect();
        let logged = interleave(&logged, &picks.picks).map_err(|e| self.group.fault(e))?;
        self.options.rule.keeps_stored(&stored, &logged).map_err(failed)
    }

    fn build(&self, base: &RecordBatch, fates: &[Fate]) -> std::result::Result<MergedBatch, ArrowError> {
        let (mut updates, mut deletes) = (0, 0);
        if fates.iter().all(|fate| *fate == Fate::Copied) {
            return Ok(MergedBatch { rows: base.clone(), updates, inserts: 0, deletes });
        }
        let mut picks = Picks::new(Some(base), &self.window);
        for (row, fate) in fates.iter().enumerate() {
            match fate {
                Fate::Copied => picks.stored(row),
                Fate::Deleted => deletes += 1,
                Fate::Replaced(entry) => {
                    updates += 1;
                    picks.logged(*entry);
                }
            }
        }
        Ok(MergedBatch { rows: picks.rows()?, updates, inserts: 0, deletes })
    }

    /// Records whose key the base file does not have.
    fn append(&mut self) -> Result<Option<MergedBatch>> {
        let mut entries = Vec::new();
        while entries.len() < self.options.batch_rows.max(1)
            && let Some(entry) = self.winners.entries.get(self.next as usize)
        {
            if entry.what == What::Row && !self.met[self.next as usize] {
                if self.window.ready(self.asked) == 0 {
                    if !entries.is_empty() {
                        break;
                    }
                    self.window.load(&self.winners, &self.options, self.asked)?;
                }
                entries.push(self.next);
                self.asked += 1;
            }
            self.next += 1;
        }
        if entries.is_empty() {
            return Ok(None);
        }
        let mut picks = Picks::new(None, &self.window);
        entries.iter().for_each(|entry| picks.logged(*entry));
        let rows = picks.rows().map_err(|e| self.group.fault(e))?;
        Ok(Some(MergedBatch { rows, updates: 0, inserts: entries.len() as u64, deletes: 0 }))
    }
}

impl Iterator for Merged {
    type Item = Result<MergedBatch>;

    fn next(&mut self) -> Option<Result<MergedBatch>> {
        match self.next_part(&WholeGroups::default()) {
            Ok(Some(Part::Rows(batch))) => Some(Ok(batch)),
            Ok(Some(Part::RowGroup { .. }) | None) => None,
            Err(e) => Some(Err(e)),
        }
    }
}

/// The record keys of rows of the base file.
pub(super) fn keys(batch: &RecordBatch) -> std::result::Result<&StringArray, Fault> {
    let keys = batch.column_by_name(RECORD_KEY).and_then(|keys| keys.as_string_opt::<i32>());
    keys.ok_or_else(|| schema::Error::Row { column: RECORD_KEY.into(), why: "is not text".into() }.into())
}

/// Rows to be put together, of one batch of the base file and of the window.
struct Picks<'a> {
    window: &'a Window,
    sources: Vec<&'a RecordBatch>,
    /// By batch of the window: where it is among the sources, if it is there. (A window may have hundreds of batches, and
    /// each source costs for each column.)
    used: Vec<Option<usize>>,
    picks: Vec<(usize, usize)>,
}

impl<'a> Picks<'a> {
    fn new(base: Option<&'a RecordBatch>, window: &'a Window) -> Picks<'a> {
        Picks { window, sources: base.into_iter().collect(), used: vec![None; window.batches.len()], picks: Vec::new() }
    }

    /// A row of the base file's batch.
    fn stored(&mut self, row: usize) {
        self.picks.push((0, row));
    }

    /// The winner of an entry.
    fn logged(&mut self, entry: u32) {
        let (batch, row) = self.window.row(entry);
        let source = *self.used[batch].get_or_insert_with(|| {
            self.sources.push(&self.window.batches[batch]);
            self.sources.len() - 1
        });
        self.picks.push((source, row));
    }

    fn rows(&self) -> std::result::Result<RecordBatch, ArrowError> {
        interleave_record_batch(&self.sources, &self.picks)
    }
}
