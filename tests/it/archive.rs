//! Old instants leave the timeline: readers, writers and jobs find what they need all the same, ours and Spark's.

use std::collections::BTreeSet;
use std::fs;

use crate::support::*;

const SCHEMA: &str = r#"{"type":"record","name":"trip","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},{"name":"v","type":["null","string"],"default":null},
 {"name":"part","type":"string"}]}"#;

/// What every writer of these tables is told, Spark too.
const SMALL: [(&str, &str); 5] = [
    ("hoodie.keep.min.commits", "2"),
    ("hoodie.keep.max.commits", "3"),
    ("hoodie.cleaner.commits.retained", "1"),
    ("hoodie.parquet.small.file.limit", "0"),
    ("hoodie.compact.inline.max.delta.commits", "2"),
];

fn rows(keys: std::ops::Range<i64>, ts: i64) -> Vec<Row> {
    let row =
        |i: i64| row! {"id": format!("k{i:03}"), "ts": ts, "v": format!("{i}-{ts}"), "part": format!("p{}", i % 3)};
    keys.map(row).collect()
}

fn job(table_type: &str) -> Job {
    let model = Model::new(&["id", "ts", "v", "part"]).partitioned("part");
    Job::new(SCHEMA, model, |call| {
        let call = call.flag("--table-type", table_type).partitioned("part");
        SMALL.into_iter().fold(call, |call, (key, value)| call.conf(key, value))
    })
}

/// `hudi-streamer archive` of this job's table.
fn archive(job: &Job) -> Streamer {
    let call = Streamer::bare().after(&["archive"]).flag("--target-base-path", &job.table.path);
    SMALL.into_iter().fold(call, |call, (key, value)| call.conf(key, value))
}

/// A round of the job; some older instants may go with it.
#[track_caller]
fn round(job: &mut Job, call: &Streamer, rows: &[Row]) -> String {
    let before = job.table.writes().pop();
    job.feed(rows);
    let run = call.run().ok();
    let instant = job.table.last_write();
    assert!(Some(&instant) > before.as_ref(), "a commit was expected\n{run}");
    job.model.upsert(&instant, rows);
    instant
}

/// States in the files of the archived timeline, whatever else they hold.
fn archived_states(table: &Table) -> usize {
    let Ok(files) = fs::read_dir(table.path.join(".hoodie/archived")) else { return 0 };
    let count = |bytes: &[u8], word: &str| bytes.windows(word.len()).filter(|w| *w == word.as_bytes()).count();
    files
        .map(|file| fs::read(file.expect("list the archived timeline").path()).expect("read a file of it"))
        .map(|bytes| ["REQUESTED", "INFLIGHT", "COMPLETED"].iter().map(|state| count(&bytes, state)).sum::<usize>())
        .sum()
}

/// By the instants' names, what Spark finds in the archived timeline.
fn archived(spark: Reader, table: &Table) -> BTreeSet<String> {
    let entries = oracle(spark).archived(table.str());
    let name =
        |entry: &Row| ["instant", "action", "state"].map(|field| entry[field].as_str().expect("text").to_owned());
    let names: Vec<_> = entries.iter().map(|entry| name(entry).join(" ")).collect();
    let all: BTreeSet<String> = names.iter().cloned().collect();
    assert_eq!(all.len(), names.len(), "each entry once");
    all
}

/// Spark, which takes its turn as writer and as archiver.
fn spark_upserts(job: &mut Job, spark: Reader, rows: &[Row]) -> String {
    let input = job.scratch.lines("spark.json", rows);
    let settings = SMALL.map(|(key, value)| format!("{key}={value}"));
    let mut settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    settings.push("hoodie.metadata.enable=false");
    oracle(spark).write(job.table.str(), "upsert", &input, &settings);
    // It may have compacted behind it.
    let instant = job.table.last_write();
    job.model.upsert(&instant, rows);
    instant
}

