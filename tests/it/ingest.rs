//! The main job: JSON files become rows of a table that Hudi itself reads and goes on writing.

use crate::support::*;

const TRIPS: &str = r#"{"type":"record","name":"Trip","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},
 {"name":"dt","type":"string"},{"name":"rider","type":["null","string"],"default":null},{"name":"fare","type":["null","double"],"default":null}]}"#;
const TRIP_COLUMNS: [&str; 5] = ["id", "ts", "dt", "rider", "fare"];

fn trip(i: usize, ts: i64) -> Row {
    row! {"id": format!("k{i:03}"), "ts": ts, "dt": format!("2024-01-0{}", 1 + i % 3), "rider": format!("rider-{i}-{ts}"), "fare": i as f64 + 0.25}
}

fn trips(numbers: std::ops::Range<usize>, ts: i64) -> Vec<Row> {
    numbers.map(|i| trip(i, ts)).collect()
}

/// Every operation once, read after each; then Hudi on Spark writes into the table, and we after it.
fn a_table_lives(mut job: Job) {
    job.bulk_insert(&trips(0..20, 1));
    job.check();
    job.insert(&trips(20..30, 1));
    job.check();

    let mut batch = trips(5..15, 2);
    batch.extend([trip(5, 3), trip(30, 2), trip(30, 4), trip(30, 3), trip(31, 2)]);
    job.upsert(&batch);
    job.check();
    // A row whose optional fields are absent, one with nulls, and a late one, which wins under this table's rule.
    let late = row! {"id": "k001", "ts": 0, "dt": "2024-01-02", "rider": null, "fare": null};
    job.upsert(&[row! {"id": "k000", "ts": 5, "dt": "2024-01-01"}, late, trip(32, 5)]);
    job.check();
    job.upsert(&trips(0..40, 6));
    job.check();
    oracle(SPARK_0_15).validate(job.table.str(), false);
    oracle(SPARK_1_0).validate(job.table.str(), false);

    for (spark, ts) in [(SPARK_0_15, 7), (SPARK_1_0, 9)] {
        let rows = [trips(10..14, ts), trips(100 + ts as usize..103 + ts as usize, ts)].concat();
        let file = job.scratch.lines(&format!("spark-{ts}.json"), &rows);
        let instant = oracle(spark).write(job.table.str(), "upsert", &file, &[]);
        job.model.upsert(&instant, &rows);
        job.check();

        job.upsert(&[trips(12..16, ts + 1), trips(105..111, ts + 1)].concat());
        job.check();
        oracle(spark).validate(job.table.str(), false);
    }
    assert_eq!(job.table.pending(), Vec::<String>::new());
}

#[test]
fn a_partitioned_table_lives_with_spark() {
    needs_peers!();
    let model = Model::new(&TRIP_COLUMNS).partitioned("dt");
    a_table_lives(Job::new(TRIPS, model, |call| call.partitioned("dt")));
}

#[test]
fn a_table_without_partitions_lives_with_spark() {
    needs_peers!();
    a_table_lives(Job::new(TRIPS, Model::new(&TRIP_COLUMNS), |call| call));
}

#[test]
fn bulk_insert_writes_all_rows_in_every_sort_mode() {
    needs_peers!();
    for mode in ["NONE", "GLOBAL_SORT", "PARTITION_SORT"] {
        let model = Model::new(&TRIP_COLUMNS).partitioned("dt");
        let mut job = Job::new(TRIPS, model, |call| call.partitioned("dt").conf("hoodie.bulkinsert.sort.mode", mode));
        // Numbers in an order that is none.
        let rows: Vec<Row> = (0..60).map(|i| trip(i * 37 % 60, 1)).collect();
        job.bulk_insert(&rows);
        job.check();
        if mode != "NONE" {
            assert_sorted_in_files(&oracle(HUDI_RS).read(job.table.str()), mode);
        }
        job.upsert(&trips(30..70, 2));
        job.check();
        oracle(SPARK_0_15).validate(job.table.str(), false);
    }
}

