//! On local disks.

use super::every::{OF_STORAGE, Scenario};
use super::*;

#[test]
fn copy_on_write_with_clean_and_archive() {
    let scenario = upsert(job("COPY_ON_WRITE", 5, |call| call));
    assert_all_services_run(&scenario);
    scenario.survives(&OF_STORAGE, 80);
}

#[test]
fn merge_on_read_with_compaction_clean_and_archive() {
    let scenario = upsert(job("MERGE_ON_READ", 7, |call| call.conf("hoodie.compact.inline.max.delta.commits", "2")));
    assert_all_services_run(&scenario);
    scenario.survives(&OF_STORAGE, 80);
}

/// In the rounds of the scenario.
fn assert_all_services_run(scenario: &Scenario) {
    let (before, job) = (Plain::read(&scenario.job.table), scenario.sound());
    let after = Plain::read(&job.table);
    let last = before.made().pop_last().expect("a write");
    let new = after.completed_after(&last);
    assert!(new.iter().any(|action| action == "clean"), "no clean among {new:?}");
    assert!(
        !job.table.is_merge_on_read() || new.iter().any(|action| action == "commit"),
        "no compaction among {new:?}"
    );
    assert!(after.archived().len() > before.archived().len(), "nothing new is archived");
}

#[test]
fn the_first_commit() {
    for op in ["UPSERT", "BULK_INSERT"] {
        let call = |call: Streamer| call.partitioned("p");
        let job = Job::new(SCHEMA, Model::new(&COLUMNS).partitioned("p"), call);
        Scenario { job, folder: None, op, batch: batch(0..6, 1), next: batch(6..8, 2) }.survives(&OF_STORAGE, 30);
    }
}

/// What a killed round left is put right by a round that fails too.
#[test]
fn the_round_after_a_crash() {
    for table_type in TABLE_TYPES {
        let mut job = job(table_type, 2, |call| call);
        let unread = batch(2..5, 15);
        job.feed(&unread);
        job.call.clone().env("HUDI_STREAMER_FAULT", "before-complete").run().killed();
        let scenario = upsert(job);
        Scenario { batch: [unread, scenario.batch].concat(), ..scenario }.survives(&OF_STORAGE, 30);
    }
}
