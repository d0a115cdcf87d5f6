//! Records that are gone before they were read, and topics that are no longer what they were.

use super::*;

const FAIL: &str = "hoodie.streamer.source.kafka.enable.failOnDataLoss";

/// Case 04: four records of each partition read, then 4, 5 and 6 of partition 0 deleted.
fn expired(op: &str) -> KafkaJob {
    let mut job = job("sensor", 2);
    for partition in 0..2 {
        let rows: Vec<Row> = (0..10).map(|offset| event(format!("{partition}-{offset}"), 1)).collect();
        job.topic.send(partition, &rows);
    }
    job.call = job.call.clone().op(op);
    job.commits(&job.call.clone().flag("--source-limit", "8"));
    job.stands_at(&[4, 4]);
    job.topic.delete_before(0, 7);
    job
}

fn what_is_left() -> Vec<String> {
    let [first, second] =
        [[0, 1, 2, 3, 7, 8, 9].map(|i| format!("0-{i}")).to_vec(), (0..10).map(|i| format!("1-{i}")).collect()];
    [first, second].concat()
}

#[test]
fn lost_records_fail_the_round_on_demand() {
    needs_peers!();
    for key in [FAIL, "hoodie.deltastreamer.source.kafka.enable.failOnDataLoss"] {
        let job = expired("UPSERT");
        let call = job.call.clone().conf(key, "true");
        let before = job.table.timeline();
        call.run().fails_with_any(&[job.topic.name(), "partition 0", "4", "7", "--checkpoint"]);
        assert_eq!(before, job.table.timeline());
        assert_eq!(ids(&job.table).len(), 8);
        // The way out.
        job.commits(&call.flag("--checkpoint", job.topic.position(&[7, 4])));
        assert_eq!(ids(&job.table), what_is_left());
    }
}

/// Settings B and C. Unlike Hudi, only the partition that lost records is moved.
#[test]
fn lost_records_are_told_and_the_rest_is_read_once() {
    needs_peers!();
    for op in ["UPSERT", "BULK_INSERT"] {
        let job = expired(op);
        job.call.run().ok().says(&["WARN", job.topic.name(), "partition 0", "4", "7", "3 offsets"]);
        job.stands_at(&[10, 10]);
        assert_eq!(ids(&job.table), what_is_left(), "{op}");
        job.makes_no_instant(&job.call);
    }
}

#[test]
fn a_topic_made_anew_is_not_taken_for_the_old_one() {
    needs_peers!();
    let mut job = job("sensor", 1);
    job.upsert(&[event("a", 1), event("b", 1), event("c", 1)]);
    job.topic.recreate(1);
    job.topic.send(0, &[event("d", 1)]);
    let before = job.table.timeline();
    job.call.run().fails_with_any(&[job.topic.name(), "partition 0", "3", "1", "--checkpoint"]);
    assert_eq!(before, job.table.timeline());
    job.commits(&job.call.clone().flag("--checkpoint", job.topic.position(&[0])));
    assert_eq!(ids(&job.table), ["a", "b", "c", "d"]);
    job.stands_at(&[1]);
}

#[test]
fn a_partition_that_is_gone_is_named() {
    needs_peers!();
    let mut job = job("sensor", 2);
    job.topic.send(1, &[event("b", 1)]);
    job.upsert(&[event("a", 1)]);
    job.stands_at(&[1, 1]);
    job.topic.recreate(1);
    job.topic.send(0, &[event("c", 1), event("d", 1)]);
    job.call.run().fails_with_any(&[job.topic.name(), "partition 1", "--checkpoint"]);
    job.commits(&job.call.clone().flag("--checkpoint", job.topic.position(&[0])));
    assert_eq!(ids(&job.table), ["a", "b", "c", "d"]);
}