/// Within a file the keys ascend with the row numbers (the last part of the sequence number).
fn assert_sorted_in_files(rows: &[Row], mode: &str) {
    let text = |row: &Row, column: &str| row[column].as_str().expect("text").to_owned();
    let number = |seqno: &str| seqno.rsplit('_').next().and_then(|n| n.parse::<u64>().ok()).expect("a row number");
    let mut rows: Vec<_> = rows
        .iter()
        .map(|r| (text(r, "_hoodie_file_name"), number(&text(r, "_hoodie_commit_seqno")), text(r, "id")))
        .collect();
    rows.sort();
    for pair in rows.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        assert!(pair[0].2 < pair[1].2, "{mode}: {} comes before {} in {}", pair[0].2, pair[1].2, pair[0].0);
    }
}

/// One generator, its settings, and the (partition path, record key) it makes of a row.
type Keys = (&'static str, &'static [(&'static str, &'static str)], fn(&Row) -> (String, String));

#[test]
fn every_key_generator_makes_the_keys_that_hudi_makes() {
    needs_peers!();
    const SCHEMA: &str = r#"{"type":"record","name":"K","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},{"name":"n","type":"int"},
 {"name":"city","type":["null","string"],"default":null},{"name":"who","type":{"type":"record","name":"W","fields":[{"name":"name","type":"string"}]}},
 {"name":"ms","type":"long"},{"name":"day","type":"string"}]}"#;
    const KEY: &str = "hoodie.datasource.write.recordkey.field";
    const PARTITION: &str = "hoodie.datasource.write.partitionpath.field";
    const CLASS: &str = "hoodie.datasource.write.keygenerator.class";
    const TIME: &str = "hoodie.keygen.timebased.timestamp.type";
    const FORMAT: &str = "hoodie.keygen.timebased.output.dateformat";
    fn s<'a>(row: &'a Row, field: &str) -> &'a str {
        row[field].as_str().expect("text")
    }
    let generators: [Keys; 8] = [
        ("simple, inferred", &[(PARTITION, "city")], |r| (s(r, "city").into(), s(r, "id").into())),
        (
            "simple, nested key",
            &[(KEY, "who.name"), (PARTITION, "city"), (CLASS, "org.apache.hudi.keygen.SimpleKeyGenerator")],
            |r| (s(r, "city").into(), r["who"]["name"].as_str().expect("text").into()),
        ),
        ("complex, inferred", &[(KEY, "id,n"), (PARTITION, "city,day")], |r| {
            (format!("{}/{}", s(r, "city"), s(r, "day")), format!("id:{},n:{}", s(r, "id"), r["n"]))
        }),
        ("complex, one key", &[(PARTITION, "city"), (CLASS, "org.apache.hudi.keygen.ComplexKeyGenerator")], |r| {
            (s(r, "city").into(), s(r, "id").into())
        }),
        (
            "complex, not partitioned",
            &[(KEY, "id,n"), (CLASS, "org.apache.hudi.keygen.NonpartitionedKeyGenerator")],
            |r| (String::new(), format!("id:{},n:{}", s(r, "id"), r["n"])),
        ),
        (
            "hive style, two fields",
            &[(KEY, "id"), (PARTITION, "city,day"), ("hoodie.datasource.write.hive_style_partitioning", "true")],
            |r| (format!("city={}/day={}", s(r, "city"), s(r, "day")), s(r, "id").into()),
        ),
        (
            "epoch milliseconds",
            &[
                (PARTITION, "ms"),
                (CLASS, "org.apache.hudi.keygen.TimestampBasedKeyGenerator"),
                (TIME, "EPOCHMILLISECONDS"),
                (FORMAT, "yyyy/MM/dd"),
            ],
            |r| (if r["n"].as_i64() < Some(5) { "2024/03/09" } else { "2024/03/10" }.into(), s(r, "id").into()),
        ),
        (
            "date text",
            &[
                (PARTITION, "day"),
                (CLASS, "org.apache.hudi.keygen.TimestampBasedKeyGenerator"),
                (TIME, "DATE_STRING"),
                ("hoodie.keygen.timebased.input.dateformat", "yyyy-MM-dd"),
                (FORMAT, "yyyyMM"),
            ],
            |r| ("202403".into(), s(r, "id").into()),
        ),
    ];
    for (name, settings, key) in generators {
        println!("key generator: {name}");
        let mut model = Model::new(&["id", "ts", "n", "city", "who", "ms", "day"]).keyed_by(key);
        if name == "epoch milliseconds" {
            model = model.ignoring("ms"); // Spark 0.15 reads the path, 1.0 the file
        }
        if name == "date text" {
            model = model.ignoring("day");
        }
        let mut job = Job::new(SCHEMA, model, |call| settings.iter().fold(call, |call, (k, v)| call.conf(k, v)));
        let rows = |numbers: std::ops::Range<i64>, ts: i64| -> Vec<Row> {
            let one = |i: i64| {
                row! {"id": format!("k{i}"), "ts": ts, "n": i, "city": if i % 2 == 0 { "paris" } else { "rome" }, "who": {"name": format!("w{i}")},
                "ms": 1_709_951_400_000_i64 + if i < 5 { 0 } else { 86_400_000 }, "day": format!("2024-03-{:02}", 9 + i / 5)}
            };
            numbers.map(one).collect()
        };
        job.bulk_insert(&rows(0..8, 1));
        job.upsert(&rows(4..10, 2));
        job.check();
        oracle(SPARK_0_15).validate(job.table.str(), false);
    }
}

