//! Ways back to an earlier write: savepoints, rollback of the newest write, restore; and jobs that go on afterwards.

mod peers;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::support::*;

const SCHEMA: &str = r#"{"type":"record","name":"trip","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},{"name":"v","type":["null","string"],"default":null},
 {"name":"part","type":"string"}]}"#;

fn rows(keys: std::ops::Range<i64>, ts: i64) -> Vec<Row> {
    keys.map(|i| row! {"id": format!("k{i:02}"), "ts": ts, "v": format!("{i}-{ts}"), "part": format!("p{}", i % 2)})
        .collect()
}

/// A job whose every file takes no new rows, and that compacts when told to.
fn job(table_type: &str) -> Job {
    Job::new(SCHEMA, Model::new(&["id", "ts", "v", "part"]).partitioned("part"), |call| {
        let call = call.flag("--table-type", table_type).partitioned("part");
        let call = call.conf("hoodie.parquet.small.file.limit", "0").conf("hoodie.clean.automatic", "false");
        match table_type {
            "MERGE_ON_READ" => call.switch("--disable-compaction"),
            _ => call,
        }
    })
}

/// `hudi-streamer <words> …` of the job's table.
fn command(table: &Table, words: &[&str]) -> Streamer {
    Streamer::bare().after(words).flag("--target-base-path", &table.path)
}

fn restore(table: &Table) -> Streamer {
    command(table, &["restore"])
}

fn savepoint(table: &Table) -> String {
    let run = command(table, &["savepoint", "create", "--user", "me", "--comments", "before the mess", "--json"]).run();
    let told: Value = serde_json::from_str(&run.ok().stdout).expect("the answer is JSON");
    told["savepoint"].as_str().expect("it says its instant").to_owned()
}

/// Files outside `.hoodie`, and the timeline; without what a killed process leaves of an upload, which nobody reads.
fn state(table: &Table) -> (BTreeSet<String>, BTreeSet<String>) {
    let whole = |name: &String| !name.contains('#');
    let data = table.files().into_iter().filter(|file| !file.starts_with(".hoodie/")).filter(whole).collect();
    (data, table.timeline().into_iter().filter(whole).collect())
}

/// Log files of a later write, and the rollback blocks that cancel theirs: they are on slices that stay.
fn is_cancelled(file: &str, until: &str) -> bool {
    let base = file.split_once(".log.").and_then(|(slice, _)| slice.rsplit_once('_'));
    base.is_some_and(|(_, instant)| instant <= until)
}

fn copy(table: &Table, to: &Path) -> Table {
    let _ = std::fs::remove_dir_all(to);
    let status = Command::new("cp").args(["-r", "-p"]).arg(&table.path).arg(to).status();
    assert!(status.expect("run cp").success(), "copy the table");
    Table::at(to)
}

/// A table with a savepoint and much after it: updates, new groups, and, merge-on-read, a completed compaction, log files on
/// it, a planned one and log files on that. What it was at the savepoint.
struct Messed {
    job: Job,
    savepoint: String,
    data: BTreeSet<String>,
    timeline: BTreeSet<String>,
    checkpoint: String,
    /// All that came after it, by batch.
    later: Vec<Vec<Row>>,
}

fn messed(table_type: &str) -> Messed {
    let mut job = job(table_type);
    job.upsert(&rows(0..6, 1));
    job.upsert(&rows(0..3, 2));
    let savepoint = savepoint(&job.table);
    let (data, timeline) = state(&job.table);
    let checkpoint = job.table.checkpoint();
    let later = vec![rows(2..8, 3), rows(0..8, 4), rows(4..12, 5)];
    for (batch, step) in later.iter().zip(0..) {
        job.feed(batch);
        job.round("UPSERT");
        match (table_type, step) {
            ("MERGE_ON_READ", 0) => drop(job.compact("scheduleAndExecute").run().ok()),
            ("MERGE_ON_READ", 1) => drop(job.compact("schedule").run().ok()),
            _ => {}
        }
    }
    Messed { job, savepoint, data, timeline, checkpoint, later }
}

impl Messed {
    /// The table is as it was, but for rollback blocks, which say nothing to readers, and the restore.
    #[track_caller]
    fn assert_restored(&self, table: &Table, why: &str) {
        let (data, timeline) = state(table);
        let more: Vec<&String> = data.difference(&self.data).collect();
        assert!(more.iter().all(|file| is_cancelled(file, &self.savepoint)), "{why}: too many: {more:?}");
        assert_eq!(self.data.difference(&data).collect::<Vec<_>>(), [""; 0], "{why}: files too few");
        let restores: Vec<_> = timeline.iter().filter(|name| name.contains(".restore")).collect();
        assert_eq!(restores.len(), 3, "{why}: one restore, completed: {timeline:?}");
        let rest: BTreeSet<String> = timeline.iter().filter(|name| !name.contains(".restore")).cloned().collect();
        assert_eq!(rest, self.timeline, "{why}: timeline");
        assert_eq!(table.checkpoint(), self.checkpoint, "{why}: checkpoint");
        let temp: Vec<String> = table.files().into_iter().filter(|f| f.starts_with(".hoodie/.temp")).collect();
        assert_eq!(temp, [""; 0], "{why}: markers");
    }
}

