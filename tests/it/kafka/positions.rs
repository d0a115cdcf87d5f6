//! `hudi-streamer checkpoint` of a topic: what `positions.rs` proves of files, and what only a broker can say.

use crate::positions::{checkpoint, shown};
use crate::support::*;

/// A topic of two partitions with three and one messages, all of them in the table.
fn job(topic: &str) -> KafkaJob {
    let topic = Broker::shared().topic(topic, 2);
    let mut job = KafkaJob::new(topic, BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| call);
    job.topic.send(1, [message("x")]);
    job.topic.send(0, [message("a"), message("b")]);
    job.upsert(&[row! {"id": "c", "ts": 1}]);
    job.stands_at(&[3, 1]);
    job
}

fn message(id: &str) -> Message {
    Message::from(format!("{{\"id\":\"{id}\",\"ts\":1}}"))
}

fn printed(job: &KafkaJob, words: &[&str]) -> String {
    checkpoint(job, words).run().ok().stdout
}

#[test]
fn the_lag_is_shown_by_partition() {
    needs_peers!();
    let job = job("lag");
    job.topic.send(0, [message("d"), message("e")]);
    let json = shown(&job);
    assert_eq!((&json["position"]["form"], &json["position"]["topic"]), (&json!("kafka"), &json!(job.topic.name())));
    assert_eq!(json["position"]["lag"], json!(2));
    let partitions = json!([
        {"partition": 0, "offset": 3, "earliest": 0, "end": 5, "lag": 2},
        {"partition": 1, "offset": 1, "earliest": 0, "end": 1, "lag": 0},
    ]);
    assert_eq!(json["position"]["partitions"], partitions);
    let text = printed(&job, &["show"]);
    let has = |words: &[&str]| text.lines().any(|l| l.split_whitespace().collect::<Vec<_>>() == words);
    assert!(has(&["0", "3", "0", "5", "2"]) && has(&["1", "1", "0", "1", "0"]) && has(&["total", "2"]), "{text}");

    let offline = checkpoint(&job, &["show"]).without("bootstrap.servers").run().ok();
    assert!(
        offline.stdout.contains("the lag is not told") && offline.stdout.contains("bootstrap.servers"),
        "{offline}"
    );
}

#[test]
fn a_position_out_of_range_says_what_the_next_run_does() {
    needs_peers!();
    let job = job("range");
    job.topic.send(0, [message("d"), message("e")]);
    job.topic.delete_before(0, 4);
    job.topic.grow(3);
    let text = printed(&job, &["show"]);
    for note in ["1 offsets have expired: the next run starts at 4", "new: the next run starts at 0"] {
        assert!(text.contains(note), "{note}\n{text}");
    }
    let strict = checkpoint(&job, &["show"]).conf("hoodie.streamer.source.kafka.enable.failOnDataLoss", "true");
    let strict = strict.run().ok();
    assert!(strict.stdout.contains("the next run fails"), "{strict}");
    job.topic.recreate(1);
    let text = printed(&job, &["show"]);
    for note in ["past the end: the next run fails", "not in the topic: the next run fails"] {
        assert!(text.contains(note), "{note}\n{text}");
    }
}

#[test]
fn a_run_goes_on_from_the_offsets_that_were_set() {
    needs_peers!();
    let job = job("set");
    let wanted = job.topic.position(&[1, 1]);
    let dry = job.makes_no_instant(&checkpoint(&job, &["set", &wanted, "--dry-run"]));
    assert!(dry.stdout.contains("2 offsets are read again"), "{dry}");
    // Whatever the order of the operator, the text is Hudi's.
    let turned = format!("{},1:1,0:1", job.topic.name());
    job.commits(&checkpoint(&job, &["set", &turned]));
    job.stands_at(&[1, 1]);
    let instant = job.round("UPSERT");
    job.stands_at(&[3, 1]);
    let metadata = job.table.commit_metadata(&instant);
    assert_eq!(metadata["partitionToWriteStats"][""][0]["numUpdateWrites"], json!(2), "{metadata}");
}

