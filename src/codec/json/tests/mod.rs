mod twin;
mod values;

use super::*;
use crate::codec::rows::MAX_BATCH_BYTES;
use arrow::array::{RecordBatch, UInt64Array};
use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use std::collections::HashMap;
use std::sync::Arc;

fn field(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

fn decoder(fields: Vec<Field>) -> JsonDecoder {
    JsonDecoder::new(Arc::new(Schema::new(fields)), false).expect("a schema that JSON can fill")
}

/// Rows of a batch, each cell as Arrow prints it.
fn cells(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("null");
    let formatters: Vec<_> =
        batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).expect("a printable type")).collect();
    (0..batch.num_rows()).map(|i| formatters.iter().map(|f| f.value(i).to_string()).collect()).collect()
}

/// The one row that `record` becomes.
fn row(fields: Vec<Field>, record: &str) -> Result<Vec<String>, JsonError> {
    let mut decoder = decoder(fields);
    decoder.decode(record.as_bytes(), 0)?;
    Ok(cells(&decoder.rows.flush()).remove(0))
}

/// What field `f` holds after `{"f":value}`, or the message without the field and the value.
fn cell(field: &Field, value: &str) -> Result<String, String> {
    let field = field.clone().with_name("f");
    match row(vec![field], &format!("{{\"f\":{value}}}")) {
        Ok(cells) => Ok(cells.into_iter().next().expect("one column")),
        Err(JsonError::Value { field, why, .. }) => Err(format!("{field} {why}")),
        Err(other) => Err(other.to_string()),
    }
}

/// `want`: `Ok` the cell, `Err` the message.
fn check(data_type: DataType, cases: &[(&str, Result<&str, &str>)]) {
    check_field(&field("f", data_type), cases);
}

fn check_field(field: &Field, cases: &[(&str, Result<&str, &str>)]) {
    for (value, want) in cases {
        let got = cell(field, value);
        assert_eq!(got.as_deref().map_err(String::as_str), *want, "{value} as {}", field.data_type());
    }
}

fn map(value: Field) -> DataType {
    let pair = Fields::from(vec![Field::new("key", DataType::Utf8, false), value.with_name("value")]);
    DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(pair), false)), false)
}

