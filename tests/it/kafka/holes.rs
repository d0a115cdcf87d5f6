//! Offsets are not records: transactions, compaction and new partitions.

use super::*;

#[test]
fn aborted_transactions_leave_no_rows_and_markers_no_gap() {
    needs_peers!();
    let mut job = job("bank", 2);
    job.call = job.call.clone().conf("isolation.level", "read_committed");
    let rows = |name: &str, ts: i64| -> Vec<Row> { (0..5).map(|i| event(format!("{name}{i}"), ts)).collect() };
    let mut committed = Vec::new();
    for round in 0..3 {
        for partition in 0..2 {
            let name = ["x", "y"][partition as usize];
            job.topic.send_in_transaction(partition, &rows(name, round), End::Commit);
            committed.extend(rows(name, round));
            job.topic.send_in_transaction(partition, &rows("aborted", round), End::Abort);
            job.topic.send(partition, &rows(&format!("{name}plain"), round));
            committed.extend(rows(&format!("{name}plain"), round));
        }
    }
    let ends = job.topic.ends();
    assert_eq!(ends, [51, 51], "15 records and 2 markers a round");
    let instant = job.round("UPSERT");
    job.model.upsert(&instant, &committed);
    job.stands_at(&ends);
    job.check();
    job.makes_no_instant(&job.call);

    // Nothing but an aborted transaction is progress too.
    job.topic.send_in_transaction(0, &rows("aborted", 9), End::Abort);
    job.commits(&job.call);
    job.stands_at(&[57, 51]);
    job.check();
    job.makes_no_instant(&job.call);
}

/// Limits count offsets, so a round may come to lie on a marker.
#[test]
fn a_round_may_end_on_a_transaction_marker() {
    needs_peers!();
    let mut job = job("bank", 1);
    for i in 0..4 {
        let end = if i == 1 { End::Abort } else { End::Commit };
        job.topic.send_in_transaction(0, &[event(format!("k{i}"), 1)], end);
    }
    job.call = job.call.clone().conf("isolation.level", "read_committed").flag("--source-limit", "1").op("BULK_INSERT");
    for next in 1..=8 {
        job.commits(&job.call);
        job.stands_at(&[next]);
    }
    job.makes_no_instant(&job.call);
    assert_eq!(ids(&job.table), ["k0", "k2", "k3"]);
}

/// What is open is not read, nor what stands behind it, and nothing of it is lost.
#[test]
fn an_open_transaction_is_waited_for() {
    needs_peers!();
    let mut job = job("bank", 2);
    job.call = job.call.clone().conf("isolation.level", "read_committed").op("BULK_INSERT");
    job.topic.send(0, &[event("before", 1)]);
    let open = job.topic.begin(0, &[event("within", 1)]);
    job.topic.send(0, &[event("behind", 1)]);
    job.topic.send(1, &[event("beside", 1)]);
    job.commits(&job.call);
    job.stands_at(&[1, 1]);
    job.makes_no_instant(&job.call);
    open.end(End::Commit);
    job.commits(&job.call);
    job.stands_at(&[4, 1]);
    assert_eq!(ids(&job.table), ["before", "behind", "beside", "within"]);
}

/// As with Hudi's Streamer, whose Java client reads uncommitted unless it is told otherwise.
#[test]
fn by_default_transactions_are_not_looked_at() {
    needs_peers!();
    let job = job("bank", 1);
    job.topic.send_in_transaction(0, &[event("aborted", 1)], End::Abort);
    job.topic.send_in_transaction(0, &[event("committed", 1)], End::Commit);
    let open = job.topic.begin(0, &[event("open", 1)]);
    job.commits(&job.call);
    assert_eq!(ids(&job.table), ["aborted", "committed", "open"]);
    job.stands_at(&[5]);
    open.end(End::Abort);
}

#[test]
fn a_compacted_topic_is_read_over_its_holes() {
    needs_peers!();
    let settings = [
        ("cleanup.policy", "compact"),
        ("segment.ms", "500"),
        ("min.cleanable.dirty.ratio", "0.01"),
        ("max.compaction.lag.ms", "1000"),
    ];
    let mut job = on(Broker::shared().topic_with("ledger", 1, &settings));
    let keyed = |i: i64, ts: i64| Message::from(&event(format!("k{i}"), ts)).key(&format!("k{i}"));
    for ts in 0..4 {
        job.topic.send(0, (0..10).map(|i| keyed(i, ts)));
    }
    // Each further record may close a segment, and only closed ones are compacted.
    let started = std::cell::Cell::new(0);
    wait_for("the topic to be compacted", || {
        job.topic.send(0, [keyed(100 + started.get(), 0)]);
        started.set(started.get() + 1);
        job.topic.kept(0).len() < 20 + started.get() as usize
    });
    let end = job.topic.ends()[0];
    let kept: Vec<Row> = job.topic.kept(0).iter().map(|value| serde_json::from_slice(value).expect("JSON")).collect();
    let instant = job.round("UPSERT");
    job.model.upsert(&instant, &kept);
    job.stands_at(&[end]);
    job.check();
    job.makes_no_instant(&job.call);
}

#[test]
fn a_partition_that_is_added_is_read_from_its_beginning() {
    needs_peers!();
    for reset in ["earliest", "latest"] {
        let mut job = job("growing", 1);
        job.upsert(&[event("a", 1)]);
        job.call = job.call.clone().conf("auto.offset.reset", reset);
        job.topic.grow(3);
        job.topic.send(2, &[event("b", 1), event("c", 1)]);
        job.topic.send(0, &[event("d", 1)]);
        job.commits(&job.call);
        job.stands_at(&[2, 0, 2]);
        assert_eq!(ids(&job.table), ["a", "b", "c", "d"], "{reset}");
    }
}
