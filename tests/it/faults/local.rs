//! On local disks.

use super::every::{OF_STORAGE, Scenario};
use super::*;

#[test]
fn copy_on_write_with_clean_and_archive() {
    let scenario = upsert(written(new_job("COPY_ON_WRITE", |call| call), 5));
    assert_all_services_run(&scenario);
    scenario.survives(&OF_STORAGE, 60);
}

#[test]
fn merge_on_read_with_compaction_clean_and_archive() {
    let scenario = upsert(written(new_job("MERGE_ON_READ", compacting), 7));
    assert_all_services_run(&scenario);
    scenario.survives(&OF_STORAGE, 60);
}

#[test]
fn the_first_commit() {
    for op in ["UPSERT", "BULK_INSERT"] {
        let job = new_job("COPY_ON_WRITE", |call| call);
        Scenario { job, folder: None, op, batch: batch(0..6, 1), next: batch(6..8, 2) }.survives(&OF_STORAGE, 30);
    }
}

/// What a killed round left is put right by a round that fails too.
#[test]
fn the_round_after_a_crash() {
    for table_type in TABLE_TYPES {
        let mut job = written(new_job(table_type, |call| call), 2);
        let unread = batch(2..5, 15);
        job.feed(&unread);
        job.call.clone().env("HUDI_STREAMER_FAULT", "before-complete").run().killed();
        let scenario = upsert(job);
        Scenario { batch: [unread, scenario.batch].concat(), ..scenario }.survives(&OF_STORAGE, 30);
    }
}