#[test]
fn a_timeline_stays_short_and_loses_nothing() {
    for table_type in TABLE_TYPES {
        let mut job = job(table_type);
        let mut made = Vec::new();
        for turn in 0..9 {
            let call = job.call.clone();
            made.push(round(&mut job, &call, &rows(turn..turn + 6, turn)));
            let commits = job.table.commits();
            assert!(commits.len() <= 4, "{table_type}, turn {turn}: {commits:?}");
            assert_eq!(job.table.checkpoint(), job.position(), "{table_type}, turn {turn}");
        }
        assert!(!job.table.timeline().iter().any(|name| name.starts_with(&made[0])), "{table_type}");
        assert!(job.table.timeline().contains(&format!(
            "{}.{}",
            made[8],
            if job.table.is_merge_on_read() { "deltacommit" } else { "commit" }
        )));
        job.makes_no_instant(&job.call.clone());
        if !peers_enabled() {
            continue;
        }
        job.check_through_compaction();
        for spark in [SPARK_0_15, SPARK_1_0] {
            let found = archived(spark, &job.table);
            for instant in &made {
                let is_archived = ["REQUESTED", "INFLIGHT", "COMPLETED"]
                    .map(|state| found.iter().any(|entry| entry.starts_with(instant) && entry.ends_with(state)));
                let is_active = job.table.timeline().iter().any(|name| name.starts_with(instant));
                assert_eq!(is_archived, [!is_active; 3], "{table_type}, {spark:?}: {instant} in {found:?}");
            }
        }
    }
}

#[test]
fn spark_shows_what_we_archived() {
    needs_peers!();
    let mut job = job("MERGE_ON_READ");
    let mut made = Vec::new();
    for turn in 0..5 {
        let call = job.call.clone();
        made.push(round(&mut job, &call, &rows(turn..turn + 6, turn)));
    }
    for (name, spark) in [("archived_0", SPARK_0_15), ("archived_1", SPARK_1_0)] {
        oracle(spark).sql(&format!("CREATE TABLE {name} USING hudi LOCATION '{}'", job.table.str()));
        let all = "start_ts => '20200101000000000', end_ts => '20990101000000000'";
        let shown = oracle(spark).sql(&format!("CALL show_archived_commits(table => '{name}', {all})"));
        let first = shown.iter().find(|row| row["commit_time"] == made[0].as_str()).expect("the first commit");
        assert_eq!(first["total_records_written"], 6, "{spark:?}: {first:?}");
        assert_eq!(first["total_files_added"], 3, "{spark:?}: {first:?}");
        oracle(spark).sql(&format!("DROP TABLE {name}"));
    }
}

#[test]
fn spark_and_we_archive_by_turns() {
    needs_peers!();
    for (table_type, spark) in
        [("COPY_ON_WRITE", SPARK_0_15), ("MERGE_ON_READ", SPARK_0_15), ("COPY_ON_WRITE", SPARK_1_0)]
    {
        let mut job = job(table_type);
        let mut made = BTreeSet::new();
        for turn in 0..5 {
            let call = job.call.clone();
            made.insert(round(&mut job, &call, &rows(turn..turn + 6, 2 * turn)));
            made.insert(spark_upserts(&mut job, spark, &rows(turn + 3..turn + 9, 2 * turn + 1)));
        }
        job.check();
        oracle(SPARK_0_15).validate(job.table.str(), false);
        let found = archived(SPARK_0_15, &job.table);
        let gone: BTreeSet<String> = made
            .iter()
            .filter(|instant| {
                found.contains(&format!("{instant} commit COMPLETED"))
                    || found.contains(&format!("{instant} deltacommit COMPLETED"))
            })
            .cloned()
            .collect();
        let active: BTreeSet<String> = job.table.writes().into_iter().filter(|write| made.contains(write)).collect();
        assert_eq!(&gone | &active, made, "{table_type}");
        assert!(gone.len() >= 5, "{table_type}: {gone:?}");
    }
}

