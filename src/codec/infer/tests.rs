use super::*;
use crate::codec::json::JsonDecoder;
use arrow::array::Array;
use proptest::prelude::*;
use serde_json::Value;

fn observe(records: &[&str]) -> SchemaInference {
    let mut inference = SchemaInference::new();
    for record in records {
        inference.observe(record.as_bytes()).expect(record);
    }
    inference
}

fn infer(records: &[&str]) -> Result<Inferred, InferError> {
    observe(records).finish()
}

/// `name: type` of every column.
fn columns(inferred: &Inferred) -> Vec<String> {
    inferred.schema.fields().iter().map(|f| format!("{}: {}", f.name(), f.data_type())).collect()
}

fn list(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("element", item, true)))
}

fn record(fields: &[(&str, DataType)]) -> DataType {
    DataType::Struct(fields.iter().map(|(name, t)| Field::new(*name, t.clone(), true)).collect())
}

#[test]
fn every_kind_has_its_type_whatever_stands_beside_it() {
    use DataType::*;
    let cases: [(&str, &[&str], DataType); 15] = [
        ("booleans", &["true", "null", "false"], Boolean),
        ("integers", &["1", "-9223372036854775808"], Int64),
        ("fractions", &["1.5"], Float64),
        ("an exponent", &["1e3"], Float64),
        ("integers, then fractions", &["1", "1.5"], Float64),
        ("fractions, then integers", &["1.5", "null", "-9007199254740992"], Float64),
        ("text", &["\"a\""], Utf8),
        ("text that looks like a date", &["\"2024-03-10\"", "\"12\""], Utf8),
        ("objects", &["{\"a\":1}", "{\"b\":true,\"a\":null}"], record(&[("a", Int64), ("b", Boolean)])),
        ("empty objects beside others", &["{}", "{\"a\":1}"], record(&[("a", Int64)])),
        ("arrays", &["[1,2]", "[]", "[null,2.5]"], list(Float64)),
        ("arrays of arrays", &["[[]]", "[[\"a\"]]"], list(list(Utf8))),
        ("arrays of objects", &["[{\"a\":1}]", "[{\"b\":1}]"], list(record(&[("a", Int64), ("b", Int64)]))),
        ("a field that is null in a record", &["{\"a\":1,\"b\":null}"], record(&[("a", Int64)])),
        ("a name with escapes", &["{\"\\u0061\":1}"], record(&[("a", Int64)])),
    ];
    for (name, values, want) in cases {
        let records: Vec<String> = values.iter().map(|v| format!("{{ \"f\" : {v} }}")).collect();
        let records: Vec<&str> = records.iter().map(String::as_str).collect();
        let inferred = infer(&records).expect(name);
        assert_eq!(inferred.schema.fields(), &Fields::from(vec![Field::new("f", want, true)]), "{name}");
    }
}

