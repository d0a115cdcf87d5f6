//! What works on local disks works there.

use object_store::ObjectStoreExt;
use object_store::path::Path;

use super::*;

#[test]
fn copy_on_write() {
    needs_peers!();
    let (mut job, folder) = job("cow", |call| call);
    job.bulk_insert(&trips(0..20, 1));
    job.upsert(&trips(10..30, 2));
    job.makes_no_instant(&job.call).says(&["no new data"]);
    job.upsert(&trips(25..35, 3));
    check(&job, &folder);
}

#[test]
fn merge_on_read_and_compaction() {
    needs_peers!();
    let call = |call: Streamer| call.flag("--table-type", "MERGE_ON_READ");
    let (mut job, folder) = job("mor", |c| call(c).conf("hoodie.compact.inline.max.delta.commits", "3"));
    for ts in 1..=5 {
        job.upsert(&trips(0..10 + ts as usize, ts));
    }
    assert_eq!(job.table.compactions().len(), 1);
    assert!(!job.table.log_files().is_empty(), "updates go to log files");
    check(&job, &folder);
}

#[test]
fn a_topic_in_continuous_mode() {
    needs_peers!();
    let s3 = S3::shared();
    let folder = s3.folder("topic");
    let call = |call: Streamer| {
        call.partitioned("dt")
            .on_s3(s3, &folder, s3.endpoint())
            .switch("--continuous")
            .flag("--min-sync-interval-seconds", "1")
    };
    let topic = Broker::shared().topic("s3", 1);
    let mut job = KafkaJob::new(topic, TRIPS, Model::new(&TRIP_COLUMNS).partitioned("dt"), call);
    job.table = Table::at(s3.path(&folder));
    let first = trips(0..10, 1);
    job.topic.send(0, &first);
    let running = job.call.start();
    wait_for("the first commit", || job.table.commits().len() == 1);
    let instant = job.table.last_commit();
    job.model.upsert(&instant, &first);
    let second = trips(5..15, 2);
    job.topic.send(0, &second);
    wait_for("the second commit", || job.table.commits().len() == 2);
    let instant = job.table.last_commit();
    job.model.upsert(&instant, &second);
    running.signal("TERM");
    running.finish().ok();
    job.stands_at(&[20]);
    check(&job, &folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_from_a_bucket() {
    needs_peers!();
    let s3 = S3::shared();
    let input = s3.folder("input");
    let (mut job, folder) = job("from-a-bucket", |call| call.conf("hoodie.streamer.source.dfs.root", s3.uri(&input)));
    let bucket = s3.bucket(s3.endpoint());
    for (n, ts) in [(1, 1), (2, 2)] {
        let rows = trips(n * 10..n * 10 + 20, ts);
        let lines: String = rows.iter().map(|row| serde_json::to_string(row).expect("a row is JSON") + "\n").collect();
        let name = Path::from(format!("{input}/day={n}/part {n}.json"));
        bucket.put(&name, lines.into()).await.expect("put");
        tokio::task::block_in_place(|| {
            let instant = job.round("UPSERT");
            job.model.upsert(&instant, &rows);
        });
        // Of files of one second, which S3 tells no better, none may be missed: the next is younger. A file's time is up to a
        // tick of the system behind the clock.
        let modified = bucket.head(&name).await.expect("there").last_modified;
        tokio::task::block_in_place(|| {
            wait_for("the next second", || chrono::Utc::now() > modified + chrono::TimeDelta::milliseconds(1100))
        });
    }
    tokio::task::block_in_place(|| check(&job, &folder));
}
