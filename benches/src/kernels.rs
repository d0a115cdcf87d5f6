//! The kernels of a round, one core each: `cargo bench --manifest-path benches/Cargo.toml [-- NAME]`.

use arrow::array::{AsArray, RecordBatch, StringArray};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use hudi_streamer::codec::avro::{AvroDecoder, AvroEncoder};
use hudi_streamer::codec::json::JsonDecoder;
use hudi_streamer::codec::lines::{LineSplitter, LineTooLong};
use hudi_streamer::record::{KeyedBatch, PartitionColumn, precombine};
use hudi_streamer::schema::TableSchema;
use hudi_streamer::storage::Storage;
use hudi_streamer::table::InstantTime;
use hudi_streamer::table::base_file::{
    BlockWriter, BloomBuilder, BloomFilter, BloomOptions, Reader, Writer, WriterOptions,
};
use hudi_streamer::table::log_file::{AvroContent, BlockHeader, BlockKind, avro_records, encode_block};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use trips::{AVRO, BATCH};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Rows of each call.
const ROWS: usize = 16 * BATCH;

fn trips_schema() -> TableSchema {
    TableSchema::from_avro(AVRO).expect("a good schema")
}

fn batches() -> Vec<RecordBatch> {
    trips::batches(trips::fresh(0..ROWS as u64))
}

fn keys_of(batch: &RecordBatch) -> StringArray {
    batch.column(0).as_string::<i32>().clone()
}

fn json(c: &mut Criterion) {
    let mut text = String::new();
    trips::fresh(0..ROWS as u64).for_each(|trip| trip.json(&mut text));
    let mut group = c.benchmark_group("json");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("lines", |b| {
        b.iter(|| {
            let mut count = 0;
            let lines = LineSplitter::new(1 << 20).push::<LineTooLong>(text.as_bytes(), |line| {
                count += line.bytes.len();
                Ok(())
            });
            lines.expect("short lines");
            count
        });
    });
    let mut decoder = JsonDecoder::new(trips_schema().arrow, false).expect("types of JSON");
    group.bench_function("decode", |b| {
        b.iter(|| {
            for line in text.lines() {
                decoder.decode(line.as_bytes(), 0).expect("a trip");
                if decoder.rows.len() == BATCH {
                    black_box(decoder.rows.flush());
                }
            }
        });
    });
    group.finish();
}

fn avro(c: &mut Criterion) {
    let (schema, batches) = (trips_schema(), batches());
    let encoder = AvroEncoder::new(&schema).expect("a good schema");
    let mut framed = Vec::new();
    batches.iter().for_each(|batch| encoder.append_framed(batch, &mut framed).expect("trips"));
    let mut group = c.benchmark_group("avro");
    group.throughput(Throughput::Bytes((framed.len() - 4 * ROWS) as u64));
    let mut out = Vec::with_capacity(framed.len());
    group.bench_function("encode", |b| {
        b.iter(|| {
            out.clear();
            batches.iter().for_each(|batch| encoder.append_framed(batch, &mut out).expect("trips"));
            out.len()
        });
    });
    let few = schema.select(|name| ["trip_id", "ts"].contains(&name)).expect("fields");
    for (name, reader) in [("decode", &schema), ("decode key and ordering", &few)] {
        let mut decoder = AvroDecoder::of_writer(reader, &schema.avro).expect("its own schema");
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut rest = &framed[..];
                while let Some((length, tail)) = rest.split_first_chunk::<4>() {
                    let (datum, tail) = tail.split_at(u32::from_be_bytes(*length) as usize);
                    decoder.decode(datum, 0).expect("a trip");
                    rest = tail;
                }
                black_box(decoder.rows.flush());
            });
        });
    }
    group.finish();
}

fn log_block(c: &mut Criterion) {
    let (schema, batches) = (trips_schema(), batches());
    let encoder = AvroEncoder::new(&schema).expect("a good schema");
    let header = BlockHeader::of_write(&InstantTime::parse("20240101000000000").expect("an instant"), &schema.avro);
    let block = || {
        let mut content = AvroContent::new();
        for batch in &batches {
            encoder.append_framed(batch, content.buffer()).expect("trips");
            content.add(batch.num_rows() as u32);
        }
        encode_block(BlockKind::AvroData, &header, content.content()).expect("a block")
    };
    let mut content = AvroContent::new();
    batches.iter().for_each(|batch| encoder.append_framed(batch, content.buffer()).expect("trips"));
    content.add(ROWS as u32);
    let content = content.content().to_vec();
    let mut group = c.benchmark_group("log block");
    group.throughput(Throughput::Elements(ROWS as u64));
    group.bench_function("write", |b| b.iter(block));
    let mut decoder = AvroDecoder::of_writer(&schema, &schema.avro).expect("its own schema");
    group.bench_function("read", |b| {
        b.iter(|| {
            for record in avro_records(&content).expect("a block") {
                decoder.decode(record.expect("a record"), 0).expect("a trip");
            }
            black_box(decoder.rows.flush());
        });
    });
    group.finish();
}

fn keyed(batch: &RecordBatch) -> KeyedBatch {
    KeyedBatch {
        rows: batch.clone(),
        keys: keys_of(batch),
        partitions: PartitionColumn { ids: vec![0; batch.num_rows()], paths: Arc::new(vec![String::new()]) },
        ordering: Some(batch.column(2).clone()),
        deleted: None,
    }
}

