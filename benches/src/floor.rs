//! What the work of a round costs at least, with our decoder and our encoder: a bare loop on all cores, nothing kept.
//!
//! ```text
//! floor encode FILE...           decode JSON trips, add the meta columns, encode: the floor of a bulk insert
//! floor rewrite TABLE            read all base files and encode them again: of an upsert into all file groups, of a compaction
//! floor consume BROKER TOPIC N   N messages of a topic, decoded and encoded: of a Kafka upsert
//! floor trips ROWS FILES PREFIX  makes PREFIX-0.json … for tables larger than those of `tests/peers/bench/data`
//! ```
//!
//! No keys, no bloom filter, no partitions, no storage, no commit. Whoever calls it measures the process.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use hudi_streamer::codec::json::JsonDecoder;
use hudi_streamer::codec::lines::{LineSplitter, LineTooLong};
use hudi_streamer::schema::TableSchema;
use hudi_streamer::storage::Storage;
use hudi_streamer::table::base_file::{BlockWriter, BloomOptions, Reader, WriterOptions};
use parquet::basic::{Compression, GzipLevel};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use trips::{AVRO, BATCH};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let rows = match words[..] {
        ["encode", ref files @ ..] => on_all_cores(files.iter().map(PathBuf::from).collect(), |file| encode(&file))?,
        ["rewrite", table] => rewrite(Path::new(table))?,
        ["consume", broker, topic, rows] => consume(broker, topic, rows.parse()?)?,
        ["trips", rows, files, prefix] => make_trips(rows.parse()?, files.parse()?, prefix)?,
        _ => {
            return Err(
                "floor encode FILE... | rewrite TABLE | consume BROKER TOPIC N | trips ROWS FILES PREFIX".into()
            );
        }
    };
    println!("{rows}");
    Ok(())
}

/// Sums what `work` returns for each task; a free core takes the next one.
fn on_all_cores<T: Send>(tasks: Vec<T>, work: impl Fn(T) -> Result<usize, Failure> + Sync) -> Result<usize, Failure> {
    let cores = std::thread::available_parallelism()?.get();
    let tasks = Mutex::new(VecDeque::from(tasks));
    let next = || tasks.lock().expect("no panic").pop_front();
    std::thread::scope(|scope| {
        let one_core = || {
            let mut sum = 0;
            while let Some(task) = next() {
                sum += work(task)?;
            }
            Ok(sum)
        };
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(one_core)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    })
}

fn encode(file: &Path) -> Result<usize, Failure> {
    let mut encoding = Encoding::begin()?;
    let mut lines = LineSplitter::new(1 << 20);
    let (mut file, mut chunk) = (File::open(file)?, vec![0; 1 << 20]);
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            break;
        }
        lines.push::<LineFailure>(&chunk[..read], |line| Ok(encoding.add(line.bytes)?))?;
    }
    encoding.finish()
}

/// The splitter wants an error of its own to become the caller's.
#[derive(Debug)]
struct LineFailure(Failure);

impl From<LineTooLong> for LineFailure {
    fn from(e: LineTooLong) -> Self {
        LineFailure(e.into())
    }
}

impl From<Failure> for LineFailure {
    fn from(e: Failure) -> Self {
        LineFailure(e)
    }
}

impl From<LineFailure> for Failure {
    fn from(e: LineFailure) -> Self {
        e.0
    }
}

/// JSON in, a base file's bytes out, which are thrown away.
struct Encoding {
    decoder: JsonDecoder,
    file: BlockWriter,
    schema: SchemaRef,
    rows: usize,
}

impl Encoding {
    fn begin() -> Result<Encoding, Failure> {
        let trips = TableSchema::from_avro(AVRO)?;
        let stored = trips.with_meta_columns();
        let file = BlockWriter::begin("floor".into(), &options(&stored))?;
        Ok(Encoding { decoder: JsonDecoder::new(trips.arrow, false)?, file, schema: stored.arrow, rows: 0 })
    }

    fn add(&mut self, message: &[u8]) -> Result<(), Failure> {
        self.decoder.decode(message, 0)?;
        if self.decoder.rows.len() == BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let rows = self.decoder.rows.flush();
        self.file.write(&with_meta(&rows, &self.schema, self.rows)?)?;
        self.rows += rows.num_rows();
        Ok(())
    }

    fn finish(mut self) -> Result<usize, Failure> {
        self.flush()?;
        std::hint::black_box(self.file.finish()?);
        Ok(self.rows)
    }
}

