//! Rows to Avro: vectors, what is refused, and the way back by the `apache-avro` crate.

use super::twin::row_text;
use super::*;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value;
use apache_avro::writer::datum::GenericDatumWriter;
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::*;
use proptest::prelude::*;
use std::sync::Arc;

/// The framed rows of a batch, without their lengths.
fn datums(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut datums = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (datum, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        datums.push(datum.to_vec());
        bytes = rest;
    }
    assert!(bytes.is_empty(), "{} bytes are left over", bytes.len());
    datums
}

/// A batch of the one field `f`.
fn batch(schema: &TableSchema, column: ArrayRef) -> RecordBatch {
    RecordBatch::try_new(schema.arrow.clone(), vec![column]).expect("the schema's type")
}

fn one(schema: &str) -> TableSchema {
    table(&record(&format!(r#"{{"name":"f","type":{schema}}}"#)))
}

fn encoded(schema: &str, column: ArrayRef) -> Result<Vec<Vec<u8>>, AvroError> {
    let schema = one(schema);
    let mut out = Vec::new();
    AvroEncoder::new(&schema)?.append_framed(&batch(&schema, column), &mut out)?;
    Ok(datums(&out))
}

fn decimals(values: &[i128], precision: u8, scale: i8) -> ArrayRef {
    let values = Decimal128Array::from(values.to_vec()).with_precision_and_scale(precision, scale);
    Arc::new(values.expect("a good type"))
}

fn bytes_decimal(precision: u8, scale: u8) -> String {
    format!(r#"{{"type":"bytes","logicalType":"decimal","precision":{precision},"scale":{scale}}}"#)
}

fn fixed_decimal(size: u8, precision: u8, scale: u8) -> String {
    let named = r#""type":"fixed","name":"D""#;
    format!(r#"{{{named},"size":{size},"logicalType":"decimal","precision":{precision},"scale":{scale}}}"#)
}

const LETTERS: &str = r#"["null",{"type":"enum","name":"E","symbols":["A","B"]}]"#;

#[test]
fn values_are_written_as_avro_says() {
    let timestamp = |unit: &str| format!(r#"["null",{{"type":"long","logicalType":"timestamp-{unit}"}}]"#);
    let (millis, micros) = (timestamp("millis"), timestamp("micros"));
    let date = r#"{"type":"int","logicalType":"date"}"#;
    let (many, small, wide) = (bytes_decimal(38, 2), fixed_decimal(2, 4, 2), fixed_decimal(18, 38, 0));
    let longs = [0, -1, 1, 63, 64, -65, 8191, 8192, (1 << 55) - 1, 1 << 55, -(1 << 55) - 1, i64::MAX, i64::MIN];
    let most = 10i128.pow(38) - 1;
    let cases: Vec<(&str, ArrayRef, &[&str])> = vec![
        ("\"boolean\"", Arc::new(BooleanArray::from(vec![true, false])), &["01", "00"]),
        ("\"int\"", Arc::new(Int32Array::from(vec![i32::MIN, -3])), &["ffffffff0f", "05"]),
        (
            "\"long\"",
            Arc::new(Int64Array::from(longs.to_vec())),
            &[
                "00",
                "01",
                "02",
                "7e",
                "8001",
                "8101",
                "fe7f",
                "808001",
                "feffffffffffff7f",
                "808080808080808001",
                "818080808080808001",
                "feffffffffffffffff01",
                "ffffffffffffffffff01",
            ],
        ),
        (r#"["null","long"]"#, Arc::new(Int64Array::from(vec![None, Some(300)])), &["00", "02d804"]),
        ("\"float\"", Arc::new(Float32Array::from(vec![0.1])), &["cdcccc3d"]),
        ("\"double\"", Arc::new(Float64Array::from(vec![0.1, f64::NAN])), &["9a9999999999b93f", "000000000000f87f"]),
        (date, Arc::new(Date32Array::from(vec![1, -1])), &["02", "01"]),
        (&millis, Arc::new(TimestampMillisecondArray::from(vec![Some(1), None]).with_timezone("UTC")), &["0202", "00"]),
        (&micros, Arc::new(TimestampMicrosecondArray::from(vec![-2]).with_timezone("UTC")), &["0203"]),
        ("\"string\"", Arc::new(StringArray::from(vec!["", "é"])), &["00", "04c3a9"]),
        (r#"["null","string"]"#, Arc::new(StringArray::from(vec![None, Some("a")])), &["00", "020261"]),
        ("\"bytes\"", Arc::new(BinaryArray::from(vec![&[0xff, 0][..]])), &["04ff00"]),
        (LETTERS, Arc::new(StringArray::from(vec![Some("B"), None, Some("A")])), &["0202", "00", "0200"]),
        (
            &many,
            decimals(&[0, 1234, -1, 127, 128, -128, -129, most, -most], 38, 2),
            &[
                "0200",
                "0404d2",
                "02ff",
                "027f",
                "040080",
                "0280",
                "04ff7f",
                "204b3b4ca85a86c47a098a223fffffffff",
                "20b4c4b357a5793b85f675ddc000000001",
            ],
        ),
        (&small, decimals(&[1234, -1234, 9999], 4, 2), &["04d2", "fb2e", "270f"]),
        (
            &wide,
            decimals(&[-2, most], 38, 0),
            &["fffffffffffffffffffffffffffffffffffe", "00004b3b4ca85a86c47a098a223fffffffff"],
        ),
    ];
    for (schema, column, want) in cases {
        let want: Vec<Vec<u8>> = want.iter().map(|bytes| hex(bytes)).collect();
        assert_eq!(encoded(schema, column).expect(schema), want, "{schema}");
    }
}

#[test]
fn rows_are_framed_with_their_lengths() {
    let schema = one("\"string\"");
    let encoder = AvroEncoder::new(&schema).expect("a good schema");
    let rows = batch(&schema, Arc::new(StringArray::from(vec!["a", "", "ccc"])));
    let mut out = vec![7];
    encoder.append_framed(&rows, &mut out).expect("rows");
    assert_eq!(out, hex("07 00000002 0261 00000001 00 00000004 06636363"));
    out.clear();
    encoder.append_framed(&rows.slice(1, 2), &mut out).expect("rows of a slice");
    assert_eq!(out, hex("00000001 00 00000004 06636363"));
}

#[test]
fn values_that_cannot_be_written_name_column_and_row_and_leave_nothing() {
    let nested = r#"{"type":"array","items":{"type":"record","name":"N","fields":[{"name":"x","type":"int"}]}}"#;
    let ints: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    let nullable = Field::new("x", DataType::Int32, true);
    let structs = StructArray::new(vec![nullable].into(), vec![ints.clone()], None);
    let item = Arc::new(Field::new("element", structs.data_type().clone(), false));
    let lists = ListArray::new(item, OffsetBuffer::new(vec![0, 0, 1, 2].into()), Arc::new(structs), None);
    let (few, small) = (bytes_decimal(4, 2), fixed_decimal(2, 4, 2));
    let cases: Vec<(&str, ArrayRef, &str, usize, &str)> = vec![
        ("\"int\"", ints, "f", 1, "null, which the schema does not allow"),
        (nested, Arc::new(lists), "f[].x", 2, "null, which the schema does not allow"),
        (LETTERS, Arc::new(StringArray::from(vec![None, Some("C")])), "f", 1, "\"C\" is not a symbol"),
        (&few, decimals(&[9999, 10000], 4, 2), "f", 1, "10000 (unscaled) has more digits"),
        (&small, decimals(&[-10000], 4, 2), "f", 0, "-10000 (unscaled) has more digits"),
    ];
    for (schema, column, field, row, word) in cases {
        let schema = one(schema);
        // Arrow would refuse such a batch, were the schema its own.
        let loose = Arc::new(Schema::new(vec![Field::new("f", column.data_type().clone(), true)]));
        let rows = RecordBatch::try_new(loose, vec![column]).expect("a batch");
        let mut out = vec![7];
        let error =
            AvroEncoder::new(&schema).expect("a good schema").append_framed(&rows, &mut out).expect_err("refused");
        assert_eq!((error.code(), &out[..]), ("avro-unwritable", &[7][..]));
        let text = error.to_string();
        assert!(text.starts_with(&format!("field {field} of row {row} cannot be written as Avro: ")), "{text}");
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn batches_of_another_schema_are_refused() {
    let schema = table(&record(r#"{"name":"a","type":"int"},{"name":"b","type":["null","long"]}"#));
    let encoder = AvroEncoder::new(&schema).expect("a good schema");
    let (ints, longs): (ArrayRef, ArrayRef) =
        (Arc::new(Int32Array::from(vec![1])), Arc::new(Int64Array::from(vec![1])));
    let cases = [
        (vec![("a", ints.clone())], "1 columns, where the schema has 2 fields"),
        (vec![("b", ints.clone()), ("a", longs.clone())], "field a cannot be written as Avro: the batch has b"),
        (vec![("a", longs), ("b", ints)], "field a cannot be written as Avro: the batch has Int64"),
    ];
    for (columns, word) in cases {
        let rows = RecordBatch::try_from_iter(columns).expect("a batch");
        let error = encoder.append_framed(&rows, &mut Vec::new()).expect_err(word);
        assert!(error.code() == "avro-batch" && error.to_string().contains(word), "{word}: {error}");
    }
}

/// A record schema of any shape that tables may have, with as many kinds of types as Avro has for them.
fn any_schema() -> impl Strategy<Value = String> {
    let decimal = (1..=38u8).prop_flat_map(|precision| (Just(precision), 0..=precision, 0..=20u8, any::<bool>()));
    let leaf = prop_oneof![
        prop::sample::select(vec!["boolean", "int", "long", "float", "double", "bytes", "string"])
            .prop_map(|name| serde_json::json!(name)),
        prop::sample::select(vec![("int", "date"), ("long", "timestamp-millis"), ("long", "timestamp-micros")])
            .prop_map(|(base, logical)| serde_json::json!({"type": base, "logicalType": logical})),
        decimal.prop_map(|(precision, scale, more, fixed)| {
            // Digits fill bytes at about 2.4 a byte.
            let size = (u32::from(precision) * 5).div_ceil(12) + 1 + u32::from(more % 4);
            match fixed {
                true => serde_json::json!({"type": "fixed", "name": "D", "size": size, "logicalType": "decimal",
                    "precision": precision, "scale": scale}),
                false => serde_json::json!({"type": "bytes", "logicalType": "decimal",
                    "precision": precision, "scale": scale}),
            }
        }),
        (1..70usize).prop_map(|count| {
            let symbols: Vec<String> = (0..count).map(|i| format!("S{i}")).collect();
            serde_json::json!({"type": "enum", "name": "E", "symbols": symbols})
        }),
    ];
    let maybe = |(null, schema): (bool, serde_json::Value)| match null {
        true => serde_json::json!(["null", schema]),
        false => schema,
    };
    let fields = |schemas: Vec<serde_json::Value>| {
        let fields = schemas.iter().enumerate().map(|(i, s)| serde_json::json!({"name": format!("f{i}"), "type": s}));
        serde_json::json!({"type": "record", "name": "R", "fields": fields.collect::<Vec<_>>()})
    };
    let any_type = leaf.prop_recursive(3, 12, 4, move |inner| {
        let inner = (any::<bool>(), inner).prop_map(maybe).boxed();
        prop_oneof![
            inner.clone().prop_map(|items| serde_json::json!({"type": "array", "items": items})),
            inner.clone().prop_map(|values| serde_json::json!({"type": "map", "values": values})),
            prop::collection::vec(inner, 1..4).prop_map(fields),
        ]
    });
    prop::collection::vec((any::<bool>(), any_type).prop_map(maybe), 1..5).prop_map(move |schemas| {
        let mut schema = fields(schemas);
        let mut number = 0;
        rename(&mut schema, &mut number);
        schema.to_string()
    })
}

/// Names of types may be defined once.
fn rename(schema: &mut serde_json::Value, number: &mut usize) {
    match schema {
        serde_json::Value::Array(branches) => branches.iter_mut().for_each(|branch| rename(branch, number)),
        serde_json::Value::Object(object) => {
            if object.contains_key("name") && object.get("type").is_some_and(|t| t.is_string()) {
                object["name"] = serde_json::json!(format!("T{number}"));
                *number += 1;
            }
            if let Some(serde_json::Value::Array(fields)) = object.get_mut("fields") {
                fields.iter_mut().for_each(|field| rename(&mut field["type"], number));
            }
            ["items", "values"].iter().filter_map(|key| object.get_mut(*key).map(|s| rename(s, number))).count();
        }
        _ => {}
    }
}

proptest! {
    /// What the other crate writes and our decoder reads is what our encoder writes and the other crate reads; and what our
    /// decoder makes of it is the same batch.
    #[test]
    fn encoder_equals_its_twin(
        (schema, rows) in any_schema().prop_flat_map(|json| {
            let schema = AvroSchema::parse_str(&json).expect("a good schema");
            let rows = prop::collection::vec(super::twin::any_value(&schema, &schema), 1..8);
            (Just(json), rows)
        }),
        picked in any::<prop::sample::Index>(),
    ) {
        let table = table(&schema);
        let twin = AvroSchema::parse_str(&table.avro).expect("a good schema");
        let writer = GenericDatumWriter::builder(&twin).build().expect("a writer");
        let mut decoder = AvroDecoder::of_writer(&table, &table.avro).expect("its own schema");
        for row in &rows {
            decoder.decode(&writer.write_value_to_vec(row.clone()).expect("valid"), 0).expect("valid");
        }
        let batch = decoder.rows.flush();

        let encoder = AvroEncoder::new(&table).expect("a good schema");
        let mut out = Vec::new();
        encoder.append_framed(&batch, &mut out).expect("rows that were decoded");
        let written = datums(&out);
        prop_assert_eq!(written.len(), rows.len());
        let reader = GenericDatumReader::builder(&twin).build().expect("a reader");
        for (at, bytes) in written.iter().enumerate() {
            let mut rest = bytes.as_slice();
            let Value::Record(fields) = reader.read_value(&mut rest).expect("Avro") else { panic!("no record") };
            prop_assert!(rest.is_empty());
            for ((name, value), column) in fields.iter().zip(batch.columns()) {
                prop_assert_eq!(super::twin::text(value), row_text(column, at), "{} of {}", name, &schema);
            }
            decoder.decode(bytes, 0).expect("what was written");
        }
        prop_assert_eq!(&decoder.rows.flush(), &batch);

        let at = picked.index(rows.len());
        out.clear();
        encoder.append_framed(&batch.slice(at, batch.num_rows() - at), &mut out).expect("rows of a slice");
        prop_assert_eq!(datums(&out), &written[at..]);
    }
}
