//! Whatever other programs write into the table, the next run knows where it was.

use super::*;

/// Case 01: an upsert, a clustering and an empty checkpoint by Spark.
#[test]
fn commits_that_carry_no_position_are_stepped_over() {
    needs_peers!();
    let mut job = job("parcels", 1);
    let held_by = job.bulk_insert(&[event("p0", 1), event("p1", 2), event("p2", 3)]);
    job.stands_at(&[3]);

    let table = job.table.str().to_owned();
    let x1 = job.scratch.lines("x1.json", &[event("x1", 1)]);
    let x2 = job.scratch.lines("x2.json", &[event("x2", 1)]);
    let empty =
        ["hoodie.datasource.write.commitmeta.key.prefix=deltastreamer.checkpoint.", "deltastreamer.checkpoint.key="];
    oracle(SPARK_0_15).write(&table, "upsert", &x1, &[]);
    oracle(SPARK_0_15).service(&table, "cluster", &[]);
    oracle(SPARK_0_15).write(&table, "upsert", &x2, &empty);
    assert!(job.table.timeline().iter().any(|name| name.ends_with(".replacecommit")), "Spark clustered");

    job.topic.send(0, &[event("p3", 4), event("p4", 5)]);
    let call = job.call.clone().op("BULK_INSERT");
    call.run().ok().says(&[&job.topic.position(&[3]), &held_by]);
    job.stands_at(&[5]);
    for reader in READERS {
        assert_eq!(ids_by(reader, &job.table), ["p0", "p1", "p2", "p3", "p4", "x1", "x2"], "{reader:?}");
    }
    job.makes_no_instant(&call);
}

/// Case 01, the variant for merge-on-read: Spark's compaction is the newest commit, and carries none.
#[test]
fn a_compaction_carries_no_position() {
    needs_peers!();
    let model = Model::new(&["id", "ts", "v"]);
    let mut job = KafkaJob::new(Broker::shared().topic("parcels", 1), BASE_SCHEMA, model, |call| {
        call.flag("--table-type", "MERGE_ON_READ")
    });
    job.upsert(&[event("p0", 1), event("p1", 2)]);
    let held_by = job.upsert(&[event("p1", 3)]);
    job.stands_at(&[3]);
    oracle(SPARK_0_15).service(job.table.str(), "compact", &["hoodie.compact.inline.max.delta.commits=1"]);
    assert_eq!(job.table.last_commit(), job.table.compactions()[0], "Spark compacted");

    let rows = [event("p1", 4), event("p0", 5)];
    job.topic.send(0, &rows);
    job.call.run().ok().says(&[&job.topic.position(&[3]), &held_by]);
    let instant = job.table.last_write();
    assert_eq!(job.table.commit_metadata(&instant)["operationType"], "UPSERT");
    job.model.upsert(&instant, &rows);
    job.stands_at(&[5]);
    job.check_through_compaction();
}

#[test]
fn a_table_that_another_program_made_is_taken_up_with_a_warning() {
    needs_peers!();
    let job = job("parcels", 1);
    let rows = job.scratch.lines("theirs.json", &[event("x1", 1), event("x2", 1)]);
    oracle(SPARK_0_15).create(
        "cow",
        job.table.str(),
        &job.scratch.path("schema.avsc"),
        &rows,
        &["hoodie.table.name=trips"],
    );
    job.topic.send(0, &[event("p0", 1), event("x2", 2)]);
    job.call.run().ok().says(&["WARN", "checkpoint", "earliest"]);
    job.stands_at(&[2]);
    for reader in READERS {
        assert_eq!(ids_by(reader, &job.table), ["p0", "x1", "x2"], "{reader:?}");
    }
}

#[test]
fn a_position_that_is_none_of_this_topic_is_refused() {
    needs_peers!();
    let mut job = job("parcels", 1);
    job.upsert(&[event("p0", 1)]);
    let before = job.table.timeline();
    let name = job.topic.name().to_owned();
    for wrong in [
        "others,0:1".to_owned(),    // another topic
        "1700000000000".to_owned(), // a file source's
        format!("{name},0:1,7:3"),  // a partition that is not there
        format!("{name},0:99"),     // beyond the end
        format!("{name},0:-1"),
        format!("{name},0:1,0:1"),
        format!("{name},0"),
        format!("{name},zero:1"),
    ] {
        let given = job.call.clone().flag("--checkpoint", &wrong);
        given.run().fails_with_any(&[&wrong, "--checkpoint"]);
        assert_eq!(before, job.table.timeline(), "{wrong}");
    }
    job.call.clone().flag("--checkpoint", format!("{name},0:99")).run().fails_with_any(&["partition 0", "99", "1"]);
    job.makes_no_instant(&job.call);
}

#[test]
fn a_topic_that_is_not_there_is_named() {
    needs_peers!();
    let job = job("parcels", 1);
    let call = job.call.clone().conf("hoodie.streamer.source.kafka.topic", "no-such-topic");
    call.run().fails_with_any(&["no-such-topic"]);
    assert!(job.table.commits().is_empty());
}

/// Also a first position may be given; it is the next offset to read.
#[test]
fn a_given_position_counts_once() {
    needs_peers!();
    let job = job("parcels", 2);
    job.topic.send(0, &[event("a", 1), event("b", 1)]);
    job.topic.send(1, &[event("c", 1), event("d", 1)]);
    let given = job.call.clone().flag("--checkpoint", job.topic.position(&[1, 2]));
    job.commits(&given);
    assert_eq!(ids(&job.table), ["b"]);
    job.makes_no_instant(&given);
    job.commits(&job.call.clone().flag("--checkpoint", job.topic.position(&[0, 1])));
    assert_eq!(ids(&job.table), ["a", "b", "d"]);
    job.stands_at(&[2, 2]);
}
