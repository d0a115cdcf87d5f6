//! Killed at any point, the job goes on as if nothing had been: nothing lost, nothing twice.

use crate::support::*;

const POINTS: [&str; 4] = ["before-inflight", "while-writing", "before-complete", "after-complete"];

fn rows(numbers: std::ops::Range<i64>, ts: i64) -> Vec<Row> {
    numbers.map(|i| row! {"id": format!("k{i}"), "ts": ts, "v": format!("v{i}-{ts}")}).collect()
}

/// Kills a round of `op` over a table with rows at `point`, starts again, and once more with new input.
fn killed_and_restarted(op: &str, point: &str) -> Job {
    println!("{op} killed {point}");
    let mut job = Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| call);
    job.bulk_insert(&rows(0..10, 1));
    let before = job.table.commits();

    let batch = if op == "UPSERT" { rows(5..15, 2) } else { rows(10..20, 2) };
    job.feed(&batch);
    job.call.clone().op(op).env("HUDI_STREAMER_FAULT", point).run().killed();
    let committed = point == "after-complete";
    assert_eq!(
        job.table.commits().len(),
        before.len() + usize::from(committed),
        "{op} {point}: what was committed when it was killed"
    );

    job.call.clone().op(op).run().ok();
    assert_eq!(job.table.commits().len(), before.len() + 1, "{op} {point}: the batch is in, once");
    let instant = job.table.last_commit();
    match op {
        "UPSERT" => job.model.upsert(&instant, &batch),
        _ => job.model.insert(&instant, &batch),
    }
    job.upsert(&rows(12..18, 3));
    assert_eq!(job.table.pending(), Vec::<String>::new(), "{op} {point}");
    assert!(
        !job.table.files().iter().any(|f| f.starts_with(".hoodie/.temp/")),
        "{op} {point}: markers are left in {:?}",
        job.table.files()
    );
    job
}

#[test]
fn a_killed_job_goes_on_at_every_fault_point() {
    for op in ["UPSERT", "BULK_INSERT"] {
        for point in POINTS {
            let job = killed_and_restarted(op, point);
            if peers_enabled() {
                job.check();
                oracle(SPARK_0_15).validate(job.table.str(), false);
            }
        }
    }
}

#[test]
fn a_job_killed_before_its_first_commit_begins_again() {
    for point in POINTS {
        let mut job = Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| call);
        let batch = rows(0..10, 1);
        job.feed(&batch);
        job.call.clone().env("HUDI_STREAMER_FAULT", point).run().killed();
        job.call.run().ok();
        assert_eq!(job.table.commits().len(), 1, "{point}");
        job.model.upsert(&job.table.last_commit(), &batch);
        if peers_enabled() {
            job.check();
        }
    }
}

#[test]
fn markers_of_what_is_over_are_removed_by_the_next_job() {
    let mut job = Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| call);
    let done = job.upsert(&rows(0..10, 1));
    let marker = |instant: &str| format!("table/.hoodie/.temp/{instant}/a.parquet.marker.CREATE");
    let rolled_back = "20200101000000000";
    for instant in [&done, rolled_back] {
        job.scratch.file(&marker(instant), "");
    }
    job.upsert(&rows(5..15, 2));
    assert_eq!([&done, rolled_back].map(|instant| job.scratch.path(&marker(instant)).exists()), [false; 2]);
}

#[test]
fn spark_rolls_back_what_we_left_behind() {
    needs_peers!();
    let mut job = Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| call);
    job.bulk_insert(&rows(0..10, 1));
    job.feed(&rows(5..15, 2));
    job.call.clone().env("HUDI_STREAMER_FAULT", "before-complete").run().killed();
    job.check();
    oracle(SPARK_0_15).validate(job.table.str(), false);

    let theirs = rows(0..3, 3);
    let file = job.scratch.lines("spark.json", &theirs);
    let instant = oracle(SPARK_0_15).write(job.table.str(), "upsert", &file, &[]);
    job.model.upsert(&instant, &theirs);
    job.check();
    assert_eq!(job.table.pending(), Vec::<String>::new());
}

#[test]
fn a_continuous_job_ends_well_on_sigterm() {
    for signal in ["TERM", "INT"] {
        let mut job = Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| {
            call.switch("--continuous").flag("--min-sync-interval-seconds", "1")
        });
        job.feed(&rows(0..10, 1));
        let running = job.call.start();
        wait_for("the first commit", || job.table.commits().len() == 1);
        running.signal(signal);
        running.finish().ok();
        assert_eq!(job.table.pending(), Vec::<String>::new(), "{signal}");
        assert_eq!(job.table.checkpoint(), job.position(), "{signal}");
    }
}

#[test]
fn a_continuous_job_takes_up_what_comes_while_it_runs() {
    let mut job = Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| {
        call.switch("--continuous").flag("--min-sync-interval-seconds", "1")
    });
    job.feed(&rows(0..10, 1));
    let running = job.call.start();
    wait_for("the first commit", || job.table.commits().len() == 1);
    job.move_in(&rows(5..15, 2));
    wait_for("the second commit", || job.table.commits().len() == 2);
    running.signal("TERM");
    running.finish().ok();
    let commits = job.table.commits();
    job.model.upsert(&commits[0], &rows(0..10, 1));
    job.model.upsert(&commits[1], &rows(5..15, 2));
    if peers_enabled() {
        job.check();
    }
}

/// Another writer may switch a metadata table on while the job runs; rows written past it would be invisible.
#[test]
fn a_running_job_notices_a_metadata_table_that_spark_makes() {
    needs_peers!();
    let mut job = Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| {
        call.switch("--continuous").flag("--min-sync-interval-seconds", "1")
    });
    let metadata_table = job.table.path.join(".hoodie/metadata");
    job.feed(&rows(0..4, 1));
    let running = job.call.start();
    wait_for("the first commit", || job.table.commits().len() == 1);
    job.model.upsert(&job.table.last_commit(), &rows(0..4, 1));
    let input = job.scratch.lines("spark.json", &rows(2..6, 2));
    let instant = oracle(SPARK_0_15).write(job.table.str(), "upsert", &input, &[]);
    job.model.upsert(&instant, &rows(2..6, 2));
    assert!(metadata_table.is_dir(), "Spark makes one by default");
    job.move_in(&rows(5..9, 3));
    wait_for("the third commit", || job.table.commits().len() == 3);
    running.signal("TERM");
    running.finish().ok();
    job.model.upsert(&job.table.last_commit(), &rows(5..9, 3));
    job.check();
    assert!(!metadata_table.exists());
}
