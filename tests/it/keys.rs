//! Keys, partition paths and the indexes that find them again.

use crate::support::*;

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
    for (hive_style, table_type) in [false, true].into_iter().flat_map(|hive| TABLE_TYPES.map(|kind| (hive, kind))) {
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
            let call = call.flag("--table-type", table_type);
            call.conf("hoodie.datasource.write.hive_style_partitioning", if hive_style { "true" } else { "false" })
        });
        job.upsert(&batch(1));
        job.upsert(&batch(2));
        job.check_through_compaction();
        for reader in [SPARK_0_15, SPARK_1_0] {
            // Read from the path an empty one is null, from a file it is what it was: either will do.
            let cat = |row: &Row| row.get("cat").filter(|cat| **cat != "").cloned().unwrap_or(Value::Null);
            let mut rows = oracle(reader).read(job.table.str());
            rows.sort_by_key(|r| r["id"].to_string());
            assert_eq!(
                rows.iter().map(cat).collect::<Vec<_>>(),
                batch(2).iter().map(cat).collect::<Vec<_>>(),
                "{reader:?}, hive style {hive_style}, {table_type}"
            );
        }
    }
}

#[test]
fn under_a_global_index_a_key_moves_between_partitions() {
    needs_peers!();
    let moved = |i: usize, ts: i64| {
        let mut row = trip(i, ts);
        row.insert("dt".into(), "2024-01-09".into());
        row
    };
    for ((index, update), table_type) in [
        ("GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path"),
        ("GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path"),
    ]
    .into_iter()
    .flat_map(|index| TABLE_TYPES.map(|kind| (index, kind)))
    {
        let model = Model::new(&TRIP_COLUMNS).partitioned("dt").global();
        let mut job = Job::new(TRIPS, model, |call| {
            let call = call.partitioned("dt").flag("--table-type", table_type);
            call.conf("hoodie.index.type", index).conf(update, "true")
        });
        job.bulk_insert(&trips(0..9, 1));
        job.upsert(&[moved(1, 2), trip(2, 2), moved(20, 2)]);
        job.check_through_compaction();

        // Not allowed to move, the row stays where its key is.
        job.call = job.call.conf(update, "false");
        job.feed(&[moved(4, 3)]);
        job.round("UPSERT");
        let at = |row: &Row| row["_hoodie_partition_path"].as_str().expect("text").to_owned();
        let rows = oracle(SPARK_0_15).read(job.table.str());
        let found: Vec<_> = rows.iter().filter(|r| r["id"] == "k004").map(at).collect();
        assert_eq!(found, ["2024-01-02"], "{index}, {table_type}");
    }
}

#[test]
fn the_simple_index_finds_what_the_bloom_index_finds() {
    needs_peers!();
    for (index, table_type) in ["BLOOM", "SIMPLE"].into_iter().flat_map(|index| TABLE_TYPES.map(|kind| (index, kind))) {
        let model = Model::new(&TRIP_COLUMNS).partitioned("dt");
        let mut job = Job::new(TRIPS, model, |call| {
            call.partitioned("dt").conf("hoodie.index.type", index).flag("--table-type", table_type)
        });
        job.bulk_insert(&trips(0..30, 1));
        job.upsert(&[trips(10..15, 2), trips(28..33, 2)].concat());
        job.upsert(&[trips(12..13, 3), trips(31..32, 3)].concat());
        job.model.assert_read_by(&job.table, &[HUDI_RS, SPARK_0_15]);
    }
}