#[test]
fn every_type_goes_in_and_comes_back_equal() {
    needs_peers!();
    const SCHEMA: &str = r#"{"type":"record","name":"T","namespace":"types","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},
 {"name":"bo","type":["null","boolean"],"default":null},{"name":"i","type":["null","int"],"default":null},
 {"name":"l","type":["null","long"],"default":null},{"name":"f","type":["null","float"],"default":null},
 {"name":"d","type":["null","double"],"default":null},{"name":"s","type":["null","string"],"default":null},
 {"name":"de","type":["null",{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}],"default":null},
 {"name":"db","type":["null",{"type":"fixed","name":"Big","size":16,"logicalType":"decimal","precision":38,"scale":18}],"default":null},
 {"name":"bi","type":["null","bytes"],"default":null},{"name":"da","type":["null",{"type":"int","logicalType":"date"}],"default":null},
 {"name":"tu","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null},
 {"name":"ar","type":["null",{"type":"array","items":"string"}],"default":null},
 {"name":"ai","type":["null",{"type":"array","items":"int"}],"default":null},
 {"name":"m","type":["null",{"type":"map","values":["null","long"]}],"default":null},
 {"name":"st","type":["null",{"type":"record","name":"S","fields":[{"name":"a","type":["null","int"],"default":null},{"name":"b","type":["null","string"],"default":null},
   {"name":"n","type":["null",{"type":"record","name":"N","fields":[{"name":"x","type":["null","double"],"default":null},{"name":"y","type":["null",{"type":"array","items":"string"}],"default":null}]}],"default":null}]}],"default":null},
 {"name":"am","type":["null",{"type":"array","items":{"type":"record","name":"E","fields":[{"name":"k","type":["null","string"],"default":null},
   {"name":"v","type":["null",{"type":"fixed","name":"Small","size":3,"logicalType":"decimal","precision":6,"scale":3}],"default":null}]}}],"default":null},
 {"name":"mm","type":["null",{"type":"map","values":{"type":"record","name":"Q","fields":[{"name":"q","type":["null","int"],"default":null}]}}],"default":null}]}"#;
    let columns =
        ["id", "ts", "bo", "i", "l", "f", "d", "s", "de", "db", "bi", "da", "tu", "ar", "ai", "m", "st", "am", "mm"];
    // As it is written, and as it must be read.
    let pair = |i: i64, ts: i64| {
        let written = row! {"id": format!("k{i}"), "ts": ts, "bo": i % 2 == 0, "i": -70000 - i, "l": (1i64 << 53) + i, "f": 0.1, "d": i as f64 / 3.0,
        "s": format!("Grüße {i} 数 \"\\\n"), "de": i as f64 + 0.25, "db": format!("-{i}.123456789012345678"), "bi": "ab", "da": "1969-12-30",
        "tu": "2024-02-29T23:59:59.123456Z", "ar": ["a", format!("x{i}")], "ai": [i, 2], "m": {"one": 1, "none": null},
        "st": {"a": i, "b": null, "n": {"x": 0.5, "y": []}}, "am": [{"k": "p", "v": 1.5}, {"k": null, "v": null}], "mm": {"z": {"q": i}}};
        let mut read = written.clone();
        read.insert("f".into(), json!(0.1f32 as f64));
        read.insert("de".into(), json!(format!("{i}.25")));
        read.insert("bi".into(), json!("YWI="));
        read["am"][0]["v"] = json!("1.500");
        (written, read)
    };
    let bare = |id: &str| row! {"id": id, "ts": 1};
    let mut job = Job::new(SCHEMA, Model::new(&columns), |call| call);
    let (written, read): (Vec<_>, Vec<_>) = (0..4).map(|i| pair(i, 1)).chain([(bare("k9"), bare("k9"))]).unzip();
    job.feed(&written);
    let instant = job.round("BULK_INSERT");
    job.model.insert(&instant, &read);
    job.check();

    let (written, read): (Vec<_>, Vec<_>) = [pair(1, 2), pair(5, 2), (bare("k2"), bare("k2"))].into_iter().unzip();
    job.feed(&written);
    let instant = job.round("UPSERT");
    job.model.upsert(&instant, &read);
    job.check();

    let rows = [pair(3, 3).1, pair(6, 3).1];
    let file = job.scratch.lines("spark.json", &rows);
    let instant = oracle(SPARK_0_15).write(job.table.str(), "upsert", &file, &[]);
    job.model.upsert(&instant, &rows);
    job.check();
    let (written, read) = pair(0, 4);
    job.feed(&[written]);
    let instant = job.round("UPSERT");
    job.model.upsert(&instant, &[read]);
    job.check();
    oracle(SPARK_0_15).validate(job.table.str(), false);
}

