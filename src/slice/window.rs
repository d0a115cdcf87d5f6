//! The winners' rows, as many at a time as there is memory for.

use super::blocks::LogBlocks;
use super::fold::Winners;
use super::rows::{Contents, Origin, RowReader};
use super::{Result, SliceOptions};
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Fields};
use std::ops::Range;

/// Of an entry whose row is not in memory.
const ABSENT: u32 = u32::MAX;

/// Rows of winners in memory: one window of the order in which they are wanted.
pub(super) struct Window {
    contents: Contents,
    /// Entries whose rows are wanted, in the order in which they are; in any if one window holds them all.
    order: Vec<u32>,
    is_whole: bool,
    /// The window in memory, as a range of `order`.
    loaded: Range<usize>,
    /// Bytes of rows that a window may have.
    pub budget: usize,
    weight: Weight,
    pub batches: Vec<RecordBatch>,
    /// First row of each batch among all of them.
    starts: Vec<u32>,
    /// By entry: its row among those of all batches.
    rows: Vec<u32>,
}

impl Window {
    /// Nothing is read yet.
    pub fn new(contents: Contents, winners: &Winners, options: &SliceOptions) -> Window {
        let rows = vec![ABSENT; winners.entries.len()];
        let used = winners.memory() + rows.len() * size_of::<u32>() + contents.held();
        // However long the keys are: a window of nothing would read the logs once a row.
        let budget = options.memory.saturating_sub(used).max(options.memory / 4);
        let weight = Weight::of(options.schema.arrow.fields());
        let (batches, starts, order, loaded) = (Vec::new(), Vec::new(), Vec::new(), 0..0);
        Window { contents, order, is_whole: false, loaded, budget, weight, batches, starts, rows }
    }

    /// The rows of these entries will be asked for, in whatever order: true if they fit into one window.
    pub fn expect_all(&mut self, winners: &Winners, entries: Vec<u32>) -> bool {
        let bytes = |entry: &u32| self.weight.bytes(winners.entries[*entry as usize].bytes);
        self.is_whole = entries.iter().map(bytes).fold(0, usize::saturating_add) <= self.budget;
        if self.is_whole {
            self.order = entries;
        }
        self.is_whole
    }

    /// The rows of these entries will be asked for, in this order.
    pub fn expect(&mut self, order: Vec<u32>) {
        self.order = order;
    }

    /// Whether one window holds all rows.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// How many rows are in memory, from number `from` of those that are asked for on.
    pub fn ready(&self, from: usize) -> usize {
        match self.loaded.contains(&from) {
            _ if self.is_whole && !self.loaded.is_empty() => usize::MAX,
            true => self.loaded.end - from,
            false => 0,
        }
    }

    /// Reads the rows from number `from` of the order on, as many as the budget allows, and one if it allows none.
    pub fn load(&mut self, winners: &Winners, options: &SliceOptions, from: usize) -> Result<()> {
        for entry in &self.order[self.loaded.clone()] {
            self.rows[*entry as usize] = ABSENT;
        }
        self.batches.clear();
        self.starts.clear();
        let mut left = self.budget;
        let mut end = from;
        while let Some(entry) = self.order.get(end) {
            let bytes = self.weight.bytes(winners.entries[*entry as usize].bytes);
            if bytes > left && end > from {
                break;
            }
            left = left.saturating_sub(bytes);
            end += 1;
        }
        self.loaded = from..end;
        let mut wanted = self.order[from..end].to_vec();
        // A key that the base file has twice is wanted twice.
        wanted.sort_unstable_by_key(|entry| (winners.entries[*entry as usize].place, *entry));
        wanted.dedup();
        for (row, entry) in (0..).zip(&wanted) {
            self.rows[*entry as usize] = row;
        }
        self.read(winners, options, &wanted)?;
        if self.loaded.end == self.order.len() {
            self.contents.forget();
        }
        Ok(())
    }

    /// `wanted`: in the order of the logs.
    fn read(&mut self, winners: &Winners, options: &SliceOptions, wanted: &[u32]) -> Result<()> {
        let Window { contents, batches, starts, .. } = self;
        let mut rows = 0;
        let mut sink = |_: &LogBlocks, batch: RecordBatch, _: &[Origin]| {
            starts.push(rows);
            rows += batch.num_rows() as u32;
            batches.push(batch);
            Ok(())
        };
        let mut reader = RowReader::new(&options.schema, options.batch_rows);
        let place = |entry: &u32| winners.entries[*entry as usize].place;
        for of_block in wanted.chunk_by(|a, b| place(a).block == place(b).block) {
            let numbers: Vec<u32> = of_block.iter().map(|entry| place(entry).row).collect();
            reader.read(contents, place(&of_block[0]).block, Some(&numbers), &mut sink)?;
        }
        reader.finish(&contents.blocks, &mut sink)
    }

    /// Batch and row of an entry that is in memory.
    pub fn row(&self, entry: u32) -> (usize, usize) {
        let row = self.rows[entry as usize];
        debug_assert_ne!(row, ABSENT, "the window is loaded before its rows are asked for");
        let batch = self.starts.partition_point(|start| *start <= row).saturating_sub(1);
        (batch, (row - self.starts[batch]) as usize)
    }
}

/// How many bytes a record has in memory at most, by its bytes in the log.
struct Weight {
    /// Of columns, whatever is in them.
    row: usize,
    /// What one byte of a list or a map may become.
    byte: usize,
}

impl Weight {
    fn of(fields: &Fields) -> Weight {
        let mut weight = Weight { row: 0, byte: 1 };
        fields.iter().for_each(|field| weight.row += weight.width(field.data_type()));
        weight
    }

    /// Of one value, without its text or items.
    fn width(&mut self, data_type: &DataType) -> usize {
        1 + match data_type {
            DataType::Struct(fields) => fields.iter().map(|field| self.width(field.data_type())).sum(),
            DataType::List(item) | DataType::Map(item, _) => {
                let item = self.width(item.data_type());
                self.byte = self.byte.max(item + 1);
                4
            }
            other => other.primitive_width().unwrap_or(4),
        }
    }

    fn bytes(&self, length: u32) -> usize {
        self.row + self.byte * length as usize
    }
}
