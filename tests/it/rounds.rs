//! A backlog that is larger than the memory of a round is taken in several commits, each with its position.

use crate::support::*;

const LINES: usize = 40;

/// Five files of forty rows, a second apart; each file brings ten rows of the one before in a newer version.
fn backlog(with: impl FnOnce(Streamer) -> Streamer) -> Job {
    let job = Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]), with);
    for file in 0..5 {
        let rows =
            (0..LINES).map(|row| format!("{{\"id\":\"{:06}\",\"ts\":{file},\"v\":\"{file}\"}}\n", file * 30 + row));
        job.scratch.file(&format!("in/{file}.json"), rows.collect::<String>());
        job.scratch.touch(&format!("in/{file}.json"), BASE_TIME_MS + 1000 * file as u64);
    }
    job
}

/// A file each.
fn small_rounds(call: Streamer) -> Streamer {
    call.conf("hoodie.streamer.round.max.bytes", "1")
}

/// Id and version of each row.
fn rows(table: &Table) -> Vec<(String, String)> {
    rows_by(HUDI_RS, table)
}

fn rows_by(reader: Reader, table: &Table) -> Vec<(String, String)> {
    let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    let mut rows: Vec<_> =
        oracle(reader).read(table.str()).iter().map(|row| (text(&row["id"]), text(&row["v"]))).collect();
    rows.sort();
    rows
}

fn want() -> Vec<(String, String)> {
    (0..160).map(|id| (format!("{id:06}"), (id / 30).min(4).to_string())).collect()
}

#[test]
fn a_one_shot_job_commits_a_backlog_part_by_part() {
    needs_peers!();
    let job = backlog(small_rounds);
    job.call.run().ok().says(&["several commits"]);
    let positions: Vec<String> = job.table.writes().iter().map(|write| job.table.checkpoint_of(write)).collect();
    let times: Vec<String> = (0..5).map(|file| (BASE_TIME_MS + 1000 * file).to_string()).collect();
    assert_eq!(positions, times);
    assert_eq!(rows(&job.table), want());
    job.makes_no_instant(&job.call);
}

#[test]
fn what_must_be_one_commit_is_one() {
    needs_peers!();
    let grouped = "SELECT id, max(ts) AS ts, max(v) AS v FROM <SRC> GROUP BY id";
    let flagged = "SELECT *, ts < 0 AS _hoodie_is_deleted FROM <SRC>";
    let sql = |statement: &'static str| {
        move |call: Streamer| {
            let call = small_rounds(call).conf("hoodie.streamer.transformer.sql", statement);
            call.flag("--transformer-class", "SqlQueryBasedTransformer")
        }
    };
    let fits = |call: Streamer| call.conf("hoodie.streamer.memory.max.bytes", "100000000");
    let limited =
        |call: Streamer| call.conf("hoodie.streamer.memory.max.bytes", "2000").flag("--source-limit", "100000000");
    let never = |call: Streamer| small_rounds(call).conf("hoodie.streamer.round.max.bytes", "0");
    let by_memory = |call: Streamer| call.conf("hoodie.streamer.memory.max.bytes", "2000");
    for (name, job, commits) in [
        ("an aggregate is over all of the input", backlog(sql(grouped)), 1),
        ("deletes count against older rows wherever they stand", backlog(sql(flagged)), 1),
        ("a filter is not", backlog(sql("SELECT * FROM <SRC> WHERE id >= '0'")), 5),
        ("what fits", backlog(fits), 1),
        ("who gives a limit gets it", backlog(limited), 1),
        ("no bound", backlog(never), 1),
        ("by the memory", backlog(by_memory), 5),
    ] {
        job.call.run().ok();
        assert_eq!(job.table.writes().len(), commits, "{name}");
        assert_eq!(rows(&job.table), want(), "{name}");
    }
}

/// Under a rule that prefers the later commit whatever the ordering value; also where the job is killed behind each part and
/// started anew.
#[test]
fn the_parts_come_to_what_one_commit_would() {
    needs_peers!();
    for (table_type, is_killed) in TABLE_TYPES.into_iter().flat_map(|name| [(name, false), (name, true)]) {
        let name = format!("{table_type}, killed: {is_killed}");
        let with = |call: Streamer| call.flag("--table-type", table_type);
        let job = Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]), with);
        let put = |file: usize, ids: std::ops::Range<usize>, ts: usize| {
            let row = |id| format!("{{\"id\":\"{id:06}\",\"ts\":{ts},\"v\":\"{file}\"}}\n");
            job.scratch.file(&format!("in/{file}.json"), ids.map(row).collect::<String>());
            job.scratch.touch(&format!("in/{file}.json"), BASE_TIME_MS + 1000 * file as u64);
        };
        // What was stored before is overwritten, however new.
        put(0, 0..1, 99);
        job.call.run().ok();
        for (file, ids, ts) in [(1, 0..40, 5), (2, 30..70, 4), (3, 0..40, 3), (4, 0..20, 7), (5, 0..40, 6)] {
            put(file, ids, ts);
        }
        let call = small_rounds(job.call.clone());
        for _ in 2..6 {
            if is_killed {
                call.clone().env("HUDI_STREAMER_FAULT", "after-complete:1").run().killed();
            }
        }
        call.run().ok();
        assert_eq!(job.table.writes().len(), 6, "{name}");
        let want = |id| match id {
            0..20 => 4,
            20..40 => 5,
            _ => 2,
        };
        let mut want: Vec<_> = (0..70).map(|id| (format!("{id:06}"), want(id).to_string())).collect();
        for reader in [HUDI_RS, SPARK_0_15] {
            assert_eq!(rows_by(reader, &job.table), want, "{name}, read by {reader:?}");
        }
        // The backlog is over: what comes now overwrites it, however old.
        put(6, 0..1, 1);
        call.run().ok();
        want[0].1 = "6".into();
        assert_eq!(rows(&job.table), want, "{name}");
    }
}

#[test]
fn a_job_that_dies_between_two_parts_goes_on_behind_the_first() {
    needs_peers!();
    let job = backlog(small_rounds);
    let call = job.call.clone();
    for commits in 1..5 {
        call.clone().env("HUDI_STREAMER_FAULT", "after-complete:1").run().killed();
        assert_eq!(job.table.writes().len(), commits);
    }
    call.run().ok();
    assert_eq!(rows(&job.table), want());
}

#[test]
fn what_comes_while_a_backlog_is_taken_waits_for_the_next_run() {
    needs_peers!();
    let job = backlog(small_rounds);
    let run = job.call.clone().env("HUDI_STREAMER_FAULT", "stop:after-complete:1").start();
    wait_for("the first commit", || run.is_stopped());
    job.scratch.file("in/new.json", "{\"id\":\"999999\",\"ts\":9,\"v\":\"9\"}\n");
    job.scratch.touch("in/new.json", BASE_TIME_MS + 9000);
    run.signal("CONT");
    run.finish().ok();
    assert_eq!(rows(&job.table), want());
    job.call.run().ok();
    assert_eq!(rows(&job.table).len(), 161);
}