#[test]
fn time_stamps_keep_their_value_and_their_unit() {
    needs_peers!();
    const SCHEMA: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},
 {"name":"tm","type":["null",{"type":"long","logicalType":"timestamp-millis"}],"default":null},
 {"name":"tu","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null},
 {"name":"d","type":["null",{"type":"int","logicalType":"date"}],"default":null}]}"#;
    let written = |ts: i64| {
        [
            row! {"id": "r1", "ts": ts, "tm": 1709937000123_i64, "tu": 1709937000123456_i64, "d": 19790},
            row! {"id": "r2", "ts": ts, "tm": "2024-03-08T22:30:00.123Z", "tu": "2024-03-08T22:30:00.123456Z", "d": "2024-03-08"},
            row! {"id": "r3", "ts": ts, "tm": "2024-03-09T04:00:00.123+05:30", "tu": "2024-03-09T04:00:00.123456+05:30", "d": "2024-03-08"},
            row! {"id": "r4", "ts": ts, "tm": null, "tu": null, "d": null},
            row! {"id": "r5", "ts": ts, "tm": -1, "tu": -1, "d": -1},
        ]
    };
    let moment = |id: &str, ts: i64| row! {"id": id, "ts": ts, "tm": "2024-03-08T22:30:00.123000Z", "tu": "2024-03-08T22:30:00.123456Z", "d": "2024-03-08"};
    let read = |ts: i64| {
        let none = row! {"id": "r4", "ts": ts};
        let before = row! {"id": "r5", "ts": ts, "tm": "1969-12-31T23:59:59.999000Z", "tu": "1969-12-31T23:59:59.999999Z", "d": "1969-12-31"};
        [moment("r1", ts), moment("r2", ts), moment("r3", ts), none, before]
    };
    let sql = |call: Streamer| {
        call.flag("--transformer-class", "SqlQueryBasedTransformer")
            .conf("hoodie.streamer.transformer.sql", "SELECT * FROM <SRC>")
    };
    for transformed in [false, true] {
        let model = Model::new(&["id", "ts", "tm", "tu", "d"]);
        let mut job = Job::new(SCHEMA, model, |call| if transformed { sql(call) } else { call });
        job.feed(&written(1));
        let instant = job.round("UPSERT");
        job.model.upsert(&instant, &read(1));
        job.check();
        for file in job.table.base_files() {
            assert_eq!(unit(&job.table, &file, "tm"), "MILLIS", "of tm in {file}");
            assert_eq!(unit(&job.table, &file, "tu"), "MICROS", "of tu in {file}");
        }
        job.feed(&written(2)[..1]);
        let instant = job.round("UPSERT");
        job.model.upsert(&instant, &read(2)[..1]);
        job.check();
        job.feed(&[row! {"id": "r6", "ts": 3, "tm": 1709937000123_i64, "tu": 1709937000123456_i64, "d": 19790}]);
        let instant = job.round("BULK_INSERT");
        job.model.insert(&instant, &[moment("r6", 3)]);
        job.check();
    }
}

