//! Old files go, and readers, savepoints and compactions find what they need all the same.

mod crash;
mod spark;

use std::collections::BTreeMap;
use std::fs;

use crate::support::*;

const SCHEMA: &str = r#"{"type":"record","name":"trip","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},{"name":"v","type":["null","string"],"default":null},
 {"name":"part","type":"string"}]}"#;

const COMMITS: (&str, &str) = ("hoodie.cleaner.commits.retained", "2");
const VERSIONS: (&str, &str) = ("hoodie.cleaner.fileversions.retained", "1");
const HOURS: (&str, &str) = ("hoodie.cleaner.hours.retained", "1");
const NEVER: (&str, &str) = ("hoodie.clean.automatic", "false");

/// One row in each of two partitions.
fn rows(ts: i64) -> Vec<Row> {
    ["a", "b"].map(|part| row! {"id": format!("k-{part}"), "ts": ts, "v": format!("v{ts}"), "part": part}).to_vec()
}

fn job(table_type: &str, with: &[(&str, &str)]) -> Job {
    let model = Model::new(&["id", "ts", "v", "part"]).partitioned("part");
    Job::new(SCHEMA, model, |call| {
        let call = call.flag("--table-type", table_type).partitioned("part");
        with.iter().fold(call, |call, (key, value)| call.conf(key, value))
    })
}

/// A job that has made so many commits, each of which has updated every row.
fn after(table_type: &str, commits: i64, with: &[(&str, &str)]) -> Job {
    let mut job = job(table_type, with);
    (1..=commits).for_each(|ts| drop(job.upsert(&rows(ts))));
    job
}

/// `hudi-streamer clean`
fn clean(table: &Table, with: &[(&str, &str)]) -> Streamer {
    let call = Streamer::bare().after(&["clean"]).flag("--target-base-path", &table.path);
    with.iter().fold(call, |call, (key, value)| call.conf(key, value))
}

/// Instants of base files by partition.
fn versions(table: &Table) -> BTreeMap<String, Vec<String>> {
    let mut versions = BTreeMap::<String, Vec<String>>::new();
    for file in table.base_files() {
        let (partition, name) = file.rsplit_once('/').expect("a partition");
        let instant = name.trim_end_matches(".parquet").rsplit('_').next().expect("an instant");
        versions.entry(partition.to_string()).or_default().push(instant.to_string());
    }
    versions.values_mut().for_each(|instants| instants.sort());
    versions
}

/// Of both partitions.
#[track_caller]
fn assert_versions(table: &Table, want: &[String]) {
    let want: BTreeMap<String, Vec<String>> = ["a", "b"].map(|part| (part.to_string(), want.to_vec())).into();
    assert_eq!(versions(table), want);
}

fn instants(table: &Table, ending: &str) -> Vec<String> {
    let names = table.timeline().into_iter();
    names.filter_map(|name| Some(name.strip_suffix(ending)?.to_string())).filter(|name| !name.contains('.')).collect()
}

/// Completed cleans.
fn cleans(table: &Table) -> Vec<String> {
    instants(table, ".clean")
}

/// The record of an Avro file of the timeline.
fn record(table: &Table, name: &str) -> Value {
    let bytes = fs::read(table.path.join(".hoodie").join(name)).expect("a file of the timeline");
    let mut records = apache_avro::Reader::new(&bytes[..]).expect("Avro");
    Value::try_from(records.next().expect("a record").expect("a record")).expect("JSON")
}

#[test]
fn readers_of_the_retained_commits_find_their_files() {
    let job = after("COPY_ON_WRITE", 6, &[COMMITS]);
    let commits = job.table.commits();
    // The last two, and what readers as of the earlier one see.
    assert_versions(&job.table, &commits[3..]);
    let cleans = cleans(&job.table);
    assert_eq!(cleans.len(), 3, "one behind each commit from the fourth on");
    let done = record(&job.table, &format!("{}.clean", cleans[2]));
    assert_eq!(done["earliestCommitToRetain"], json!(commits[4]));
    assert_eq!(done["lastCompletedCommitTimestamp"], json!(commits[5]));
    assert_eq!(done["totalFilesDeleted"], json!(2));
    let [requested, inflight] = ["requested", "inflight"]
        .map(|state| fs::read(job.table.path.join(format!(".hoodie/{}.clean.{state}", cleans[2]))).expect("a plan"));
    assert_eq!(requested, inflight);
    if peers_enabled() {
        job.check();
        oracle(SPARK_0_15).validate(job.table.str(), false);
    }
}

#[test]
fn versions_and_hours_are_kept_too() {
    let job = after("COPY_ON_WRITE", 4, &[VERSIONS]);
    assert_versions(&job.table, &job.table.commits()[3..]);
    let last = cleans(&job.table).pop().expect("a clean");
    assert_eq!(record(&job.table, &format!("{last}.clean"))["earliestCommitToRetain"], json!(""));

    let job = after("COPY_ON_WRITE", 4, &[HOURS]);
    assert_versions(&job.table, &job.table.commits());
    assert_eq!(cleans(&job.table), Vec::<String>::new());
}

