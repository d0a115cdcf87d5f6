//! What goes wrong there.

use super::*;

const POINTS: [&str; 4] = ["before-inflight", "while-writing", "before-complete", "after-complete"];

#[test]
fn a_killed_job_goes_on_at_every_fault_point() {
    needs_peers!();
    for table_type in TABLE_TYPES {
        let (mut job, folder) = job("killed", |call| call.flag("--table-type", table_type));
        job.bulk_insert(&trips(0..10, 1));
        for (i, point) in POINTS.into_iter().enumerate() {
            let before = job.table.writes().len();
            let rows = trips(i * 3..i * 3 + 12, 2 + i as i64);
            job.feed(&rows);
            job.call.clone().env("HUDI_STREAMER_FAULT", point).run().killed();
            job.call.run().ok();
            assert_eq!(job.table.writes().len(), before + 1, "{table_type} {point}: the batch is in, once");
            job.model.upsert(&job.table.last_write(), &rows);
        }
        job.upsert(&trips(0..3, 9));
        check(&job, &folder);
    }
}

#[test]
fn keys_of_hadoop_let_a_job_in_and_are_never_said() {
    needs_peers!();
    let s3 = S3::shared();
    let [_, _, _, (_, key), (_, secret)] = s3.environment(s3.endpoint());
    let (mut job, folder) = job("hadoop", |call| call);
    let keyed = |secret: &str| {
        let call = job.call.clone().without_env();
        call.conf("fs.s3a.endpoint", s3.endpoint())
            .conf("fs.s3a.path.style.access", "true")
            .conf("fs.s3a.endpoint.region", "us-east-1")
            .conf("fs.s3a.access.key", key)
            .conf("fs.s3a.secret.key", secret)
    };
    let wrong = "not-the-secret-of-this-server";
    let run = keyed(wrong).run().fails_with(1, &[&s3.uri(&folder)]);
    assert!(!run.stderr.contains(wrong) && !run.stdout.contains(wrong), "a secret is said\n{run}");
    job.call = keyed(secret);
    job.upsert(&trips(0..10, 1));
    check(&job, &folder);
}

#[test]
fn a_server_that_is_not_there_is_named() {
    needs_peers!();
    let (mut job, _) = job("nobody", |call| call.env("AWS_ENDPOINT_URL", "http://127.0.0.1:1"));
    job.feed(&trips(0..10, 1));
    job.call.clone().conf("fs.s3a.attempts.maximum", "1").run().fails_with(1, &["127.0.0.1:1"]);
}

#[test]
fn a_server_that_falls_silent_is_given_up_by_name() {
    needs_peers!();
    let gate = Gate::before(S3::shared().endpoint());
    let (mut job, _) = job("silent", |call| call.env("AWS_ENDPOINT_URL", gate.endpoint()));
    job.upsert(&trips(0..10, 1));
    job.feed(&trips(5..15, 2));
    gate.spoil_from(Spoil::Silent, Requests::All, 5..);
    let impatient = job.call.clone().conf("fs.s3a.connection.timeout", "500").conf("fs.s3a.attempts.maximum", "1");
    impatient.run().fails_with(1, &["storage-io"]);
    assert!(gate.open() > 0);
    job.call.run().ok();
    assert_eq!(job.table.commits().len(), 2);
}