/// The unit of a time stamp column in a file's own schema.
fn unit(table: &Table, file: &str, column: &str) -> String {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let file = std::fs::File::open(table.path.join(file)).expect("open a base file");
    let reader = SerializedFileReader::new(file).expect("a parquet file");
    let schema = reader.metadata().file_metadata().schema_descr();
    let field = schema.columns().iter().find(|c| c.name() == column).expect("the column is in the file");
    format!("{:?}", field.logical_type_ref().expect("a logical type"))
        .to_uppercase()
        .split("UNIT: ")
        .nth(1)
        .expect("a unit")[..6]
        .trim_matches(|c: char| !c.is_alphabetic())
        .to_owned()
}

const SHOP: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},{"name":"cat","type":["null","string"],"default":null}]}"#;

#[test]
fn odd_partition_values_survive_url_encoding() {
    needs_peers!();
    let encoded = |value: &Value| match value.as_str() {
        None | Some("") => "__HIVE_DEFAULT_PARTITION__".to_owned(),
        Some(text) => text.replace('%', "%25").replace('/', "%2F").replace('=', "%3D").replace(':', "%3A"),
    };
    let batch = |ts: i64| {
        let values = [
            json!("a"),
            json!("a/b"),
            json!(null),
            json!(""),
            json!("50%"),
            json!("x=y"),
            json!("k:v"),
            json!("blank here"),
            json!("ü"),
        ];
        let mut rows: Vec<Row> =
            values.iter().enumerate().map(|(i, cat)| row! {"id": format!("r{i}"), "ts": ts, "cat": cat}).collect();
        rows.push(row! {"id": "r9", "ts": ts});
        rows
    };
    for hive_style in [false, true] {
        let prefix = if hive_style { "cat=" } else { "" };
        let key = move |row: &Row| {
            (
                format!("{prefix}{}", encoded(row.get("cat").unwrap_or(&Value::Null))),
                row["id"].as_str().expect("text").to_owned(),
            )
        };
        // `cat` itself is compared below: an empty one is null to a reader that takes it from the path.
        let model = Model::new(&["id", "ts", "cat"]).keyed_by(key).ignoring("cat");
        let mut job = Job::new(SHOP, model, |call| {
            let call = call.partitioned("cat").conf("hoodie.datasource.write.partitionpath.urlencode", "true");
            call.conf("hoodie.datasource.write.hive_style_partitioning", if hive_style { "true" } else { "false" })
        });
        job.upsert(&batch(1));
        job.upsert(&batch(2));
        job.check();
        for reader in [SPARK_0_15, SPARK_1_0] {
            let want = batch(2).into_iter().map(|r| r.get("cat").filter(|c| **c != "").cloned().unwrap_or(Value::Null));
            let mut rows = oracle(reader).read(job.table.str());
            rows.sort_by_key(|r| r["id"].to_string());
            assert_eq!(
                rows.iter().map(|r| r["cat"].clone()).collect::<Vec<_>>(),
                want.collect::<Vec<_>>(),
                "{reader:?}, hive style {hive_style}"
            );
        }
        oracle(SPARK_0_15).validate(job.table.str(), false);
    }
}

