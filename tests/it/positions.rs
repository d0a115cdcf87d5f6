//! `hudi-streamer checkpoint`: operators look at positions and set them.

use crate::support::*;

fn job() -> Job {
    Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| call)
}

/// The job's whole command line behind `checkpoint …`.
pub fn checkpoint(job: &Job, words: &[&str]) -> Streamer {
    let words: Vec<&str> = std::iter::once("checkpoint").chain(words.iter().copied()).collect();
    job.call.clone().after(&words)
}

pub fn shown(job: &Job) -> Value {
    let run = checkpoint(job, &["show", "--output", "json"]).run().ok();
    serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{e}\n{run}"))
}

#[test]
fn the_position_and_its_history_are_shown() {
    let mut job = job();
    let first = job.upsert(&[row! {"id": "a", "ts": 1}, row! {"id": "b", "ts": 1}]);
    let second = job.upsert(&[row! {"id": "a", "ts": 2}]);
    let before = job.table.files();

    let run = checkpoint(&job, &["show"]).run().ok();
    for words in [
        &["position", "1700000002000", "2023-11-14T22:13:22Z"][..],
        &["held by", &second],
        &["V1, V2"],
        &["next run", "goes on"],
        &[&second, "UPSERT", "1700000002000"],
        &[&first, "UPSERT", "1700000001000"],
    ] {
        assert!(run.stdout.lines().any(|l| words.iter().all(|w| l.contains(w))), "{words:?}\n{run}");
    }

    let json = shown(&job);
    assert_eq!(json["position"]["checkpoint"], json!("1700000002000"));
    assert_eq!(json["position"]["form"], json!("files"));
    assert_eq!(json["position"]["time"], json!("2023-11-14T22:13:22Z"));
    assert_eq!(json["position"]["instant"], json!(second));
    assert_eq!(json["position"]["spellings_agree"], json!(true));
    assert_eq!(json["position"]["reset_key"], Value::Null);
    assert_eq!(json["next_run"]["checkpoint"], json!("1700000002000"));
    let counts = |e: &Value| ["inserted", "updated", "deleted"].map(|k| e[k].as_u64().expect("a number"));
    let history = json["history"].as_array().expect("a list");
    assert_eq!(history.iter().map(counts).collect::<Vec<_>>(), [[0, 1, 0], [2, 0, 0]]);
    assert_eq!(before, job.table.files(), "looking changes nothing");

    let run = checkpoint(&job, &["show", "--history", "1"]).run().ok();
    assert!(run.stdout.contains("1 older left out") && !run.stdout.contains(&first), "{run}");
}

/// With the flags of the job, `show` says what its next run does.
#[test]
fn flags_that_count_are_told_with_the_position() {
    let mut job = job();
    job.upsert(&[row! {"id": "a", "ts": 1}]);
    job.call = job.call.clone().flag("--checkpoint", "7");
    assert_eq!(shown(&job)["next_run"]["checkpoint"], json!("7"));
    job.round("UPSERT");
    let json = shown(&job);
    assert_eq!(json["position"]["reset_key"], json!("7"));
    assert_eq!(json["next_run"]["checkpoint"], json!(job.position()));
    job.call = job.call.clone().flag("--ignore-checkpoint", "x").without("--checkpoint");
    assert_eq!(shown(&job)["next_run"]["checkpoint"], Value::Null);
}

