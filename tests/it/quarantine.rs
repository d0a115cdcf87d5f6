//! Bad records by policy: the round fails, leaves them out up to a ceiling, or keeps them in the error table.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray};
use arrow::util::display::array_value_to_string;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::support::*;

const POLICY: &str = "hoodie.streamer.source.bad.records.policy";
const MAX_ROWS: &str = "hoodie.streamer.source.bad.records.max.rows";
const MAX_PERCENT: &str = "hoodie.streamer.source.bad.records.max.percent";

/// Everything may be null in the file, so that what is wrong shows only when a record is made of the row.
const NULLABLE: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":["null","string"],"default":null},
 {"name":"ts","type":["null","long"],"default":null},{"name":"cat","type":["null","string"],"default":null},
 {"name":"l","type":["null",{"type":"array","items":["null","int"]}],"default":null}]}"#;

/// Good rows are `k0`, `k1`, …; between them, each kind of bad record once.
const LINES: &[&str] = &[
    r#"{"id":"k0","ts":1,"cat":"a"}"#,
    r#"{"id":"cut","ts":"#,
    r#"{"id":null,"ts":2,"cat":"a"}"#,
    r#"{"id":"k1","ts":3,"cat":"b"}"#,
    r#"{"id":"","ts":4,"cat":"a"}"#,
    r#"{"id":"lost","ts":null,"cat":"a"}"#,
    r#"{"id":"out","ts":6,"cat":".."}"#,
    r#"{"id":"hole","ts":7,"cat":"a","l":[1,null]}"#,
    r#"{"id":"k2","ts":8,"cat":"a","l":[1,2]}"#,
];
const GOOD: u64 = 3;
/// Number of the line, the code of what is wrong with it.
const BAD: &[(usize, &str)] = &[
    (2, "json-malformed"),
    (3, "record-null-key"),
    (5, "record-null-key"),
    (6, "record-null-ordering"),
    (7, "record-bad-partition"),
    (8, "schema-row"),
];

fn job() -> (Job, String) {
    job_of(LINES)
}

fn job_of(lines: &[&str]) -> (Job, String) {
    let mut job = Job::new(NULLABLE, Model::new(&["id", "ts", "cat"]), |call| call.partitioned("cat"));
    let name = job.feed_text(&lines.join("\n"));
    (job, name)
}

/// Rows that the newest commit says it wrote.
fn written(table: &Table) -> u64 {
    let metadata = table.commit_metadata(&table.last_commit());
    let partitions = metadata["partitionToWriteStats"].as_object().expect("statistics");
    let stats = partitions.values().flat_map(|stats| stats.as_array().expect("a list"));
    stats.map(|s| s["numWrites"].as_u64().expect("a number")).sum()
}

/// Of the kinds of bad records those that an operation minds: a bulk insert has no ordering value to miss.
fn minded(op: &str) -> Vec<&'static (usize, &'static str)> {
    BAD.iter().filter(|(_, code)| op == "UPSERT" || *code != "record-null-ordering").collect()
}

