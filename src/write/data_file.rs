//! One data file: its name, marker and folder, its meta columns, its size.

use super::meta::{META_COLUMN_COUNT, MetaColumns, RECORD_KEY};
use super::status::WriteStatus;
use super::{Error, Result, WriteContext};
use crate::config::ParquetCodec;
use crate::index::pool::Slots;
use crate::index::{KeyCache, KeyRecorder};
use crate::schema::TableSchema;
use crate::table::base_file::{BloomOptions, Patch, Reader, Writer, WriterOptions};
use crate::table::{BaseFile, Marker, MarkerType, Markers, WriteStat};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// One write, as its file handles share it.
pub(super) struct Run {
    pub context: Arc<WriteContext>,
    /// Cancelled with the context's token, and when one of the handles fails: the others need not go on.
    pub stop: CancellationToken,
    options: WriterOptions,
    file_schema: TableSchema,
    next_task: AtomicU32,
    partitions: Mutex<HashSet<String>>,
    finished_one: AtomicBool,
    slots: Slots,
}

/// Threads besides the workers, for files that wait for storage.
pub(super) const WAITING: usize = 16;

impl Run {
    pub(super) fn new(context: Arc<WriteContext>) -> Run {
        let schema = context.schema.with_meta_columns();
        let (parquet, bloom) = (&context.config.parquet, &context.config.bloom);
        let options = WriterOptions {
            compression: compression(parquet.codec),
            block_size: parquet.block_size,
            page_size: parquet.page_size,
            dictionary_enabled: parquet.dictionary_enabled,
            bloom: BloomOptions {
                num_entries: bloom.num_entries,
                fpp: bloom.fpp,
                dynamic: bloom.dynamic,
                dynamic_max_entries: bloom.dynamic_max_entries,
            },
            avro_schema: schema.avro.clone(),
            schema: schema.arrow.clone(),
        };
        Run {
            stop: context.cancel.child_token(),
            slots: Slots::new(context.config.workers),
            context,
            options,
            file_schema: schema,
            next_task: AtomicU32::new(0),
            partitions: Mutex::new(HashSet::new()),
            finished_one: AtomicBool::new(false),
        }
    }

    /// Schema of the files: meta columns and the writer schema.
    pub(super) fn file_schema(&self) -> &TableSchema {
        &self.file_schema
    }

    pub(super) fn options(&self) -> &WriterOptions {
        &self.options
    }

    /// A number that no other file of the instant has.
    pub(super) fn next_task(&self) -> u32 {
        self.next_task.fetch_add(1, Ordering::Relaxed)
    }

    /// Write token `<task>-<stage>-<attempt>`.
    pub(super) fn token(&self, task: u32) -> String {
        format!("{task}-0-{}", self.context.attempt)
    }

    /// For progress.
    pub(super) fn count_rows(&self, rows: u64) {
        self.context.rows_written.fetch_add(rows, Ordering::Relaxed);
    }

    /// A file has become visible.
    pub(super) fn finished_file(&self) {
        if !self.finished_one.swap(true, Ordering::Relaxed) {
            crate::storage::fault_point("while-writing");
        }
    }

    /// To be held by a pool's thread that is one of more than there are workers, but while it [waits](Run::waiting).
    pub(super) fn at_work(&self) -> impl Drop + '_ {
        self.slots.take()
    }

    /// For storage: another file is worked at meanwhile.
    pub(super) fn waiting<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.slots.lend(wait)
    }

    /// The marker of a data file, which is to be there before it.
    pub(super) fn mark(&self, path: String, marker_type: MarkerType) -> Result<()> {
        let markers = Markers::new(&self.context.table.storage, &self.context.instant);
        Ok(Handle::current().block_on(markers.create(&Marker { path, marker_type }))?)
    }

    pub(super) fn check_cancelled(&self) -> Result<()> {
        if self.stop.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// After the marker of the file that goes there: what a crash leaves of it is found by that.
    pub(super) fn ensure_partition(&self, partition: &str) -> Result<()> {
        if self.partitions.lock().unwrap_or_else(PoisonError::into_inner).contains(partition) {
            return Ok(());
        }
        let table = &self.context.table;
        self.waiting(|| Handle::current().block_on(table.ensure_partition_metadata(partition, &self.context.instant)))?;
        self.partitions.lock().unwrap_or_else(PoisonError::into_inner).insert(partition.to_string());
        Ok(())
    }
}