/// Every type has something to put there that is no null.
#[test]
fn a_row_of_no_meaning_keeps_its_place() {
    let there = |name: &str, data_type: DataType| Field::new(name, data_type, false);
    let symbols = [(crate::schema::ENUM_SYMBOLS.to_string(), r#"["A","B"]"#.to_string())];
    let inner = Fields::from(vec![there("i", DataType::Int32), field("n", DataType::Int32)]);
    let fields = vec![
        there("s", DataType::Utf8),
        there("e", DataType::Utf8).with_metadata(HashMap::from(symbols)),
        there("b", DataType::Boolean),
        there("d", DataType::Float64),
        there("dec", DataType::Decimal128(6, 2)),
        there("t", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
        there("x", DataType::Binary),
        there("f", DataType::FixedSizeBinary(2)),
        there("l", DataType::List(Arc::new(there("item", DataType::Int64)))),
        there("m", map(there("value", DataType::Int64))),
        there("r", DataType::Struct(inner.clone())),
        field("o", DataType::Struct(inner)),
    ];
    let mut decoder = JsonDecoder::new(Arc::new(Schema::new(fields)), true).expect("a schema that JSON can fill");
    let record = br#"{"s":"a","e":"B","b":true,"d":1,"dec":1,"t":1,"x":"a","f":[1,2],"l":[1],"m":{"k":1},"r":{"i":1}}"#;
    decoder.decode(record, 7).expect("a record");
    decoder.rows.push_default(8);
    decoder.decode(b"{", 9).expect_err("half a record");
    decoder.decode(record, 10).expect("a record");
    assert_eq!(decoder.rows.len(), 3);
    let rows = cells(&decoder.rows.flush());
    let want = [
        "",
        "A",
        "false",
        "0.0",
        "0.00",
        "1970-01-01T00:00:00Z",
        "",
        "0000",
        "[]",
        "{}",
        "{i: 0, n: 0}",
        "{i: 0, n: 0}",
        "8",
    ];
    assert_eq!(rows[1], want);
    assert_eq!(rows[0][..12], rows[2][..12]);
    assert_eq!((rows[0][12].as_str(), rows[2][12].as_str()), ("7", "10"));
}

#[test]
fn nested_values_and_where_they_go_wrong() {
    let strict = |t| Field::new("element", t, false);
    let inner = DataType::Struct(vec![field("c", DataType::Int32), Field::new("d", DataType::Utf8, false)].into());
    check(
        DataType::Struct(vec![field("b", DataType::List(Arc::new(field("element", inner))))].into()),
        &[
            (r#"{"b":[{"c":1,"d":"x"},null,{"d":"y"}]}"#, Ok("{b: [{c: 1, d: x}, null, {c: null, d: y}]}")),
            (r#"{"b":[]}"#, Ok("{b: []}")),
            ("{}", Ok("{b: null}")),
            ("null", Ok("null")),
            (r#"{"b":[{"d":"x"},{"c":"x","d":""}]}"#, Err("f.b[1].c is not an int")),
            (r#"{"b":[{"c":1}]}"#, Err("field f.b[0].d is missing, and the schema does not let it be null")),
            (r#"{"b":{"c":1}}"#, Err("f.b is not an array")),
            (r#"{"b":1}"#, Err("f.b is not an array")),
            (r#"{"b":[1]}"#, Err("f.b[0] is not an object")),
            ("[]", Err("f is not an object")),
            (r#""{}""#, Err("f is not an object")),
            (r#"{"b":[1"#, Err("f.b[0] is not an object")),
            (r#"{"b":[,]}"#, Err("not a JSON object: expected a value, found ',' at byte 12")),
        ],
    );
    check(
        DataType::List(Arc::new(strict(DataType::Int64))),
        &[("[1,2]", Ok("[1, 2]")), ("[1,null]", Err("f[1] is not allowed by the schema"))],
    );
    check(
        map(strict(DataType::Int64)),
        &[
            (r#"{"x":1,"y":2}"#, Ok("{x: 1, y: 2}")),
            ("{}", Ok("{}")),
            (r#"{"a":1,"b":2,"\u0061":3,"c":4,"b":5}"#, Ok("{a: 3, c: 4, b: 5}")),
            (r#"{"x":null}"#, Err(r#"f["x"] is not allowed by the schema"#)),
            ("[]", Err("f is not an object")),
        ],
    );
}

#[test]
fn objects_may_be_written_in_any_way() {
    let fields = || vec![field("a", DataType::Int32), field("é\"", DataType::Utf8), field("z", DataType::Boolean)];
    let cases = [
        ("in order", r#"{"a":1,"é\"":"x","z":true}"#, ["1", "x", "true"]),
        ("in another order", r#"{"z":true,"é\"":"x","a":1}"#, ["1", "x", "true"]),
        ("with white space", " \t\r\n{ \"z\" : true ,\n\"a\" :\t1 , \"é\\\"\" : \"x\" } \n", ["1", "x", "true"]),
        ("names escaped", r#"{"\u0061":1,"\u00E9\u0022":"x","\u007a":true}"#, ["1", "x", "true"]),
        ("missing", "{}", ["null", "null", "null"]),
        ("other case", r#"{"A":1}"#, ["null", "null", "null"]),
        ("the last of two", r#"{"a":1,"z":true,"a":2,"z":null}"#, ["2", "null", "null"]),
        ("the last of two, null first", r#"{"a":null,"a":2}"#, ["2", "null", "null"]),
        ("extra fields", r#"{"b":{"a":[1,{"a":2}],"c":null},"a":1,"d":"\u0041","e":-1.5e3}"#, ["1", "null", "null"]),
    ];
    for (name, record, want) in cases {
        assert_eq!(row(fields(), record).as_deref(), Ok(&want.map(str::to_owned)[..]), "{name}");
    }
}

#[test]
fn records_must_be_well_formed_also_where_nobody_looks() {
    let fields = || vec![field("a", DataType::Int32)];
    let cases = [
        ("", "expected an object, but the text ends at byte 1"),
        ("null", "expected an object, found 'n' at byte 1"),
        (r#"{"a":1}{"a":2}"#, "expected nothing after the object, found '{' at byte 8"),
        (r#"{"a":1} x"#, "expected nothing after the object, found 'x' at byte 9"),
        (r#"{"a":1,}"#, "expected a name in quotes, found '}' at byte 8"),
        (r#"{"a" 1}"#, "expected ':', found '1' at byte 6"),
        (r#"{"a":1 "b":2}"#, "expected ',' or '}', found '\"' at byte 8"),
        (r#"{a:1}"#, "expected a name in quotes, found 'a' at byte 2"),
        (r#"{"b":[1,2}"#, "expected ',' or ']', found '}' at byte 10"),
        (r#"{"b":{"c":01}}"#, "expected ',' or '}', found '1' at byte 12"),
        (r#"{"b":1.2.3}"#, "expected ',' or '}', found '.' at byte 9"),
        (r#"{"b":"\q"}"#, "an unknown escape at byte 7"),
        (r#"{"b":nul}"#, "expected a value, found 'n' at byte 6"),
        (r#"{"b":}"#, "expected a value, found '}' at byte 6"),
        ("{\"b\":\"\u{1}\"}", "a control character in a string at byte 7"),
        ("\u{feff}{}", "expected an object, found '\\u{feff}' at byte 1"),
    ];
    for (record, want) in cases {
        let error = row(fields(), record).expect_err(record);
        assert_eq!((error.to_string(), error.code()), (format!("not a JSON object: {want}"), "json-malformed"));
    }
    let error = decoder(fields()).decode(b"{\"b\":\"\xff\"}", 0).expect_err("no UTF-8");
    assert_eq!(error.to_string(), "not a JSON object: invalid UTF-8 at byte 7");
}

#[test]
fn nesting_is_bounded_for_fields_read_ignored_and_kept_as_text() {
    let nested = |name: &str, levels: usize| format!("{{\"{name}\":{}1{}}}", "[".repeat(levels), "]".repeat(levels));
    for name in ["ignored", "text"] {
        let fields = || vec![field("text", DataType::Utf8)];
        assert!(row(fields(), &nested(name, 127)).is_ok(), "{name}");
        let error = row(fields(), &nested(name, 128)).expect_err(name).to_string();
        assert!(error.contains("more than 128 levels of nesting"), "{error}");
        assert!(row(fields(), &nested(name, 1_000_000)).is_err(), "{name}");
    }
}

#[test]
fn case_07_bad_lines_are_refused_by_name() {
    let fields = || {
        vec![
            Field::new("id", DataType::Utf8, false),
            Field::new("ts", DataType::Int64, false),
            field("v", DataType::Utf8),
        ]
    };
    assert_eq!(row(fields(), r#"{"id":"o0","ts":1,"v":"a"}"#).unwrap(), ["o0", "1", "a"]);
    let cases = [
        (r#"{"id":"o1","ts":2,"#, "not a JSON object: expected a name in quotes, but the text ends at byte 19"),
        ("just text", "not a JSON object: expected an object, found 'j' at byte 1"),
        ("42", "not a JSON object: expected an object, found '4' at byte 1"),
        (r#""text""#, "not a JSON object: expected an object, found '\"' at byte 1"),
        (r#"[{"id":"x","ts":1}]"#, "not a JSON object: expected an object, found '[' at byte 1"),
        (r#"{"id":null,"ts":1}"#, "field id: null is not allowed by the schema (at byte 7)"),
        (r#"{"id":"x","ts":"soon"}"#, "field ts: \"soon\" is not a long (at byte 16)"),
        (r#"{"ts":1}"#, "field id is missing, and the schema does not let it be null"),
    ];
    for (record, want) in cases {
        assert_eq!(row(fields(), record).expect_err(record).to_string(), want, "{record}");
    }
}

#[test]
fn messages_show_at_most_200_characters_of_a_value() {
    let long = "é".repeat(300);
    let error = row(vec![field("a", DataType::Int32)], &format!("{{\"a\":\"{long}\"}}")).expect_err("no int");
    let JsonError::Value { value, .. } = error else { panic!("{error}") };
    assert_eq!(value, format!("\"{}…", "é".repeat(199)));
}

#[test]
fn bad_records_leave_no_trace() {
    let pair = DataType::Struct(vec![field("x", DataType::Utf8), Field::new("y", DataType::Int32, false)].into());
    let fields = || {
        vec![
            field("text", DataType::Utf8),
            field("flag", DataType::Boolean),
            field("list", DataType::List(Arc::new(field("element", pair.clone())))),
            field("map", map(field("value", DataType::Utf8))),
            field("fixed", DataType::FixedSizeBinary(2)),
            field("n", DataType::Int64),
        ]
    };
    let good = [
        r#"{"text":"a","flag":true,"list":[{"x":"x","y":1}],"map":{"k":"v"},"fixed":[1,2],"n":1}"#,
        r#"{"text":null}"#,
        r#"{"n":3,"map":{"k":null},"list":[null,{"y":2}],"flag":false}"#,
    ];
    let bad = [
        r#"{"text":"lost \n and"#,
        r#"{"text":"lost","flag":null,"n":2,"list":[{"x":"lost","y":1},{"x":"lost"}]}"#,
        r#"{"map":{"lost":"lost","k":"#,
        r#"{"fixed":[1,2,3]}"#,
        r#"{"n":null,"flag":true,"list":null,"n":"x"}"#,
        r#"{"text":"lost","n":1} {}"#,
        "lost",
    ];
    let mut clean = decoder(fields());
    let mut tried = JsonDecoder::new(Arc::new(Schema::new(fields())), true).unwrap();
    for round in 0..3 {
        for (i, record) in good.iter().enumerate() {
            for bad in &bad[..=i + round] {
                assert!(tried.decode(bad.as_bytes(), 99).is_err(), "{bad}");
            }
            clean.decode(record.as_bytes(), 0).unwrap();
            tried.decode(record.as_bytes(), i as u64).unwrap();
        }
        assert_eq!((tried.rows.len(), tried.rows.bytes()), (3, good.concat().len()));
        let (want, got) = (clean.rows.flush(), tried.rows.flush());
        assert_eq!(got.columns()[..6], want.columns()[..]);
        assert_eq!(got.column(6).as_ref(), &UInt64Array::from(vec![0, 1, 2]));
        assert_eq!(got.schema(), *tried.rows.schema());
        assert_eq!((tried.rows.len(), tried.rows.bytes()), (0, 0));
    }
    assert_eq!(tried.rows.flush().num_rows(), 0);
}

#[test]
fn null_records_have_null_fields_whatever_the_schema_says_of_these() {
    let inner = Fields::from(vec![
        Field::new("a", DataType::Int32, false),
        Field::new("b", DataType::Struct(vec![Field::new("c", DataType::Utf8, false)].into()), false),
        Field::new("d", DataType::FixedSizeBinary(2), false),
    ]);
    let fields = vec![field("r", DataType::Struct(inner)), Field::new("id", DataType::Int32, false)];
    let mut decoder = decoder(fields);
    decoder.decode(br#"{"r":null,"id":1}"#, 0).unwrap();
    decoder.decode(br#"{"r":{"a":1,"b":{"c":"x"},"d":[0,1]},"id":2}"#, 0).unwrap();
    assert_eq!(cells(&decoder.rows.flush()), [["null", "1"], ["{a: 1, b: {c: x}, d: 0001}", "2"]]);
}

#[test]
fn schema_without_fields_still_counts_rows() {
    let mut decoder = decoder(Vec::new());
    decoder.decode(br#"{"a":1}"#, 0).unwrap();
    assert_eq!(decoder.rows.flush().num_rows(), 1);
}

#[test]
fn batch_is_refused_before_its_offsets_could_overflow() {
    let zeros = vec![0; MAX_BATCH_BYTES + 1];
    let error = decoder(Vec::new()).decode(&zeros, 0).expect_err("too long");
    assert_eq!(error.to_string(), "not a JSON object: more than 1 GiB in one batch at byte 1");
}

#[test]
fn types_that_json_cannot_fill_are_refused_by_path() {
    let deep = DataType::List(Arc::new(field("element", DataType::Struct(vec![field("x", DataType::UInt8)].into()))));
    let cases = [
        (DataType::UInt8, "field f is UInt8 in the schema, which JSON cannot fill"),
        (DataType::Timestamp(TimeUnit::Nanosecond, None), {
            "field f is Timestamp(ns) in the schema, which JSON cannot fill"
        }),
        (DataType::FixedSizeBinary(0), "field f is FixedSizeBinary(0) in the schema, which JSON cannot fill"),
        (deep, "field f[].x is UInt8 in the schema, which JSON cannot fill"),
    ];
    for (data_type, want) in cases {
        let error = JsonDecoder::new(Arc::new(Schema::new(vec![field("f", data_type)])), false).expect_err(want);
        assert_eq!(error.to_string(), want);
    }
}
