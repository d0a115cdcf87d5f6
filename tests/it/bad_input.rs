//! Bad input: one clear line, nothing committed, nothing lost, and the next run with the cause removed goes through.

use std::collections::BTreeSet;

use crate::support::*;

fn job(schema: &str) -> Job {
    Job::new(schema, Model::new(&["id", "ts", "v"]), |call| call)
}

/// What the timeline says was done: leftovers of failed rounds and their rollbacks are not.
fn done(table: &Table) -> BTreeSet<String> {
    table.commits().into_iter().collect()
}

/// The call fails naming `names`, twice alike, and leaves the table's commits, its base files and at most one leftover.
#[track_caller]
pub fn fails_and_leaves_no_trace(table: &Table, call: &Streamer, names: &[&str]) {
    let (commits, files) = (done(table), readable(table));
    for _ in 0..2 {
        call.run().fails_with(1, names);
        assert_eq!(commits, done(table), "nothing is committed");
        assert!(table.pending().len() <= 1, "leftovers pile up: {:?}", table.pending());
    }
    assert!(readable(table).is_superset(&files), "no file that was readable is gone");
}

/// Base files of completed commits.
fn readable(table: &Table) -> BTreeSet<String> {
    let commits = done(table);
    let instant = |file: &str| file.rsplit('_').next().and_then(|end| end.strip_suffix(".parquet")).map(str::to_owned);
    table.base_files().into_iter().filter(|f| instant(f).is_some_and(|i| commits.contains(&i))).collect()
}

/// Rows that the newest commit says it wrote.
pub fn written(table: &Table) -> u64 {
    let metadata = table.commit_metadata(&table.last_commit());
    let partitions = metadata["partitionToWriteStats"].as_object().expect("statistics");
    let stats = partitions.values().flat_map(|stats| stats.as_array().expect("a list"));
    stats.map(|s| s["numWrites"].as_u64().expect("a number")).sum()
}

/// Case 07, for files: the line in the middle is bad.
#[test]
fn one_bad_line_fails_the_round_or_is_skipped_by_setting() {
    let bad_lines: [(&str, &str); 8] = [
        (r#"{"id":"o1","ts":2,"#, ""),
        ("just text", ""),
        ("42", ""),
        (r#""text""#, ""),
        (r#"[{"id":"x","ts":1}]"#, ""),
        (r#"{"id":null,"ts":1}"#, "id"),
        (r#"{"id":"x","ts":"soon"}"#, "ts"),
        (r#"{"ts":1}"#, "id"),
    ];
    for (bad, field) in bad_lines {
        println!("bad line {bad}");
        let text = |line: &str| {
            format!("{{\"id\":\"o0\",\"ts\":1,\"v\":\"a\"}}\n{line}\n{{\"id\":\"o2\",\"ts\":3,\"v\":\"c\"}}\n")
        };
        let mut job = job(BASE_SCHEMA);
        let name = job.feed_text(&text(bad));
        let place = format!("{name}:2");
        fails_and_leaves_no_trace(&job.table, &job.call, &[&place, field]);
        fails_and_leaves_no_trace(&job.table, &job.call.clone().switch("--commit-on-errors"), &[&place, field]);
        let transformed = job.call.clone().flag("--transformer-class", "SqlQueryBasedTransformer");
        let transformed = transformed.conf("hoodie.streamer.transformer.sql", "SELECT * FROM <SRC>");
        // After SQL a row has no line any more; what was wrong with it is still told.
        transformed.run().fails_with(1, &[field]);
        assert!(done(&job.table).is_empty());

        let skipping = job.call.clone().conf("hoodie.streamer.source.json.skip.invalid.records", "true");
        let skipped = skipping.flag("--target-base-path", job.scratch.path("skipped"));
        skipped.run().ok().says(&["WARN", &place]);
        let table = Table::at(job.scratch.path("skipped"));
        assert_eq!((written(&table), table.checkpoint()), (2, job.position()), "{bad}");
        // The cause removed: the same file, put right.
        job.scratch.file(&format!("in/{name}"), text(r#"{"id":"o1","ts":2,"v":"b"}"#));
        job.scratch.touch(&format!("in/{name}"), BASE_TIME_MS + 1000);
        job.round("UPSERT");
        assert_eq!((written(&job.table), job.table.checkpoint()), (3, job.position()), "{bad}");
    }
}

#[test]
fn a_long_bad_value_is_cut() {
    let mut job = job(BASE_SCHEMA);
    job.feed_text(&format!("{{\"id\":\"{}\",\"ts\":\n", "x".repeat(5000)));
    let run = job.call.run().fails_with(1, &["round-001.json:1"]);
    assert!(!run.stderr.contains(&"x".repeat(250)), "the value is shown at full length\n{run}");
}

#[test]
fn a_null_ordering_value_fails_the_round() {
    const NULLABLE: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":"string"},{"name":"ts","type":["null","long"],"default":null},
 {"name":"v","type":["null","string"],"default":null}]}"#;
    let mut job = job(NULLABLE);
    job.upsert(&[row! {"id": "k1", "ts": 1}]);
    job.feed(&[row! {"id": "k7", "ts": null, "v": "n"}]);
    fails_and_leaves_no_trace(&job.table, &job.call, &["ts", "k7"]);
}

#[test]
fn an_ordering_or_key_field_that_is_not_there_is_named() {
    let mut job = job(BASE_SCHEMA);
    job.feed(&[row! {"id": "a", "ts": 1}]);
    let call = job.call.clone();
    for wrong in [
        call.clone().flag("--source-ordering-field", "nope"),
        call.conf("hoodie.datasource.write.recordkey.field", "nope"),
    ] {
        wrong.run().fails_with_any(&["nope"]);
        assert!(done(&job.table).is_empty());
    }
    job.round("UPSERT");
}

#[test]
fn a_value_that_does_not_fit_its_type_is_named_with_its_field() {
    const SCHEMA: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},
 {"name":"i","type":["null","int"],"default":null},{"name":"de","type":["null",{"type":"bytes","logicalType":"decimal","precision":6,"scale":2}],"default":null},
 {"name":"tm","type":["null",{"type":"long","logicalType":"timestamp-millis"}],"default":null},{"name":"bo","type":["null","boolean"],"default":null}]}"#;
    for (field, value) in [
        ("i", json!(3_000_000_000_i64)),
        ("i", json!(1.5)),
        ("de", json!(12.345)),
        ("tm", json!("08/03/2024")),
        ("bo", json!("maybe")),
    ] {
        let mut job = job(SCHEMA);
        let mut bad = row! {"id": "b", "ts": 2};
        bad.insert(field.into(), value);
        let name = job.feed(&[row! {"id": "a", "ts": 1}, bad]);
        job.call.run().fails_with(1, &[field, &format!("{name}:2")]);
        assert!(done(&job.table).is_empty());
    }
}

#[test]
fn a_missing_folder_or_schema_file_is_named() {
    let mut job = job(BASE_SCHEMA);
    job.feed(&[row! {"id": "a", "ts": 1}]);
    let nowhere = job.scratch.path("nowhere");
    let broken = job.scratch.file("broken.avsc", "{\"type\":\"record\",");
    let call = &job.call;
    for (wrong, name) in [
        (call.clone().conf("hoodie.streamer.source.dfs.root", &nowhere), "nowhere"),
        (
            call.clone().conf("hoodie.streamer.schemaprovider.source.schema.file", job.scratch.path("nothere.avsc")),
            "nothere.avsc",
        ),
        (call.clone().conf("hoodie.streamer.schemaprovider.source.schema.file", broken), "broken.avsc"),
    ] {
        wrong.run().fails_with_any(&[name]);
        assert!(done(&job.table).is_empty());
    }
    job.round("UPSERT");
}

#[test]
fn settings_that_contradict_the_table_are_named() {
    let mut job = job(BASE_SCHEMA);
    job.upsert(&[row! {"id": "a", "ts": 1, "v": "x"}]);
    job.feed(&[row! {"id": "b", "ts": 1, "v": "x"}]);
    for (key, value) in
        [("hoodie.datasource.write.recordkey.field", "v"), ("hoodie.datasource.write.partitionpath.field", "v")]
    {
        let before = job.table.timeline();
        job.call.clone().conf(key, value).run().fails_with_any(&["v"]);
        assert_eq!(before, job.table.timeline());
    }
}

const SHOP: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},{"name":"cat","type":["null","string"],"default":null}]}"#;

