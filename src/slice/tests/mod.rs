//! Merged slices against files made by the rooms below.

mod blocks;
mod memory;
mod twin;

use super::*;
use crate::codec::avro::AvroEncoder;
use crate::config::PayloadClass;
use crate::storage::Storage;
use crate::table::base_file::{BloomOptions, Writer, WriterOptions};
use crate::table::log_file::*;
use crate::table::{BaseFile, InstantTime, LogFile, LogFileName, TableProperties};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use bytes::Bytes;
use std::sync::Arc;

const FILE_ID: &str = "f0000000-0000-4000-8000-000000000001-0";
const PARTITION: &str = "eu";

/// A row as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub commit_time: String,
    pub key: String,
    pub ts: Option<i64>,
    pub text: Option<String>,
    pub deleted: bool,
}

pub(crate) fn row(instant: &str, key: &str, ts: i64, text: &str) -> Row {
    let text = Some(text.to_string());
    Row { commit_time: instant.to_string(), key: key.to_string(), ts: Some(ts), text, deleted: false }
}

fn avro(fields: &[(&str, &str)]) -> TableSchema {
    let field = |(name, avro): &(&str, &str)| format!(r#"{{"name":"{name}","type":["null","{avro}"],"default":null}}"#);
    let fields: Vec<String> = fields.iter().map(field).collect();
    TableSchema::from_avro(&format!(r#"{{"type":"record","name":"row","fields":[{}]}}"#, fields.join(","))).unwrap()
}

/// `id` and `text`, `ts` (long), `_hoodie_is_deleted`.
pub(crate) fn schema() -> TableSchema {
    avro(&[("id", "string"), ("text", "string"), ("ts", "long"), ("_hoodie_is_deleted", "boolean")])
}

/// Before the table had the column `text`, and another one that has gone since.
pub(crate) fn old_schema() -> TableSchema {
    avro(&[("gone", "double"), ("ts", "int"), ("id", "string"), ("_hoodie_is_deleted", "boolean")])
}

pub(crate) fn options(payload: PayloadClass) -> SliceOptions {
    SliceOptions {
        schema: schema().with_meta_columns(),
        rule: MergeRule(payload),
        ordering_field: Some("ts".to_string()),
        memory: 1 << 30,
        batch_rows: 8192,
    }
}

pub(crate) fn batch(schema: &TableSchema, rows: &[Row]) -> RecordBatch {
    let schema = schema.with_meta_columns().arrow;
    let text = |value: fn(&Row) -> Option<&str>| Arc::new(StringArray::from_iter(rows.iter().map(value))) as ArrayRef;
    let column = |name: &str| -> ArrayRef {
        match name {
            "_hoodie_commit_time" => text(|row| Some(&row.commit_time)),
            "_hoodie_record_key" | "id" => text(|row| Some(&row.key)),
            "_hoodie_partition_path" => text(|_| Some(PARTITION)),
            "_hoodie_file_name" => text(|_| Some(FILE_ID)),
            "text" => text(|row| row.text.as_deref()),
            "ts" => Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.ts))),
            "_hoodie_is_deleted" => Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.deleted)))),
            _ => text(|_| None),
        }
    };
    let columns =
        schema.fields().iter().map(|field| arrow::compute::cast(&column(field.name()), field.data_type()).unwrap());
    RecordBatch::try_new(schema.clone(), columns.collect()).unwrap()
}

/// The rows of a batch of [`schema`].
pub(crate) fn rows(batch: &RecordBatch) -> Vec<Row> {
    let column = |name: &str| batch.column_by_name(name).unwrap();
    let text = |name: &str, row: usize| {
        let column = column(name).as_string::<i32>();
        column.is_valid(row).then(|| column.value(row).to_string())
    };
    let (ts, deleted) = (column("ts").as_primitive::<Int64Type>(), column("_hoodie_is_deleted").as_boolean());
    let row = |row: usize| Row {
        commit_time: text("_hoodie_commit_time", row).unwrap(),
        key: text("_hoodie_record_key", row).unwrap(),
        ts: ts.is_valid(row).then(|| ts.value(row)),
        text: text("text", row),
        deleted: deleted.is_valid(row) && deleted.value(row),
    };
    (0..batch.num_rows()).map(row).collect()
}