/// An upsert reads before it writes, a bulk insert while it writes, sorted or not.
fn every_way(call: &Streamer) -> [(&'static str, Streamer); 4] {
    let bulk = call.clone().op("BULK_INSERT");
    [
        ("UPSERT", call.clone()),
        ("BULK_INSERT", bulk.clone()),
        ("BULK_INSERT", bulk.clone().conf("hoodie.bulkinsert.sort.mode", "GLOBAL_SORT")),
        ("BULK_INSERT", bulk.conf("hoodie.bulkinsert.sort.mode", "PARTITION_SORT")),
    ]
}

#[test]
fn a_failed_round_names_the_first_bad_record_and_how_many_there_are() {
    let (job, name) = job();
    for (op, call) in every_way(&job.call) {
        let (first, count) = (format!("{name}:2: "), format!("first of {} bad records", minded(op).len()));
        call.run().fails_with(1, &["error[json-malformed]", &first, &count, "policy=skip"]);
        call.switch("--dry-run").run().fails_with(1, &["error[json-malformed]", &first, &count]);
        assert!(job.table.commits().is_empty() && job.table.base_files().is_empty(), "{op}");
    }
    // Each kind is found when it is alone.
    for (line, code) in BAD {
        let (job, name) = job_of(&[LINES[0], LINES[line - 1], LINES[3]]);
        job.call.run().fails_with(1, &[&format!("error[{code}]"), &format!("{name}:2: ")]);
    }
}

#[test]
fn skipped_records_are_warned_of_and_counted() {
    for i in 0..4 {
        let (job, name) = job();
        let (op, call) = every_way(&job.call.clone().conf(POLICY, "skip"))[i].clone();
        let minded = minded(op);
        let mut run = call.run().ok().says(&["round committed", &format!("rows_skipped={}", minded.len())]);
        for (line, _) in &minded {
            run = run.says(&["WARN", "record skipped", &format!("{name}:{line}")]);
        }
        let lost = u64::from(op != "UPSERT");
        assert_eq!((written(&job.table), job.table.checkpoint()), (GOOD + lost, job.position()), "{op}\n{run}");
        assert!(job.table.base_files().iter().all(|f| f.starts_with("a/") || f.starts_with("b/")));
        job.makes_no_instant(&call);
    }
}

#[test]
fn only_the_first_skipped_records_are_shown() {
    let mut job = Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| call);
    let lines: Vec<String> = (0..50).map(|i| format!("{{\"id\":\"k{i}\",\"ts\":1}}\nbad {i}\n")).collect();
    job.feed_text(&lines.concat());
    let run = job.call.clone().conf(POLICY, "skip").run().ok().says(&["WARN", "50 records skipped"]);
    let shown: Vec<&str> = run.stderr.lines().filter(|l| l.contains("record skipped")).collect();
    assert_eq!(shown.len(), 10, "{run}");
    assert!(shown[0].contains("round-001.json:2") && shown[9].contains("round-001.json:20"), "{run}");
}

#[test]
fn a_ceiling_fails_a_round_that_skips() {
    let (job, name) = job();
    for (op, call) in every_way(&job.call.clone().conf(POLICY, "skip")) {
        let count = minded(op).len();
        for (key, too_low) in [(MAX_ROWS, count - 1), (MAX_PERCENT, 100 * count / LINES.len())] {
            let run = call.clone().conf(key, too_low.to_string()).run();
            run.fails_with(1, &[&format!("{name}:2: "), &format!("first of {count} bad"), key, &too_low.to_string()]);
            assert!(job.table.commits().is_empty() && job.table.base_files().is_empty(), "{op}");
        }
    }
    let call = job.call.clone().conf(POLICY, "skip");
    let enough = call.conf(MAX_ROWS, BAD.len().to_string()).conf(MAX_PERCENT, "66.7");
    job.commits(&enough);
    assert_eq!(written(&job.table), GOOD);
}

/// Behind SQL a row has no line any more; it is refused all the same.
#[test]
fn rows_behind_a_transformer_are_skipped_too() {
    let (job, name) = job();
    let call = job.call.clone().flag("--transformer-class", "SqlQueryBasedTransformer");
    let call = call.conf("hoodie.streamer.transformer.sql", "SELECT * FROM <SRC>");
    call.run().fails_with(1, &[&format!("{name}:2: "), &format!("first of {} bad records", BAD.len())]);
    let run = call.conf(POLICY, "skip").run().ok();
    run.says(&["record skipped", "a row of the transformers", "id is null"]).says(&["record skipped", &name]);
    assert_eq!(written(&job.table), GOOD);
}

const ERROR_TABLE: [&str; 3] =
    ["hoodie.errortable.enable", "hoodie.errortable.base.path", "hoodie.errortable.target.table.name"];

/// The call with an error table `errors/`.
fn quarantining(job: &Job, call: &Streamer) -> (Streamer, Table) {
    let errors = job.scratch.path("errors");
    let [enable, path, name] = ERROR_TABLE;
    (call.clone().conf(enable, "true").conf(path, &errors).conf(name, "trips_errors"), Table::at(errors))
}