#[test]
fn a_run_goes_on_from_the_position_that_was_set() {
    let mut job = job();
    let rows = [row! {"id": "a", "ts": 1, "v": "1"}];
    job.upsert(&rows);
    job.upsert(&[row! {"id": "b", "ts": 1, "v": "1"}]);
    let first = (BASE_TIME_MS + 1000).to_string();

    let dry = checkpoint(&job, &["set", &first, "--dry-run"]);
    let run = job.makes_no_instant(&dry);
    assert!(run.stdout.contains(&format!("{} → {first}", job.position())), "{run}");
    assert!(run.stdout.contains("read again"), "{run}");

    let instant = job.commits(&checkpoint(&job, &["set", &first]));
    assert_eq!(job.table.checkpoint(), first);
    let json = shown(&job);
    assert_eq!(json["position"]["instant"], json!(instant));
    assert_eq!(json["history"][0]["set_in_place_of"], json!(job.position()));
    let metadata = job.table.commit_metadata(&instant);
    assert!(metadata["extraMetadata"]["schema"].as_str().is_some_and(|s| s.contains("\"id\"")), "{metadata}");
    assert_eq!(metadata["partitionToWriteStats"], json!({}));

    // The second file alone is read again.
    let instant = job.round("UPSERT");
    let metadata = job.table.commit_metadata(&instant);
    assert_eq!(metadata["partitionToWriteStats"][""][0]["numUpdateWrites"], json!(1), "{metadata}");
    assert_eq!(job.table.checkpoint(), job.position());
}

/// A position that is in force already needs no commit.
#[test]
fn setting_the_same_position_makes_no_instant() {
    let mut job = job();
    job.upsert(&[row! {"id": "a", "ts": 1}]);
    let position = job.position();
    let run = job.makes_no_instant(&checkpoint(&job, &["set", &position]));
    assert!(run.stdout.contains("nothing is written"), "{run}");
}

/// A `--checkpoint` that stands in the job's command line for good must not undo what was set.
#[test]
fn flags_that_have_counted_do_not_count_again_after_a_set() {
    let mut job = job();
    job.call = job.call.clone().flag("--checkpoint", "5").flag("--ignore-checkpoint", "once");
    job.upsert(&[row! {"id": "a", "ts": 1}]);
    let bare = job.call.clone().without("--checkpoint").without("--ignore-checkpoint");
    let ahead = (BASE_TIME_MS + 500_000).to_string();
    job.commits(&bare.after(&["checkpoint", "set", &ahead]));
    job.makes_no_instant(&job.call);
    assert_eq!(job.table.checkpoint(), ahead);
}

/// The schema that was inferred at first stays in force over a set.
#[test]
fn an_inferred_schema_outlives_a_set() {
    const KEY: &str = "hoodie.streamer.inferred.source.schema";
    let mut job = job();
    job.call =
        job.call.clone().without("--schemaprovider-class").without("hoodie.streamer.schemaprovider.source.schema.file");
    let first = job.upsert(&[row! {"id": "a", "ts": 1, "v": "x"}]);
    let set = job.commits(&checkpoint(&job, &["set", "0"]));
    let [first, set] = [first, set].map(|i| job.table.commit_metadata(&i)["extraMetadata"][KEY].clone());
    assert!(first.is_string());
    assert_eq!(first, set);
}

#[test]
fn a_position_that_cannot_be_meant_is_refused() {
    let mut job = job();
    let call = |job: &Job, words: &[&str]| checkpoint(job, words).run();
    call(&job, &["show"]).fails_with(2, &["no table", "--target-base-path"]);
    call(&job, &["set", "5000000000000"]).fails_with(2, &["no table", "--checkpoint"]);
    job.upsert(&[row! {"id": "a", "ts": 1}]);
    let before = job.table.timeline();
    let cases: [(&[&str], &[&str]); 8] = [
        (&["set", "orders,0:7,1:9"], &["orders,0:7,1:9", "a Kafka source", "JsonDFSSource"]),
        (&["set", "orders,0:7,0:9", "--force"], &["orders,0:7,0:9", "twice"]),
        (&["set", "yesterday"], &["yesterday", "milliseconds"]),
        (&["set", "1700000000"], &["1700000000", "seconds", "--force"]),
        (&["set", "99999999999999"], &["99999999999999", "--force"]),
        (&["from-group", "readers"], &["JsonDFSSource", "consumer groups"]),
        (&["from-timestamp", "1700000000"], &["1700000000", "seconds"]),
        (&["shwo"], &["shwo"]),
    ];
    for (words, names) in cases {
        call(&job, words).fails_with(2, names);
    }
    let wrong_name = checkpoint(&job, &["set", "0"]).flag("--target-table", "other");
    wrong_name.run().fails_with(2, &["other", "trips"]);
    assert_eq!(before, job.table.timeline());

    job.commits(&checkpoint(&job, &["set", "1700000000", "--force"]));
    assert_eq!(job.table.checkpoint(), "1700000000");
}