/// As `hoodie.metadata.enable=false` leaves a table.
fn without_metadata_table(table: &Table) {
    let meta = table.path.join(".hoodie");
    let properties = fs::read_to_string(meta.join("hoodie.properties")).expect("a table");
    let kept = properties.lines().filter(|line| !line.starts_with("hoodie.table.metadata.partitions"));
    fs::write(meta.join("hoodie.properties"), kept.collect::<Vec<_>>().join("\n")).expect("written");
    let _ = fs::remove_file(meta.join(".hoodie.properties.crc"));
    let _ = fs::remove_dir_all(meta.join("metadata"));
}

/// The same choice and the same records, of tables that Hudi itself made.
#[test]
fn we_archive_what_spark_archives() {
    needs_peers!();
    let settings = [
        "hoodie.keep.min.commits=2",
        "hoodie.keep.max.commits=3",
        "hoodie.cleaner.commits.retained=1",
        "hoodie.compact.inline.max.delta.commits=1",
    ];
    for name in ["v6_cow_archived", "v6_cow_clustering", "v6_mor_compacted", "v6_mor_rollback"] {
        let [ours, sparks] = [true, false].map(|ours| {
            let golden = Golden::open(name);
            without_metadata_table(&golden.table);
            if ours {
                let call = Streamer::bare().after(&["archive"]).flag("--target-base-path", &golden.table.path);
                let conf = |call: Streamer, setting: &&str| {
                    let (key, value) = setting.split_once('=').expect("key=value");
                    call.conf(key, value)
                };
                settings.iter().fold(call, conf).run().ok();
            } else {
                oracle(SPARK_0_15).service(
                    golden.table.str(),
                    "archive",
                    &[&settings[..], &["hoodie.metadata.enable=false"]].concat(),
                );
            }
            let mut entries = oracle(SPARK_0_15).archived(golden.table.str());
            for entry in &mut entries {
                // Maps, in no order.
                if let Some(content) = entry["content"].as_str().and_then(|text| serde_json::from_str(text).ok()) {
                    entry["content"] = content;
                }
            }
            (golden.table.timeline(), entries)
        });
        assert!(!ours.1.is_empty(), "{name}");
        assert_eq!(ours.0, sparks.0, "{name}: what stays");
        for (our, theirs) in ours.1.iter().zip(&sparks.1) {
            assert_eq!(our, theirs, "{name}");
        }
        assert_eq!(ours.1.len(), sparks.1.len(), "{name}");
    }
}

#[test]
fn killed_while_it_archives_a_job_goes_on() {
    // Of the deletes: the pending files, and then the completed ones, one by one.
    let points =
        ["in-archive", "after-archive-file", "in-archive-deletes", "in-archive-deletes:2", "in-archive-deletes:3"];
    for table_type in TABLE_TYPES {
        let points = if table_type == "COPY_ON_WRITE" { &points[..] } else { &points[1..=3] };
        for &point in points {
            let mut job = job(table_type);
            let call = job.call.clone().conf("hoodie.clean.automatic", "false");
            let mut turn = 0;
            let mut made = BTreeSet::new();
            let dead = call.clone().env("HUDI_STREAMER_FAULT", point);
            loop {
                let rows = rows(turn..turn + 6, turn);
                job.feed(&rows);
                let run = dead.run();
                let was_killed = run.code.is_none();
                let instant = job.table.last_write();
                job.model.upsert(&instant, &rows);
                made.insert(instant);
                turn += 1;
                if was_killed {
                    break;
                }
                run.ok();
                assert!(turn < 9, "{table_type}: nothing was archived");
            }
            for turn in turn..turn + 3 {
                made.insert(round(&mut job, &call, &rows(turn..turn + 6, turn)));
            }
            assert_eq!(job.table.pending(), Vec::<String>::new(), "{table_type} {point}");
            let states = archived_states(&job.table) + job.table.timeline().len();
            assert_eq!(states % 3, 0, "{table_type} {point}: each state once");
            // And compactions.
            let least = 3 * made.len();
            assert!(
                states == least || job.table.is_merge_on_read() && states > least,
                "{table_type} {point}: {states}, not {least}"
            );
            if peers_enabled() {
                job.check();
                oracle(SPARK_0_15).validate(job.table.str(), false);
                archived(SPARK_0_15, &job.table);
            }
        }
    }
}

