//! Merge-on-read: the changes of one file group become a log file on top of its slice (`HoodieAppendHandle`, Hudi 0.15).
//!
//! ```text
//! [deletes whose keys come again ▶] data blocks ▶ [deletes]
//! ```
//!
//! The later block has the last word, but for what ordering values say (log-file.md §10).

use super::create::gather;
use super::data_file::Run;
use super::meta::MetaColumns;
use super::status::WriteStatus;
use super::{BATCH_ROWS, Result};
use crate::codec::avro::AvroEncoder;
use crate::config::LogBlockFormat;
use crate::record::{KeyedBatch, RowRef};
use crate::storage::fault_point;
use crate::table::base_file::BlockWriter;
use crate::table::log_file::{
    AvroContent, BlockHeader, BlockKind, DeleteRecord, LogWriter, OrderingValue, encode_deletes,
};
use crate::table::{FileSlice, LogFileName, LogStat, MarkerType, WriteStat};
use arrow::array::RecordBatch;
use changes::Changes;
use std::sync::Arc;
use std::time::Instant;

mod changes;

/// What happens to one file group.
#[derive(Debug, PartialEq)]
pub(super) struct AppendTask {
    pub slice: Arc<FileSlice>,
    /// Updates and deletes of stored records.
    pub rows: Vec<RowRef>,
    /// Rows whose stored record leaves for another partition.
    pub moved_away: Vec<RowRef>,
}

/// Writes the group's changes: one log file, and another each time one is full.
pub(super) fn append(run: &Arc<Run>, batches: &[KeyedBatch], task: &AppendTask) -> Result<Vec<WriteStatus>> {
    let changes = Changes::of(&run.context, batches, task);
    let mut handle = AppendHandle::new(run, &task.slice)?;
    handle.delete(batches, changes.reborn)?;
    match run.context.config.log.block_format {
        LogBlockFormat::Avro => handle.write_avro(batches, &changes.records)?,
        LogBlockFormat::Parquet => handle.write_parquet(batches, &changes.records)?,
    }
    handle.count_deleting_records(changes.deleting_records);
    handle.delete(batches, changes.deletes)?;
    handle.delete(batches, changes.tombstones)?;
    handle.finish()
}

/// The log files of one write to one file group, on a blocking thread inside a tokio runtime.
struct AppendHandle<'a> {
    run: &'a Arc<Run>,
    slice: &'a FileSlice,
    header: BlockHeader,
    meta: MetaColumns,
    /// Of the next record, among all that this handle writes; from 1, as Hudi counts.
    next_seqno: u64,
    next_name: LogFileName,
    open: Option<OpenLog>,
    finished: Vec<WriteStatus>,
    /// Names of the log files that are finished.
    log_files: Vec<String>,
}

struct OpenLog {
    writer: LogWriter,
    stat: WriteStat,
    begun: Instant,
}

