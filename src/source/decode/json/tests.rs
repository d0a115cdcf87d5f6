use super::*;

fn field(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

fn decoder(fields: Vec<Field>) -> JsonDecoder {
    JsonDecoder::new(Arc::new(Schema::new(fields)), false).expect("a schema that JSON can fill")
}

/// The one row that `record` becomes, as Arrow prints it.
fn row(fields: Vec<Field>, record: &str) -> Result<Vec<String>, JsonError> {
    let mut decoder = decoder(fields);
    decoder.decode(record.as_bytes(), 0)?;
    let batch = decoder.flush();
    assert_eq!(batch.num_rows(), 1);
    let options = arrow::util::display::FormatOptions::default().with_null("null");
    Ok(batch
        .columns()
        .iter()
        .map(|column| {
            let formatter = arrow::util::display::ArrayFormatter::try_new(column, &options).expect("a formatter");
            formatter.value(0).to_string()
        })
        .collect())
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