fn keys(c: &mut Criterion) {
    let batches = batches();
    let rows = trips::fresh(0..ROWS as u64).chain(trips::changed(ROWS as u64 / 10, ROWS as u64, 1));
    let repeating: Vec<KeyedBatch> = trips::batches(rows).iter().map(keyed).collect();
    let mut group = c.benchmark_group("keys");
    group.throughput(Throughput::Elements(ROWS as u64));
    group.bench_function("precombine", |b| {
        b.iter_batched(
            || repeating.clone(),
            |mut batches| precombine(&mut batches, false).expect("trips").dropped,
            BatchSize::LargeInput,
        );
    });
    let keys: Vec<StringArray> = batches.iter().map(keys_of).collect();
    let fill = || -> BloomFilter {
        let mut filter = BloomBuilder::new(&bloom());
        keys.iter().for_each(|keys| filter.add_all(keys));
        filter.finish()
    };
    group.bench_function("bloom filter, fill", |b| b.iter(fill));
    let filter = fill();
    group.bench_function("bloom filter, ask for what is there", |b| {
        b.iter(|| keys.iter().flat_map(|keys| keys.iter().flatten()).filter(|key| filter.might_contain(key)).count());
    });
    group.finish();
}

fn bloom() -> BloomOptions {
    BloomOptions { num_entries: 60_000, fpp: 1e-9, dynamic: true, dynamic_max_entries: 100_000 }
}

fn options(stored: &TableSchema, compression: Compression) -> WriterOptions {
    WriterOptions {
        compression,
        block_size: 120 << 20,
        page_size: 1 << 20,
        dictionary_enabled: true,
        bloom: bloom(),
        avro_schema: stored.avro.clone(),
        schema: stored.arrow.clone(),
    }
}

/// The trips as they are stored.
fn stored() -> (TableSchema, Vec<RecordBatch>) {
    let schema = trips_schema().with_meta_columns();
    let text = |make: &dyn Fn(usize) -> String| -> arrow::array::ArrayRef {
        Arc::new(StringArray::from_iter_values((0..BATCH).map(make)))
    };
    let batches = batches().into_iter().enumerate().map(|(at, batch)| {
        let meta = [
            text(&|_| "20240101000000000".to_owned()),
            text(&|row| format!("20240101000000000_0_{}", at * BATCH + row)),
            batch.column(0).clone(),
            text(&|_| "2024-03-01".to_owned()),
            text(&|_| "00000000-0000-4000-8000-000000000000-0_3-0-0_20240101000000000.parquet".to_owned()),
        ];
        let columns = meta.into_iter().chain(batch.columns().iter().cloned()).collect();
        RecordBatch::try_new(schema.arrow.clone(), columns).expect("the schema's types")
    });
    (schema.clone(), batches.collect())
}

fn base_file(c: &mut Criterion) {
    let (schema, batches) = stored();
    let codecs = [
        ("uncompressed", Compression::UNCOMPRESSED),
        ("snappy", Compression::SNAPPY),
        ("gzip", Compression::GZIP(GzipLevel::default())),
        ("zstd", Compression::ZSTD(ZstdLevel::default())),
    ];
    let folder = std::env::temp_dir().join(format!("kernels-{}", std::process::id()));
    let storage = Storage::open(&folder.to_string_lossy()).expect("a folder");
    let runtime = tokio::runtime::Builder::new_multi_thread().build().expect("threads");
    let _on = runtime.enter();
    let mut group = c.benchmark_group("base file");
    group.throughput(Throughput::Elements(ROWS as u64)).sample_size(10);
    for (name, codec) in codecs {
        let options = options(&schema, codec);
        group.bench_function(format!("write, {name}"), |b| {
            b.iter(|| {
                let mut writer = BlockWriter::begin("memory".into(), &options).expect("a schema");
                batches.iter().for_each(|batch| writer.write(batch).expect("trips"));
                writer.finish().expect("a file").len()
            });
        });
        let mut writer = Writer::create(&storage, name, &options).expect("a file");
        batches.iter().for_each(|batch| writer.write(batch).expect("trips"));
        let size = writer.finish().expect("a file").size;
        group.bench_function(format!("read, {name}"), |b| {
            b.iter(|| {
                let reader = Reader::open(&storage, name, size).expect("a base file");
                reader
                    .batches(None, BATCH)
                    .expect("columns")
                    .map(|batch| batch.expect("rows").num_rows())
                    .sum::<usize>()
            });
        });
        group.bench_function(format!("read keys, {name}"), |b| {
            b.iter(|| Reader::open(&storage, name, size).and_then(|reader| reader.record_keys()).expect("keys").len());
        });
    }
    group.finish();
    std::fs::remove_dir_all(folder).expect("our own folder");
}

/// What a page of strings costs: libdeflate, by which we write gzip, at its levels, and zlib's two that others use.
fn page(c: &mut Criterion) {
    let mut page = Vec::new();
    for batch in batches() {
        batch.column(3).as_string::<i32>().iter().flatten().for_each(|text| {
            page.extend((text.len() as u32).to_le_bytes());
            page.extend(text.as_bytes());
        });
    }
    page.truncate(1 << 20);
    let mut group = c.benchmark_group("page");
    group.throughput(Throughput::Bytes(page.len() as u64));
    for level in [1, 3, 6] {
        let level_of = libdeflater::CompressionLvl::new(level).expect("a level");
        let mut compressor = libdeflater::Compressor::new(level_of);
        let mut out = vec![0; compressor.gzip_compress_bound(page.len())];
        group.bench_function(format!("libdeflate {level}"), |b| {
            b.iter(|| compressor.gzip_compress(&page, &mut out).expect("room"));
        });
    }
    for level in [3, 6] {
        group.bench_function(format!("zlib-rs {level}"), |b| {
            b.iter(|| {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
                encoder.write_all(&page).expect("memory");
                encoder.finish().expect("memory").len()
            });
        });
    }
    group.finish();
}

criterion_group!(kernels, json, avro, log_block, keys, base_file, page);
criterion_main!(kernels);