fn instant(text: &str) -> InstantTime {
    InstantTime::parse(text).unwrap()
}

/// The instant with a number, of the width that Hudi has.
pub(crate) fn time(number: usize) -> String {
    format!("20240101000000{number:03}")
}

pub(crate) fn data(at: &str, schema: &TableSchema, rows: &[Row]) -> Bytes {
    data_of(at, &schema.with_meta_columns(), &batch(schema, rows))
}

/// `written`: with meta columns.
pub(crate) fn data_of(at: &str, written: &TableSchema, rows: &RecordBatch) -> Bytes {
    let mut content = AvroContent::new();
    AvroEncoder::new(written).unwrap().append_framed(rows, content.buffer()).unwrap();
    content.add(rows.num_rows() as u32);
    let header = BlockHeader::of_write(&instant(at), &written.avro);
    encode_block(BlockKind::AvroData, &header, content.content()).unwrap()
}

pub(crate) fn parquet_data(at: &str, schema: &TableSchema, rows: &[Row]) -> Bytes {
    let batch = batch(schema, rows);
    let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let header = BlockHeader::of_write(&instant(at), &schema.with_meta_columns().avro);
    encode_block(BlockKind::ParquetData, &header, &writer.into_inner().unwrap()).unwrap()
}

pub(crate) fn deletes(at: &str, records: Vec<(String, OrderingValue)>) -> Bytes {
    let records = records.iter();
    let records: Vec<DeleteRecord<'_>> =
        records.map(|(key, value)| DeleteRecord { key, partition: PARTITION, ordering: value.clone() }).collect();
    let header = BlockHeader::of_write(&instant(at), &schema().with_meta_columns().avro);
    encode_block(BlockKind::Delete, &header, &encode_deletes(&records)).unwrap()
}

pub(crate) fn rollback(at: &str, target: &str) -> Bytes {
    let header = BlockHeader::of_rollback(&instant(at), &instant(target));
    encode_block(BlockKind::Command, &header, &[]).unwrap()
}

/// A table of one file group, in a folder of its own.
pub(crate) struct Group {
    pub runtime: tokio::runtime::Runtime,
    _folder: tempfile::TempDir,
    pub table: Table,
    pub slice: FileSlice,
    /// Files of the timeline.
    pub timeline: Vec<String>,
}

impl Group {
    /// `base`: rows of the base file, which the instant 0 has written.
    pub fn new(base: Option<&[Row]>) -> Group {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let storage = Storage::open(folder.path().to_str().unwrap()).unwrap();
        let table = Table::new(storage, TableProperties::default());
        let slice = FileSlice {
            partition: PARTITION.to_string(),
            file_id: FILE_ID.to_string(),
            base_instant: instant(&time(0)),
            base_file: None,
            log_files: Vec::new(),
            pending_compaction: None,
        };
        let timeline = vec![format!("{}.deltacommit", time(0))];
        let mut group = Group { runtime, _folder: folder, table, slice, timeline };
        if let Some(rows) = base {
            group.slice.base_file = Some(group.base_file(&batch(&schema(), rows)));
        }
        group
    }

    fn base_file(&self, rows: &RecordBatch) -> BaseFile {
        let name = format!("{FILE_ID}_0-0-0_{}.parquet", time(0));
        let options = WriterOptions {
            compression: parquet::basic::Compression::UNCOMPRESSED,
            block_size: 1 << 20,
            page_size: 1 << 20,
            dictionary_enabled: true,
            bloom: BloomOptions { num_entries: 10, fpp: 0.1, dynamic: true, dynamic_max_entries: 100 },
            avro_schema: schema().with_meta_columns().avro,
            schema: rows.schema(),
        };
        let file = BaseFile {
            partition: PARTITION.to_string(),
            name,
            file_id: FILE_ID.to_string(),
            instant: instant(&time(0)),
            size: 0,
        };
        let _entered = self.runtime.enter();
        let mut writer = Writer::create(&self.table.storage, &file.path(), &options).unwrap();
        // Row groups and batches do not end together.
        (0..rows.num_rows()).step_by(7).for_each(|at| {
            writer.write(&rows.slice(at, 7.min(rows.num_rows() - at))).unwrap();
            writer.flush_row_group().unwrap();
        });
        BaseFile { size: writer.finish().unwrap().size, ..file }
    }

