//! What records of which writers become, in vectors; `twin` compares with another decoder.

use super::*;
use crate::codec::POSITION_COLUMN;
use arrow::array::*;
use arrow::datatypes::Int64Type;

mod block;
mod encode;
mod errors;
mod twin;
mod types;

/// Bytes of a text in hex.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn record(fields: &str) -> String {
    format!(r#"{{"type":"record","name":"R","namespace":"n","fields":[{fields}]}}"#)
}

fn table(schema: &str) -> TableSchema {
    TableSchema::from_avro(schema).expect(schema)
}

/// A decoder for one field `f`, of which schema 1 is the writer's.
fn decoder(writer: &str, reader: &str) -> AvroDecoder {
    let field = |schema: &str| record(&format!(r#"{{"name":"f","type":{schema}}}"#));
    let mut decoder = AvroDecoder::new(&table(&field(reader)), Framing::Confluent, false).expect(reader);
    decoder.learn(1, &field(writer)).expect(writer);
    decoder
}

fn framed(id: u32, record: &[u8]) -> Vec<u8> {
    [&[0][..], &id.to_be_bytes(), record].concat()
}

const TRIP_11: &str = r#"{"type":"record","name":"Trip","namespace":"demo","fields":[{"name":"id","type":"string"},
  {"name":"ts","type":"long"},{"name":"qty","type":"int"},
  {"name":"addr","type":{"type":"record","name":"Addr","fields":[{"name":"city","type":"string"}]}}]}"#;
const TRIP_12: &str = r#"{"type":"record","name":"Trip","namespace":"demo","fields":[{"name":"id","type":"string"},
  {"name":"ts","type":"long"},{"name":"note","type":["null","string"],"default":null},{"name":"qty","type":"long"},
  {"name":"addr","type":{"type":"record","name":"Addr","fields":[{"name":"city","type":"string"},
  {"name":"zip","type":["null","string"],"default":null}]}}]}"#;
const TRIPS: [&str; 4] = [
    "000000000b047430020e064f7275",
    "000000000c0474310402086c61746580c8afa0250656657802043430",
    "000000000b0474320601064f7275",
    "000000000c047433080000064c696d00",
];

fn trips(reader: &str) -> AvroDecoder {
    let mut decoder = AvroDecoder::new(&table(reader), Framing::Confluent, true).expect("a good schema");
    decoder.learn(12, TRIP_12).ok();
    decoder.learn(11, TRIP_11).ok();
    decoder
}

fn texts(array: &ArrayRef) -> Vec<Option<&str>> {
    array.as_string::<i32>().iter().collect()
}

#[test]
fn records_of_old_and_new_writers_stand_in_the_order_of_the_topic() {
    let mut decoder = trips(TRIP_12);
    for (offset, trip) in TRIPS.iter().enumerate() {
        assert_eq!(decoder.decode(&hex(trip), offset as u64).expect(trip), Decoded::Row);
    }
    assert_eq!((decoder.rows.len(), decoder.rows.bytes()), (4, 72));
    let batch = decoder.rows.flush();
    assert_eq!((decoder.rows.len(), decoder.rows.bytes(), batch.schema()), (0, 0, decoder.rows.schema().clone()));
    let column = |name: &str| batch.column_by_name(name).expect(name);
    assert_eq!(texts(column("id")), [Some("t0"), Some("t1"), Some("t2"), Some("t3")]);
    assert_eq!(column("ts").as_primitive::<Int64Type>().values(), &[1, 2, 3, 4]);
    assert_eq!(texts(column("note")), [None, Some("late"), None, None]);
    assert_eq!(column("qty").as_primitive::<Int64Type>().values(), &[7, 5_000_000_000, -1, 0]);
    let addr = column("addr").as_struct();
    assert_eq!(texts(addr.column(0)), [Some("Oru"), Some("Vex"), Some("Oru"), Some("Lim")]);
    assert_eq!(texts(addr.column(1)), [None, Some("40"), None, None]);
    assert_eq!(column(POSITION_COLUMN).as_primitive::<arrow::datatypes::UInt64Type>().values(), &[0, 1, 2, 3]);
}

#[test]
fn a_reader_that_stays_behind_takes_what_fits_it() {
    let mut decoder = trips(TRIP_11);
    decoder.decode(&hex(TRIPS[0]), 0).expect("its own schema");
    for trip in [TRIPS[1], TRIPS[3]] {
        let error = decoder.decode(&hex(trip), 1).expect_err("long into int, whatever the value");
        assert_eq!(error.code(), "avro-schema-mismatch");
        let text = error.to_string();
        assert!(text.contains("field qty of schema id 12: long does not fit the reading schema's int"), "{text}");
    }
    assert_eq!(decoder.rows.flush().num_rows(), 1);

    let mut decoder = trips(&TRIP_11.replace(r#""int""#, r#""long""#));
    TRIPS.iter().for_each(|trip| assert_eq!(decoder.decode(&hex(trip), 0), Ok(Decoded::Row), "{trip}"));
    let batch = decoder.rows.flush();
    assert_eq!(batch.num_columns(), 5);
    assert_eq!(texts(batch.column(3).as_struct().column(0)), [Some("Oru"), Some("Vex"), Some("Oru"), Some("Lim")]);
}

#[test]
fn a_schema_is_asked_for_once_and_then_known() {
    let mut decoder = AvroDecoder::new(&table(TRIP_12), Framing::Confluent, false).expect("a good schema");
    assert_eq!(decoder.decode(&hex(TRIPS[0]), 0), Ok(Decoded::UnknownSchema(11)));
    assert_eq!(decoder.decode(&hex("00000000630474340a02064f7275"), 0), Ok(Decoded::UnknownSchema(99)));
    decoder.learn(11, TRIP_11).expect("fits");
    assert_eq!(decoder.decode(&hex(TRIPS[0]), 0), Ok(Decoded::Row));
    assert_eq!(decoder.rows.len(), 1);
}

/// Java's registry has let such schemas in; a writer's defaults mean nothing to who reads what it wrote.
#[test]
fn defaults_of_a_writer_need_not_be_of_their_type() {
    let mut decoder = decoder(r#""int""#, r#""int""#);
    let writer =
        record(r#"{"name":"a","type":["null","string"],"default":"null"},{"name":"f","type":"int","default":""}"#);
    decoder.learn(2, &writer).expect("usable");
    assert_eq!(decoder.decode(&framed(2, &hex("00 02")), 0), Ok(Decoded::Row));
}

#[test]
fn bare_records_are_read_as_the_source_schema_was_given() {
    // Null is the second branch, as the writer has it, though the table's schema has it first.
    let given = record(r#"{"name":"a","type":["string","null"],"default":"x"},{"name":"b","type":"int"}"#);
    let mut decoder = AvroDecoder::new(&table(&given), Framing::Bare, false).expect("a good schema");
    for bytes in ["00 0268 02", "02 04"] {
        assert_eq!(decoder.decode(&hex(bytes), 0), Ok(Decoded::Row));
    }
    let batch = decoder.rows.flush();
    assert_eq!(texts(batch.column(0)), [Some("h"), None]);
    assert_eq!(batch.column(1).as_primitive::<arrow::datatypes::Int32Type>().values(), &[1, 2]);
}
