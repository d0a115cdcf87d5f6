//! A continuous job beside what its topic and its broker go through.

use super::chaos::{Dice, SCHEMA, Sent, Writer, check, wait_long_for};
use crate::support::*;
use std::collections::HashSet;

fn job(topic: Topic, with: impl FnOnce(Streamer) -> Streamer) -> KafkaJob {
    KafkaJob::new(topic, BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| with(call.switch("--continuous")))
}

fn events(numbers: std::ops::Range<i64>) -> Vec<Row> {
    numbers.map(|i| row! {"id": format!("k{i}"), "ts": i, "v": null}).collect()
}

/// Rounds of five offsets end within them and begin within them, and no message says so.
#[test]
fn many_rounds_pass_a_tail_of_aborted_messages() {
    needs_peers!();
    let topic = Broker::shared().topic("aborted", 1);
    topic.send(0, &events(0..3));
    topic.send_in_transaction(0, &events(3..23), End::Abort);
    let mut job = job(topic, |call| call.conf("isolation.level", "read_committed").flag("--source-limit", "5"));
    let running = job.call.start();
    wait_for("the end of what was aborted", || {
        job.table.commits().len() == 5 && job.table.checkpoint() == job.topic.position(&[24])
    });
    job.topic.send(0, &events(23..25));
    wait_for("the commit of what came behind", || job.table.checkpoint() == job.topic.position(&[26]));
    running.signal("TERM");
    let said = running.finish().ok().stderr;
    assert!(!said.contains("round failed"), "{said}");
    let commits = job.table.commits();
    job.model.upsert(&commits[0], &events(0..3));
    job.model.upsert(&commits[5], &events(23..25));
    job.check();
}

/// Two readers of one range, by turns: what one takes the other must have too.
#[test]
fn a_query_may_read_its_input_twice() {
    needs_peers!();
    const ROWS: i64 = 30_000;
    let sql =
        "SELECT concat(id, '-a') AS id, ts, v FROM <SRC> UNION ALL SELECT concat(id, '-b') AS id, ts, v FROM <SRC>";
    let topic = Broker::shared().topic("twice", 2);
    topic.send(0, &events(0..ROWS / 2));
    topic.send(1, &events(ROWS / 2..ROWS));
    let job = job(topic, |call| {
        let call = call.op("INSERT").flag("--transformer-class", "SqlQueryBasedTransformer");
        call.without("--continuous").conf("hoodie.streamer.transformer.sql", sql)
    });
    job.call.run().ok();
    let rows = oracle(HUDI_RS).read(job.table.str());
    let got: HashSet<&str> = rows.iter().map(|row| row["id"].as_str().expect("text")).collect();
    assert_eq!((rows.len(), got.len()), (2 * ROWS as usize, 2 * ROWS as usize), "rows, and ids");
}

/// The broker ends, hangs, and comes back; then messages expire while the job is down.
#[test]
fn a_job_outlives_its_broker_and_counts_what_expired() {
    needs_peers!();
    const PARTITIONS: usize = 3;
    let broker = Broker::start();
    let topic = broker.topic("away", PARTITIONS);
    let job = KafkaJob::new(topic, SCHEMA, Model::new(&[]), |call| {
        call.op("INSERT").switch("--continuous").conf("default.api.timeout.ms", "2000")
    });
    let writer = Writer::start(&job.topic, PARTITIONS, None, Dice(1));
    let running = job.call.start();
    let failures = || running.said().matches("round failed; trying again").count();
    for way in ["ends", "hangs"] {
        let before = job.table.commits().len();
        wait_for("a commit", || job.table.commits().len() > before);
        let failed = failures();
        if way == "ends" {
            broker.stop()
        } else {
            broker.freeze()
        }
        wait_for(&format!("a failed round when the broker {way}"), || failures() > failed);
        let before = job.table.commits().len();
        if way == "ends" {
            broker.restart()
        } else {
            broker.thaw()
        }
        wait_long_for("a commit of the same job", || job.table.commits().len() > before);
    }
    let sent = writer.finish(&job.topic);
    let end = job.topic.position(&job.topic.ends());
    wait_long_for("the end of the topic", || job.table.checkpoint() == end);
    running.signal("TERM");
    running.finish().ok();
    check(&job.table, &job.topic, &sent, false, &HashSet::new());

    let sent = more(&job.topic, sent, 20);
    let lost = 7;
    let first = sent[1].len() - 20;
    job.topic.delete_before(1, (first + lost) as i64);
    let running = job.call.start();
    let end = job.topic.position(&job.topic.ends());
    wait_for("the rest", || job.table.checkpoint() == end);
    running.signal("TERM");
    running.finish().ok().says(&["WARN", "partition 1", &format!("{lost} offsets lost")]);
    check(&job.table, &job.topic, &sent, false, &(first..first + lost).map(|offset| (1, offset)).collect());
}

/// So many messages more in each partition.
fn more(topic: &Topic, mut sent: Sent, count: usize) -> Sent {
    for (partition, ids) in sent.iter_mut().enumerate() {
        let from = ids.len();
        ids.extend((from..from + count).map(|offset| format!("{partition}-{offset}")));
        let row = |offset: usize| row! {"id": format!("{partition}-{offset}"), "ts": offset, "v": format!("{partition}-{offset}"), "part": "p"};
        topic.send(partition as i32, &(from..from + count).map(row).collect::<Vec<_>>());
    }
    sent
}