#[test]
fn small_files_are_filled_before_new_ones_are_begun() {
    let mut job = Job::new(TRIPS, Model::new(&TRIP_COLUMNS), |call| call);
    job.insert(&trips(0..10, 1));
    job.insert(&trips(10..20, 1));
    job.upsert(&trips(15..25, 2));
    assert_eq!(file_groups(&job.table).len(), 1, "one small file takes them all: {:?}", job.table.base_files());

    job.call = job.call.conf("hoodie.parquet.small.file.limit", "0");
    job.insert(&trips(30..40, 1));
    assert_eq!(file_groups(&job.table).len(), 2, "with packing off inserts go to a new file group");
    if peers_enabled() {
        job.check();
        oracle(SPARK_0_15).validate(job.table.str(), false);
    }
}

#[test]
fn a_new_file_group_is_begun_when_the_maximum_size_is_reached() {
    for op in ["BULK_INSERT", "INSERT"] {
        let mut job = Job::new(TRIPS, Model::new(&TRIP_COLUMNS), |call| {
            let call =
                call.conf("hoodie.parquet.max.file.size", "200000").conf("hoodie.parquet.small.file.limit", "100000");
            call.conf("hoodie.copyonwrite.record.size.estimate", "100")
        });
        // Text that does not compress, so that sizes mean what they say.
        let noise = |i: usize| format!("{:x}", (i as u128 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C834));
        let rows: Vec<Row> =
            (0..20_000).map(|i| row! {"id": format!("k{i:06}"), "ts": 1, "dt": "d", "rider": noise(i)}).collect();
        job.feed(&rows);
        let instant = job.round(op);
        job.model.insert(&instant, &rows);
        let groups = file_groups(&job.table).len();
        assert!(groups > 1, "{op}: {groups} file group for {} rows", rows.len());
        if peers_enabled() {
            job.model.assert_read_by(&job.table, &[HUDI_RS]);
            oracle(SPARK_0_15).validate(job.table.str(), false);
        }
    }
}

fn file_groups(table: &Table) -> std::collections::BTreeSet<String> {
    let id =
        |file: String| file.rsplit('/').next().and_then(|name| name.split('_').next()).expect("a file id").to_owned();
    table.base_files().into_iter().map(id).collect()
}

/// Case 06: ties, late events and disorder.
#[test]
fn each_payload_class_keeps_the_row_that_hudi_0_15_keeps() {
    needs_peers!();
    let rules = [
        (
            "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
            Rule::EventTime,
            ["s5", "in5", "in7", "second", "nine", "s5"],
        ),
        (
            "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
            Rule::Arrival,
            ["in3", "in5", "in7", "second", "nine", "x4"],
        ),
    ];
    let event = |id: &str, ts: i64, v: &str| row! {"id": id, "ts": ts, "v": v};
    for (class, rule, want) in rules {
        let mut job = Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]).rule(rule), |call| {
            call.flag("--payload-class", class)
        });
        job.upsert(&[1, 2, 3, 4, 5, 6].map(|i| event(&format!("k{i}"), 5, "s5")));
        job.upsert(&[
            event("k1", 3, "in3"),
            event("k2", 5, "in5"),
            event("k3", 7, "in7"),
            event("k4", 7, "first"),
            event("k4", 7, "second"),
            event("k5", 9, "nine"),
            event("k5", 8, "eight"),
            event("k6", 3, "x3"),
            event("k6", 4, "x4"),
        ]);
        job.check();
        let mut rows = oracle(SPARK_0_15).read(job.table.str());
        rows.sort_by_key(|r| r["id"].to_string());
        assert_eq!(rows.iter().map(|r| r["v"].as_str().expect("text")).collect::<Vec<_>>(), want, "{class}");

        // The table has recorded its rule: a call that names none keeps it.
        job.call = job.call.without("--payload-class");
        job.upsert(&[event("k1", 1, "late")]);
        job.check();
    }
}

