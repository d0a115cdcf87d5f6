//! On an S3 server, with a gate before it that spoils requests.

use super::every::{OF_S3, Scenario};
use super::*;

fn survives(table_type: &str, with: impl FnOnce(Streamer) -> Streamer) {
    let s3 = S3::shared();
    let folder = s3.folder("faults");
    let call =
        |call: Streamer| with(call.flag("--table-type", table_type).partitioned("p").on_s3(s3, &folder, s3.endpoint()));
    let mut job = Job::new(SCHEMA, Model::new(&COLUMNS).partitioned("p"), call);
    job.table = Table::at(s3.path(&folder));
    for round in 0..3 {
        job.upsert(&batch(round * 3..round * 3 + 6, round + 1));
    }
    let (batch, next) = (batch_and_gone(4..14, &[1], 10), batch(0..2, 11));
    Scenario { job, folder: Some(folder), op: "UPSERT", batch, next }.survives(&OF_S3, 35);
}

#[test]
fn copy_on_write() {
    needs_peers!();
    survives("COPY_ON_WRITE", |call| call);
}

#[test]
fn merge_on_read_with_compaction() {
    needs_peers!();
    survives("MERGE_ON_READ", |call| call.conf("hoodie.compact.inline.max.delta.commits", "4"));
}
