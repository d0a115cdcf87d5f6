//! Records of log blocks: with meta columns, of fewer fields than were written, of more and wider ones.

use super::*;
use arrow::datatypes::Int32Type;

/// The bytes of a row of the demo's trips with the five meta columns: `_hoodie_file_name` is null.
fn with_meta(trip: &str) -> Vec<u8> {
    hex(&format!("02 0231 02 047331 02 047430 02 00 00 {trip}"))
}

#[test]
fn meta_columns_are_fields_like_others() {
    let table = table(TRIP_11).with_meta_columns();
    let mut decoder = AvroDecoder::of_writer(&table, &table.avro).expect("its own schema");
    let bytes = with_meta("047430020e064f7275");
    assert_eq!(decoder.decode(&bytes, 0), Ok(Decoded::Row));
    let batch = decoder.rows.flush();
    assert_eq!(batch.schema(), table.arrow);
    for (column, want) in [Some("1"), Some("s1"), Some("t0"), Some(""), None, Some("t0")].into_iter().enumerate() {
        assert_eq!(texts(batch.column(column)), [want], "column {column}");
    }
    let mut out = Vec::new();
    AvroEncoder::new(&table).expect("a good schema").append_framed(&batch, &mut out).expect("a row");
    assert_eq!(out[4..], bytes);
    decoder.decode(&bytes[..bytes.len() - 1], 0).expect_err("cut short");
    decoder.decode(&[&bytes[..], &[0]].concat(), 0).expect_err("too long");
}

#[test]
fn a_reader_of_few_fields_stops_behind_the_last_one() {
    let writer = table(TRIP_11).with_meta_columns();
    let bytes = with_meta("047430020e064f7275");
    // Keys alone, then with a data column behind all meta columns: the record is read so far.
    for (wanted, end) in [(&["_hoodie_record_key"][..], 11), (&["ts", "_hoodie_record_key"], 18)] {
        let reader = writer.select(|name| wanted.contains(&name)).expect("fields of it");
        let mut decoder = AvroDecoder::of_writer(&reader, &writer.avro).expect("fewer fields");
        decoder.decode(&bytes, 0).expect("the whole record");
        decoder.decode(&bytes[..end], 0).expect("nothing behind is looked at");
        decoder.decode(&bytes[..end - 1], 0).expect_err("cut short");
        let batch = decoder.rows.flush();
        assert_eq!(batch.num_columns(), wanted.len());
        assert_eq!(texts(batch.column_by_name("_hoodie_record_key").expect("there")), [Some("t0"); 2]);
    }
}

#[test]
fn a_reader_of_more_and_wider_fields_takes_old_blocks() {
    let reader = table(TRIP_12).with_meta_columns();
    let mut decoder = AvroDecoder::of_writer(&reader, &table(TRIP_11).with_meta_columns().avro).expect("it has grown");
    decoder.decode(&with_meta("047430020e064f7275"), 0).expect("an old record");
    // The writer may have been another, who put nulls last.
    let flink = r#"{"name":"qty","type":["int","null"]},{"name":"id","type":"string"},{"name":"ts","type":"long"},
        {"name":"addr","type":{"type":"record","name":"A","fields":[{"name":"city","type":"string"}]}}"#;
    let batch = decoder.rows.flush();
    assert_eq!(batch.column_by_name("qty").expect("there").as_primitive::<arrow::datatypes::Int64Type>().value(0), 7);
    assert_eq!(texts(batch.column_by_name("note").expect("there")), [None]);

    let reader = table(&record(r#"{"name":"qty","type":["null","int"]}"#));
    let mut decoder = AvroDecoder::of_writer(&reader, &record(flink)).expect("fewer fields");
    decoder.decode(&hex("00 0e"), 0).expect("a record");
    decoder.decode(&hex("02"), 0).expect("a record");
    let batch = decoder.rows.flush();
    assert_eq!(batch.column(0).as_primitive::<Int32Type>().iter().collect::<Vec<_>>(), [Some(7), None]);
}

#[test]
fn blocks_that_do_not_fit_say_so() {
    let narrow = table(&record(r#"{"name":"a","type":"int"}"#));
    for (writer, code, word) in [
        (record(r#"{"name":"a","type":"long"}"#), "avro-schema-mismatch", "field a of the log block's schema: long"),
        ("{".to_owned(), "avro-schema", "the log block's schema is not usable"),
    ] {
        let error = AvroDecoder::of_writer(&narrow, &writer).expect_err(word);
        assert!(error.code() == code && error.to_string().contains(word), "{word}: {error}");
    }
}