/// A write that began a moment ago may be one of a living process; an old one is rolled back, as a round does it.
#[test]
fn an_open_write_is_told_and_an_old_one_is_rolled_back() {
    let mut job = job();
    job.upsert(&[row! {"id": "a", "ts": 1}]);
    job.feed(&[row! {"id": "b", "ts": 1}]);
    job.call.clone().env("HUDI_STREAMER_FAULT", "before-complete").run().killed();
    let open = job.table.pending();
    let [open] = open.as_slice() else { panic!("one open write, not {open:?}") };

    let run = checkpoint(&job, &["show"]).run().ok();
    assert!(run.stdout.lines().any(|l| l.starts_with("open") && l.contains(open)), "{run}");
    checkpoint(&job, &["set", "0"]).run().fails_with(1, &["checkpoint-open-write", open, "--force"]);
    assert_eq!(job.table.rollbacks(), 0);

    job.scratch.touch(&format!("table/.hoodie/{open}.inflight"), BASE_TIME_MS);
    job.commits(&checkpoint(&job, &["set", "0"]));
    assert_eq!((job.table.rollbacks(), job.table.pending().len()), (1, 0));
    job.round("UPSERT");
    assert_eq!(job.table.checkpoint(), job.position());
}

/// Standard output holds the position and nothing else, so that a shell can put it elsewhere.
#[test]
fn a_position_from_the_source_is_printed_alone() {
    let job = job();
    let time = (BASE_TIME_MS + 1000).to_string();
    let printed = |words: &[&str]| checkpoint(&job, words).run().ok().stdout;
    assert_eq!(printed(&["from-timestamp", &time]), "1700000000999\n", "a file of that very time is read");
    assert_eq!(printed(&["from-timestamp", "2023-11-14T22:13:21Z"]), "1700000000999\n");
    assert_eq!(printed(&["from-earliest"]), "0\n");
}

#[test]
fn a_position_from_the_source_is_set_on_demand() {
    let mut job = job();
    job.upsert(&[row! {"id": "a", "ts": 1}]);
    job.commits(&checkpoint(&job, &["from-timestamp", "1700000001000", "--set"]));
    assert_eq!(job.table.checkpoint(), "1700000000999");
}

#[test]
fn hudi_reads_a_table_whose_position_was_set_and_writes_on() {
    needs_peers!();
    for spark in [SPARK_0_15, SPARK_1_0] {
        let mut job = job();
        job.upsert(&[row! {"id": "a", "ts": 1, "v": "ours"}]);
        let position = job.position();
        job.commits(&checkpoint(&job, &["set", "0"]));
        job.check();
        let theirs = [row! {"id": "b", "ts": 2, "v": "theirs"}];
        let file = job.scratch.lines("spark.json", &theirs);
        let instant = oracle(spark).write(job.table.str(), "upsert", &file, &[]);
        job.model.upsert(&instant, &theirs);
        job.check();
        let json = shown(&job);
        assert_eq!(json["position"]["checkpoint"], json!("0"));
        assert_eq!(json["history"][0]["instant"], json!(instant));
        assert_eq!(json["history"][0]["checkpoint"], Value::Null, "another writer's commit is marked");
        let instant = job.round("UPSERT");
        job.model.upsert(&instant, &[row! {"id": "a", "ts": 1, "v": "ours"}]);
        assert_eq!(job.table.checkpoint(), position);
        job.check();
    }
}
