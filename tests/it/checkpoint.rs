//! Where a job stands is in its commits, in Hudi's own words, so that either tool goes on where the other stopped.

use crate::support::*;

fn line(id: &str) -> String {
    // Every line of case 12 has the same length.
    format!("{{\"id\":\"{id:<4}\",\"ts\":1,\"v\":\"x\"}}\n")
}

fn ids(job: &Job) -> Vec<String> {
    let rows = oracle(HUDI_RS).read(job.table.str());
    let mut ids: Vec<_> = rows.iter().map(|r| r["id"].as_str().expect("text").trim_end().to_owned()).collect();
    ids.sort();
    ids
}

fn job() -> Job {
    Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| call)
}

/// Case 12, call by call.
#[test]
fn files_with_equal_times_stay_together() {
    needs_peers!();
    const B: u64 = BASE_TIME_MS;
    let mut job = job();
    let put = |job: &Job, name: &str, text: &str, time: u64| {
        job.scratch.file(&format!("in/{name}"), text);
        job.scratch.touch(&format!("in/{name}"), B + time);
    };
    for (name, id, time) in [
        ("a.json", "a", 1000),
        ("b.json", "b", 2000),
        ("c.json", "c", 2000),
        ("sub/e.json", "e", 2000),
        ("d.json", "d", 3000),
    ] {
        put(&job, name, &line(id), time);
    }
    put(&job, "_part.json", &line("x1"), 1500);
    put(&job, ".tmp.json", &line("x2"), 1500);
    put(&job, "zero.json", "", 2500);
    let limit = (2 * line("a").len() + 1).to_string();
    job.call = job.call.flag("--source-limit", &limit);

    job.round("UPSERT");
    assert_eq!((ids(&job).join(" "), job.table.checkpoint()), ("a b c e".into(), (B + 2000).to_string()));
    job.round("UPSERT");
    assert_eq!((ids(&job).join(" "), job.table.checkpoint()), ("a b c d e".into(), (B + 3000).to_string()));
    job.makes_no_instant(&job.call);

    put(&job, "late.json", &line("late"), 2000);
    job.makes_no_instant(&job.call);

    job.scratch.touch("in/a.json", B + 9000);
    job.round("UPSERT");
    assert_eq!((ids(&job).join(" "), job.table.checkpoint()), ("a b c d e".into(), (B + 9000).to_string()));

    let from_zero = job.call.clone().without("--source-limit").flag("--checkpoint", "0");
    job.commits(&from_zero);
    assert_eq!((ids(&job).join(" "), job.table.checkpoint()), ("a b c d e late".into(), (B + 9000).to_string()));
    job.makes_no_instant(&from_zero);
}

#[test]
fn a_file_larger_than_the_limit_is_read_all_the_same() {
    let mut job = job();
    let lines: String = ["a", "b", "c", "d"].map(line).concat();
    job.feed_text(&lines);
    job.call = job.call.clone().flag("--source-limit", line("a").len().to_string());
    job.round("UPSERT");
    assert_eq!(job.table.checkpoint(), job.position());
}

#[test]
fn ten_thousand_empty_files_do_not_hide_the_one_with_a_row() {
    let mut job = job();
    for i in 0..10_000 {
        job.scratch.file(&format!("in/empty/{i}.json"), "");
    }
    job.feed_text(&line("a"));
    job.round("UPSERT");
    assert_eq!(job.table.checkpoint(), job.position());
}

#[test]
fn a_job_stopped_in_hudi_resumes_here() {
    needs_peers!();
    for (spark, prefix, key) in [
        (SPARK_0_15, "deltastreamer.checkpoint.", CHECKPOINT_KEYS[0]),
        (SPARK_1_0, "streamer.checkpoint.", CHECKPOINT_KEYS[1]),
    ] {
        let mut job = job();
        job.upsert(&[row! {"id": "a", "ts": 1, "v": "ours"}]);
        // Hudi's Streamer has read the second file, as its commit says.
        let theirs = [row! {"id": "b", "ts": 2, "v": "theirs"}];
        job.feed(&theirs);
        let file = job.scratch.lines("spark.json", &theirs);
        let position = job.position();
        let settings = [format!("hoodie.datasource.write.commitmeta.key.prefix={prefix}"), format!("{key}={position}")];
        let instant = oracle(spark).write(job.table.str(), "upsert", &file, &settings.each_ref().map(String::as_str));
        job.model.upsert(&instant, &theirs);
        job.makes_no_instant(&job.call);
        job.upsert(&[row! {"id": "c", "ts": 3, "v": "ours"}]);
        job.check();
    }
}

#[test]
fn commits_of_another_writer_without_a_checkpoint_are_stepped_over() {
    needs_peers!();
    let mut job = job();
    job.upsert(&[row! {"id": "a", "ts": 1}]);
    let theirs = [row! {"id": "b", "ts": 2}];
    let file = job.scratch.lines("spark.json", &theirs);
    let instant = oracle(SPARK_0_15).write(job.table.str(), "upsert", &file, &[]);
    job.model.upsert(&instant, &theirs);
    job.makes_no_instant(&job.call);
    job.upsert(&[row! {"id": "c", "ts": 3}]);
    job.check();
}

#[test]
fn a_commit_carries_both_spellings_of_the_checkpoint() {
    let mut job = job();
    job.upsert(&[row! {"id": "a", "ts": 1}]);
    // `checkpoint` compares the two spellings.
    assert_eq!(job.table.checkpoint(), job.position());
}

#[test]
fn no_new_data_makes_no_instant() {
    let mut job = job();
    job.upsert(&[row! {"id": "a", "ts": 1}]);
    job.makes_no_instant(&job.call);
    let allowed = job.call.clone().switch("--allow-commit-on-no-checkpoint-change");
    job.commits(&allowed);
    assert_eq!(job.table.checkpoint(), job.position());
}

#[test]
fn a_given_checkpoint_counts_once() {
    let mut job = job();
    job.upsert(&[row! {"id": "a", "ts": 1}]);
    job.upsert(&[row! {"id": "b", "ts": 2}]);
    let again = job.call.clone().flag("--checkpoint", BASE_TIME_MS.to_string());
    let instant = job.commits(&again);
    let extra = &job.table.commit_metadata(&instant)["extraMetadata"];
    assert_eq!(extra["deltastreamer.checkpoint.reset_key"], json!(BASE_TIME_MS.to_string()));
    assert_eq!(job.table.checkpoint(), job.position());
    job.makes_no_instant(&again);
    job.commits(&job.call.clone().flag("--checkpoint", (BASE_TIME_MS + 1).to_string()));
}

#[test]
fn an_ignored_checkpoint_is_forgotten_once() {
    let mut job = job();
    job.upsert(&[row! {"id": "a", "ts": 1}]);
    let anew = job.call.clone().flag("--ignore-checkpoint", "first time");
    let instant = job.commits(&anew);
    assert_eq!(
        job.table.commit_metadata(&instant)["extraMetadata"]["deltastreamer.checkpoint.ignore_key"],
        json!("first time")
    );
    job.makes_no_instant(&anew);
}

#[test]
fn a_checkpoint_that_is_no_position_of_this_source_is_refused() {
    let mut job = job();
    job.upsert(&[row! {"id": "a", "ts": 1}]);
    let before = job.table.timeline();
    job.call.clone().flag("--checkpoint", "orders,0:7").run().fails_with(1, &["orders,0:7"]);
    assert_eq!(before, job.table.timeline());
}
