//! Bad records by policy: the round fails, leaves them out up to a ceiling, or keeps them in the error table.

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