#[test]
fn offsets_that_the_topic_does_not_have_want_force() {
    needs_peers!();
    let job = job("force");
    let name = job.topic.name();
    let set = |text: &str| checkpoint(&job, &["set", text]);
    let cases = [
        (format!("{name},0:3"), "partition 1 is missing"),
        (format!("{name},0:9,1:1"), "past its end, 3"),
        (format!("{name},0:3,1:1,2:0"), "no partition 2"),
        ("other,0:3,1:1".to_string(), "topic other"),
    ];
    for (text, why) in &cases {
        set(text).run().fails_with(2, &["checkpoint-doubtful", text, why, "--force"]);
    }
    set("1700000000000").run().fails_with(2, &["checkpoint-foreign", "a file source", "JsonKafkaSource"]);
    set(&format!("{name},0:3,0:4")).run().fails_with(2, &["checkpoint-malformed", "twice"]);
    job.stands_at(&[3, 1]);

    // Nobody to ask: only what the text itself gives away is doubted.
    let offline = |text: &str| set(text).without("bootstrap.servers");
    offline(&format!("{name},0:3,2:1")).run().fails_with(2, &["partition 1 is missing"]);
    job.commits(&set(&cases[1].0).switch("--force"));
    job.stands_at(&[9, 1]);
    let run = offline(&job.topic.position(&[3, 1])).run().ok();
    run.says(&["the offsets are not checked"]);
    job.stands_at(&[3, 1]);
}

#[test]
fn positions_are_found_by_time_by_group_and_at_the_beginning() {
    needs_peers!();
    let job = job("find");
    let topic = Broker::shared().topic("times", 2);
    // An hour ago: the broker throws away what is as old as its retention.
    let time = chrono::Utc::now().timestamp_millis() / 1_000 * 1_000 - 3_600_000;
    topic.send(0, (0..4).map(|i| message("k").at(time + 1_000 * i)));
    topic.send(1, [message("k").at(time)]);
    let call = |words: &[&str]| checkpoint(&job, words).conf("hoodie.streamer.source.kafka.topic", topic.name());
    let found = |words: &[&str]| call(words).run().ok().stdout;
    let line = |next: &[i64]| topic.position(next) + "\n";

    assert_eq!(found(&["from-timestamp", &time.to_string()]), line(&[0, 0]));
    assert_eq!(found(&["from-timestamp", &(time + 1_500).to_string()]), line(&[2, 1]), "none so late: the end");
    let written = chrono::DateTime::from_timestamp_millis(time + 2_000).expect("a time").to_rfc3339();
    assert_eq!(found(&["from-timestamp", &written]), line(&[2, 1]));
    topic.delete_before(0, 3);
    assert_eq!(found(&["from-earliest"]), line(&[3, 0]));

    call(&["from-group", "readers"]).run().fails_with(1, &["checkpoint-no-group-offset", "readers", "0, 1"]);
    topic.commit_group("readers", &[(0, 3)]);
    call(&["from-group", "readers"]).run().fails_with(1, &["readers", "partition 1 of"]);
    topic.commit_group("readers", &[(1, 1)]);
    assert_eq!(found(&["from-group", "readers"]), line(&[3, 1]));
    let own = call(&["from-group", "readers"]).conf("group.id", "another").run().ok();
    assert_eq!(own.stdout, line(&[3, 1]), "the job's own group is not meant");

    job.commits(&checkpoint(&job, &["from-earliest", "--set"]));
    job.stands_at(&[0, 0]);
    job.round("UPSERT");
    job.stands_at(&[3, 1]);
    call(&["from-earliest"]).without("bootstrap.servers").run().fails_with(2, &["bootstrap.servers"]);
}

#[test]
fn hudi_reads_a_table_whose_offsets_were_set_and_writes_on() {
    needs_peers!();
    let topic = Broker::shared().topic("hudi", 1);
    let mut job = KafkaJob::new(topic, BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| call);
    let ours = [row! {"id": "a", "ts": 1, "v": "ours"}];
    job.upsert(&ours);
    job.commits(&checkpoint(&job, &["from-earliest", "--set"]));
    job.check();
    let theirs = [row! {"id": "b", "ts": 2, "v": "theirs"}];
    let file = job.scratch.lines("spark.json", &theirs);
    let instant = oracle(SPARK_0_15).write(job.table.str(), "upsert", &file, &[]);
    job.model.upsert(&instant, &theirs);
    job.check();
    let instant = job.round("UPSERT");
    job.model.upsert(&instant, &ours);
    job.stands_at(&[1]);
    job.check();
}
