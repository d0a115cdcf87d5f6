//! Measurements, for a release build: `cargo test --release --lib codec::avro::tests::speed -- --ignored --nocapture`. Each
//! prints what one thread does in a second of processor time, the best of a few rounds.

use super::*;
use std::hint::black_box;
use std::sync::Arc;

const BATCH: usize = 8192;
const BATCHES: usize = 50;

/// Nanoseconds that this thread has been on a processor, as Linux counts them: other work does not slow them down by much.
fn on_processor() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number")
}

/// `round` takes all batches through and returns their bytes.
fn measure(what: &str, mut round: impl FnMut() -> usize) {
    let rounds = (0..7).map(|_| {
        let started = on_processor();
        let bytes = round();
        (on_processor() - started, bytes)
    });
    let (took, bytes) = rounds.min().expect("a few rounds");
    let (took, bytes, rows) = (took as f64, bytes as f64, (BATCH * BATCHES) as f64);
    let (rate, speed, size) = (rows / took * 1e3, bytes / took * 1e3, bytes / rows);
    println!("{what}: {rate:.2} M rows/s, {speed:.0} MB/s, {size:.0} bytes a row");
}

#[test]
#[ignore = "a measurement"]
fn of_short_records_of_two_writers() {
    let mut decoder = trips(TRIP_12);
    let records: Vec<Vec<u8>> = TRIPS.iter().map(|trip| hex(trip)).collect();
    measure("decode 4 columns", || {
        for row in 0..BATCH * BATCHES {
            decoder.decode(&records[row & 3], row as u64).expect("a good record");
            if decoder.rows.len() == BATCH {
                black_box(decoder.rows.flush());
            }
        }
        BATCH * BATCHES / 4 * records.iter().map(Vec::len).sum::<usize>()
    });
}

/// Events of 12 nullable columns, as in a topic.
fn events() -> (TableSchema, RecordBatch) {
    let field = |name: &str, schema: &str| format!(r#"{{"name":"{name}","type":["null",{schema}],"default":null}}"#);
    let fields = [
        field("event_id", r#""string""#),
        field("day", r#"{"type":"int","logicalType":"date"}"#),
        field("ts", r#"{"type":"long","logicalType":"timestamp-millis"}"#),
        field("rider", r#""string""#),
        field("driver", r#""string""#),
        field("city", r#""string""#),
        field("status", r#""string""#),
        field(
            "fare",
            r#"{"type":"record","name":"Fare","fields":[{"name":"amount","type":["null","double"]},{"name":"currency","type":["null","string"]}]}"#,
        ),
        field("lat", r#""double""#),
        field("lon", r#""double""#),
        field("seats", r#""int""#),
        field("shared", r#""boolean""#),
    ];
    let schema = table(&record(&fields.join(",")));
    let rows = 0..BATCH as u64;
    // Spreads bits as a hash does.
    let mix = |row: u64| (row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let text =
        |make: &dyn Fn(u64) -> String| -> ArrayRef { Arc::new(StringArray::from_iter_values(rows.clone().map(make))) };
    let double =
        |make: &dyn Fn(u64) -> f64| -> ArrayRef { Arc::new(Float64Array::from_iter_values(rows.clone().map(make))) };
    let unit = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
    let arrow::datatypes::DataType::Struct(fare) = schema.arrow.field(7).data_type() else { panic!("a record") };
    let columns: Vec<ArrayRef> = vec![
        text(&|row| {
            format!(
                "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
                mix(row) as u32,
                row as u16,
                row % 4096,
                row % 4095,
                mix(row) >> 16
            )
        }),
        Arc::new(Date32Array::from_iter_values(rows.clone().map(|row| 19_700 + (row % 7) as i32))),
        Arc::new(
            TimestampMillisecondArray::from_iter_values(rows.clone().map(|row| 1_704_067_200_000 + row as i64))
                .with_timezone("UTC"),
        ),
        text(&|row| format!("rider-{:05}", mix(row) % 100_000)),
        text(&|row| format!("driver-{:04}", mix(row) % 10_000)),
        text(&|row| ["amsterdam", "berlin", "cairo", "delhi"][row as usize % 4].to_owned()),
        text(&|row| ["requested", "accepted", "done"][row as usize % 3].to_owned()),
        Arc::new(StructArray::new(
            fare.clone(),
            vec![double(&|row| (mix(row) % 10_000) as f64 / 100.0), text(&|_| "EUR".to_owned())],
            None,
        )),
        double(&|row| unit(mix(row)) * 180.0 - 90.0),
        double(&|row| unit(mix(row + 7)) * 360.0 - 180.0),
        Arc::new(Int32Array::from_iter(rows.clone().map(|row| (row % 10 != 0).then_some((row % 6) as i32)))),
        Arc::new(BooleanArray::from_iter(rows.clone().map(|row| Some(row % 3 == 0)))),
    ];
    let batch = RecordBatch::try_new(schema.arrow.clone(), columns).expect("the schema's types");
    (schema, batch)
}

/// The same as they are stored.
fn stored() -> (TableSchema, RecordBatch) {
    let (schema, events) = events();
    let text =
        |make: &dyn Fn(usize) -> String| -> ArrayRef { Arc::new(StringArray::from_iter_values((0..BATCH).map(make))) };
    let mut columns = vec![
        text(&|_| "20240101000000000".to_owned()),
        text(&|row| format!("20240101000000000_3_{row}")),
        events.column(0).clone(),
        text(&|_| "day=2024-01-01".to_owned()),
        text(&|_| "00000000-0000-4000-8000-000000000000-0_3-0-0_20240101000000000.parquet".to_owned()),
    ];
    columns.extend(events.columns().iter().cloned());
    let schema = schema.with_meta_columns();
    let batch = RecordBatch::try_new(schema.arrow.clone(), columns).expect("the schema's types");
    (schema, batch)
}

#[test]
#[ignore = "a measurement"]
fn of_log_blocks() {
    for (what, (schema, batch)) in [("12 columns", events()), ("12 + 5 columns", stored())] {
        let encoder = AvroEncoder::new(&schema).expect("a good schema");
        let mut out = Vec::new();
        measure(&format!("encode {what}"), || {
            (0..BATCHES)
                .map(|_| {
                    out.clear();
                    encoder.append_framed(&batch, &mut out).expect("rows");
                    black_box(&out).len() - 4 * BATCH
                })
                .sum()
        });
        let framed = out;
        let readers = [
            ("all", schema.clone()),
            (
                "the key, the first column and ts",
                schema.select(|n| ["_hoodie_record_key", "event_id", "ts"].contains(&n)).expect("fields"),
            ),
        ];
        for (of, reader) in readers {
            let mut decoder = AvroDecoder::of_writer(&reader, &schema.avro).expect("its own schema");
            measure(&format!("decode {what}, {of}"), || {
                for _ in 0..BATCHES {
                    let mut rest = &framed[..];
                    while let Some((length, tail)) = rest.split_first_chunk::<4>() {
                        let (datum, tail) = tail.split_at(u32::from_be_bytes(*length) as usize);
                        decoder.decode(datum, 0).expect("a record");
                        rest = tail;
                    }
                    black_box(decoder.rows.flush());
                }
                BATCHES * (framed.len() - 4 * BATCH)
            });
        }
    }
}