/// Case 05, without Kafka's tombstones.
#[test]
fn a_row_flagged_as_deleted_deletes() {
    needs_peers!();
    const SCHEMA: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},{"name":"qty","type":["null","int"],"default":null},
 {"name":"_hoodie_is_deleted","type":["null","boolean"],"default":null}]}"#;
    let model = Model::new(&["id", "ts", "qty", "_hoodie_is_deleted"]).rule(Rule::EventTime);
    let mut job = Job::new(SCHEMA, model, |call| {
        call.flag("--payload-class", "org.apache.hudi.common.model.DefaultHoodieRecordPayload")
    });
    job.upsert(&[
        row! {"id": "a", "ts": 1, "qty": 5},
        row! {"id": "b", "ts": 1, "qty": 7},
        row! {"id": "b", "ts": 2, "_hoodie_is_deleted": true},
        row! {"id": "d", "ts": 1, "qty": 1, "_hoodie_is_deleted": false},
    ]);
    job.check();
    job.upsert(&[
        row! {"id": "a", "ts": 2, "_hoodie_is_deleted": true},
        row! {"id": "d", "ts": 0, "_hoodie_is_deleted": true},
    ]);
    job.check();
    job.upsert(&[row! {"id": "z", "ts": 1, "_hoodie_is_deleted": true}]);
    job.check();
    job.upsert(&[row! {"id": "a", "ts": 9, "qty": 3}]);
    job.check();
    assert_eq!(job.model.len(), 2);
    oracle(SPARK_0_15).validate(job.table.str(), false);
}

#[test]
fn filter_dupes_drops_what_the_table_has() {
    needs_peers!();
    let mut job = Job::new(TRIPS, Model::new(&TRIP_COLUMNS).partitioned("dt"), |call| {
        call.partitioned("dt").switch("--filter-dupes")
    });
    job.insert(&trips(0..5, 1));
    job.feed(&[trip(3, 2), trip(7, 2), trip(7, 3), trip(8, 2)]);
    let instant = job.round("INSERT");
    job.model.insert(&instant, &[trip(7, 3), trip(8, 2)]);
    job.check();
    oracle(SPARK_0_15).validate(job.table.str(), false);
}

#[test]
fn insert_keeps_equal_keys() {
    needs_peers!();
    let mut job = Job::new(TRIPS, Model::new(&TRIP_COLUMNS), |call| call);
    job.insert(&[trip(1, 1), trip(1, 2)]);
    job.insert(&[trip(1, 3), trip(2, 3)]);
    job.check();
    assert_eq!(job.model.len(), 4);
    oracle(SPARK_0_15).validate(job.table.str(), true);
}

#[test]
fn under_a_global_index_a_key_moves_between_partitions() {
    needs_peers!();
    let moved = |i: usize, ts: i64| {
        let mut row = trip(i, ts);
        row.insert("dt".into(), "2024-01-09".into());
        row
    };
    for (index, update) in [
        ("GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path"),
        ("GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path"),
    ] {
        let model = Model::new(&TRIP_COLUMNS).partitioned("dt").global();
        let mut job =
            Job::new(TRIPS, model, |call| call.partitioned("dt").conf("hoodie.index.type", index).conf(update, "true"));
        job.bulk_insert(&trips(0..9, 1));
        job.upsert(&[moved(1, 2), trip(2, 2), moved(20, 2)]);
        job.check();
        oracle(SPARK_0_15).validate(job.table.str(), false);

        // Not allowed to move, the row stays where its key is.
        job.call = job.call.conf(update, "false");
        job.feed(&[moved(4, 3)]);
        job.round("UPSERT");
        let at = |row: &Row| row["_hoodie_partition_path"].as_str().expect("text").to_owned();
        let rows = oracle(SPARK_0_15).read(job.table.str());
        let found: Vec<_> = rows.iter().filter(|r| r["id"] == "k004").map(at).collect();
        assert_eq!(found, ["2024-01-02"], "{index}");
    }
}