/// The rows that a reader of the table sees, as text, by record key.
pub fn error_rows(table: &Table) -> BTreeMap<String, BTreeMap<String, Option<String>>> {
    let commits = table.commits();
    // The newest completed version of each file group: `fileId_token_instant.parquet`.
    let mut newest: BTreeMap<String, (String, String)> = BTreeMap::new();
    for file in table.base_files() {
        let (group, instant) =
            (file.split('_').next(), file.rsplit('_').next().and_then(|i| i.strip_suffix(".parquet")));
        let (group, instant) = (group.expect("a file group").to_owned(), instant.expect("an instant").to_owned());
        if commits.contains(&instant) && newest.get(&group).is_none_or(|(before, _)| *before < instant) {
            newest.insert(group, (instant, file));
        }
    }
    let mut rows = BTreeMap::new();
    for (_, file) in newest.into_values() {
        let file = std::fs::File::open(table.path.join(file)).expect("open a base file");
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|b| b.build()).expect("read a base file");
        for batch in reader {
            let batch = batch.expect("read a base file");
            let text = |column: usize, row: usize| {
                let array = batch.column(column);
                let bytes = array.as_binary_opt::<i32>().map(|b| String::from_utf8_lossy(b.value(row)).into_owned());
                array.is_valid(row).then(|| bytes.unwrap_or_else(|| array_value_to_string(array, row).expect("text")))
            };
            for row in 0..batch.num_rows() {
                let names = batch.schema_ref().fields().iter().map(|f| f.name().clone());
                let values: BTreeMap<_, _> = names.enumerate().map(|(i, name)| (name, text(i, row))).collect();
                let key = values["record_key"].clone().expect("a key");
                assert!(rows.insert(key.clone(), values).is_none(), "{key} is there twice");
            }
        }
    }
    rows
}

/// Every bad line is in the error table as it stood in the file, under its place, with what is wrong with it.
#[track_caller]
fn has_the_bad_lines(job: &Job, errors: &Table, file: &str, op: &str) {
    let rows = error_rows(errors);
    let path = job.scratch.path("in").join(file);
    let want: BTreeMap<String, (&str, &str)> = minded(op)
        .iter()
        .map(|(line, code)| {
            let offset: usize = LINES[..line - 1].iter().map(|l| l.len() + 1).sum();
            (format!("{}:{offset}", path.display()), (*code, LINES[line - 1]))
        })
        .collect();
    let got: BTreeMap<String, (&str, &str)> = rows
        .iter()
        .map(|(key, row)| {
            let text = |name: &str| row[name].as_deref().expect("never null");
            assert_eq!(key, &format!("{}:{}", text("source"), text("source_offset")));
            assert_eq!((text("target_table"), text("checkpoint")), ("trips", job.position().as_str()));
            assert!(!text("message").is_empty() && row["source_partition"].is_none());
            let reason = match text("code") {
                "json-malformed" => "JSON_AVRO_DESERIALIZATION_FAILURE",
                "schema-row" => "INVALID_RECORD_SCHEMA",
                _ => "RECORD_CREATION",
            };
            assert_eq!(text("reason"), reason);
            (key.clone(), (text("code"), text("value")))
        })
        .collect();
    assert_eq!(got, want, "{op}");
}

#[test]
fn quarantined_records_are_in_the_error_table_as_they_came() {
    for i in 0..4 {
        let (job, name) = job();
        let (call, errors) = quarantining(&job, &job.call);
        let (op, call) = every_way(&call)[i].clone();
        let count = minded(op).len();
        let said = ["record quarantined in ", errors.str(), &format!("{name}:2")];
        let run = call.run().ok().says(&said).says(&[
            "round committed",
            &format!("rows_quarantined={count}"),
            "rows_skipped=0",
        ]);
        let lost = u64::from(op != "UPSERT");
        assert_eq!((written(&job.table), job.table.checkpoint()), (GOOD + lost, job.position()), "{op}\n{run}");
        has_the_bad_lines(&job, &errors, &name, op);
        assert_eq!((errors.commits().len(), errors.checkpoint()), (1, job.position()));
        assert!(errors.pending().is_empty());
        let schema = errors.commit_metadata(&errors.last_commit())["extraMetadata"]["schema"].to_string();
        assert!(schema.contains("as it came"), "columns are explained in the schema: {schema}");
        if peers_enabled() && op == "UPSERT" {
            for reader in [SPARK_0_15, SPARK_1_0] {
                assert_eq!(oracle(reader).read(errors.str()).len(), count, "{reader:?}");
            }
            oracle(SPARK_0_15).validate(errors.str(), false);
        }
    }
}

