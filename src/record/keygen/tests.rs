//! `keygen.json` is the output of Hudi's own key generators; the rest is ours.

use super::*;
use crate::config::{TimestampKeyConfig, TimestampType};
use arrow::array::{BinaryArray, Date32Array, Float64Array, Int64Array, StructArray};
use arrow::datatypes::{Field, Fields, Schema};
use serde_json::Value;

fn record(full: bool) -> RecordBatch {
    let some = |there: bool| if there { 1 } else { 0 };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(StringArray::from(vec![if full { "a,b:c" } else { "" }]))),
        ("n", Arc::new(Int64Array::from(vec![7]))),
        ("region", Arc::new(StringArray::from(vec![full.then_some("eu/west=1 %x")]))),
        ("d", Arc::new(Date32Array::from(vec![(some(full) == 1).then_some(19782)]))),
        ("t", Arc::new(Int64Array::from(vec![full.then_some(1_709_168_523)]))),
        ("dbl", Arc::new(Float64Array::from(vec![full.then_some(1e10)]))),
        ("b", Arc::new(BinaryArray::from(vec![full.then_some([1u8, 0xab].as_slice())]))),
    ];
    let schema =
        Schema::new(columns.iter().map(|(n, c)| Field::new(*n, c.data_type().clone(), true)).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|c| c.1).collect()).expect("one row")
}

fn config(class: &str, props: &Value) -> Option<KeyConfig> {
    let get = |key: &str| props[key].as_str().map(str::to_string);
    let list = |key: &str| get(key).map(|v| v.split(',').map(str::to_string).collect()).unwrap_or_default();
    let generator = match class {
        "SimpleAvroKeyGenerator" => KeyGeneratorClass::Simple,
        "ComplexAvroKeyGenerator" => KeyGeneratorClass::Complex,
        "NonpartitionedAvroKeyGenerator" => KeyGeneratorClass::NonPartitioned,
        "TimestampBasedAvroKeyGenerator" => KeyGeneratorClass::TimestampBased,
        _ => return None,
    };
    let flag = |key: &str| get(key).as_deref() == Some("true");
    let timestamp = get("hoodie.keygen.timebased.timestamp.type").map(|t| TimestampKeyConfig {
        timestamp_type: if t == "SCALAR" { TimestampType::Scalar } else { TimestampType::UnixTimestamp },
        scalar_unit_nanos: 86_400_000_000_000,
        input_formats: vec![],
        input_delimiter: ",".into(),
        input_timezone: "UTC".into(),
        output_format: get("hoodie.keygen.timebased.output.dateformat").expect("a format"),
        output_timezone: get("hoodie.keygen.timebased.timezone").unwrap_or("UTC".into()),
        persisted: vec![],
    });
    Some(KeyConfig {
        generator,
        record_key_fields: list("hoodie.datasource.write.recordkey.field"),
        partition_fields: list("hoodie.datasource.write.partitionpath.field"),
        hive_style: flag("hoodie.datasource.write.hive_style_partitioning"),
        url_encode: flag("hoodie.datasource.write.partitionpath.urlencode"),
        consistent_logical_timestamp: false,
        timestamp,
    })
}

#[test]
fn keys_and_paths_are_hudis() {
    let vectors: Value = serde_json::from_str(include_str!("../../../tests/vectors/keygen.json")).expect("vectors");
    let mut checked = 0;
    for case in vectors["cases"].as_array().expect("a list") {
        let Some(config) = config(case["class"].as_str().expect("a class"), &case["props"]) else { continue };
        let rows = record(case["record"] == "full");
        let generator =
            KeyGenerator::new(&config, RecordOptions::default(), rows.schema_ref()).expect("fields are there");
        checked += 1;
        let path = case["partitionPath"].as_str().unwrap_or_default();
        match generator.key(&rows) {
            Ok(keyed) => {
                assert_eq!(keyed.keys.value(0), case["recordKey"], "{case}");
                assert_eq!(keyed.partitions.path(0), path, "{case}");
            }
            Err(Error::NullKey { .. }) => assert!(case["error"].is_string(), "{case}"),
            // What Spark cannot read back is refused, not written: `=` and `:` that nothing escapes.
            Err(Error::BadPartition { .. }) => assert!(path.contains("west=1"), "{case}"),
            Err(e) => panic!("{e}: {case}"),
        }
    }
    assert!(checked >= 18, "only {checked} cases apply");
}

