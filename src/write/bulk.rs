//! Bulk insert: rows stream into new file groups, nothing is looked up, small files stay as they are (semantics.md §9).

use super::create::CreateHandle;
use super::data_file::{Run, WAITING};
use super::{Result, WriteContext, WriteStatus, sort};
use crate::config::BulkInsertSortMode;
use crate::index::{is_deleted, pool};
use crate::record::{KeyGenerator, KeyedBatch};
use arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, partition, take_record_batch};
use arrow::error::ArrowError;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Handle;

/// Rows of a partition that are gathered before they go to its file: what an open file holds is far from the processor each time
/// that it is come back to (measured, ten partitions: 4 % less CPU than with 4,096 rows).
const MIN_PIECE_ROWS: usize = 16_384;

/// Streams rows into new file groups without looking anything up, in the configured sort mode.
///
/// `pieces` are read by `workers` threads, each piece by one of them, a free one taking the next. Rows that are deleted
/// are dropped. A worker makes one file a partition, and another when it is full. Memory is bounded by what open files
/// may hold before their row groups are flushed, and by the sort's budget; unsorted, each open file besides keeps its
/// bloom filter (316 KiB with Hudi's defaults), so that thousands of partitions ask for a sort mode, as with Hudi.
pub async fn bulk_insert(
    context: Arc<WriteContext>,
    pieces: Vec<SendableRecordBatchStream>,
    keys: KeyGenerator,
) -> Result<Vec<WriteStatus>> {
    let workers = context.config.workers.max(1);
    let run = Arc::new(Run::new(context));
    let (stop, ends) = (run.stop.clone(), run.clone());
    let written = match run.context.config.bulk_insert_sort_mode {
        BulkInsertSortMode::None => {
            let workers = workers.min(pieces.len().max(1));
            let pieces = Arc::new(Mutex::new(VecDeque::from(pieces)));
            let threads = (0..workers).map(|_| Worker::new(run.clone(), workers)).collect();
            pool::run(workers, &stop, threads, move |mut worker: Worker| {
                while let Some(mut piece) = next_piece(&pieces) {
                    while let Some(batch) = Handle::current().block_on(piece.next()) {
                        run.check_cancelled()?;
                        worker.add(&keys.key(&batch?)?)?;
                    }
                }
                worker.end()
            })
            .await?
        }
        BulkInsertSortMode::PartitionSort | BulkInsertSortMode::GlobalSort => {
            let sorted = sort::sorted(&run, pieces, keys, workers)?;
            let threads =
                sorted.streams.into_iter().map(|stream| (stream, Worker::new(run.clone(), workers))).collect();
            pool::run(workers, &stop, threads, move |(mut stream, mut worker): (SendableRecordBatchStream, Worker)| {
                while let Some(batch) = Handle::current().block_on(stream.next()) {
                    run.check_cancelled()?;
                    worker.add_sorted(&batch?)?;
                }
                worker.end()
            })
            .await
            .map_err(|error| sorted.failure.take().unwrap_or(error))?
        }
    };
    let (finished, open): (Vec<_>, Vec<_>) = written.into_iter().unzip();
    // Whoever began a file, a free thread ends it, while others wait for storage.
    let open = open.into_iter().flatten().collect();
    let ended = pool::run(workers + WAITING, &stop, open, move |file: OpenFile| {
        let _at_work = ends.at_work();
        file.finish()
    });
    Ok(finished.into_iter().chain(ended.await?).flatten().collect())
}

/// The next of the pieces that all workers share.
pub(super) fn next_piece(pieces: &Mutex<VecDeque<SendableRecordBatchStream>>) -> Option<SendableRecordBatchStream> {
    pieces.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

/// Record key and data columns in one batch, so that they are cut and joined together.
fn with_key_column(batch: &KeyedBatch) -> std::result::Result<RecordBatch, ArrowError> {
    let mut columns: Vec<(&str, ArrayRef)> = vec![(sort::RECORD_KEY_COLUMN, Arc::new(batch.keys.clone()))];
    let names = batch.rows.schema_ref().fields().iter().map(|field| field.name().as_str());
    columns.extend(names.zip(batch.rows.columns().iter().cloned()));
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))
}

/// Positions of the rows that are not deleted, by partition path id.
fn positions_by_partition(batch: &KeyedBatch) -> Vec<Vec<u32>> {
    let mut positions = vec![Vec::new(); batch.partitions.paths.len()];
    for (row, id) in batch.partitions.ids.iter().enumerate() {
        if !is_deleted(batch, row) {
            positions[*id as usize].push(row as u32);
        }
    }
    positions
}