fn with_meta(rows: &RecordBatch, schema: &SchemaRef, from: usize) -> Result<RecordBatch, Failure> {
    let count = rows.num_rows();
    let same = |text: &str| -> ArrayRef { Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, count))) };
    let numbers = (from..from + count).map(|row| format!("20240315123456789_0_{row}"));
    let key: ArrayRef = rows.column(0).clone();
    let meta = [
        same("20240315123456789"),
        Arc::new(StringArray::from_iter_values(numbers)),
        key,
        same("2024-03-15"),
        same("6f1f6c0e-6d2f-4b8e-9d3c-0c5d7c2b9a10-0_0-21-33_20240315123456789.parquet"),
    ];
    Ok(RecordBatch::try_new(schema.clone(), meta.into_iter().chain(rows.columns().iter().cloned()).collect())?)
}

/// As Hudi's defaults have it.
fn options(stored: &TableSchema) -> WriterOptions {
    WriterOptions {
        compression: Compression::GZIP(GzipLevel::default()),
        block_size: 120 << 20,
        page_size: 1 << 20,
        dictionary_enabled: true,
        bloom: BloomOptions { num_entries: 60_000, fpp: 1e-9, dynamic: true, dynamic_max_entries: 100_000 },
        avro_schema: stored.avro.clone(),
        schema: stored.arrow.clone(),
    }
}

fn rewrite(table: &Path) -> Result<usize, Failure> {
    let storage = Storage::open(&table.to_string_lossy())?;
    let mut files = Vec::new();
    for folder in std::fs::read_dir(table)? {
        let folder = folder?.path();
        if folder.is_dir() && !folder.ends_with(".hoodie") {
            files.extend(std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?);
        }
    }
    files.retain(|file| file.file_name().to_string_lossy().ends_with(".parquet"));
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    let stored = TableSchema::from_avro(AVRO)?.with_meta_columns();
    on_all_cores(files, |file| {
        let _on = runtime.enter();
        let path = file.path();
        let path = path.strip_prefix(table)?.to_string_lossy().into_owned();
        let reader = Reader::open(&storage, &path, file.metadata()?.len())?;
        let mut to = BlockWriter::begin(path, &options(&stored))?;
        let mut rows = 0;
        for batch in reader.batches(None, BATCH)? {
            let batch = batch?;
            rows += batch.num_rows();
            to.write(&batch)?;
        }
        std::hint::black_box(to.finish()?);
        Ok(rows)
    })
}

/// Each core has a consumer with its share of the partitions.
fn consume(broker: &str, topic: &str, rows: usize) -> Result<usize, Failure> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", broker).set("group.id", "floor").set("enable.auto.commit", "false");
    let asking: BaseConsumer = config.create()?;
    let metadata = asking.fetch_metadata(Some(topic), Duration::from_secs(10))?;
    let partitions: Vec<i32> = metadata.topics().iter().flat_map(|t| t.partitions()).map(|p| p.id()).collect();
    let cores = std::thread::available_parallelism()?.get().min(partitions.len());
    let shares: Vec<Vec<i32>> =
        (0..cores).map(|core| partitions.iter().copied().skip(core).step_by(cores).collect()).collect();
    let left = std::sync::atomic::AtomicIsize::new(rows as isize);
    on_all_cores(shares, |share| {
        let consumer: BaseConsumer = config.create()?;
        let mut assigned = TopicPartitionList::new();
        for partition in share {
            assigned.add_partition_offset(topic, partition, Offset::Beginning)?;
        }
        consumer.assign(&assigned)?;
        let mut encoding = Encoding::begin()?;
        while left.load(std::sync::atomic::Ordering::Relaxed) > 0 {
            let Some(message) = consumer.poll(Duration::from_millis(20)) else { continue };
            let message = message?;
            encoding.add(message.payload().ok_or("a message without a value")?)?;
            left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        }
        encoding.finish()
    })
}

fn make_trips(rows: u64, files: u64, prefix: &str) -> Result<usize, Failure> {
    on_all_cores((0..files).collect(), |file| {
        let numbers = rows * file / files..rows * (file + 1) / files;
        let mut to = std::io::BufWriter::new(File::create(format!("{prefix}-{file}.json"))?);
        let mut line = String::new();
        let mut made = 0;
        for trip in trips::fresh(numbers) {
            line.clear();
            trip.json(&mut line);
            to.write_all(line.as_bytes())?;
            made += 1;
        }
        to.flush()?;
        Ok(made)
    })
}
