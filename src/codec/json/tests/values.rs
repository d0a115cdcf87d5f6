//! Which value becomes which cell of which type: the table of streamer-options.md §10, cell by cell.

use super::*;

#[test]
fn integers_are_exact_or_refused() {
    check(
        DataType::Int32,
        &[
            ("2147483647", Ok("2147483647")),
            ("-2147483648", Ok("-2147483648")),
            ("-0", Ok("0")),
            (r#""2""#, Ok("2")),
            (r#""-2""#, Ok("-2")),
            ("2.0", Ok("2")),
            ("1e3", Ok("1000")),
            ("1200e-2", Ok("12")),
            ("null", Ok("null")),
            ("1.9", Err("f has a fraction, but the field is an int")),
            ("3000000000", Err("f is out of the range of an int")),
            (r#""3000000000""#, Err("f is out of the range of an int")),
            (r#""x""#, Err("f is not an int")),
            (r#""1.5""#, Err("f is not an int")),
            (r#"" 2""#, Err("f is not an int")),
            (r#""""#, Err("f is not an int")),
            ("true", Err("f is not an int")),
            ("[1]", Err("f is not an int")),
            ("{}", Err("f is not an int")),
        ],
    );
    check(
        DataType::Int64,
        &[
            ("9223372036854775807", Ok("9223372036854775807")),
            ("-9223372036854775808", Ok("-9223372036854775808")),
            ("999999999999999999", Ok("999999999999999999")),
            ("1000000000000000000", Ok("1000000000000000000")),
            (r#""12""#, Ok("12")),
            (r#""+12""#, Ok("12")),
            ("1.70e12", Ok("1700000000000")),
            ("9223372036854775808", Err("f is out of the range of a long")),
            ("1e40", Err("f is out of the range of a long")),
            ("1e99999999999", Err("f is out of the range of a long")),
            (r#""9223372036854775808""#, Err("f is out of the range of a long")),
            ("0.5", Err("f has a fraction, but the field is a long")),
            ("1e-99999", Err("f has a fraction, but the field is a long")),
        ],
    );
}

#[test]
fn floats_are_the_nearest_ones() {
    check(
        DataType::Float64,
        &[
            ("0.1", Ok("0.1")),
            ("-0.0", Ok("-0.0")),
            ("3", Ok("3.0")),
            ("1e3", Ok("1000.0")),
            ("1E-2", Ok("0.01")),
            ("9007199254740993", Ok("9007199254740992.0")),
            ("123456789.123456789e-5", Ok("1234.567891234568")),
            (r#""1.5""#, Ok("1.5")),
            (r#""+.5""#, Ok("0.5")),
            (r#""NaN""#, Ok("NaN")),
            (r#""-Infinity""#, Ok("-inf")),
            ("1e400", Err("f is out of the range of a double")),
            (r#""-1e400""#, Err("f is out of the range of a double")),
            (r#""inf""#, Err("f is not a double")),
            (r#""nan""#, Err("f is not a double")),
            (r#""+-NaN""#, Err("f is not a double")),
            (r#""1d""#, Err("f is not a double")),
            (r#""""#, Err("f is not a double")),
            ("false", Err("f is not a double")),
            ("NaN", Err("not a JSON object: expected a value, found 'N' at byte 6")),
            ("-Infinity", Err("not a JSON object: a number without digits at byte 6")),
        ],
    );
    check(
        DataType::Float32,
        &[
            ("0.1", Ok("0.1")),
            ("16777217", Ok("16777216.0")),
            (r#""0.25""#, Ok("0.25")),
            ("1e39", Err("f is out of the range of a float")),
        ],
    );
}

#[test]
fn numbers_must_be_json() {
    for data_type in [DataType::Int64, DataType::Float64, DataType::Utf8, DataType::Decimal128(10, 2)] {
        let field = field("f", data_type);
        for bad in ["01", "-01", "1.", ".5", "+1", "1.e5", "1e", "1e+", "-", "0x1", "1_0", "--1", "Infinity"] {
            let got = cell(&field, bad);
            assert!(got.as_ref().is_err_and(|e| e.starts_with("not a JSON object")), "{bad}: {got:?}");
        }
    }
}

#[test]
fn booleans_are_only_true_and_false() {
    check(
        DataType::Boolean,
        &[
            ("true", Ok("true")),
            ("false", Ok("false")),
            (r#""true""#, Err("f is not a boolean")),
            ("1", Err("f is not a boolean")),
            ("tru", Err("not a JSON object: expected a value, found 't' at byte 6")),
        ],
    );
}

#[test]
fn strings_take_any_value_as_the_text_that_hudi_makes_of_it() {
    check(
        DataType::Utf8,
        &[
            (r#""a""#, Ok("a")),
            (r#""""#, Ok("")),
            (r#""\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00€""#, Ok("\"\\/\u{8}\u{c}\n\r\té😀€")),
            ("12.50", Ok("12.50")),
            ("12", Ok("12")),
            ("-0", Ok("0")),
            ("-0.0", Ok("0.0")),
            ("1e3", Ok("1E+3")),
            ("-1.50e3", Ok("-1.50E+3")),
            ("150e-2", Ok("1.50")),
            ("0.000001", Ok("0.000001")),
            ("0.0000001", Ok("1E-7")),
            ("123e-9", Ok("1.23E-7")),
            ("0e5", Ok("0E+5")),
            ("123456789012345678901234567890", Ok("123456789012345678901234567890")),
            ("true", Ok("true")),
            (r#"{ "a" : [ 1 , 2.50, 1e3 ], "b" : null, "c" : "x\ny\u0001\/" }"#, {
                Ok(r#"{"a":[1,2.50,1E+3],"b":null,"c":"x\ny\u0001/"}"#)
            }),
            (r#"{"a":1,"b":2,"a":3}"#, Ok(r#"{"a":3,"b":2}"#)),
            ("[ ]", Ok("[]")),
            (r#""\uD83D""#, Err("not a JSON object: half of a surrogate pair at byte 7")),
            (r#""\uDE00""#, Err("not a JSON object: half of a surrogate pair at byte 7")),
            (r#""\uD83D\u0041""#, Err("not a JSON object: half of a surrogate pair at byte 7")),
            (r#""\x""#, Err("not a JSON object: an unknown escape at byte 7")),
            (r#""\u12""#, Err("not a JSON object: an unknown escape at byte 7")),
            (r#""\u12€4""#, Err("not a JSON object: an unknown escape at byte 7")),
            ("\"a\nb\"", Err("not a JSON object: a control character in a string at byte 8")),
            (r#""a"#, Err("not a JSON object: a string without an end at byte 6")),
            (r#""a\"#, Err("not a JSON object: an unknown escape at byte 8")),
            ("1e99999999999", Err("not a JSON object: a number whose exponent has too many digits at byte 6")),
        ],
    );
}

#[test]
fn enums_hold_their_symbols_only() {
    let metadata = HashMap::from([("avro.enum.symbols".to_owned(), r#"["RED","BLUE"]"#.to_owned())]);
    check_field(
        &field("f", DataType::Utf8).with_metadata(metadata),
        &[
            (r#""RED""#, Ok("RED")),
            (r#""\u0042LUE""#, Ok("BLUE")),
            ("null", Ok("null")),
            (r#""red""#, Err("f is not a symbol of the enum")),
            ("1", Err("f is not a symbol of the enum")),
        ],
    );
}

#[test]
fn decimals_are_exact_and_base64_only_what_is_no_number() {
    check(
        DataType::Decimal128(10, 2),
        &[
            ("12.5", Ok("12.50")),
            ("12.50000", Ok("12.50")),
            ("-0.07", Ok("-0.07")),
            ("1.25e1", Ok("12.50")),
            ("99999999.99", Ok("99999999.99")),
            (r#""12.50""#, Ok("12.50")),
            (r#""1234""#, Ok("1234.00")),
            (r#""123""#, Ok("123.00")),
            (r#""12345""#, Ok("12345.00")),
            (r#""-1234""#, Ok("-1234.00")),
            (r#""BNI=""#, Ok("12.34")),
            (r#""+y4=""#, Ok("-12.34")),
            (r#""AAAAAAAAAAAAAAAAAAAAAAAABNI=""#, Ok("12.34")),
            ("12.345", Err("f has more digits than decimal(10,2) keeps")),
            (r#""12.345""#, Err("f has more digits than decimal(10,2) keeps")),
            ("100000000", Err("f is too large for decimal(10,2)")),
            ("1e400", Err("f is too large for decimal(10,2)")),
            ("1e99999999999", Err("f is too large for decimal(10,2)")),
            (r#""QAAAAAAAAAAAAAAAAAAAAAAAAA==""#, Err("f is not a decimal")),
            (r#""abc""#, Err("f is not a decimal")),
            (r#""N/A""#, Err("f is not a decimal")),
            (r#""null""#, Err("f is not a decimal")),
            (r#""None""#, Err("f is not a decimal")),
            (r#""""#, Err("f is not a decimal")),
            ("true", Err("f is not a decimal")),
        ],
    );
    let nines = "9".repeat(38);
    let huge = format!("1{}", "0".repeat(38));
    let long_fraction = format!("1.{}", "0".repeat(100));
    check(
        DataType::Decimal128(38, 0),
        &[
            (&nines, Ok(&nines)),
            (&huge, Err("f is too large for decimal(38,0)")),
            (&format!("{nines}0"), Err("f is too large for decimal(38,0)")),
            (&long_fraction, Ok("1")),
            (&format!("{nines}9.5"), Err("f has more digits than decimal(38,0) keeps")),
        ],
    );
}

#[test]
fn timestamps_keep_their_value_and_their_unit() {
    let utc = || Some("UTC".into());
    let unreadable = Err("f is not a time like 2024-03-10T02:30:00Z");
    check(
        DataType::Timestamp(TimeUnit::Millisecond, utc()),
        &[
            ("1709937000123", Ok("2024-03-08T22:30:00.123Z")),
            (r#""1709937000123""#, Ok("2024-03-08T22:30:00.123Z")),
            (r#""2024-03-08T22:30:00.123Z""#, Ok("2024-03-08T22:30:00.123Z")),
            (r#""2024-03-08T22:30:00.123000000Z""#, Ok("2024-03-08T22:30:00.123Z")),
            (r#""2024-03-09T04:00:00.123+05:30""#, Ok("2024-03-08T22:30:00.123Z")),
            (r#""2024-03-08T14:30:00.123-0800""#, Ok("2024-03-08T22:30:00.123Z")),
            (r#""2024-03-10T02:30:00Z""#, Ok("2024-03-10T02:30:00Z")),
            (r#""2024-03-10 02:30:00""#, Ok("2024-03-10T02:30:00Z")),
            (r#""2024-03-10T02:30""#, Ok("2024-03-10T02:30:00Z")),
            (r#""2024-03-10T02:30+01""#, Ok("2024-03-10T01:30:00Z")),
            (r#""1969-12-31T23:59:59.999Z""#, Ok("1969-12-31T23:59:59.999Z")),
            (r#""0001-01-01T00:00:00Z""#, Ok("0001-01-01T00:00:00Z")),
            ("-1", Ok("1969-12-31T23:59:59.999Z")),
            ("null", Ok("null")),
            (r#""2024-03-08T22:30:00.1234Z""#, Err("f is finer than a millisecond, the unit of the field")),
            ("1709937000123.5", Err("f has a fraction, but the field is a time")),
            (r#""soon""#, unreadable),
            (r#""10/03/2024""#, unreadable),
            (r#""08/03/2024""#, unreadable),
            (r#""2024-03-10""#, unreadable),
            (r#""2024-02-30T00:00:00Z""#, unreadable),
            (r#""2024-03-10T24:00:00Z""#, unreadable),
            (r#""2024-03-10T02:30:60Z""#, unreadable),
            (r#""2024-03-10T02:30:00.Z""#, unreadable),
            (r#""2024-03-10T02:30:00Zulu""#, unreadable),
            (r#""2024-03-10T02:30:00+19:00""#, unreadable),
            (r#""2024-03-10T02:30:00 Europe/Paris""#, unreadable),
            (r#""+12024-03-10T02:30:00Z""#, unreadable),
            ("true", Err("f is not a time")),
        ],
    );
    check(
        DataType::Timestamp(TimeUnit::Microsecond, utc()),
        &[
            ("1709937000123456", Ok("2024-03-08T22:30:00.123456Z")),
            (r#""2024-03-08T22:30:00.123456Z""#, Ok("2024-03-08T22:30:00.123456Z")),
            (r#""2024-03-09T04:00:00.123456+05:30""#, Ok("2024-03-08T22:30:00.123456Z")),
            (r#""2024-03-08T22:30:00.1Z""#, Ok("2024-03-08T22:30:00.100Z")),
            ("-1", Ok("1969-12-31T23:59:59.999999Z")),
            (r#""2024-03-08T22:30:00.1234567Z""#, Err("f is finer than a microsecond, the unit of the field")),
        ],
    );
    check(
        DataType::Timestamp(TimeUnit::Millisecond, None),
        &[
            ("1709937000123", Ok("2024-03-08T22:30:00.123")),
            (r#""2024-03-10T02:30:00""#, Ok("2024-03-10T02:30:00")),
            (r#""2024-03-10T02:30:00Z""#, Err("f names a zone, but the field is a local time, which has none")),
            (r#""noon""#, Err("f is not a local time like 2024-03-10T02:30:00")),
        ],
    );
}

#[test]
fn dates_and_times_of_day() {
    check(
        DataType::Date32,
        &[
            (r#""2024-03-08""#, Ok("2024-03-08")),
            ("19790", Ok("2024-03-08")),
            ("-1", Ok("1969-12-31")),
            (r#""2024-02-29""#, Ok("2024-02-29")),
            (r#""2023-02-29""#, Err("f is not a date like 2024-03-10")),
            (r#""2024-3-10""#, Err("f is not a date like 2024-03-10")),
            (r#""2024-03-10T00:00:00Z""#, Err("f is not a date like 2024-03-10")),
            (r#""20240310""#, Err("f is not a date like 2024-03-10")),
            ("3000000000", Err("f is out of the range of a date")),
        ],
    );
    check(
        DataType::Time32(TimeUnit::Millisecond),
        &[
            (r#""10:15:30""#, Ok("10:15:30")),
            ("36930000", Ok("10:15:30")),
            (r#""36930000""#, Ok("10:15:30")),
            (r#""10:15:30.0001""#, Err("f is finer than a millisecond, the unit of the field")),
            ("86400000", Err("f is out of the range of a time of day")),
            (r#""10h""#, Err("f is not a time like 10:15:30")),
        ],
    );
    check(DataType::Time64(TimeUnit::Microsecond), &[(r#""10:15:30.000001""#, Ok("10:15:30.000001"))]);
}

#[test]
fn bytes_are_utf8_and_fixed_is_a_list_of_numbers() {
    check(
        DataType::Binary,
        &[
            (r#""aé\u0000""#, Ok("61c3a900")),
            (r#""BNI=""#, Ok("424e493d")),
            ("1", Err("f is not a string, whose UTF-8 is the bytes")),
        ],
    );
    check(
        DataType::FixedSizeBinary(3),
        &[
            ("[0, 255, -1]", Ok("00ffff")),
            ("null", Ok("null")),
            ("[1,2]", Err("f holds 2 bytes, but the field has 3")),
            ("[1,2,3,4]", Err("f holds 4 bytes, but the field has 3")),
            ("[]", Err("f holds 0 bytes, but the field has 3")),
            ("[1,2,256]", Err("f holds 256, which is not a byte")),
            (r#"[1,true,3]"#, Err("f[1] is not a byte")),
            (r#""abc""#, Err("f is not an array of byte numbers")),
        ],
    );
}