#[test]
fn a_restored_table_is_what_it_was_and_its_job_takes_up_the_position_of_then() {
    for table_type in TABLE_TYPES {
        let mut messed = messed(table_type);
        let told = restore(&messed.job.table).switch("--dry-run").run().ok().stdout;
        assert!(told.contains("would be undone") && told.contains(&messed.checkpoint), "{told}");
        let run = restore(&messed.job.table).flag("--instant", &messed.savepoint).run().ok();
        assert!(run.stdout.contains("restored to savepoint") && run.stdout.contains(&messed.checkpoint), "{run}");
        messed.assert_restored(&messed.job.table, table_type);
        if peers_enabled() {
            messed.job.check();
            oracle(SPARK_0_15).validate(messed.job.table.str(), false);
        }
        // Nothing is left to be undone.
        let before = messed.job.table.files();
        let again = restore(&messed.job.table).run().ok();
        assert!(again.stdout.contains("nothing was written after"), "{again}");
        assert_eq!(messed.job.table.files(), before);

        // What came later comes again, all at once, and the table grows on from there.
        let instant = messed.job.round("UPSERT");
        let all: Vec<Row> = messed.later.concat();
        messed.job.model.upsert(&instant, &all);
        messed.job.upsert(&rows(10..14, 6));
        if peers_enabled() {
            messed.job.check();
            if table_type == "MERGE_ON_READ" {
                messed.job.compacts();
                messed.job.check();
            }
        }
    }
}

#[test]
fn a_restore_that_dies_anywhere_is_finished_by_asking_for_it_again() {
    for table_type in TABLE_TYPES {
        let messed = messed(table_type);
        let mut deaths = 0;
        for call in ["put", "delete"] {
            for n in 1.. {
                let table = copy(&messed.job.table, &messed.job.scratch.path("copy"));
                let run = restore(&table).env("HUDI_STREAMER_STORAGE_FAULT", &format!("kill:{call}:{n}")).run();
                if run.code == Some(0) {
                    break;
                }
                let run = run.killed();
                deaths += 1;
                let why = format!("{table_type}, killed at {call} {n}");
                if (call, n) == ("put", 3) {
                    // No job writes to a table that is half restored.
                    let job = messed.job.call.clone().flag("--target-base-path", &table.path);
                    job.run().fails_with(1, &["table-restore-pending", "hudi-streamer restore"]);
                    command(&table, &["savepoint", "create"]).run().fails_with(1, &["table-restore-pending"]);
                }
                let again = restore(&table).run();
                assert!(again.code == Some(0), "{why}\n{run}\n{again}");
                messed.assert_restored(&table, &why);
            }
        }
        assert!(deaths > 20, "{table_type}: {deaths} deaths are too few to be all");
    }
}

#[test]
fn the_newest_write_is_rolled_back_as_if_it_had_not_been() {
    for table_type in TABLE_TYPES {
        let mut job = job(table_type);
        job.upsert(&rows(0..6, 1));
        job.upsert(&rows(0..3, 2));
        let ((data, timeline), checkpoint) = (state(&job.table), job.table.checkpoint());
        let third = rows(2..8, 3);
        job.feed(&third);
        let instant = job.round("UPSERT");

        let (_, before) = state(&job.table);
        let told = command(&job.table, &["rollback"]).switch("--dry-run").run().ok().stdout;
        assert!(told.contains(&instant) && told.contains(&checkpoint), "{told}");
        assert_eq!(state(&job.table).1, before);
        let first = &job.table.writes()[0];
        let too_old = command(&job.table, &["rollback"]).flag("--instant", first).run();
        too_old.fails_with(1, &["service-rollback-not-newest", first, "restore"]);

        // It dies, and the job's next round, or the command, goes on.
        for (call, n) in [("put", 1), ("put", 2), ("put", 3), ("delete", 1), ("delete", 2), ("delete", 4)] {
            let copied = copy(&job.table, &job.scratch.path("copy"));
            let fault = format!("kill:{call}:{n}");
            let killed = command(&copied, &["rollback"]).env("HUDI_STREAMER_STORAGE_FAULT", &fault).run().killed();
            let again = command(&copied, &["rollback"]).flag("--instant", &instant).run();
            assert!(again.code == Some(0), "{table_type} {fault}\n{killed}\n{again}");
            assert!(!copied.writes().contains(&instant), "{table_type} {fault}");
            assert_eq!(copied.checkpoint(), checkpoint, "{table_type} {fault}");
        }

        let run = command(&job.table, &["rollback"]).run().ok();
        assert!(run.stdout.contains(&instant) && run.stdout.contains("rolled back"), "{run}");
        let (data_after, timeline_after) = state(&job.table);
        let more: Vec<_> = data_after.difference(&data).collect();
        assert!(data.is_subset(&data_after) && more.iter().all(|file| is_cancelled(file, &instant)), "{more:?}");
        let rest: BTreeSet<_> = timeline_after.into_iter().filter(|name| !name.contains(".rollback")).collect();
        assert_eq!(rest, timeline, "{table_type}");
        if peers_enabled() {
            job.check();
            oracle(SPARK_0_15).validate(job.table.str(), false);
        }
        let instant = job.round("UPSERT");
        job.model.upsert(&instant, &third);
        if peers_enabled() {
            job.check();
        }
    }
}