impl<'a> AppendHandle<'a> {
    fn new(run: &'a Arc<Run>, slice: &'a FileSlice) -> Result<AppendHandle<'a>> {
        let context = &run.context;
        let task = run.next_task();
        let next_name = LogFileName {
            file_id: slice.file_id.clone(),
            base_instant: slice.append_instant().clone(),
            version: slice.next_log_version(),
            token: Some(run.token(task)),
            cdc: false,
        };
        Ok(AppendHandle {
            header: BlockHeader::of_write(&context.instant, &run.file_schema().avro),
            // Records in a log name the file group where those in a base file name the file.
            meta: MetaColumns::new(context.instant.as_str(), task, &slice.partition, &slice.file_id),
            next_seqno: 1,
            next_name,
            open: None,
            finished: Vec::new(),
            log_files: Vec::new(),
            run,
            slice,
        })
    }

    /// Data blocks, each encoded in memory up to its greatest size.
    fn write_avro(&mut self, batches: &[KeyedBatch], rows: &[RowRef]) -> Result<()> {
        let encoder = AvroEncoder::new(self.run.file_schema())?;
        let most = self.run.context.config.log.max_block_size;
        let mut content = AvroContent::new();
        for rows in rows.chunks(BATCH_ROWS) {
            let records = self.records(batches, rows)?;
            for piece in pieces(&records, most) {
                encoder.append_framed(&piece, content.buffer())?;
                content.add(piece.num_rows() as u32);
                if content.size() >= most {
                    self.avro_block(&mut content)?;
                }
            }
        }
        self.avro_block(&mut content)
    }

    fn avro_block(&mut self, content: &mut AvroContent) -> Result<()> {
        if !content.is_empty() {
            let count = u64::from(content.count());
            self.data_block(BlockKind::AvroData, content.content(), count)?;
            content.clear();
        }
        Ok(())
    }

    fn write_parquet(&mut self, batches: &[KeyedBatch], rows: &[RowRef]) -> Result<()> {
        let most = self.run.context.config.log.max_block_size;
        let mut block: Option<(BlockWriter, u64)> = None;
        for rows in rows.chunks(BATCH_ROWS) {
            let records = self.records(batches, rows)?;
            for piece in pieces(&records, most) {
                let (mut writer, count) = match block.take() {
                    Some(begun) => begun,
                    None => (BlockWriter::begin(self.display(), self.run.options())?, 0),
                };
                writer.write(&piece)?;
                let count = count + piece.num_rows() as u64;
                if writer.size_estimate() >= most {
                    self.data_block(BlockKind::ParquetData, &writer.finish()?, count)?;
                } else {
                    block = Some((writer, count));
                }
            }
        }
        match block {
            None => Ok(()),
            Some((writer, count)) => self.data_block(BlockKind::ParquetData, &writer.finish()?, count),
        }
    }

    /// Rows with their meta columns.
    fn records(&mut self, batches: &[KeyedBatch], rows: &[RowRef]) -> Result<RecordBatch> {
        self.run.check_cancelled()?;
        let (keys, columns) = gather(batches, rows)?;
        let seqnos = self.next_seqno..self.next_seqno + rows.len() as u64;
        self.next_seqno = seqnos.end;
        let mut all = Vec::from(self.meta.of_written(keys, seqnos));
        all.extend(columns);
        Ok(RecordBatch::try_new(self.run.file_schema().arrow.clone(), all)?)
    }

    fn data_block(&mut self, kind: BlockKind, content: &[u8], count: u64) -> Result<()> {
        let stat = self.block(kind, content)?;
        stat.num_writes += count;
        stat.num_update_writes += count;
        self.run.count_rows(count);
        Ok(())
    }

    /// Of the records written, so many delete: that is how they are counted.
    fn count_deleting_records(&mut self, count: u64) {
        let counts = self.finished.iter_mut().map(|status| &mut status.stat);
        let mut left = count;
        for stat in counts.chain(self.open.as_mut().map(|open| &mut open.stat)) {
            let here = left.min(stat.num_update_writes);
            stat.num_update_writes -= here;
            stat.num_deletes += here;
            left -= here;
        }
    }

    /// Delete blocks, if there is anything to delete, each up to its greatest size.
    fn delete(&mut self, batches: &[KeyedBatch], deletes: Vec<(RowRef, OrderingValue)>) -> Result<()> {
        let most = self.run.context.config.log.max_block_size;
        let (mut records, mut size) = (Vec::new(), 0);
        for (row, ordering) in deletes {
            let key = batches[row.batch as usize].keys.value(row.row as usize);
            let record = DeleteRecord { key, partition: &self.slice.partition, ordering };
            if size + record.size() > most {
                self.delete_block(&records)?;
                records.clear();
                size = 0;
            }
            size += record.size();
            records.push(record);
        }
        self.delete_block(&records)
    }

    fn delete_block(&mut self, records: &[DeleteRecord<'_>]) -> Result<()> {
        if !records.is_empty() {
            self.run.check_cancelled()?;
            let stat = self.block(BlockKind::Delete, &encode_deletes(records))?;
            stat.num_deletes += records.len() as u64;
        }
        Ok(())
    }

    /// Puts a block into the open file, or into the next when that is full; the statistics of the file.
    fn block(&mut self, kind: BlockKind, content: &[u8]) -> Result<&mut WriteStat> {
        if self.open.as_ref().is_some_and(|open| open.writer.size() >= self.run.context.config.log.max_file_size) {
            self.finish_file()?;
        }
        let open = match self.open.take() {
            Some(open) => open,
            None => self.begin_file().map_err(|e| e.in_file("create", &self.display()))?,
        };
        let open = self.open.insert(open);
        open.writer.append(kind, &self.header, content)?;
        fault_point("in-log-block");
        Ok(&mut open.stat)
    }

    /// Marker, then partition metafile, then the file (table-services.md §1, step 9).
    fn begin_file(&self) -> Result<OpenLog> {
        let (run, slice) = (self.run, self.slice);
        let begun = Instant::now();
        let writer = LogWriter::create(&run.context.table.storage, &slice.partition, self.next_name.clone(), |name| {
            run.waiting(|| run.mark(slice.path_of(name), MarkerType::Append))
        })?;
        run.ensure_partition(&slice.partition)?;
        let stat = WriteStat {
            file_id: slice.file_id.clone(),
            prev_commit: slice.append_instant().to_string(),
            partition_path: slice.partition.clone(),
            ..WriteStat::default()
        };
        Ok(OpenLog { writer, stat, begun })
    }

    fn finish_file(&mut self) -> Result<()> {
        let Some(OpenLog { writer, mut stat, begun }) = self.open.take() else { return Ok(()) };
        self.run.check_cancelled()?;
        let (run, slice) = (self.run, self.slice);
        let finished = run.waiting(|| writer.finish(|name| run.mark(slice.path_of(name), MarkerType::Append)));
        let (name, size) = finished.map_err(|e: super::Error| e.in_file("finish", &self.display()))?;
        self.log_files.push(name.to_string());
        stat.path = Some(slice.path_of(&name));
        stat.total_write_bytes = size;
        stat.file_size_in_bytes = size;
        stat.total_upsert_time = begun.elapsed().as_millis() as u64;
        let on_instant = slice.log_files.iter().filter(|log| log.name.base_instant == *slice.append_instant());
        let before = on_instant.map(|log| log.name.to_string());
        // The base file of a slice on a pending compaction is still to come.
        let base_file = slice.base_file.as_ref().filter(|_| slice.pending_compaction.is_none());
        stat.log = Some(LogStat {
            version: name.version,
            offset: 0,
            base_file: base_file.map(|file| file.name.clone()).unwrap_or_default(),
            log_files: before.chain(self.log_files.iter().cloned()).collect(),
        });
        self.next_name.version = name.version + 1;
        self.finished.push(WriteStatus { stat });
        run.finished_file();
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<WriteStatus>> {
        self.finish_file()?;
        Ok(self.finished)
    }

    /// Where the next log file goes, for messages.
    fn display(&self) -> String {
        self.slice.path_of(&self.next_name)
    }
}

/// The batch in pieces of at most `most` bytes as it lies in memory, which is about what it takes in a block.
fn pieces(batch: &RecordBatch, most: u64) -> impl Iterator<Item = RecordBatch> + '_ {
    let rows = batch.num_rows();
    let bytes = batch.get_array_memory_size() as u64;
    let step = match bytes > most {
        true => usize::try_from(rows as u64 * most / bytes).unwrap_or(rows).max(1),
        false => rows.max(1),
    };
    (0..rows).step_by(step).map(move |start| batch.slice(start, step.min(rows - start)))
}