/// Gzip's level is the base file's own (its `gzip.rs`). zstd at level 1 instead of parquet-mr's 3, which takes a third more
/// time and makes no smaller files (limits.md (c)).
fn compression(codec: ParquetCodec) -> Compression {
    match codec {
        ParquetCodec::Uncompressed => Compression::UNCOMPRESSED,
        ParquetCodec::Snappy => Compression::SNAPPY,
        ParquetCodec::Gzip => Compression::GZIP(GzipLevel::default()),
        ParquetCodec::Zstd => Compression::ZSTD(ZstdLevel::try_new(1).expect("zstd knows levels 1 to 22")),
        ParquetCodec::Lz4Raw => Compression::LZ4_RAW,
    }
}

/// A data file that is being written, on a blocking thread inside a tokio runtime.
pub(super) struct DataFile {
    run: Arc<Run>,
    meta: MetaColumns,
    writer: Writer,
    /// Filled in as the file grows.
    stat: WriteStat,
    path: String,
    begun: Instant,
    /// For the rounds that come.
    keys: Option<KeyRecorder>,
    /// They have the keys of the file that this one takes the place of, or do without.
    keys_known: bool,
}

impl DataFile {
    /// Marker, then partition metafile, then the file itself (table-services.md §1, step 9).
    pub(super) fn create(run: &Arc<Run>, partition: &str, file_id: &str, kind: MarkerType) -> Result<DataFile> {
        let context = &run.context;
        let task = run.next_task();
        let name = format!("{file_id}_{}_{}.parquet", run.token(task), context.instant);
        let path = if partition.is_empty() { name.clone() } else { format!("{partition}/{name}") };
        let open = || -> Result<Writer> {
            run.waiting(|| run.mark(path.clone(), kind))?;
            run.ensure_partition(partition)?;
            Ok(Writer::create(&context.table.storage, &path, &run.options)?)
        };
        let writer = open().map_err(|e| e.in_file("create", &path))?;
        let stat = WriteStat {
            file_id: file_id.to_string(),
            path: Some(path.clone()),
            prev_commit: "null".to_string(),
            partition_path: partition.to_string(),
            ..WriteStat::default()
        };
        let meta = MetaColumns::new(context.instant.as_str(), task, partition, &name);
        let keys = context.key_cache.as_ref().map(KeyCache::record);
        Ok(DataFile { run: run.clone(), meta, writer, stat, path, begun: Instant::now(), keys, keys_known: false })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Rows in the file so far.
    pub(super) fn rows(&self) -> u64 {
        self.stat.num_writes
    }

    pub(super) fn size_estimate(&self) -> u64 {
        self.writer.size_estimate()
    }

    pub(super) fn memory(&self) -> usize {
        self.writer.memory()
    }

    pub(super) fn flush_row_group(&mut self) -> Result<()> {
        Ok(self.writer.flush_row_group()?)
    }

    pub(super) fn meta(&mut self) -> &mut MetaColumns {
        &mut self.meta
    }

    pub(super) fn stat(&mut self) -> &mut WriteStat {
        &mut self.stat
    }

    /// New or changed records: `columns` in writer-schema order, `positions` of each in the file.
    pub(super) fn with_meta(
        &mut self,
        keys: StringArray,
        columns: &[ArrayRef],
        positions: impl Iterator<Item = u64>,
    ) -> Result<RecordBatch> {
        let mut all: Vec<ArrayRef> = Vec::with_capacity(META_COLUMN_COUNT + columns.len());
        all.extend(self.meta.of_written(keys, positions));
        all.extend_from_slice(columns);
        Ok(RecordBatch::try_new(self.run.file_schema().arrow.clone(), all)?)
    }

    /// Adds new records at the end.
    pub(super) fn append(&mut self, keys: StringArray, columns: &[ArrayRef]) -> Result<()> {
        let (start, count) = (self.rows(), keys.len() as u64);
        let batch = self.with_meta(keys, columns, start..start + count)?;
        self.write(&batch)?;
        self.stat.num_inserts += count;
        Ok(())
    }

    /// Adds records with their meta columns.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.run.check_cancelled()?;
        if batch.num_rows() > 0 {
            self.writer.write(batch)?;
            self.record(batch.column(RECORD_KEY).as_string());
            self.count(batch.num_rows() as u64);
        }
        Ok(())
    }