#[test]
fn the_simple_index_finds_what_the_bloom_index_finds() {
    needs_peers!();
    for index in ["BLOOM", "SIMPLE"] {
        let model = Model::new(&TRIP_COLUMNS).partitioned("dt");
        let mut job = Job::new(TRIPS, model, |call| call.partitioned("dt").conf("hoodie.index.type", index));
        job.bulk_insert(&trips(0..30, 1));
        job.upsert(&[trips(10..15, 2), trips(28..33, 2)].concat());
        job.model.assert_read_by(&job.table, &[HUDI_RS, SPARK_0_15]);
    }
}

#[test]
fn transformers_run_one_after_the_other() {
    needs_peers!();
    const TARGET: &str = r#"{"type":"record","name":"Out","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},{"name":"who","type":["null","string"],"default":null}]}"#;
    let mut job = Job::new(TRIPS, Model::new(&["id", "ts", "who"]), |call| {
        call.flag(
            "--transformer-class",
            "SqlQueryBasedTransformer,org.apache.hudi.utilities.transform.SqlFileBasedTransformer",
        )
        .conf("hoodie.streamer.transformer.sql", "SELECT id, ts, upper(rider) AS who FROM <SRC> WHERE id <> 'k002'")
    });
    let (sql, target) = (
        job.scratch.file("step.sql", "SELECT id, ts, concat(who, '!') AS who FROM <SRC>"),
        job.scratch.file("target.avsc", TARGET),
    );
    job.call = job.call.clone().conf("hoodie.streamer.transformer.sql.file", sql);
    job.call = job.call.clone().conf("hoodie.streamer.schemaprovider.target.schema.file", target);
    job.feed(&trips(0..4, 1));
    let instant = job.round("UPSERT");
    let out = |i: i64| row! {"id": format!("k{i:03}"), "ts": 1, "who": format!("RIDER-{i}-1!")};
    job.model.upsert(&instant, &[out(0), out(1), out(3)]);
    job.check();
    oracle(SPARK_0_15).validate(job.table.str(), false);
}

#[test]
fn without_a_schema_provider_the_first_batch_fixes_the_schema() {
    needs_peers!();
    let mut job = Job::new(TRIPS, Model::new(&["id", "ts", "tags", "at"]), |call| {
        call.without("--schemaprovider-class").without("hoodie.streamer.schemaprovider.source.schema.file")
    });
    let first = [row! {"id": "a", "ts": 1, "tags": ["x"]}, row! {"id": "b", "ts": 2, "at": {"lat": 1.5, "lon": 2}}];
    job.feed(&first);
    job.call.run().ok().says(&["schema"]);
    let instant = job.table.last_commit();
    job.model.upsert(&instant, &first);
    job.check();
    job.upsert(&[row! {"id": "b", "ts": 3, "tags": [], "at": {"lat": 0.5, "lon": 0.25}}]);
    job.check();
}

#[test]
fn compressed_files_are_read_like_plain_ones() {
    let mut job = Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| call);
    let plain = job.feed(&[row! {"id": "a", "ts": 1, "v": "x"}]);
    let path = job.scratch.path(&format!("in/{plain}"));
    let gzip = std::process::Command::new("gzip").arg("-k").arg(&path).status().expect("run gzip");
    assert!(gzip.success());
    std::fs::remove_file(&path).expect("leave only the compressed file");
    job.scratch.touch(&format!("in/{plain}.gz"), BASE_TIME_MS + 1000);
    job.round("UPSERT");
    let metadata = job.table.commit_metadata(&job.table.last_commit());
    let written: u64 = metadata["partitionToWriteStats"][""]
        .as_array()
        .expect("statistics")
        .iter()
        .map(|s| s["numWrites"].as_u64().unwrap_or(0))
        .sum();
    assert_eq!(written, 1);
}
