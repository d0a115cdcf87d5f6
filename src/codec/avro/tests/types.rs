//! Which values of which writer's types become what.

use super::*;

/// The text of a value, as Arrow shows it; empty: null.
fn value(writer: &str, reader: &str, bytes: &str) -> Result<String, AvroError> {
    let mut decoder = decoder(writer, reader);
    assert_eq!(decoder.decode(&framed(1, &hex(bytes)), 0)?, Decoded::Row);
    let batch = decoder.rows.flush();
    assert_eq!(batch.schema().fields(), table_of(reader).arrow.fields());
    Ok(arrow::util::display::array_value_to_string(batch.column(0), 0).expect("shown"))
}

fn table_of(reader: &str) -> TableSchema {
    table(&record(&format!(r#"{{"name":"f","type":{reader}}}"#)))
}

fn logical(base: &str, name: &str) -> String {
    format!(r#"{{"type":"{base}","logicalType":"{name}"}}"#)
}

fn decimal(precision: u8, scale: u8) -> String {
    format!(r#"{{"type":"bytes","logicalType":"decimal","precision":{precision},"scale":{scale}}}"#)
}

fn fixed_decimal(size: u8, precision: u8, scale: u8) -> String {
    format!(
        r#"{{"type":"fixed","name":"D","size":{size},"logicalType":"decimal","precision":{precision},"scale":{scale}}}"#
    )
}

const INT: &str = r#""int""#;
const LONG: &str = r#""long""#;
const FLOAT: &str = r#""float""#;
const DOUBLE: &str = r#""double""#;
const STRING: &str = r#""string""#;
const BYTES: &str = r#""bytes""#;
const BOOLEAN: &str = r#""boolean""#;
const FIXED: &str = r#"{"type":"fixed","name":"F","size":2}"#;
const LETTERS: &str = r#"{"type":"enum","name":"E","symbols":["A","B"]}"#;
const WITH_DEFAULT: &str = r#"{"type":"enum","name":"E","symbols":["B","Z"],"default":"Z"}"#;

#[test]
fn values_become_what_the_source_schema_says() {
    let (date, millis, micros) =
        (logical("int", "date"), logical("long", "timestamp-millis"), logical("long", "timestamp-micros"));
    let local = logical("long", "local-timestamp-micros");
    let (time_millis, time_micros) = (logical("int", "time-millis"), logical("long", "time-micros"));
    let (uuid, small, large) = (logical("string", "uuid"), decimal(4, 2), decimal(38, 4));
    let (fixed_small, fixed_large) = (fixed_decimal(2, 4, 2), fixed_decimal(16, 38, 2));
    let maybe = |schema: &str| format!(r#"["null",{schema}]"#);
    let reversed = |schema: &str| format!(r#"[{schema},"null"]"#);
    let cases: &[(&str, &str, &str, &str)] = &[
        (BOOLEAN, BOOLEAN, "01", "true"),
        (INT, INT, "01", "-1"),
        (INT, INT, "ffffffff0f", "-2147483648"),
        (INT, LONG, "02", "1"),
        (INT, FLOAT, "06", "3.0"),
        (INT, DOUBLE, "06", "3.0"),
        (INT, STRING, "05", "-3"),
        (INT, &date, "02", "1970-01-02"),
        (LONG, LONG, "feffffffffffffffff01", "9223372036854775807"),
        (LONG, LONG, "ffffffffffffffffff01", "-9223372036854775808"),
        (LONG, DOUBLE, "8080808080808020", "9007199254740992.0"),
        (LONG, STRING, "ffffffffffffffffff01", "-9223372036854775808"),
        (LONG, &millis, "02", "1970-01-01T00:00:00.001Z"),
        (FLOAT, FLOAT, "cdcccc3d", "0.1"),
        (FLOAT, DOUBLE, "cdcccc3d", "0.1"),
        (FLOAT, DOUBLE, "0000807f", "inf"),
        (DOUBLE, DOUBLE, "9a9999999999b93f", "0.1"),
        (STRING, STRING, "04c3a9", "é"),
        (r#"{"type":"string","avro.java.string":"String"}"#, STRING, "0261", "a"),
        (r#"["string","null"]"#, r#"{"type":"string","avro.java.string":"String"}"#, "000261", "a"),
        (STRING, BYTES, "04c3a9", "c3a9"),
        (BYTES, STRING, "04c3a9", "é"),
        (BYTES, BYTES, "04ff00", "ff00"),
        (FIXED, BYTES, "ff00", "ff00"),
        (&uuid, STRING, "0261", "a"),
        (LETTERS, STRING, "02", "B"),
        (LETTERS, LETTERS, "00", "A"),
        (LETTERS, WITH_DEFAULT, "00", "Z"),
        (LETTERS, WITH_DEFAULT, "02", "B"),
        (STRING, LETTERS, "0242", "B"),
        (&date, &date, "02", "1970-01-02"),
        (&date, INT, "02", "1"),
        (&date, STRING, "01", "1969-12-31"),
        (&millis, &millis, "02", "1970-01-01T00:00:00.001Z"),
        (&micros, &micros, "02", "1970-01-01T00:00:00.000001Z"),
        (&millis, LONG, "02", "1"),
        (&local, &micros, "02", "1970-01-01T00:00:00.000001Z"),
        (&time_millis, INT, "02", "1"),
        (&time_millis, LONG, "02", "1"),
        (&time_micros, LONG, "02", "1"),
        (&small, &small, "0404d2", "12.34"),
        (&small, &small, "02ff", "-0.01"),
        (&small, &small, "00", "0.00"),
        (&small, &large, "0404d2", "12.3400"),
        (&fixed_small, &small, "04d2", "12.34"),
        (&small, &fixed_large, "0404d2", "12.34"),
        (&fixed_large, &small, "fffffffffffffffffffffffffffffb2e", "-12.34"),
        (BYTES, &small, "0404d2", "12.34"),
        // More bytes than a decimal needs.
        (BYTES, &small, "2800000000000000000000000000000000000004d2", "12.34"),
        (&maybe(INT), &maybe(LONG), "00", ""),
        (r#"["null","long"]"#, r#"["null","long"]"#, "0202", "1"),
        (r#"["long","null"]"#, r#"["null","long"]"#, "0002", "1"),
        (r#"["long","null"]"#, r#"["long","null"]"#, "02", ""),
        (&reversed(INT), &maybe(STRING), "0002", "1"),
        (&maybe(INT), LONG, "0202", "1"),
        (INT, &maybe(LONG), "02", "1"),
        (r#"["null","int","long"]"#, LONG, "0402", "1"),
        (r#"["int","string"]"#, STRING, "020261", "a"),
        (r#"{"type":"array","items":"int"}"#, r#"{"type":"array","items":"long"}"#, "04 0204 01 02 06 00", "[1, 2, 3]"),
        (r#"{"type":"array","items":"int"}"#, r#"{"type":"array","items":["null","long"]}"#, "00", "[]"),
        (r#"{"type":"map","values":"int"}"#, r#"{"type":"map","values":"double"}"#, "02 0261 04 00", "{a: 2.0}"),
    ];
    for (writer, reader, bytes, want) in cases {
        assert_eq!(value(writer, reader, bytes).expect(writer), *want, "{writer} → {reader}: {bytes}");
    }
}

#[test]
fn schemas_that_do_not_fit_are_refused_whatever_the_values() {
    let (millis, micros) = (logical("long", "timestamp-millis"), logical("long", "timestamp-micros"));
    let cases: &[(&str, &str, &str)] = &[
        (LONG, INT, "long does not fit the reading schema's int"),
        (r#"["null","long"]"#, r#"["null","int"]"#, "long does not fit the reading schema's int"),
        (DOUBLE, FLOAT, "double does not fit"),
        (DOUBLE, LONG, "double does not fit"),
        (STRING, INT, "string does not fit"),
        (BOOLEAN, STRING, "boolean does not fit"),
        (FLOAT, STRING, "float does not fit"),
        (&millis, &micros, "timestamp-millis does not fit the reading schema's timestamp-micros"),
        (&logical("int", "time-millis"), &millis, "time-millis does not fit"),
        (&decimal(10, 4), &decimal(10, 2), "decimal(10,4) does not fit the reading schema's decimal(10,2)"),
        (&decimal(10, 2), STRING, "decimal(10,2) does not fit"),
        (r#"{"type":"array","items":"int"}"#, INT, "array does not fit"),
        (r#"{"type":"array","items":"long"}"#, r#"{"type":"array","items":"int"}"#, "field f[]"),
        (r#"{"type":"map","values":"long"}"#, r#"{"type":"map","values":"int"}"#, "field f{}"),
        (r#"["null","long","string"]"#, r#"["null","boolean"]"#, "long does not fit"),
        (
            r#"{"type":"record","name":"L","fields":[{"name":"l","type":["null","L"]}]}"#,
            STRING,
            "record n.L does not fit",
        ),
        (
            r#"{"type":"record","name":"L","fields":[{"name":"l","type":["null","L"]}]}"#,
            r#"{"type":"record","name":"M","fields":[{"name":"a","type":["null","int"]}]}"#,
            "field f.l of schema id 1: record n.L contains itself",
        ),
        (
            r#"{"type":"record","name":"A","fields":[]}"#,
            r#"{"type":"record","name":"A","fields":[{"name":"x","type":"int"}]}"#,
            "field f.x of schema id 1: the writer lacks it",
        ),
    ];
    for (writer, reader, word) in cases {
        let field = |schema: &str| record(&format!(r#"{{"name":"f","type":{schema}}}"#));
        let mut decoder = AvroDecoder::new(&table(&field(reader)), Framing::Confluent, false).expect(reader);
        let error = decoder.learn(1, &field(writer)).expect_err(writer);
        assert_eq!(error.code(), "avro-schema-mismatch", "{writer} → {reader}");
        let text = error.to_string();
        assert!(text.contains(word) && text.contains("field f") && text.contains("schema id 1"), "{word:?}: {text}");
        assert_eq!(decoder.decode(&framed(1, &[]), 0), Err(error), "each record of it, too");
    }
}

#[test]
fn values_that_do_not_fit_name_the_field() {
    let cases: &[(&str, &str, &str, &str)] = &[
        (r#"["null","int"]"#, INT, "00", "null, which the reading schema does not allow"),
        (r#"["null","int","string"]"#, INT, "0400", "string does not fit the reading schema's int"),
        (LONG, DOUBLE, "82808080808080 20", "has more digits"),
        (LONG, FLOAT, "8280 8010", "has more digits"),
        (LETTERS, r#"{"type":"enum","name":"E","symbols":["B"]}"#, "00", "A is none of the reading schema's symbols B"),
        (LETTERS, LETTERS, "04", "symbol 2 of an enum of 2"),
        (STRING, LETTERS, "0243", "\"C\" is not a symbol"),
        (STRING, STRING, "02ff", "not UTF-8"),
        (BYTES, STRING, "02ff", "not UTF-8"),
        (STRING, STRING, "0461", "a length of 2 bytes, of which only 1 are there"),
        (STRING, STRING, "01", "a length of -1"),
        (BOOLEAN, BOOLEAN, "02", "byte 0x02 for a boolean"),
        (INT, INT, "8080808010", "2147483648 is out of the range of an int"),
        (INT, INT, "80", "the record ends"),
        (LONG, LONG, "ffffffffffffffffff02", "longer than 64 bits"),
        (LONG, LONG, "ffffffffffffffffffff01", "longer than 64 bits"),
        (DOUBLE, DOUBLE, "00000000", "the record ends where 8 more bytes should come"),
        (r#"["null","int"]"#, r#"["null","int"]"#, "04", "branch 2 of a union of 2"),
        (r#"["null","int"]"#, r#"["null","int"]"#, "01", "branch -1 of a union of 2"),
        (&decimal(4, 2), &decimal(4, 2), "042710", "more than 4 digits"),
        (&decimal(38, 2), &decimal(38, 2), "2280000000000000000000000000000000 00", "more than 38 digits"),
        (
            r#"{"type":"array","items":"int"}"#,
            r#"{"type":"array","items":"int"}"#,
            "feffffffffffffffff01",
            "not bytes enough",
        ),
        (
            r#"{"type":"array","items":"int"}"#,
            r#"{"type":"array","items":"int"}"#,
            "ffffffffffffffffff0100",
            "not bytes enough",
        ),
        (
            r#"{"type":"array","items":{"type":"record","name":"N","fields":[]}}"#,
            r#"{"type":"array","items":{"type":"record","name":"N","fields":[{"name":"a","type":["null","int"]}]}}"#,
            "0200",
            "items without bytes",
        ),
    ];
    for (writer, reader, bytes, word) in cases {
        let error = value(writer, reader, bytes).expect_err(writer);
        assert_eq!(error.code(), "avro-value", "{writer} → {reader}: {error}");
        let text = error.to_string();
        assert!(text.contains("field f") && text.contains("schema id 1") && text.contains(word), "{word:?}: {text}");
    }
}

#[test]
fn what_the_writer_lacks_has_its_default() {
    let reader = record(
        r#"{"name":"b","type":"boolean","default":true},{"name":"i","type":"int","default":-3},
        {"name":"s","type":"string","default":"x"},{"name":"y","type":"bytes","default":"\u00ff\u0001"},
        {"name":"d","type":"double","default":1},{"name":"n","type":["null","int"],"default":null},
        {"name":"t","type":["string","null"],"default":"first"},{"name":"q","type":["null","string"]},
        {"name":"m","type":{"type":"bytes","logicalType":"decimal","precision":4,"scale":2},"default":"\u0004\u00d2"},
        {"name":"e","type":{"type":"enum","name":"E","symbols":["A","B"]},"default":"B"},
        {"name":"l","type":{"type":"array","items":"int"},"default":[1,2]},
        {"name":"p","type":{"type":"map","values":"long"},"default":{"k":5}},{"name":"z","type":{"type":"array","items":"int"},"default":[]},
        {"name":"r","type":{"type":"record","name":"I","fields":[{"name":"x","type":"int","default":7},{"name":"y","type":"int"}]},"default":{"y":8}},
        {"name":"w","type":"E","default":"A"}"#,
    );
    let mut decoder = AvroDecoder::new(&table(&reader), Framing::Confluent, false).expect("a good schema");
    decoder.learn(1, &record(r#"{"name":"gone","type":{"type":"map","values":["null","string"]}}"#)).expect("fits");
    decoder.decode(&framed(1, &hex("02 0261 02 0262 00")), 0).expect("a record");
    let batch = decoder.rows.flush();
    let shown: Vec<String> = batch
        .columns()
        .iter()
        .map(|column| arrow::util::display::array_value_to_string(column, 0).expect("shown"))
        .collect();
    let want = [
        "true",
        "-3",
        "x",
        "ff01",
        "1.0",
        "",
        "first",
        "",
        "12.34",
        "B",
        "[1, 2]",
        "{k: 5}",
        "[]",
        "{x: 7, y: 8}",
        "A",
    ];
    assert_eq!(shown, want);
}

#[test]
fn fields_meet_by_name_and_alias_in_any_order() {
    let reader = record(
        r#"{"name":"a","type":"int"},{"name":"new","type":"string","aliases":["old"]},
           {"name":"c","type":"int","aliases":["a"],"default":9}"#,
    );
    let mut decoder = AvroDecoder::new(&table(&reader), Framing::Confluent, false).expect("a good schema");
    let skipped = r#"{"name":"s","type":{"type":"record","name":"S","fields":[{"name":"x","type":"float"},
        {"name":"y","type":{"type":"array","items":{"type":"fixed","name":"F","size":3}}}]}}"#;
    let writer = record(&format!(r#"{{"name":"old","type":"string"}},{skipped},{{"name":"a","type":"int"}}"#));
    decoder.learn(1, &writer).expect("fits");
    // The array has a block with its size in bytes.
    decoder.decode(&framed(1, &hex("0268 00000000 030c aabbcc aabbcc 00 02")), 0).expect("a record");
    let batch = decoder.rows.flush();
    assert_eq!(batch.num_rows(), 1);
    let shown = |at: usize| arrow::util::display::array_value_to_string(batch.column(at), 0).expect("shown");
    // An alias gives way to the name: `a` is a itself.
    assert_eq!([shown(0), shown(1), shown(2)], ["1", "h", "9"]);
}
