//! What of several changes of one key a reader sees and a compaction keeps, where it is not the plain newest.

use super::*;

const P: [&str; 2] = [OVERWRITE, BY_EVENT_TIME];

fn keys(keys: std::ops::Range<i64>, ts: i64) -> Vec<Row> {
    keys.map(|key| event(key, ts)).collect()
}

/// Rows that are newer, as old, and older than what is stored, in the base file and in the log.
#[test]
fn late_rows_of_ours_lose_as_the_rule_says() {
    needs_peers!();
    for payload in P {
        let mut job = MorJob::new(payload, |call| call.conf("hoodie.compact.inline.max.delta.commits", "4"));
        job.upsert(&keys(0..12, 50));
        job.upsert(&[event(0, 40), event(1, 50), event(2, 60), event(3, 60), event(4, 60), event(5, 30), event(20, 5)]);
        job.check();
        job.upsert(&[event(2, 55), event(3, 60), event(4, 70), event(5, 40), event(6, 10), event(20, 4)]);
        job.check();
        // In one batch: the greater, and of equals the later.
        job.upsert(&[event(7, 61), event(7, 60), event(8, 40), event(8, 40), event(2, 58), event(5, 50)]);
        assert_eq!(job.table.compactions().len(), 1, "the fourth delta commit brings a compaction");
        job.check();
        job.upsert(&[event(7, 55), event(4, 65), event(20, 3)]);
        job.check();
    }
}

/// Deletes by flag, of known and unknown keys, newer and older than the base row and than rows in the log.
#[test]
fn deletes_of_ours_count_as_the_rule_says() {
    needs_peers!();
    for payload in P {
        let mut job = MorJob::new(payload, |call| call.conf("hoodie.compact.inline.max.delta.commits", "4"));
        job.upsert(&keys(0..12, 50));
        job.upsert(&[gone(0, 60), gone(1, 40), gone(2, 50), gone(30, 1), event(3, 60), event(4, 60)]);
        job.check();
        job.upsert(&[event(0, 70), gone(3, 70), gone(4, 65), event(5, 60), event(30, 2)]);
        job.check();
        job.upsert(&[gone(5, 61), gone(0, 71), event(3, 72), event(1, 51), gone(30, 3)]);
        assert_eq!(job.table.compactions().len(), 1, "the fourth delta commit brings a compaction");
        job.check();
        // What a compaction has dropped is a new key again.
        job.upsert(&[event(0, 1), event(5, 1), gone(6, 80)]);
        job.check();
    }
}

/// Spark's logs hold what readers do not agree on: deletes that are late, by arrival, and followed by older rows. We
/// compact them as Hudi 0.15 does, after which all agree.
#[test]
fn what_spark_left_is_folded_as_hudi_0_15_folds_it() {
    needs_peers!();
    for payload in P {
        let mut job = MorJob::new(payload, |call| call);
        job.upsert(&keys(0..16, 50));
        job.spark_upserts(
            SPARK_0_15,
            &[gone(0, 30), gone(1, 70), gone(2, 90), event(3, 90), event(4, 30), event(20, 50)],
        );
        job.spark_upserts(
            SPARK_0_15,
            &[event(1, 90), event(2, 70), gone(3, 70), event(4, 20), event(0, 20), gone(20, 1)],
        );
        job.spark_deletes(SPARK_0_15, &keys(5..8, 1));
        job.spark_upserts(SPARK_0_15, &[event(5, 90), event(6, 10), gone(7, 10)]);
        job.model.check_read_by(SPARK_0_15, &job.table, &job.table.delta_commits()[..2]);
        let compact = job.compact("scheduleAndExecute");
        job.run(&compact);
        assert_eq!(job.table.compactions().len(), 1);
        job.check();
    }
}
