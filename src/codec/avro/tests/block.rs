//! Records of log blocks: with meta columns, of fewer fields than were written, of more and wider ones.

use super::*;
use crate::schema::{EvolutionOptions, deduce_writer_schema, rewrite};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Float64Type, Int32Type, TimeUnit};
use std::sync::Arc;

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

/// Whatever schema a commit may bring, the rows that are in logs by then can be read, and are those that a base file has.
#[test]
fn what_evolution_allows_can_be_read_from_logs() {
    let long = [i64::MIN, -9_007_199_254_740_993, 16_777_217, i64::MAX];
    let utc = |unit| DataType::Timestamp(unit, Some("UTC".into()));
    let decimal = |p: u8| {
        let digits = 10i128.pow(p.into()) - 1;
        let values = Decimal128Array::from(vec![-digits, 0, 1, digits]);
        Arc::new(values.with_precision_and_scale(p, 2).expect("a type of decimals")) as ArrayRef
    };
    let times = |unit| arrow::compute::cast(&Int64Array::from(vec![-1, 0, 1, 1 << 40]), &utc(unit)).expect("times");
    let texts = |texts: [&str; 4]| Arc::new(StringArray::from(texts.to_vec())) as ArrayRef;
    // Each type with four values of it.
    let types: [(&str, ArrayRef); 15] = [
        (r#""boolean""#, Arc::new(BooleanArray::from(vec![true, false, true, false]))),
        (r#""int""#, Arc::new(Int32Array::from(vec![i32::MIN, -1, 16_777_217, i32::MAX]))),
        (r#""long""#, Arc::new(Int64Array::from(long.to_vec()))),
        (r#""float""#, Arc::new(Float32Array::from(vec![f32::MIN, 0.1, f32::INFINITY, 16_777_216.0]))),
        (r#""double""#, Arc::new(Float64Array::from(vec![f64::MIN, 0.1, f64::INFINITY, 5e-324]))),
        (r#""string""#, texts(["", "a", "é", "1"])),
        (r#""bytes""#, Arc::new(BinaryArray::from(vec![&b""[..], b"a", b"\xff", b"1"]))),
        (r#"{"type":"int","logicalType":"date"}"#, Arc::new(Date32Array::from(vec![-1, 0, 1, 20_000]))),
        (r#"{"type":"long","logicalType":"timestamp-millis"}"#, times(TimeUnit::Millisecond)),
        (r#"{"type":"long","logicalType":"timestamp-micros"}"#, times(TimeUnit::Microsecond)),
        (r#"{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}"#, decimal(9)),
        (r#"{"type":"bytes","logicalType":"decimal","precision":20,"scale":2}"#, decimal(20)),
        (r#"{"type":"fixed","name":"D","size":9,"logicalType":"decimal","precision":20,"scale":2}"#, decimal(20)),
        (r#"{"type":"enum","name":"E","symbols":["a","b"]}"#, texts(["a", "b", "b", "a"])),
        (r#"{"type":"enum","name":"E","symbols":["b","c"]}"#, texts(["c", "b", "b", "c"])),
    ];
    // By itself, with nulls, and in what holds others.
    let placed = |kind: &str, place: usize| {
        let field = match place {
            0 => kind.to_owned(),
            1 => format!(r#"["null",{kind}]"#),
            2 => format!(r#"{{"type":"record","name":"In","fields":[{{"name":"g","type":{kind}}}]}}"#),
            3 => format!(r#"{{"type":"array","items":{kind}}}"#),
            _ => format!(r#"{{"type":"map","values":{kind}}}"#),
        };
        table(&record(&format!(r#"{{"name":"f","type":{field}}}"#)))
    };
    let rows = |schema: &TableSchema, values: &ArrayRef| {
        let offsets = OffsetBuffer::from_lengths([1; 4]);
        let column: ArrayRef = match schema.arrow.field(0).data_type() {
            DataType::Struct(fields) => Arc::new(StructArray::new(fields.clone(), vec![values.clone()], None)),
            DataType::List(item) => Arc::new(ListArray::new(item.clone(), offsets, values.clone(), None)),
            DataType::Map(entries, sorted) => {
                let DataType::Struct(pair) = entries.data_type() else { panic!("entries are pairs") };
                let pairs = StructArray::new(pair.clone(), vec![texts(["k"; 4]), values.clone()], None);
                Arc::new(MapArray::new(entries.clone(), offsets, pairs, None, *sorted))
            }
            _ => values.clone(),
        };
        RecordBatch::try_new(schema.arrow.clone(), vec![column]).expect("rows of the schema")
    };
    let mut allowed = std::collections::BTreeSet::new();
    for (before, values) in &types {
        for (incoming, _) in &types {
            for (place, now) in (0..5).flat_map(|place| [(place, place), (place, usize::from(place == 0))]) {
                let (old, new) = (placed(before, place), placed(incoming, now));
                let Ok(merged) = deduce_writer_schema(&new, Some(&old), EvolutionOptions::default()) else { continue };
                let rows = rows(&old, values);
                let mut bytes = Vec::new();
                AvroEncoder::new(&old).expect(before).append_framed(&rows, &mut bytes).expect("rows that fit");
                let case = format!("{before} to {incoming}, {place} to {now}");
                let mut decoder = AvroDecoder::of_writer(&merged, &old.avro).expect(&case);
                let mut rest = &bytes[..];
                while let Some((length, behind)) = rest.split_first_chunk() {
                    let (datum, behind) = behind.split_at(u32::from_be_bytes(*length) as usize);
                    assert_eq!(decoder.decode(datum, 0), Ok(Decoded::Row), "{case}");
                    rest = behind;
                }
                assert_eq!(decoder.rows.flush(), rewrite(&rows, &merged.arrow).expect(&case), "{case}");
                allowed.extend((before != incoming).then_some((*before, *incoming)));
            }
        }
    }
    for pair in [("int", "float"), ("int", "double"), ("long", "float"), ("long", "double"), ("float", "double")] {
        let quoted = |(before, now): (&str, &str)| (format!("\"{before}\""), format!("\"{now}\""));
        let (before, now) = quoted(pair);
        assert!(allowed.contains(&(before.as_str(), now.as_str())), "{before} to {now}: {allowed:?}");
    }
}

/// Of what a source brings nothing is rounded.
#[test]
fn incoming_numbers_stay_exact_where_stored_ones_are_rounded() {
    let [long, double] = ["long", "double"].map(|kind| record(&format!(r#"{{"name":"f","type":"{kind}"}}"#)));
    let mut number = Vec::new();
    let rows: ArrayRef = Arc::new(Int64Array::from(vec![9_007_199_254_740_993]));
    let rows = RecordBatch::try_new(table(&long).arrow, vec![rows]).expect("a row");
    AvroEncoder::new(&table(&long)).expect("a good schema").append_framed(&rows, &mut number).expect("a row");

    let mut stored = AvroDecoder::of_writer(&table(&double), &long).expect("wider");
    assert_eq!(stored.decode(&number[4..], 0), Ok(Decoded::Row));
    assert_eq!(stored.rows.flush().column(0).as_primitive::<Float64Type>().value(0), 9_007_199_254_740_992.0);

    let mut incoming = decoder(r#""long""#, r#""double""#);
    let error = incoming.decode(&framed(1, &number[4..]), 0).expect_err("it would be rounded");
    assert_eq!(error.code(), "avro-value");
}
