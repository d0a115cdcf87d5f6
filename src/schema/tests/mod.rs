use super::*;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use std::sync::Arc;

fn avro(fields: &str) -> String {
    format!(r#"{{"type":"record","name":"R","namespace":"n","fields":[{fields}]}}"#)
}

fn table(fields: &str) -> TableSchema {
    TableSchema::from_avro(&avro(fields)).expect(fields)
}

fn field_type(schema: &str) -> Result<DataType> {
    let schema = TableSchema::from_avro(&avro(&format!(r#"{{"name":"f","type":{schema}}}"#)))?;
    Ok(schema.arrow.field(0).data_type().clone())
}

mod rows;

#[test]
fn avro_types_have_arrow_twins() {
    let utc = |unit| DataType::Timestamp(unit, Some("UTC".into()));
    let cases = [
        (r#""boolean""#, DataType::Boolean),
        (r#""int""#, DataType::Int32),
        (r#""long""#, DataType::Int64),
        (r#""float""#, DataType::Float32),
        (r#""double""#, DataType::Float64),
        (r#""string""#, DataType::Utf8),
        (r#""bytes""#, DataType::Binary),
        (r#"["string","null"]"#, DataType::Utf8),
        (r#"{"type":"int","logicalType":"date"}"#, DataType::Date32),
        (r#"{"type":"long","logicalType":"timestamp-millis"}"#, utc(TimeUnit::Millisecond)),
        (r#"{"type":"long","logicalType":"timestamp-micros"}"#, utc(TimeUnit::Microsecond)),
        (r#"{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}"#, DataType::Decimal128(10, 2)),
        (
            r#"{"type":"fixed","name":"x","size":5,"logicalType":"decimal","precision":10,"scale":2}"#,
            DataType::Decimal128(10, 2),
        ),
        (r#"{"type":"enum","name":"e","symbols":["A","B"]}"#, DataType::Utf8),
        (
            r#"{"type":"array","items":["null","int"]}"#,
            DataType::List(Arc::new(Field::new("element", DataType::Int32, true))),
        ),
    ];
    for (schema, want) in cases {
        assert_eq!(field_type(schema).expect(schema), want, "{schema}");
    }
}

#[test]
fn what_hudi_cannot_live_with_is_refused_by_name() {
    let cases = [
        (r#"["int","string"]"#, "union of 2 types"),
        (r#"{"type":"int","logicalType":"time-millis"}"#, "time-millis"),
        (r#"{"type":"string","logicalType":"uuid"}"#, "uuid"),
        (r#"{"type":"fixed","name":"x","size":5}"#, "fixed"),
        (r#"{"type":"long","logicalType":"local-timestamp-micros"}"#, "local-timestamp-micros"),
        (r#"{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}"#, "contains itself"),
        (r#"{"type":"fixed","name":"x","size":2,"logicalType":"decimal","precision":10,"scale":2}"#, "does not hold"),
    ];
    for (schema, word) in cases {
        let error = field_type(schema).expect_err(schema).to_string();
        assert!(error.contains(word), "{schema}: {error}");
    }
    assert!(matches!(TableSchema::from_avro("{"), Err(Error::Parse { .. })));
    assert!(matches!(TableSchema::from_avro(r#""int""#), Err(Error::Parse { .. })));
}

#[test]
fn named_types_are_written_once_and_nulls_come_first() {
    let point = r#"{"type":"record","name":"P","fields":[{"name":"x","type":["int","null"],"default":3}]}"#;
    let schema = table(&format!(r#"{{"name":"a","type":{point}}},{{"name":"b","type":["P","null"]}}"#));
    assert_eq!(schema.arrow.field(0).data_type(), schema.arrow.field(1).data_type());
    assert_eq!(schema.avro.matches(r#""name":"P""#).count(), 1, "{}", schema.avro);
    assert!(schema.avro.contains(r#"["null","n.P"]"#), "{}", schema.avro);
    assert!(schema.avro.contains(r#"{"name":"x","type":["null","int"],"default":null}"#), "{}", schema.avro);
    assert_eq!(TableSchema::from_avro(&schema.avro).expect("its own text"), schema);
}

#[test]
fn meta_columns_stand_in_front_and_are_left_out_again() {
    let schema = table(r#"{"name":"a","type":"int"}"#);
    let meta = schema.with_meta_columns();
    assert_eq!(meta.arrow.fields().len(), 6);
    assert_eq!(meta.arrow.field(0).name(), "_hoodie_commit_time");
    assert!(meta.avro.contains(r#"{"name":"_hoodie_commit_time","type":["null","string"],"doc":"","default":null}"#));
    assert_eq!(TableSchema::from_avro(&meta.avro).expect("reads"), schema);
}

/// Names as Hudi 0.15 on Spark gave them in the golden table of all types.
#[test]
fn arrow_rows_get_hudis_names() {
    let inner = Field::new("v", DataType::Decimal128(6, 3), true);
    let pair = DataType::Struct(vec![inner].into());
    let arrow = Arc::new(Schema::new(vec![
        Field::new("de", DataType::Decimal128(10, 2), true),
        Field::new("am", DataType::List(Arc::new(Field::new("item", pair, true))), true),
    ]));
    let schema = TableSchema::from_arrow(&arrow, "v6-cow").expect("all types have a twin");
    assert!(
        schema.avro.starts_with(r#"{"type":"record","name":"v6__cow_record","namespace":"hoodie.v6__cow""#),
        "{}",
        schema.avro
    );
    assert!(
        schema.avro.contains(r#""name":"fixed","namespace":"hoodie.v6__cow.v6__cow_record.de","size":5"#),
        "{}",
        schema.avro
    );
    assert!(schema.avro.contains(r#""name":"am","namespace":"hoodie.v6__cow.v6__cow_record""#), "{}", schema.avro);
    for (data_type, word) in [(DataType::Null, "CAST"), (DataType::Timestamp(TimeUnit::Nanosecond, None), "arrow_cast")]
    {
        let odd = Arc::new(Schema::new(vec![Field::new("f", data_type, true)]));
        assert!(TableSchema::from_arrow(&odd, "t").expect_err("no twin").to_string().contains(word));
    }
}

#[test]
fn evolution_allows_what_readers_survive() {
    let long = r#"{"name":"a","type":"long"}"#;
    let int = r#"{"name":"a","type":"int"}"#;
    let both = r#"{"name":"a","type":"int"},{"name":"b","type":["null","string"]}"#;
    let null_b = EvolutionOptions { set_null_for_missing_columns: true, ..Default::default() };
    let drop_b = EvolutionOptions { allow_column_drop: true, ..Default::default() };
    let plain = EvolutionOptions::default();
    let millis = r#"{"name":"t","type":{"type":"long","logicalType":"timestamp-millis"}}"#;
    let micros = r#"{"name":"t","type":{"type":"long","logicalType":"timestamp-micros"}}"#;
    let allowed = [
        ("widening", int, long, plain, long),
        ("narrower rows widen", long, int, plain, long),
        ("a new nullable column", int, both, plain, both),
        ("a missing column filled", both, int, null_b, both),
        ("a missing column dropped", both, int, drop_b, int),
        ("millis into micros", micros, millis, plain, micros),
    ];
    for (name, stored, incoming, options, want) in allowed {
        let got = deduce_writer_schema(&table(incoming), Some(&table(stored)), options).expect(name);
        assert_eq!(got.arrow, table(want).arrow, "{name}");
    }
    let refused = [
        ("a missing column", both, int, "b"),
        ("a new required column", int, r#"{"name":"a","type":"int"},{"name":"c","type":"int"}"#, "c"),
        ("another type", int, r#"{"name":"a","type":"string"}"#, "a is Int32"),
        ("micros into millis", millis, micros, "timestamp-millis"),
    ];
    for (name, stored, incoming, word) in refused {
        let error = deduce_writer_schema(&table(incoming), Some(&table(stored)), plain).expect_err(name).to_string();
        assert!(error.contains(word), "{name}: {error}");
    }
    let relaxed = deduce_writer_schema(&table(r#"{"name":"a","type":["null","int"]}"#), Some(&table(int)), plain)
        .expect("relaxes");
    assert!(relaxed.arrow.field(0).is_nullable());
}

/// A provider may name nested types as it likes; Spark, writing to the table, finds its own names.
#[test]
fn nested_types_of_a_provider_get_sparks_names() {
    let given = table(
        r#"{"name":"de","doc":"price","type":{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}},
           {"name":"st","type":["null",{"type":"record","name":"Mine","fields":[{"name":"e","type":{"type":"enum","name":"E","symbols":["A"]}}]}]}"#,
    );
    let got = deduce_writer_schema(&given, None, EvolutionOptions::default()).expect("all types have a twin");
    let want = avro(
        r#"{"name":"de","type":{"type":"fixed","name":"fixed","namespace":"n.R.de","size":5,"logicalType":"decimal","precision":10,"scale":2},"doc":"price"},{"name":"st","type":["null",{"type":"record","name":"st","namespace":"n.R","fields":[{"name":"e","type":"string"}]}],"default":null}"#,
    );
    assert_eq!(got.avro, want);
}

/// What Hudi 0.15 on Spark wrote into the commits of the golden table of all types.
#[test]
fn the_schema_of_all_types_is_spark_s_to_the_letter() {
    let golden = include_str!("../../../tests/vectors/spark_types.avsc").trim();
    let read = TableSchema::from_avro(golden).expect("Spark's own");
    assert_eq!(read.avro, golden);
    assert_eq!(TableSchema::from_arrow(&read.arrow, "v6_cow_types").expect("all types have a twin").avro, golden);
}

/// A table that Hudi's own Streamer began may have enums.
#[test]
fn symbols_of_a_stored_enum_grow_and_new_columns_get_sparks_names() {
    let stored = table(r#"{"name":"e","type":{"type":"enum","name":"E","symbols":["A","B"]}}"#);
    let incoming = table(
        r#"{"name":"e","type":{"type":"enum","name":"F","symbols":["B","C"]}},
           {"name":"s","type":["null",{"type":"record","name":"Mine","fields":[{"name":"x","type":"int"}]}]}"#,
    );
    let got = deduce_writer_schema(&incoming, Some(&stored), EvolutionOptions::default()).expect("grows");
    assert!(got.avro.contains(r#""symbols":["A","B","C"]"#), "{}", got.avro);
    assert!(got.avro.contains(r#"{"type":"record","name":"s","namespace":"n.R""#), "{}", got.avro);
}

#[test]
fn names_differ_by_more_than_case() {
    let twice = avro(r#"{"name":"id","type":"int"},{"name":"ID","type":"int"}"#);
    let error = TableSchema::from_avro(&twice).expect_err("Spark finds two of them").to_string();
    assert!(error.contains("field ID") && error.contains("from id"), "{error}");
    let options = EvolutionOptions { set_null_for_missing_columns: true, ..Default::default() };
    let (stored, incoming) =
        (table(r#"{"name":"a","type":["null","int"]}"#), table(r#"{"name":"A","type":["null","int"]}"#));
    let error = deduce_writer_schema(&incoming, Some(&stored), options).expect_err("a and A").to_string();
    assert!(error.contains("field A"), "{error}");
}

#[tokio::test]
async fn a_schema_file_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("good.avsc"), avro(r#"{"name":"a","type":"int"}"#)).expect("written");
    std::fs::write(path("cut.avsc"), "{").expect("written");
    std::fs::write(path("latin.avsc"), b"\xe9").expect("written");
    let provide = async |source: String, target: Option<String>| {
        SchemaProvider::open(&crate::config::SchemaProviderConfig::File { source, target }, &Default::default())?
            .provide()
            .await
    };
    let both = provide(format!("file://{}", path("good.avsc")), Some(path("good.avsc"))).await.expect("usable");
    let both = both.expect("a provider");
    assert_eq!(Some(both.source), both.target);
    for (name, word) in [("gone.avsc", "gone.avsc"), ("cut.avsc", "not a usable Avro schema"), ("latin.avsc", "UTF-8")]
    {
        let error = provide(path("good.avsc"), Some(path(name))).await.expect_err(name);
        assert_eq!(error.code(), "schema-file", "{name}");
        let error = error.to_string();
        assert!(error.contains(&path(name)) && error.contains(word), "{name}: {error}");
    }
}

#[test]
fn changes_of_a_schema_are_told_by_field() {
    let before = table(
        r#"{"name":"same","type":"int"},{"name":"qty","type":"int"},{"name":"gone","type":"string"},{"name":"n","type":"int"},
           {"name":"e","type":{"type":"enum","name":"E","symbols":["A"]}},{"name":"tags","type":{"type":"array","items":"int"}},
           {"name":"addr","type":{"type":"record","name":"Addr","fields":[{"name":"city","type":"string"}]}},
           {"name":"m","type":{"type":"map","values":"int"}}"#,
    );
    let after = table(
        r#"{"name":"note","type":["null","string"]},{"name":"qty","type":"long"},{"name":"same","type":"int"},{"name":"n","type":["null","int"]},
           {"name":"e","type":{"type":"enum","name":"E","symbols":["A","B"]}},{"name":"tags","type":{"type":"array","items":"long"}},
           {"name":"addr","type":{"type":"record","name":"Addr","fields":[{"name":"city","type":"string"},{"name":"zip","type":["null","string"]}]}},
           {"name":"m","type":{"type":"map","values":"long"}}"#,
    );
    let want = [
        "added note (Utf8)",
        "qty: Int32 became Int64",
        "n may be null",
        "e: other symbols",
        "tags[]: Int32 became Int64",
        "added addr.zip (Utf8)",
        "m{}: Int32 became Int64",
        "removed gone",
    ];
    assert_eq!(changes(&before.arrow, &after.arrow), want);
    assert!(changes(&after.arrow, &after.arrow).is_empty());
    assert!(changes(&after.arrow, &before.arrow).contains(&"n may not be null".to_string()));
}

#[tokio::test]
async fn a_schema_file_is_read_anew_each_round() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.avsc").display().to_string();
    let write = |fields: &str| std::fs::write(&path, avro(fields)).expect("written");
    write(r#"{"name":"a","type":"int"}"#);
    let config = crate::config::SchemaProviderConfig::File { source: path.clone(), target: None };
    let mut provider = SchemaProvider::open(&config, &Default::default()).expect("opened");
    for (fields, columns) in [
        (r#"{"name":"a","type":"int"}"#, 1),
        (r#"{"name":"a","type":"int"},{"name":"b","type":["null","int"],"default":null}"#, 2),
        (r#"{"name":"a","type":"int"}"#, 1),
    ] {
        write(fields);
        let provided = provider.provide().await.expect("usable").expect("a provider");
        assert_eq!(provided.source.arrow.fields().len(), columns, "{fields}");
    }
    std::fs::write(&path, "{").expect("written");
    assert_eq!(provider.provide().await.expect_err("no schema").code(), "schema-file");
    write(r#"{"name":"a","type":"int"}"#);
    provider.provide().await.expect("repaired");
}