#[test]
fn a_failed_write_is_rolled_back_though_much_is_archived() {
    for table_type in TABLE_TYPES {
        let mut job = job(table_type);
        let call = job.call.clone();
        for turn in 0..5 {
            round(&mut job, &call, &rows(turn..turn + 6, turn));
        }
        job.feed(&rows(2..12, 9));
        call.clone().env("HUDI_STREAMER_FAULT", "before-complete").run().killed();
        // It holds the older ones.
        let before = job.table.timeline();
        archive(&job).run().ok();
        assert_eq!(job.table.timeline(), before, "{table_type}");
        call.run().ok();
        job.model.upsert(&job.table.last_write(), &rows(2..12, 9));
        assert_eq!(job.table.pending(), Vec::<String>::new(), "{table_type}");
        for turn in 10..14 {
            round(&mut job, &call, &rows(turn..turn + 6, turn));
        }
        if peers_enabled() {
            job.check();
            oracle(SPARK_0_15).validate(job.table.str(), false);
        }
    }
}

#[test]
fn a_running_job_archives_and_goes_on() {
    for table_type in TABLE_TYPES {
        let mut job = job(table_type);
        let call = job.call.clone().switch("--continuous").flag("--min-sync-interval-seconds", "0");
        let running = call.start();
        for turn in 0..8i64 {
            job.move_in(&rows(turn..turn + 6, turn));
            let reports = || running.said().lines().filter(|line| line.contains("round committed")).count();
            wait_for("the round's report", || reports() == turn as usize + 1);
            let said = running.said();
            let report = said.lines().rfind(|line| line.contains("round committed")).expect("just seen");
            let instant = report.split("instant=\"").nth(1).and_then(|text| text.split('"').next());
            job.model.upsert(instant.expect("a report names its instant"), &rows(turn..turn + 6, turn));
        }
        running.signal("TERM");
        running.finish().ok().says(&["instants archived"]);
        // A plan that the job was stopped before holds some back, and hides logs from hudi-rs.
        assert!(job.table.writes().len() <= 6, "{table_type}: {:?}", job.table.writes());
        assert_eq!(job.table.checkpoint(), job.position(), "{table_type}");
        if table_type == "MERGE_ON_READ" {
            job.compact("execute").run().ok();
        }
        if peers_enabled() {
            job.check();
            oracle(SPARK_0_15).validate(job.table.str(), false);
        }
    }
}

#[test]
fn a_job_goes_on_from_a_checkpoint_that_spark_has_archived() {
    needs_peers!();
    let mut job = job("COPY_ON_WRITE");
    let call = job.call.clone();
    let ours = round(&mut job, &call, &rows(0..6, 0));
    let mut turn = 1;
    while job.table.timeline().iter().any(|name| name.starts_with(&ours)) {
        assert!(turn < 8, "Spark does not archive");
        spark_upserts(&mut job, SPARK_0_15, &rows(turn..turn + 3, turn));
        turn += 1;
    }
    let run = job.makes_no_instant(&call);
    run.says(&[&ours, "resuming after the newest archived commit"]);
    round(&mut job, &call, &rows(20..26, 20));
    assert_eq!(job.table.checkpoint(), job.position());
    job.check();
}