#[test]
fn a_compaction_is_rolled_back_with_its_plan() {
    let mut job = job("MERGE_ON_READ");
    job.upsert(&rows(0..6, 1));
    job.upsert(&rows(0..3, 2));
    let (data, timeline) = state(&job.table);
    job.compact("schedule").run().ok();
    let planned = job.table.pending_compactions()[0].clone();
    let waits = command(&job.table, &["rollback"]).flag("--instant", &planned).run();
    waits.fails_with(1, &["service-rollback-compaction", &planned, "compact"]);
    job.compact("execute").run().ok();
    command(&job.table, &["rollback"]).run().ok();
    let (data_after, timeline_after) = state(&job.table);
    assert_eq!(data_after, data);
    let rest: BTreeSet<_> = timeline_after.into_iter().filter(|name| !name.contains(".rollback")).collect();
    assert_eq!(rest, timeline);
    job.upsert(&rows(1..4, 3));
    if peers_enabled() {
        job.check_through_compaction();
    }
}

#[test]
fn what_would_lose_more_than_was_asked_for_is_refused_by_name() {
    let mut job = job("COPY_ON_WRITE");
    job.upsert(&rows(0..4, 1));
    let first = savepoint(&job.table);
    let again = command(&job.table, &["savepoint", "create", "--instant", &first]).run();
    again.fails_with(1, &["service-savepoint-exists", &first]);
    command(&job.table, &["rollback"]).run().fails_with(1, &["service-rollback-savepointed", &first]);
    job.upsert(&rows(0..4, 2));
    let second = savepoint(&job.table);
    let third = job.upsert(&rows(0..4, 3));

    let list = command(&job.table, &["savepoint", "list"]).run().ok().stdout;
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with(&second) && lines[1].starts_with(&first), "{list}");
    assert!(lines[0].contains("by me: before the mess"), "{list}");

    let before = job.table.files();
    let to = |instant: &str| restore(&job.table).flag("--instant", instant).run();
    to(&first).fails_with(1, &["service-restore-savepoint-later", &second]);
    to("20200101000000000").fails_with(1, &["service-no-such-write", "20200101000000000"]);
    to("yesterday").fails_with(2, &["config-bad-value", "yesterday"]);
    let gone = command(&job.table, &["savepoint", "delete"]).flag("--instant", &third).run();
    gone.fails_with(1, &["service-savepoint-unknown", &third]);
    assert_eq!(job.table.files(), before, "nothing has changed");

    command(&job.table, &["savepoint", "delete"]).flag("--instant", &second).run().ok();
    let lost = job.table.written_by(&first).into_iter().next().expect("a file");
    std::fs::rename(job.table.path.join(&lost), job.scratch.path("lost")).expect("taken away");
    to(&first).fails_with(1, &["service-savepoint-file-gone", &first]);
    // Without a savepoint what later writes say is asked.
    let lost = job.table.written_by(&second).into_iter().next().expect("a file");
    std::fs::rename(job.table.path.join(&lost), job.scratch.path("lost")).expect("taken away");
    to(&second).fails_with(1, &["service-cleaned", &second]);
    command(&job.table, &["rollback"]).run().fails_with(1, &["service-cleaned", &second]);
    let empty = Table::at(job.scratch.path("nowhere"));
    restore(&empty).run().fails_with(2, &["table-missing"]);
}

/// The position goes back, and what the job remembers of keys and commits is not taken for the truth.
#[test]
fn a_running_job_notices_that_its_table_was_restored() {
    for table_type in TABLE_TYPES {
        let mut job = job(table_type);
        let running = job.call.clone().switch("--continuous").start();
        let commits = |count: usize| {
            let done = || running.said().matches("round committed").count() >= count;
            wait_for(&format!("{count} rounds"), done);
        };
        let mut fed: Vec<Vec<Row>> = Vec::new();
        for (batch, n) in [rows(0..6, 1), rows(0..8, 2), rows(4..12, 3)].into_iter().zip(1..) {
            job.move_in(&batch);
            commits(n);
            if n == 1 {
                savepoint(&job.table);
                job.model.upsert(&job.table.last_write(), &batch);
            } else {
                fed.push(batch);
            }
        }
        restore(&job.table).run().ok();
        // Both files in one round: it looks at an idle table every few seconds.
        commits(4);
        job.model.upsert(&job.table.last_write(), &fed.concat());
        let last = rows(3..14, 4);
        job.move_in(&last);
        commits(5);
        job.model.upsert(&job.table.last_write(), &last);
        running.signal("TERM");
        running.finish().ok();
        assert_eq!(job.table.checkpoint(), job.position());
        assert_eq!(job.table.writes().len(), 3, "{table_type}: one before the savepoint, two after it");
        if peers_enabled() {
            job.check();
            oracle(SPARK_0_15).validate(job.table.str(), false);
        }
    }
}