/// Case 10 C and D.
#[test]
fn a_partition_value_never_leaves_the_table() {
    for value in ["..", "../../out", "/abs", ".hoodie"] {
        let mut job = Job::new(SHOP, Model::new(&["id", "ts", "cat"]), |call| call.partitioned("cat"));
        job.feed(&[row! {"id": "r0", "ts": 1, "cat": "fine"}, row! {"id": "r1", "ts": 1, "cat": value}]);
        fails_and_leaves_no_trace(&job.table, &job.call, &[value]);
        let mut around: BTreeSet<String> = std::fs::read_dir(job.scratch.path(""))
            .expect("list")
            .map(|e| e.expect("list").file_name().to_string_lossy().into())
            .collect();
        around.remove("table");
        assert_eq!(around, ["in", "schema.avsc"].map(str::to_owned).into(), "something was made outside the table");
        assert!(!job.table.files().iter().any(|f| f.starts_with(".hoodie") && f.ends_with(".parquet")));
    }
}

#[test]
fn rows_that_spark_would_lose_in_a_nested_partition_are_refused() {
    let mut job = Job::new(SHOP, Model::new(&["id", "ts", "cat"]), |call| call.partitioned("cat"));
    job.feed(&[row! {"id": "r0", "ts": 1, "cat": "a"}, row! {"id": "r1", "ts": 1, "cat": "a/b"}]);
    fails_and_leaves_no_trace(&job.table, &job.call, &["a/b"]);
    job.call = job.call.clone().conf("hoodie.datasource.write.partitionpath.urlencode", "true");
    // A table that was begun keeps its way of writing paths; a new one has no such rows.
    job.call = job.call.clone().flag("--target-base-path", job.scratch.path("encoded"));
    job.table = Table::at(job.scratch.path("encoded"));
    job.round("UPSERT");
    assert_eq!(written(&job.table), 2);
}

/// The same where the partitions are known only once rows are written, and where the other one is in the table already.
#[test]
fn a_nested_partition_is_refused_in_a_bulk_insert_and_against_the_table() {
    let row = |id: &str, cat: &str| row! {"id": id, "ts": 1, "cat": cat};
    let job = || Job::new(SHOP, Model::new(&["id", "ts", "cat"]), |call| call.partitioned("cat"));
    let mut bulk = job();
    bulk.feed(&[row("r0", "a"), row("r1", "a/b")]);
    bulk.call.clone().op("BULK_INSERT").run().fails_with_any(&["a/b"]);
    assert!(bulk.table.commits().is_empty() && bulk.table.base_files().is_empty());
    for op in ["UPSERT", "BULK_INSERT"] {
        for (first, second) in [("a", "a/b"), ("a/b", "a")] {
            let mut job = job();
            job.feed(&[row("r0", first)]);
            job.call.clone().op(op).run().ok();
            job.feed(&[row("r1", second)]);
            job.call.clone().op(op).run().fails_with_any(&["a/b"]);
            assert_eq!(job.table.commits().len(), 1, "{op} {second} beside {first}");
        }
    }
}