/// One thread's open files, one a partition.
struct Worker {
    run: Arc<Run>,
    /// Bytes that the open files may hold besides what no flush frees: they can be freed by flushing row groups early.
    memory: usize,
    open: BTreeMap<String, OpenFile>,
    finished: Vec<WriteStatus>,
}

struct OpenFile {
    handle: CreateHandle,
    pending: Vec<RecordBatch>,
    pending_rows: usize,
    /// What the file held right after its last flush.
    unflushable: usize,
}

impl Worker {
    fn new(run: Arc<Run>, workers: usize) -> Worker {
        let memory = run.context.config.memory.open_files / workers;
        Worker { run, memory, open: BTreeMap::new(), finished: Vec::new() }
    }

    fn add(&mut self, batch: &KeyedBatch) -> Result<()> {
        let rows = with_key_column(batch)?;
        for (path, positions) in batch.partitions.paths.iter().zip(positions_by_partition(batch)) {
            if positions.len() == rows.num_rows() {
                self.add_piece(path, rows.clone())?;
            } else if !positions.is_empty() {
                self.add_piece(path, take_record_batch(&rows, &UInt32Array::from(positions))?)?;
            }
        }
        self.bound_memory()
    }

    /// Rows sorted by partition path, the first column: the file of a partition that has ended is finished.
    fn add_sorted(&mut self, batch: &RecordBatch) -> Result<()> {
        let paths = batch.column(sort::PARTITION_PATH).as_string::<i32>();
        for range in partition(&[batch.column(sort::PARTITION_PATH).clone()])?.ranges() {
            let path = paths.value(range.start);
            if !self.open.contains_key(path) {
                self.finish_open()?;
            }
            let mut piece = batch.slice(range.start, range.len());
            piece.remove_column(sort::PARTITION_PATH);
            self.add_piece(path, piece)?;
        }
        self.bound_memory()
    }

    fn add_piece(&mut self, path: &str, piece: RecordBatch) -> Result<()> {
        if !self.open.contains_key(path) {
            let handle = CreateHandle::new(self.run.clone(), path);
            let file = OpenFile { handle, pending: Vec::new(), pending_rows: 0, unflushable: 0 };
            self.open.insert(path.to_string(), file);
        }
        let file = self.open.get_mut(path).expect("inserted above");
        file.pending_rows += piece.num_rows();
        file.pending.push(piece);
        if file.pending_rows >= MIN_PIECE_ROWS { file.write_pending() } else { Ok(()) }
    }

    /// Flushes the files that hold most, until half of the budget is free again.
    fn bound_memory(&mut self) -> Result<()> {
        let mut held: usize = self.open.values().map(OpenFile::flushable).sum();
        if held <= self.memory {
            return Ok(());
        }
        let mut largest: Vec<&mut OpenFile> = self.open.values_mut().collect();
        largest.sort_by_key(|file| Reverse(file.flushable()));
        for file in largest {
            if held <= self.memory / 2 {
                break;
            }
            held -= file.flushable();
            file.flush()?;
        }
        Ok(())
    }

    fn finish_open(&mut self) -> Result<()> {
        while let Some((_, file)) = self.open.pop_first() {
            self.finished.extend(file.finish()?);
        }
        Ok(())
    }

    /// There are no more rows: what is finished, and what is to be.
    fn end(self) -> Result<(Vec<WriteStatus>, Vec<OpenFile>)> {
        Ok((self.finished, self.open.into_values().collect()))
    }
}

impl OpenFile {
    fn write_pending(&mut self) -> Result<()> {
        let Some(first) = self.pending.first() else { return Ok(()) };
        let rows = concat_batches(&first.schema(), &self.pending)?;
        self.pending.clear();
        self.pending_rows = 0;
        self.handle.append(rows.column(0).as_string(), &rows.columns()[1..])
    }

    fn flushable(&self) -> usize {
        let pending: usize = self.pending.iter().map(RecordBatch::get_array_memory_size).sum();
        pending + self.handle.memory().saturating_sub(self.unflushable)
    }

    fn flush(&mut self) -> Result<()> {
        self.write_pending()?;
        self.handle.flush_row_group()?;
        self.unflushable = self.handle.memory();
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<WriteStatus>> {
        self.write_pending()?;
        self.handle.finish()
    }
}