/// Another writer of ours that leaves no position stands for any other.
#[test]
fn the_newest_checkpoint_is_not_archived() {
    let mut job = job("COPY_ON_WRITE");
    let call = job.call.clone();
    round(&mut job, &call, &rows(0..3, 0));
    let newest = round(&mut job, &call, &rows(0..6, 1));
    for turn in 2..8 {
        job.scratch.lines(&format!("other-{turn}/rows.json"), &rows(turn..turn + 3, turn));
        let other = call.clone().flag("--ignore-checkpoint", format!("turn {turn}"));
        let other = other.conf("hoodie.streamer.source.dfs.root", job.scratch.path(&format!("other-{turn}")));
        let run = other.conf("hoodie.streamer.checkpoint.force.skip", "true").run().ok();
        job.model.upsert(&job.table.last_write(), &rows(turn..turn + 3, turn));
        assert_eq!(job.table.commits()[0] == newest, turn >= 3, "turn {turn}\n{run}");
    }
    let answer = archive(&job).run().ok().stdout;
    assert!(answer.contains(&newest) && answer.contains("checkpoint.key"), "{answer}");
    job.makes_no_instant(&call);
    round(&mut job, &call, &rows(3..9, 9));
    assert!(job.table.commits()[0] > newest, "now there is a newer one: {:?}", job.table.commits());
    if peers_enabled() {
        job.check();
    }
}

#[test]
fn the_command_says_what_it_does() {
    let mut job = job("COPY_ON_WRITE");
    let call = job.call.clone().conf("hoodie.archive.automatic", "false");
    let made: Vec<String> = (0..5).map(|turn| round(&mut job, &call, &rows(turn..turn + 6, turn))).collect();
    assert_eq!(job.table.commits().len(), 5, "the job does not archive");
    let before = job.table.timeline();
    let answer = archive(&job).switch("--dry-run").run().ok().stdout;
    assert_eq!(answer.trim(), format!("3 instants would be archived, {} to {}", made[0], made[2]));
    assert_eq!(job.table.timeline(), before);
    assert_eq!(archived_states(&job.table), 0);

    let run = archive(&job).switch("--json").run().ok();
    let told: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let instants: Vec<&str> =
        told["instants"].as_array().expect("a list").iter().filter_map(|i| i["instant"].as_str()).collect();
    assert_eq!(instants, made[..3]);
    assert_eq!(told["written"], json!([".hoodie/archived/.commits_.archive.1_1-0-1"]));
    assert_eq!(told["heldBy"], Value::Null);
    assert_eq!(job.table.commits(), made[3..]);
    assert_eq!(archived_states(&job.table), 9);
    assert_eq!(archive(&job).run().ok().stdout.trim(), "no instants are old enough to be archived");
}

#[test]
fn a_savepoint_keeps_what_came_after_it() {
    let mut job = job("COPY_ON_WRITE");
    let call = job.call.clone();
    round(&mut job, &call, &rows(0..6, 0));
    let saved = round(&mut job, &call, &rows(1..7, 1));
    let of_table = |words: &[&str]| Streamer::bare().after(words).flag("--target-base-path", &job.table.path);
    of_table(&["savepoint", "create"]).run().ok();
    let (restore, delete) = (of_table(&["restore"]), of_table(&["savepoint", "delete"]).flag("--instant", &saved));
    for turn in 2..7 {
        round(&mut job, &call, &rows(turn..turn + 6, turn));
    }
    let commits = job.table.commits();
    assert_eq!((commits.len(), &commits[0]), (6, &saved), "{commits:?}");
    let answer = archive(&job).run().ok().stdout;
    assert!(answer.contains(&format!("savepoint {saved}")), "{answer}");
    restore.switch("--dry-run").run().ok();
    if peers_enabled() {
        job.check();
        oracle(SPARK_0_15).validate(job.table.str(), false);
    }
    delete.run().ok();
    archive(&job).run().ok();
    assert_eq!(job.table.commits().len(), 2);
    round(&mut job, &call, &rows(6..12, 9));
    if peers_enabled() {
        job.check();
    }
}
