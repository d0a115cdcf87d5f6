//! On an S3 server, with a gate before it that spoils requests.

use super::every::{OF_S3, Scenario};
use super::*;

fn survives(table_type: &str, rounds: i64, with: impl FnOnce(Streamer) -> Streamer) {
    let s3 = S3::shared();
    let folder = s3.folder("faults");
    let mut job = new_job(table_type, |call| with(call).on_s3(s3, &folder, s3.endpoint()));
    job.table = Table::at(s3.path(&folder));
    let scenario = Scenario { folder: Some(folder), ..upsert(written(job, rounds)) };
    assert_all_services_run(&scenario);
    scenario.survives(&OF_S3, 40);
}

#[test]
fn copy_on_write_with_clean_and_archive() {
    needs_peers!();
    survives("COPY_ON_WRITE", 5, |call| call);
}

#[test]
fn merge_on_read_with_compaction_clean_and_archive() {
    needs_peers!();
    survives("MERGE_ON_READ", 7, compacting);
}