#[test]
fn a_job_that_is_not_to_clean_does_not() {
    for off in [NEVER, ("hoodie.table.services.enabled", "false")] {
        let job = after("COPY_ON_WRITE", 4, &[VERSIONS, off]);
        assert_versions(&job.table, &job.table.commits());
    }
    let job = after("COPY_ON_WRITE", 6, &[VERSIONS, ("hoodie.clean.max.commits", "3")]);
    assert_eq!(cleans(&job.table).len(), 2);
}

#[test]
fn slices_that_compaction_has_folded_go() {
    let compacting = ("hoodie.compact.inline.max.delta.commits", "1");
    let job = after("MERGE_ON_READ", 6, &[VERSIONS, compacting]);
    // Compaction follows the clean: what it has made old goes behind the next commit.
    let compactions = job.table.compactions();
    assert_versions(&job.table, &compactions[compactions.len() - 2..]);
    assert!(job.table.log_files().len() <= 4, "{:?}", job.table.log_files());
    if peers_enabled() {
        job.check();
        oracle(SPARK_0_15).validate(job.table.str(), false);
    }
}

#[test]
fn what_a_pending_compaction_reads_stays() {
    let planning = ("hoodie.compact.schedule.inline", "true");
    let mut job = job("MERGE_ON_READ", &[VERSIONS, planning, ("hoodie.compact.inline.max.delta.commits", "2")]);
    job.call = job.call.switch("--disable-compaction");
    (1..=4).for_each(|ts| drop(job.upsert(&rows(ts))));
    assert_eq!(job.table.pending_compactions().len(), 1);
    let (base_files, log_files) = (job.table.base_files(), job.table.log_files());
    let looked = clean(&job.table, &[VERSIONS]).run().ok();
    assert!(looked.stdout.contains("no clean is due"), "{looked}");
    assert_eq!((job.table.base_files(), job.table.log_files()), (base_files, log_files));
    job.compact("execute").run().ok();
    clean(&job.table, &[VERSIONS, ("hoodie.clean.max.commits", "0")]).run().ok();
    assert_versions(&job.table, &job.table.compactions());
    if peers_enabled() {
        job.check();
    }
}

#[test]
fn a_savepoint_keeps_its_files_until_it_is_deleted() {
    let mut job = after("COPY_ON_WRITE", 1, &[VERSIONS]);
    let first = job.table.last_commit();
    let savepoint = |word: &str| {
        Streamer::bare()
            .after(&["savepoint", word])
            .flag("--target-base-path", &job.table.path)
            .flag("--instant", &first)
    };
    savepoint("create").run().ok();
    let delete = savepoint("delete");
    (2..=4).for_each(|ts| drop(job.upsert(&rows(ts))));
    assert_versions(&job.table, &[first.clone(), job.table.last_commit()]);
    delete.run().ok();
    job.upsert(&rows(5));
    assert_versions(&job.table, &[job.table.last_commit()]);
}

#[test]
fn an_operator_cleans_what_a_job_did_not() {
    let job = after("COPY_ON_WRITE", 4, &[NEVER]);
    let before = job.table.files();
    let call = clean(&job.table, &[VERSIONS]);
    let would = call.clone().switch("--dry-run").run().ok().stdout;
    assert!(would.contains("6 files of 2 partitions would be deleted"), "{would}");
    let json: Value =
        serde_json::from_str(&call.clone().switch("--dry-run").switch("--json").run().ok().stdout).expect("JSON");
    assert_eq!(json["files"]["a"].as_array().map(Vec::len), Some(3), "{json}");
    assert_eq!(job.table.files(), before, "a dry run writes nothing");
    let done = call.clone().run().ok().stdout;
    assert!(done.contains("6 files of 2 partitions deleted"), "{done}");
    assert_versions(&job.table, &job.table.commits()[3..]);
    assert!(call.run().ok().stdout.contains("no clean is due"));
}

#[test]
fn a_continuous_job_cleans_beside_its_rounds() {
    for table_type in TABLE_TYPES {
        let with = [VERSIONS, ("hoodie.clean.async", "true"), ("hoodie.compact.inline.max.delta.commits", "1")];
        let mut job = job(table_type, &with);
        job.call = job.call.switch("--continuous").flag("--min-sync-interval-seconds", "0");
        let running = job.call.start();
        for ts in 1..=6 {
            job.move_in(&rows(ts));
            wait_for("a commit", || job.table.writes().len() == ts as usize);
            job.model.upsert(&job.table.last_write(), &rows(ts));
        }
        wait_for("a clean", || !cleans(&job.table).is_empty());
        running.signal("TERM");
        running.finish().ok();
        assert_eq!(instants(&job.table, ".clean.requested"), cleans(&job.table), "{table_type}: none is pending");
        let left = versions(&job.table);
        assert!(left.values().all(|instants| instants.len() < 6), "{table_type}: {left:?}");
        if peers_enabled() {
            job.check();
            oracle(SPARK_0_15).validate(job.table.str(), false);
        }
    }
}
