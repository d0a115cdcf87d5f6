//! The same files stay, and the same is said of those that go, whether Hudi 0.15 cleans a table or we do.

use super::*;
use std::process::Command;

/// Of a table, in a folder of its own.
pub(super) fn copy_of(table: &Table, scratch: &Scratch, name: &str) -> Table {
    let to = scratch.path(name);
    let copied = Command::new("cp").arg("-r").arg(&table.path).arg(&to).status().expect("run cp");
    assert!(copied.success());
    Table::at(to)
}

pub(super) fn spark_cleans(table: &Table, with: &[(&str, &str)]) {
    let mut conf = vec!["hoodie.metadata.enable=false".to_string()];
    conf.extend(with.iter().map(|(key, value)| format!("{key}={value}")));
    // The oracle's own settings name a policy.
    let policy = match with.iter().find(|(key, _)| key.ends_with(".retained")).map(|(key, _)| *key) {
        Some("hoodie.cleaner.fileversions.retained") => "KEEP_LATEST_FILE_VERSIONS",
        Some("hoodie.cleaner.hours.retained") => "KEEP_LATEST_BY_HOURS",
        _ => "KEEP_LATEST_COMMITS",
    };
    conf.push(format!("hoodie.cleaner.policy={policy}"));
    let conf: Vec<&str> = conf.iter().map(String::as_str).collect();
    oracle(SPARK_0_15).service(table.str(), "clean", &conf);
}

/// What no two cleans have in common left out, and lists in order.
fn comparable(table: &Table, mut value: Value) -> Value {
    fn settle(value: &mut Value, place: &str) {
        match value {
            Value::Object(fields) => {
                for own in ["startCleanTime", "timeTakenInMillis"] {
                    fields.remove(own);
                }
                fields.values_mut().for_each(|value| settle(value, place));
            }
            Value::Array(items) => {
                items.iter_mut().for_each(|value| settle(value, place));
                items.sort_by_key(Value::to_string);
            }
            Value::String(text) => *text = text.replace(place, ""),
            _ => {}
        }
    }
    settle(&mut value, table.str());
    value
}

/// Data files, and what the newest clean says in its plan and in its record.
fn outcome(table: &Table) -> (Vec<String>, Vec<Value>) {
    let data = table.base_files().into_iter().chain(table.log_files()).collect();
    let last = cleans(table).pop();
    let told = last.iter().flat_map(|last| {
        ["clean.requested", "clean.inflight", "clean"]
            .map(|state| comparable(table, record(table, &format!("{last}.{state}"))))
    });
    (data, told.collect())
}

/// Both clean a copy. Whether anything was cleaned.
fn both_clean(what: &str, table: &Table, scratch: &Scratch, with: &[(&str, &str)]) -> bool {
    println!("{what}, {with:?}");
    let before = cleans(table).len();
    let [ours, theirs] =
        ["ours", "theirs"].map(|whose| copy_of(table, scratch, &format!("{whose}-{what}-{}", with[0].0)));
    clean(&ours, with).run().ok();
    spark_cleans(&theirs, with);
    assert_eq!(outcome(&ours), outcome(&theirs), "{what}, {with:?}");
    oracle(SPARK_0_15).validate(ours.str(), true);
    cleans(&ours).len() > before
}

const ONE_COMMIT: (&str, &str) = ("hoodie.cleaner.commits.retained", "1");

#[test]
fn our_tables_are_cleaned_by_us_as_by_spark() {
    needs_peers!();
    let cow = after("COPY_ON_WRITE", 5, &[NEVER]);
    let mor = after("MERGE_ON_READ", 7, &[NEVER, ("hoodie.compact.inline.max.delta.commits", "2")]);
    let mut pending = job("MERGE_ON_READ", &[NEVER, ("hoodie.compact.inline.max.delta.commits", "2")]);
    (1..=6).for_each(|ts| drop(pending.upsert(&rows(ts))));
    pending.compact("schedule").run().ok();
    pending.call = pending.call.clone().switch("--disable-compaction");
    (7..=8).for_each(|ts| drop(pending.upsert(&rows(ts))));
    for (what, job) in [("cow", cow), ("mor", mor), ("pending", pending)] {
        for policy in [COMMITS, ONE_COMMIT, VERSIONS] {
            let cleaned = both_clean(&format!("{what}-{}", policy.1), &job.table, &job.scratch, &[policy]);
            assert!(cleaned, "{what} {policy:?}: nothing was old");
        }
        assert!(!both_clean(what, &job.table, &job.scratch, &[HOURS]), "{what}: nothing is an hour old");
    }
}

#[test]
fn savepoints_are_kept_by_us_as_by_spark() {
    needs_peers!();
    let mut job = after("COPY_ON_WRITE", 2, &[NEVER]);
    Streamer::bare().after(&["savepoint", "create"]).flag("--target-base-path", &job.table.path).run().ok();
    (3..=5).for_each(|ts| drop(job.upsert(&rows(ts))));
    for policy in [ONE_COMMIT, VERSIONS] {
        assert!(both_clean("savepoint", &job.table, &job.scratch, &[policy]));
    }
}

#[test]
fn golden_tables_are_cleaned_by_us_as_by_spark() {
    needs_peers!();
    for name in [
        "v6_cow_part",
        "v6_cow_nonpart",
        "v6_cow_insert_overwrite",
        "v6_cow_clustering",
        "v6_cow_mdt_all",
        "v6_mor_compacted",
        "v6_mor_compaction_pending",
        "v6_mor_logs",
        "cow_v6_by_1x_1.0.2",
    ] {
        let golden = Golden::open(name);
        let cleaned = [ONE_COMMIT, VERSIONS].map(|policy| both_clean(name, &golden.table, &golden.scratch, &[policy]));
        assert!(cleaned.contains(&true), "{name}: nothing was old");
    }
}

/// Of a table whose first commits have become two days old.
#[test]
fn hours_are_counted_by_us_as_by_spark() {
    needs_peers!();
    let job = after("COPY_ON_WRITE", 5, &[NEVER]);
    let old: Vec<(String, String)> = job.table.commits()[..3]
        .iter()
        .map(|instant| (instant.clone(), format!("20200101{}", &instant[8..])))
        .collect();
    for file in job.table.files() {
        if let Some((new, aged)) = old.iter().find(|(new, _)| file.contains(new)) {
            let to = file.replace(new, aged);
            fs::rename(job.table.path.join(&file), job.table.path.join(to)).expect("rename");
        }
    }
    assert!(both_clean("hours", &job.table, &job.scratch, &[HOURS]));
}

/// One clean goes on where the other has ended.
#[test]
fn spark_cleans_on_from_ours_and_we_from_spark_s() {
    needs_peers!();
    let mut job = after("COPY_ON_WRITE", 4, &[NEVER]);
    for ts in 5..=8 {
        match ts % 2 {
            0 => spark_cleans(&job.table, &[ONE_COMMIT]),
            _ => drop(clean(&job.table, &[ONE_COMMIT]).run().ok()),
        }
        let commits = job.table.commits();
        assert_versions(&job.table, &commits[commits.len() - 2..]);
        job.upsert(&rows(ts));
    }
    assert_eq!(cleans(&job.table).len(), 4);
    job.check();
}