fn simple(partition: &[&str], url_encode: bool, hive_style: bool) -> KeyConfig {
    KeyConfig {
        generator: KeyGeneratorClass::Simple,
        record_key_fields: vec!["id".into()],
        partition_fields: partition.iter().map(|p| p.to_string()).collect(),
        hive_style,
        url_encode,
        consistent_logical_timestamp: false,
        timestamp: None,
    }
}

fn rows(partitions: &[Option<&str>]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(StringArray::from_iter_values((0..partitions.len()).map(|i| format!("r{i}"))));
    let values: ArrayRef = Arc::new(StringArray::from(partitions.to_vec()));
    let positions: ArrayRef = Arc::new(UInt64Array::from_iter_values(100..100 + partitions.len() as u64));
    let schema = Schema::new(vec![
        Field::new("id", DataType::Utf8, false),
        Field::new("cat", DataType::Utf8, true),
        Field::new("pos", DataType::UInt64, false),
    ]);
    RecordBatch::try_new(Arc::new(schema), vec![ids, values, positions]).expect("three columns")
}

/// Case 10 of the collected user reports.
#[test]
fn odd_partition_values_are_encoded_or_refused() {
    let values =
        [Some("a"), Some("a/b"), None, Some(""), Some("50%"), Some("x=y"), Some("k:v"), Some("blank here"), Some("ü")];
    let encoded = [
        "a",
        "a%2Fb",
        "__HIVE_DEFAULT_PARTITION__",
        "__HIVE_DEFAULT_PARTITION__",
        "50%25",
        "x%3Dy",
        "k%3Av",
        "blank here",
        "ü",
    ];
    let batch = rows(&values);
    let options = RecordOptions { position_column: Some("pos"), ..Default::default() };
    let plain = KeyGenerator::new(&simple(&["cat"], true, false), options.clone(), batch.schema_ref()).expect("fields");
    let hive = KeyGenerator::new(&simple(&["cat"], true, true), options.clone(), batch.schema_ref()).expect("fields");
    let (plain, hive) = (plain.key(&batch).expect("all encode"), hive.key(&batch).expect("all encode"));
    for (row, want) in encoded.iter().enumerate() {
        assert_eq!(plain.partitions.path(row), *want);
        assert_eq!(hive.partitions.path(row), format!("cat={want}"));
    }
    assert_eq!(plain.rows.num_columns(), 2, "the position column is gone");

    let raw = KeyGenerator::new(&simple(&["cat"], false, false), options.clone(), batch.schema_ref()).expect("fields");
    for bad in ["..", "../../out", "/abs", ".hoodie", "k:v", "x=y", "a//b", "a/."] {
        let error = raw.key(&rows(&[Some("fine"), Some(bad)])).expect_err(bad);
        let Error::BadPartition { value, key, position, .. } = &error else { panic!("{error}") };
        assert_eq!((value.as_str(), key.as_str(), *position), (bad, "r1", Some(101)));
    }
    assert_eq!(raw.key(&rows(&[Some("a/b")])).expect("nests").partitions.path(0), "a/b");
    let raw = KeyGenerator::new(&simple(&["cat"], false, true), options, batch.schema_ref()).expect("fields");
    for bad in ["../../out", "/abs", "a//b", "a/.hoodie_partition_metadata", "k:v"] {
        assert!(matches!(raw.key(&rows(&[Some(bad)])), Err(Error::BadPartition { .. })), "{bad}");
    }
}

#[test]
fn null_keys_and_ordering_values_say_where() {
    let batch = rows(&[Some("p"), None]);
    let mut config = simple(&[], false, false);
    config.generator = KeyGeneratorClass::NonPartitioned;
    config.record_key_fields = vec!["cat".into()];
    let options = RecordOptions { position_column: Some("pos"), ..Default::default() };
    let by_cat = KeyGenerator::new(&config, options.clone(), batch.schema_ref()).expect("fields");
    let error = by_cat.key(&batch).expect_err("a null key");
    assert!(
        matches!(&error, Error::NullKey { field, position: Some(101), row } if field == "cat" && row.contains("r1")),
        "{error}"
    );

    config.record_key_fields = vec!["id".into()];
    let options = RecordOptions { ordering_field: Some("cat".into()), ..options };
    let ordered = KeyGenerator::new(&config, options, batch.schema_ref()).expect("fields");
    let error = ordered.key(&batch).expect_err("a null ordering value");
    assert!(matches!(&error, Error::NullOrdering { key, position: Some(101), .. } if key == "r1"), "{error}");

    config.record_key_fields = vec!["idd".into()];
    let error = KeyGenerator::new(&config, RecordOptions::default(), batch.schema_ref()).expect_err("no such field");
    assert!(error.to_string().contains("did you mean id?"), "{error}");
}

