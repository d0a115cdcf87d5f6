//! A limited round is shared out over the partitions as Hudi's `KafkaOffsetGen` does it.

use super::*;

fn filled(name: &str, counts: &[i64]) -> KafkaJob {
    let mut job = job(name, counts.len());
    for (partition, count) in (0..).zip(counts) {
        let rows: Vec<Row> = (0..*count).map(|offset| event(format!("{partition}-{offset}"), 1)).collect();
        job.topic.send(partition, &rows);
    }
    job.call = job.call.clone().op("BULK_INSERT");
    job
}

/// Case 03.
#[test]
fn a_limited_round_is_shared_out_over_the_partitions() {
    needs_peers!();
    let limited = |key: &'static str| {
        move |call: Streamer| match key {
            "--source-limit" => call.flag(key, "20"),
            "both" => call.flag("--source-limit", "20").conf("hoodie.streamer.kafka.source.maxEvents", "7"),
            key => call.conf(key, "20"),
        }
    };
    for key in ["--source-limit", "hoodie.streamer.kafka.source.maxEvents", "both"] {
        let mut job = filled("lot", &[3, 50, 50, 0]);
        job.call = limited(key)(job.call.clone());
        for (next, rows) in [
            ([3, 10, 7, 0], 20),
            ([3, 20, 17, 0], 40),
            ([3, 30, 27, 0], 60),
            ([3, 40, 37, 0], 80),
            ([3, 50, 47, 0], 100),
            ([3, 50, 50, 0], 103),
        ] {
            job.commits(&job.call);
            job.stands_at(&next);
            assert_eq!(ids(&job.table).len(), rows, "{key}");
        }
        job.makes_no_instant(&job.call);
        let mut found = ids(&job.table);
        found.dedup();
        assert_eq!(found.len(), 103, "each row once");
    }
}

#[test]
fn what_a_small_partition_leaves_goes_to_the_others() {
    needs_peers!();
    let mut job = filled("trio", &[12, 2, 7]);
    job.call = job.call.clone().flag("--source-limit", "10");
    for next in [[5, 2, 3], [11, 2, 7], [12, 2, 7]] {
        job.commits(&job.call);
        job.stands_at(&next);
    }
    assert_eq!(ids(&job.table).len(), 21);
}

/// More pieces to read in change nothing about what is read.
#[test]
fn pieces_of_a_partition_are_read_once_each() {
    needs_peers!();
    let mut job = filled("lot", &[100, 1]);
    job.call = job.call.clone().conf("hoodie.streamer.source.kafka.minPartitions", "9");
    job.commits(&job.call);
    job.stands_at(&[100, 1]);
    let mut found = ids(&job.table);
    assert_eq!(found.len(), 101);
    found.dedup();
    assert_eq!(found.len(), 101);
}

#[test]
fn what_does_not_fit_a_round_is_taken_in_several_commits() {
    needs_peers!();
    let job = filled("lot", &[30, 10]);
    // Ten messages: short ones count a hundred bytes.
    job.call.clone().conf("hoodie.streamer.round.max.bytes", "1000").run().ok();
    let positions: Vec<String> = job.table.writes().iter().map(|write| job.table.checkpoint_of(write)).collect();
    for (position, (first, second)) in positions.iter().zip([(5, 5), (10, 10), (20, 10), (30, 10)]) {
        assert!(position.ends_with(&format!(",0:{first},1:{second}")), "{positions:?}");
    }
    assert_eq!(positions.len(), 4, "{positions:?}");
    let mut found = ids(&job.table);
    found.dedup();
    assert_eq!(found.len(), 40, "each row once");
}