    /// Before anything is written: this file takes the place of `old`. Where it keeps all keys of that, the index in its
    /// footer, and what rounds to come know, go on from there.
    pub(super) fn replaces(&mut self, old: &BaseFile, reader: &Reader, keeps_all: bool) {
        self.keys_known = self.inherits(reader, keeps_all);
        if let Some(cache) = &self.run.context.key_cache {
            match self.keys_known {
                true => self.keys = cache.inherit(old),
                false => cache.forget(&old.path()),
            }
        }
    }

    /// The same while `old` stays the latest file of its group for rounds to come.
    pub(super) fn inherits(&mut self, reader: &Reader, keeps_all: bool) -> bool {
        // A filter that cannot be read is no reason not to write a better one.
        keeps_all && reader.key_footer().is_ok_and(|footer| self.writer.inherit(footer))
    }

    /// As [`DataFile::write`], of records whose keys are in the file that this one takes the place of.
    pub(super) fn write_stored(&mut self, batch: &RecordBatch) -> Result<()> {
        self.run.check_cancelled()?;
        if batch.num_rows() > 0 {
            self.writer.write_stored(batch)?;
            if !self.keys_known {
                self.record(batch.column(RECORD_KEY).as_string());
            }
            self.count(batch.num_rows() as u64);
        }
        Ok(())
    }

    /// Whether [`DataFile::copy`] can be.
    pub(super) fn takes_row_groups_of(&self, reader: &Reader) -> bool {
        self.writer.takes_row_groups_of(reader)
    }

    /// Adds a row group of the file that this one takes the place of, with the rows of `patch`.
    pub(super) fn copy(&mut self, reader: &Reader, group: usize, patch: &Patch) -> Result<()> {
        self.run.check_cancelled()?;
        let recorder = self.keys.as_mut().filter(|_| !self.keys_known);
        let keys = recorder.map(|recorder| |read: &StringArray| recorder.add_all(read));
        let rows = self.writer.copy(reader, group, patch, self.meta.file_name_text(), keys)?;
        self.count(rows);
        Ok(())
    }

    fn record(&mut self, keys: &StringArray) {
        self.keys.iter_mut().for_each(|recorder| recorder.add_all(keys));
    }

    fn count(&mut self, rows: u64) {
        self.stat.num_writes += rows;
        self.run.count_rows(rows);
    }

    /// Makes the file visible (as a file; not yet as part of the table).
    pub(super) fn finish(self) -> Result<WriteStatus> {
        let DataFile { run, writer, mut stat, path, begun, keys, .. } = self;
        run.check_cancelled()?;
        let written = writer.seal().and_then(|sealed| run.waiting(|| sealed.publish()));
        let written = written.map_err(|e| Error::from(e).in_file("finish", &path))?;
        stat.total_write_bytes = written.size;
        stat.file_size_in_bytes = written.size;
        let milliseconds = begun.elapsed().as_millis() as u64;
        if stat.prev_commit == "null" {
            stat.total_create_time = milliseconds;
        } else {
            stat.total_upsert_time = milliseconds;
        }
        if let Some(keys) = keys {
            keys.finish(&stat.partition_path, path, written.size, written.rows);
        }
        run.finished_file();
        Ok(WriteStatus { stat })
    }
}