#[test]
fn fields_inside_structs_have_dotted_names() {
    let inner: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), Some("y")]));
    let fields = Fields::from(vec![Field::new("k", DataType::Utf8, true)]);
    let outer = StructArray::new(fields.clone(), vec![inner], Some(vec![true, false].into()));
    let schema = Arc::new(Schema::new(vec![Field::new("s", DataType::Struct(fields), true)]));
    let batch = RecordBatch::try_new(schema, vec![Arc::new(outer)]).expect("a struct");
    let mut config = simple(&[], false, false);
    config.generator = KeyGeneratorClass::NonPartitioned;
    config.record_key_fields = vec!["s.k".into()];
    let generator = KeyGenerator::new(&config, RecordOptions::default(), batch.schema_ref()).expect("a path");
    assert_eq!(generator.key(&batch.slice(0, 1)).expect("a key").keys.value(0), "x");
    assert!(matches!(generator.key(&batch), Err(Error::NullKey { .. })), "a null struct has no key in it");
}

#[test]
fn texts_make_times_by_the_first_format_that_fits() {
    let mut config = simple(&["cat"], false, true);
    config.generator = KeyGeneratorClass::TimestampBased;
    config.timestamp = Some(TimestampKeyConfig {
        timestamp_type: TimestampType::DateString,
        scalar_unit_nanos: 0,
        input_formats: vec!["yyyy-MM-dd'T'HH:mm:ssZ".into(), "yyyyMMdd".into()],
        input_delimiter: ",".into(),
        input_timezone: "UTC".into(),
        output_format: "yyyy-MM-dd HH".into(),
        output_timezone: "GMT+5:30".into(),
        persisted: vec![],
    });
    let batch = rows(&[Some("2024-03-08T22:30:00+0000"), Some("20240309"), None]);
    let generator = KeyGenerator::new(&config, RecordOptions::default(), batch.schema_ref()).expect("fields");
    let keyed = generator.key(&batch).expect("all parse");
    let paths: Vec<&str> = (0..3).map(|row| keyed.partitions.path(row)).collect();
    assert_eq!(paths, ["cat=2024-03-09 04", "cat=2024-03-09 05", "cat=1970-01-01 05"]);
    let error = generator.key(&rows(&[Some("soon")])).expect_err("no format fits");
    assert!(error.to_string().contains("soon") && error.to_string().contains("yyyyMMdd"), "{error}");

    config.timestamp.as_mut().expect("set above").input_formats.push("yyMMdd".into());
    let error = KeyGenerator::new(&config, RecordOptions::default(), batch.schema_ref()).expect_err("which century?");
    assert!(error.to_string().contains("yyMMdd"), "{error}");
    config.timestamp = None;
    assert!(KeyGenerator::new(&config, RecordOptions::default(), batch.schema_ref()).is_err());
}

fn by_month(field: &str) -> KeyConfig {
    let mut config = simple(&[field], false, false);
    config.generator = KeyGeneratorClass::TimestampBased;
    config.timestamp = Some(TimestampKeyConfig {
        timestamp_type: TimestampType::EpochMilliseconds,
        scalar_unit_nanos: 0,
        input_formats: vec![],
        input_delimiter: ",".into(),
        input_timezone: "UTC".into(),
        output_format: "yyyy-MM".into(),
        output_timezone: "UTC".into(),
        persisted: vec![],
    });
    config
}