#[test]
fn columns_stand_in_the_order_of_first_sight() {
    let inferred = infer(&[r#"{"b":1,"a":null}"#, r#"{"c":1,"a":"x","b":2}"#]).unwrap();
    assert_eq!(columns(&inferred), ["b: Int64", "a: Utf8", "c: Int64"]);
}

#[test]
fn fields_without_a_value_are_left_out_and_reported() {
    let inferred =
        infer(&[r#"{"id":1,"n":null,"o":{},"l":[],"p":{"q":null,"r":[null]},"s":{"t":1,"no name":null},"u":[{}]}"#])
            .unwrap();
    assert_eq!(inferred.schema.fields().iter().map(|f| f.name()).collect::<Vec<_>>(), ["id", "s"]);
    assert_eq!(inferred.left_out, ["n", "o", "l", "p.q", "p.r", "p", "s.no name", "u"]);
}

#[test]
fn what_no_type_holds_is_an_error_with_the_field_and_both_examples() {
    let cases: [(&[&str], &str); 9] = [
        (
            &[r#"{"a":{"b":"x"}}"#, r#"{"a":{"b":12}}"#],
            "field a.b holds text (\"x\") and integers (12), so that no type can be inferred: give a schema file",
        ),
        (
            &[r#"{"a":1}"#, r#"{"a":1.5}"#, r#"{"a":{"b":1}}"#],
            "field a holds integers (1) and objects ({\"b\":1}), so that no type can be inferred: give a schema file",
        ),
        (
            &[r#"{"a":[1,true]}"#],
            "field a[] holds integers (1) and booleans (true), so that no type can be inferred: give a schema file",
        ),
        (
            &[r#"{"a":[{"b":[]}]}"#, r#"{"a":[{"b":0.5}]}"#],
            "field a[].b holds arrays ([]) and fractions (0.5), so that no type can be inferred: give a schema file",
        ),
        (
            &[r#"{"a":9223372036854775808}"#],
            "field a holds 9223372036854775808, more than a long does: give a schema file",
        ),
        (
            &[r#"{"a":0.5}"#, r#"{"a":9007199254740993}"#],
            "field a holds fractions, and 9007199254740993, which a double would round: give a schema file",
        ),
        (
            &[r#"{"a-b":1}"#],
            "field a-b has a name that Avro does not allow (letters, digits and '_', no digit first): give a schema file",
        ),
        (
            &[r#"{"id":1,"x":{"ID":1,"Id":2}}"#],
            "field x.Id differs from ID in case only, and Spark could not tell them apart: give a schema file",
        ),
        (
            &[r#"{"a":null}"#, "{}"],
            "no field of any record has a value, so that no schema can be inferred: give a schema file",
        ),
    ];
    for (records, want) in cases {
        assert_eq!(infer(records).expect_err(want).to_string(), want);
    }
}

#[test]
fn bad_record_leaves_no_trace() {
    let mut inference = observe(&[r#"{"a":1}"#]);
    for bad in [r#"{"b":1"#, r#"{"b":1} x"#, r#"[{"b":1}]"#, "1", "", r#"{"b":1,"c":01}"#] {
        assert!(inference.observe(bad.as_bytes()).is_err(), "{bad}");
    }
    assert!(inference.observe(b"{\"b\":\"\xff\"}").is_err());
    assert_eq!(columns(&inference.finish().unwrap()), ["a: Int64"]);
}

#[test]
fn pieces_merge_into_what_one_pass_sees() {
    let records = [
        r#"{"a":1,"o":{"x":1},"l":[1]}"#,
        r#"{"b":"t","o":{"y":null,"z":"z"},"l":[0.5]}"#,
        r#"{"c":[{"d":1}],"a":2.5,"o":null}"#,
        r#"{"c":[{"e":true}],"n":null}"#,
    ];
    let whole = infer(&records).unwrap();
    for first in 0..=records.len() {
        for second in first..=records.len() {
            let mut pieces = observe(&records[..first]);
            pieces.merge(observe(&records[first..second]));
            pieces.merge(observe(&records[second..]));
            assert_eq!(pieces.finish().as_ref(), Ok(&whole), "cut at {first} and {second}");
        }
    }
}

/// Records that agree on the kind of each field, most of the time.
fn records() -> impl Strategy<Value = Vec<Value>> {
    let kind = prop_oneof![
        Just(any::<i64>().prop_map(Value::from).boxed()),
        Just(prop_oneof![(-9i64..9).prop_map(Value::from), (-9.0..9.0).prop_map(Value::from)].boxed()),
        Just(any::<bool>().prop_map(Value::from).boxed()),
        Just(any::<String>().prop_map(Value::from).boxed()),
        Just(prop_oneof![any::<bool>().prop_map(Value::from), any::<String>().prop_map(Value::from)].boxed()),
    ];
    let nested = kind.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|item| proptest::collection::vec(item, 0..3).prop_map(Value::Array).boxed()),
            proptest::collection::vec(inner, 1..4).prop_map(|fields| object(fields).boxed()),
        ]
    });
    proptest::collection::vec(nested, 1..5).prop_flat_map(|fields| proptest::collection::vec(object(fields), 1..6))
}

/// Objects with some of the fields `a`, `b`, …, in any order, and some of them null.
fn object(fields: Vec<BoxedStrategy<Value>>) -> impl Strategy<Value = Value> {
    let nullable = |value| prop_oneof![4 => value, 1 => Just(Value::Null)];
    let fields: Vec<_> = ('a'..).zip(fields).map(|(name, value)| (Just(name.to_string()), nullable(value))).collect();
    let len = fields.len();
    (fields.prop_shuffle(), 0..=len).prop_map(|(mut entries, keep)| {
        entries.truncate(keep.max(1));
        Value::Object(entries.into_iter().collect())
    })
}

proptest! {
    #[test]
    fn inferred_schema_takes_every_record_and_keeps_its_fields(records in records()) {
        let mut inference = SchemaInference::new();
        for record in &records {
            inference.observe(record.to_string().as_bytes()).unwrap();
        }
        let Ok(inferred) = inference.finish() else { return Ok(()) };
        let mut decoder = JsonDecoder::new(inferred.schema.clone(), false).unwrap();
        for record in &records {
            prop_assert_eq!(decoder.decode(record.to_string().as_bytes(), 0), Ok(()), "{}", record);
        }
        let batch = decoder.rows.flush();
        for (field, column) in inferred.schema.fields().iter().zip(batch.columns()) {
            for (i, record) in records.iter().enumerate() {
                let has_value = record.get(field.name()).is_some_and(|v| !v.is_null());
                prop_assert_eq!(column.is_valid(i), has_value, "{} of {}", field.name(), record);
            }
        }
    }
}
