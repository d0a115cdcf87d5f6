//! New file groups: rows are appended, a file that is full is followed by the next of the same prefix. A bucket has one file,
//! however large.

use super::data_file::{DataFile, Run};
use super::status::WriteStatus;
use super::{BATCH_ROWS, Result};
use crate::index::new_file_id;
use crate::record::{KeyedBatch, RowRef};
use crate::table::MarkerType;
use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::interleave;
use arrow::error::ArrowError;
use std::sync::Arc;

/// Writes new records of one partition into files `<uuid>-0`, `<uuid>-1`, …
pub(super) struct CreateHandle {
    run: Arc<Run>,
    partition: String,
    prefix: String,
    files: u32,
    open: Option<(DataFile, SizeCheck)>,
    finished: Vec<WriteStatus>,
}

impl CreateHandle {
    pub(super) fn new(run: Arc<Run>, partition: &str) -> CreateHandle {
        CreateHandle {
            run,
            partition: partition.to_string(),
            prefix: uuid::Uuid::new_v4().to_string(),
            files: 0,
            open: None,
            finished: Vec::new(),
        }
    }

    /// `columns`: in writer-schema order.
    pub(super) fn append(&mut self, keys: &StringArray, columns: &[ArrayRef]) -> Result<()> {
        let mut start = 0;
        while start < keys.len() {
            if self.open.as_mut().is_some_and(|(file, check)| check.is_full(file.rows(), file.size_estimate())) {
                self.finish_file()?;
            }
            if self.open.is_none() {
                let file_id = format!("{}-{}", self.prefix, self.files);
                let file = DataFile::create(&self.run, &self.partition, &file_id, MarkerType::Create)?;
                self.files += 1;
                self.open = Some((file, SizeCheck::new(&self.run)));
            }
            let (file, check) = self.open.as_mut().expect("opened above");
            let until_check = check.next.saturating_sub(file.rows()).max(1);
            let count = (keys.len() - start).min(usize::try_from(until_check).unwrap_or(usize::MAX));
            let slice: Vec<ArrayRef> = columns.iter().map(|column| column.slice(start, count)).collect();
            let appended = file.append(keys.slice(start, count), &slice);
            appended.map_err(|e| e.in_file("write", file.path()))?;
            start += count;
        }
        Ok(())
    }

    pub(super) fn memory(&self) -> usize {
        self.open.as_ref().map_or(0, |(file, _)| file.memory())
    }

    pub(super) fn flush_row_group(&mut self) -> Result<()> {
        match &mut self.open {
            Some((file, _)) => file.flush_row_group().map_err(|e| e.in_file("write", file.path())),
            None => Ok(()),
        }
    }

    pub(super) fn finish(mut self) -> Result<Vec<WriteStatus>> {
        self.finish_file()?;
        Ok(self.finished)
    }

    fn finish_file(&mut self) -> Result<()> {
        if let Some((file, _)) = self.open.take() {
            self.finished.push(file.finish()?);
        }
        Ok(())
    }
}

/// When a file is full (`HoodieBaseParquetWriter.canWrite`, Hudi 0.15): the size is asked after 100 records, then at half
/// the way that seems left, at least every 10,000.
#[derive(Debug)]
struct SizeCheck {
    max_size: u64,
    /// Rows at which the size is asked for next.
    next: u64,
}

impl SizeCheck {
    const MIN_ROWS: u64 = 100;
    const MAX_ROWS: u64 = 10_000;

    fn new(run: &Run) -> SizeCheck {
        let parquet = &run.context.config.parquet;
        SizeCheck::of(parquet.max_file_size, parquet.compression_ratio)
    }

    /// Hudi lets the file grow past its limit by the compression ratio.
    fn of(max_file_size: u64, compression_ratio: f64) -> SizeCheck {
        let slack = (max_file_size as f64 * compression_ratio).round() as u64;
        SizeCheck { max_size: max_file_size.saturating_add(slack), next: SizeCheck::MIN_ROWS }
    }

    fn is_full(&mut self, rows: u64, size: u64) -> bool {
        if rows < self.next {
            return false;
        }
        let average = (size / rows).max(1);
        if size > self.max_size.saturating_sub(average * 2) {
            return true;
        }
        let half_way = (self.max_size / average).saturating_sub(rows) / 2;
        self.next = rows + half_way.clamp(SizeCheck::MIN_ROWS, SizeCheck::MAX_ROWS);
        false
    }
}

/// Writes the given rows as new records of `partition`, all into one file if they are of one bucket.
pub(super) fn create(
    run: Arc<Run>,
    batches: &[KeyedBatch],
    partition: &str,
    bucket: Option<u32>,
    rows: &[RowRef],
) -> Result<Vec<WriteStatus>> {
    if let Some(bucket) = bucket {
        let mut file = DataFile::create(&run, partition, &new_file_id(bucket), MarkerType::Create)?;
        for rows in rows.chunks(BATCH_ROWS) {
            let (keys, columns) = gather(batches, rows)?;
            file.append(keys, &columns).map_err(|e| e.in_file("write", file.path()))?;
        }
        return Ok(vec![file.finish()?]);
    }
    let mut handle = CreateHandle::new(run, partition);
    for rows in rows.chunks(BATCH_ROWS) {
        let (keys, columns) = gather(batches, rows)?;
        handle.append(&keys, &columns)?;
    }
    handle.finish()
}

/// Keys and data columns of the given rows, copied from the batches that hold them.
pub(super) fn gather(
    batches: &[KeyedBatch],
    rows: &[RowRef],
) -> std::result::Result<(StringArray, Vec<ArrayRef>), ArrowError> {
    // Only the batches in use: a round may hold thousands, and each counts for each column.
    let mut used: Vec<u32> = rows.iter().map(|row| row.batch).collect();
    used.sort_unstable();
    used.dedup();
    let picks: Vec<(usize, usize)> =
        rows.iter().map(|row| (used.partition_point(|batch| *batch < row.batch), row.row as usize)).collect();
    let batches: Vec<&KeyedBatch> = used.iter().map(|batch| &batches[*batch as usize]).collect();
    let Some(first) = batches.first() else { return Err(no_rows()) };
    let keys: Vec<&dyn Array> = batches.iter().map(|batch| &batch.keys as &dyn Array).collect();
    let keys = interleave(&keys, &picks)?.as_string::<i32>().clone();
    let columns = (0..first.rows.num_columns())
        .map(|column| {
            let sources: Vec<&dyn Array> = batches.iter().map(|batch| batch.rows.column(column).as_ref()).collect();
            interleave(&sources, &picks)
        })
        .collect::<std::result::Result<_, _>>()?;
    Ok((keys, columns))
}

fn no_rows() -> ArrowError {
    ArrowError::InvalidArgumentError("no rows to gather".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_is_asked_at_half_the_way_that_is_left() {
        let mut check = SizeCheck::of(100_000, 0.1);
        assert!(!check.is_full(99, 1_000_000), "not asked before 100 rows");
        assert!(!check.is_full(100, 10_000));
        // 110,000 bytes at 100 a row leave 1,000 rows.
        assert_eq!(check.next, 100 + 500);
        assert!(!check.is_full(600, 60_000));
        assert_eq!(check.next, 600 + 250);
        assert!(check.is_full(1_099, 109_900), "two average rows before the limit");
    }

    #[test]
    fn size_is_asked_at_least_every_ten_thousand_rows() {
        let mut check = SizeCheck::of(1 << 40, 0.1);
        assert!(!check.is_full(100, 10_000));
        assert_eq!(check.next, 10_100);
    }
}