    /// A completed delta commit.
    pub fn completed(&mut self, at: &str) {
        self.timeline.push(format!("{at}.deltacommit"));
    }

    pub fn timeline(&self) -> Timeline {
        Timeline::from_file_names(self.timeline.iter().map(String::as_str))
    }

    /// One more log file; `cut`: bytes that its end lacks.
    pub fn log(&mut self, blocks: Vec<Bytes>, cut: usize) {
        let mut bytes = blocks.concat();
        bytes.truncate(bytes.len() - cut);
        let name = LogFileName {
            file_id: FILE_ID.to_string(),
            base_instant: instant(&time(0)),
            version: self.slice.log_files.len() as u32 + 1,
            token: Some("0-0-0".to_string()),
            cdc: false,
        };
        let log = LogFile { name, size: bytes.len() as u64 };
        let path = self.slice.log_path(&log);
        self.runtime.block_on(self.table.storage.put(&path, bytes.into())).unwrap();
        self.slice.log_files.push(log);
    }

    /// The rows, and what was counted.
    pub fn merge(&self, options: &SliceOptions) -> Result<(Vec<Row>, Counts)> {
        let (batches, totals) = self.each(options, |_, batch| batch)?;
        let totals = LogTotals { scan_ms: 0, ..totals };
        let mut counts = Counts { totals, batches: batches.len(), ..Counts::default() };
        let mut all = Vec::new();
        for batch in batches {
            counts.updates += batch.updates;
            counts.inserts += batch.inserts;
            counts.deletes += batch.deletes;
            all.extend(rows(&batch.rows));
        }
        Ok((all, counts))
    }

    /// The rows, of which those of row groups that come whole are put together here; and how many row groups have.
    pub fn merge_parts(&self, options: &SliceOptions, groups: WholeGroups) -> Result<(Vec<Row>, usize)> {
        let (table, slice, options) = (self.table.clone(), self.slice.clone(), options.clone());
        let timeline = self.timeline();
        let work = move || {
            let mut merged = merge(&table, &timeline, &slice, &options)?;
            let (mut all, mut whole) = (Vec::new(), 0);
            while let Some(part) = merged.next_part(&groups)? {
                match part {
                    Part::Rows(batch) => all.extend(rows(&batch.rows)),
                    Part::RowGroup { base, group, patch } => {
                        let stored = base.batches_of(group..group + 1, None, 3).unwrap();
                        let mut stored: Vec<Row> = stored.flat_map(|batch| rows(&batch.unwrap())).collect();
                        let with = patch.with.iter().flat_map(rows);
                        patch.rows.iter().zip(with).for_each(|(at, row)| stored[*at as usize] = row);
                        all.extend(stored);
                        whole += 1;
                    }
                }
            }
            Ok((all, whole))
        };
        self.runtime.block_on(async { tokio::task::spawn_blocking(work).await.unwrap() })
    }

    /// What `then` makes of each batch, and of what is in memory then.
    pub fn each<T: Send + 'static>(
        &self,
        options: &SliceOptions,
        then: impl Fn(&Merged, MergedBatch) -> T + Send + 'static,
    ) -> Result<(Vec<T>, LogTotals)> {
        let (table, slice, options) = (self.table.clone(), self.slice.clone(), options.clone());
        let timeline = self.timeline();
        let work = move || {
            let mut merged = merge(&table, &timeline, &slice, &options)?;
            let mut made = Vec::new();
            while let Some(batch) = merged.next() {
                made.push(then(&merged, batch?));
            }
            Ok((made, merged.totals()))
        };
        self.runtime.block_on(async { tokio::task::spawn_blocking(work).await.unwrap() })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub totals: LogTotals,
    pub batches: usize,
    pub updates: u64,
    pub inserts: u64,
    pub deletes: u64,
}