/// A round without bad records leaves the error table alone; a dry run leaves everything alone.
#[test]
fn the_error_table_is_touched_only_when_there_is_something_to_put_there() {
    let (mut job, _) = job_of(&LINES[..1]);
    let (call, errors) = quarantining(&job, &job.call);
    job.commits(&call);
    assert!(errors.timeline().is_empty(), "no table yet");
    job.feed_text(LINES[1]);
    job.makes_no_instant(&call.clone().switch("--dry-run"));
    assert!(errors.timeline().is_empty(), "no table yet");
    job.commits(&call);
    assert_eq!((written(&job.table), error_rows(&errors).len()), (0, 1));
    let call = call.conf(MAX_ROWS, "0");
    job.feed_text(LINES[2]);
    let before = errors.timeline();
    call.run().fails_with(1, &["error[record-null-key]", MAX_ROWS]);
    assert_eq!(before, errors.timeline(), "a round that fails quarantines nothing");
    job.call = call.without(MAX_ROWS);
    job.commits(&job.call);
    assert_eq!((errors.commits().len(), error_rows(&errors).len()), (2, 2));
}

/// Killed between the two commits, or before the first, the job puts the same records there once.
#[test]
fn a_crash_between_the_two_commits_doubles_nothing() {
    for op in ["UPSERT", "BULK_INSERT"] {
        for (point, quarantined) in [("before-complete:1", false), ("after-quarantine", true), ("after-complete", true)]
        {
            let (job, name) = job();
            let (call, errors) = quarantining(&job, &job.call.clone().op(op));
            call.clone().env("HUDI_STREAMER_FAULT", point).run().killed();
            assert!(job.table.commits().is_empty(), "{op} {point}: the data is not committed before its bad records");
            assert_eq!(!errors.commits().is_empty(), quarantined, "{op} {point}");
            job.commits(&call);
            has_the_bad_lines(&job, &errors, &name, op);
            assert!(errors.pending().is_empty() && job.table.pending().is_empty(), "{op} {point}");
            job.makes_no_instant(&call);
        }
    }
}

/// Behind SQL a row has no place: its text is kept, once, also when the round is done again.
#[test]
fn rows_behind_a_transformer_are_quarantined_as_json() {
    let (job, _) = job();
    let call = job.call.clone().flag("--transformer-class", "SqlQueryBasedTransformer");
    let call = call.conf("hoodie.streamer.transformer.sql", "SELECT id, ts, cat, 'extra' AS e FROM <SRC>");
    let (call, errors) = quarantining(&job, &call);
    call.clone().env("HUDI_STREAMER_FAULT", "after-quarantine").run().killed();
    let killed: BTreeSet<String> = error_rows(&errors).into_keys().collect();
    job.commits(&call);
    let rows = error_rows(&errors);
    assert_eq!(rows.keys().cloned().collect::<BTreeSet<_>>(), killed);
    let values: BTreeSet<&str> = rows.values().filter_map(|r| r["value"].as_deref()).collect();
    let want = [
        LINES[1],
        r#"{"id":null,"ts":2,"cat":"a","e":"extra"}"#,
        r#"{"id":"","ts":4,"cat":"a","e":"extra"}"#,
        r#"{"id":"lost","ts":null,"cat":"a","e":"extra"}"#,
        r#"{"id":"out","ts":6,"cat":"..","e":"extra"}"#,
    ];
    assert_eq!(values, want.into());
    assert!(rows.values().filter(|r| r["value"].as_deref() != Some(LINES[1])).all(|r| r["source"].is_none()));
}

#[test]
fn an_error_table_that_cannot_be_written_fails_the_round_and_leaves_the_table() {
    let (job, _) = job();
    let (call, errors) = quarantining(&job, &job.call);
    job.scratch.file("errors", "no folder");
    call.run().fails_with_any(&["error table", errors.str()]);
    assert!(job.table.commits().is_empty() && job.table.base_files().is_empty());
    std::fs::remove_file(&errors.path).expect("remove it");
    // A table of another job is not an error table.
    let other = Streamer::json(&job.scratch).flag("--target-base-path", &errors.path).op("BULK_INSERT");
    other.conf(POLICY, "skip").run().ok();
    call.run().fails_with(2, &["error[table-config-conflict]", "error table", "record key"]);
    assert!(job.table.commits().is_empty());
}