#[test]
fn numbers_that_are_no_time_are_refused() {
    let of = |values: Vec<Option<f64>>| {
        let ids: ArrayRef = Arc::new(StringArray::from_iter_values((0..values.len()).map(|i| format!("r{i}"))));
        let at: ArrayRef = Arc::new(Float64Array::from(values));
        RecordBatch::try_from_iter_with_nullable([("id", ids, false), ("at", at, true)]).expect("one length")
    };
    let good = of(vec![Some(1_709_951_400_000.0), None]);
    let generator = KeyGenerator::new(&by_month("at"), RecordOptions::default(), good.schema_ref()).expect("fields");
    let keyed = generator.key(&good).expect("times");
    assert_eq!((keyed.partitions.path(0), keyed.partitions.path(1)), ("2024-03", "1970-01"));
    for bad in [f64::NAN, f64::INFINITY, 1e300, 1e18] {
        let error = generator.key(&of(vec![Some(0.0), Some(bad)])).expect_err("no time");
        assert!(matches!(&error, Error::BadPartition { key, .. } if key == "r1"), "{bad}: {error}");
    }
}

/// Part E of case 10 of the collected user reports.
#[test]
fn a_delete_without_its_partition_does_not_look_in_1970() {
    let of = |flags: [Option<bool>; 2]| {
        let ids: ArrayRef = Arc::new(StringArray::from(vec!["r0", "r1"]));
        let at: ArrayRef = Arc::new(Int64Array::from(vec![Some(0), None]));
        let flags: ArrayRef = Arc::new(BooleanArray::from(flags.to_vec()));
        let columns = [("id", ids, false), ("at", at, true), (DELETED_COLUMN, flags, true)];
        RecordBatch::try_from_iter_with_nullable(columns).expect("one length")
    };
    let rows = of([Some(true), None]);
    let generator = KeyGenerator::new(&by_month("at"), RecordOptions::default(), rows.schema_ref()).expect("fields");
    assert_eq!(generator.key(&rows).expect("not the null row").deleted, Some(vec![true, false].into()));
    let error = generator.key(&of([None, Some(true)])).expect_err("a delete in 1970").to_string();
    assert!(error.contains("r1") && error.contains("without at"), "{error}");
}

/// One pass over a batch finds all that is wrong, and what is left is as if the bad rows had never been there.
#[test]
fn rows_that_make_no_record_are_handed_over_and_the_others_stay() {
    let ids: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some(""), Some("d"), Some("e"), Some("f")]));
    let cats: ArrayRef =
        Arc::new(StringArray::from(vec![Some("x"), Some(".."), Some("x"), Some("../up"), Some("y"), Some("../up")]));
    let ts: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2), Some(3), Some(4), None, Some(6)]));
    let gone: ArrayRef = Arc::new(BooleanArray::from(vec![false, true, false, true, false, false]));
    let pos: ArrayRef = Arc::new(UInt64Array::from_iter_values(100..106));
    let columns =
        [("id", ids, true), ("cat", cats, true), ("ts", ts, true), (DELETED_COLUMN, gone, true), ("pos", pos, false)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("one length");
    let options =
        RecordOptions { ordering_field: Some("ts".into()), position_column: Some("pos"), ..Default::default() };
    let strict = KeyGenerator::new(&simple(&["cat"], false, false), options, batch.schema_ref()).expect("fields");
    assert!(matches!(strict.key(&batch), Err(Error::NullKey { position: Some(101), .. })));

    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let sifting = |most: usize| {
        let seen = seen.clone();
        strict.clone().refusing(Refuse::new(move |refused| {
            assert_eq!(refused.rows.num_columns(), 4, "without the position");
            let mut seen = seen.lock().expect("one thread");
            seen.push((refused.row, refused.cause.code(), refused.cause.position()));
            if seen.len() < most { std::ops::ControlFlow::Continue(()) } else { std::ops::ControlFlow::Break(()) }
        }))
    };
    let keyed = sifting(9).key(&batch).expect("the others");
    let want = [
        (1, "record-null-key", Some(101)),
        (2, "record-null-key", Some(102)),
        (3, "record-bad-partition", Some(103)),
        (4, "record-null-ordering", Some(104)),
        (5, "record-bad-partition", Some(105)),
    ];
    assert_eq!(seen.lock().expect("one thread").split_off(0), want);
    assert_eq!(keyed.keys, StringArray::from(vec!["a"]));
    assert_eq!((keyed.rows.num_rows(), keyed.ordering.expect("ordered").len()), (1, 1));
    assert_eq!((*keyed.partitions.paths).clone(), ["x"], "a bad path is not even looked at");
    assert_eq!(keyed.deleted, None);
    assert!(matches!(sifting(2).key(&batch), Err(Error::Stopped)));
}
