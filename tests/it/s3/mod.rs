//! Tables on an S3 server, versitygw, whose objects are files too: Spark reads these from behind, hudi-rs as objects.

mod rounds;
mod trouble;

use crate::support::*;

/// The base job with a table in a folder of the shared server's bucket, partitioned by `dt`; and that folder.
fn job(name: &str, with: impl FnOnce(Streamer) -> Streamer) -> (Job, String) {
    let s3 = S3::shared();
    let folder = s3.folder(name);
    let model = Model::new(&TRIP_COLUMNS).partitioned("dt");
    let mut job = Job::new(TRIPS, model, |call| with(call.partitioned("dt").on_s3(s3, &folder, s3.endpoint())));
    job.table = Table::at(s3.path(&folder));
    (job, folder)
}

/// All readers see the model, from behind and as objects, and Hudi finds no fault.
#[track_caller]
fn check(job: &Job, folder: &str) {
    let s3 = S3::shared();
    job.model.assert_equals(&job.table);
    let settings = s3.settings();
    let args: Vec<&str> = ["--conf"].into_iter().chain(settings.iter().map(String::as_str)).collect();
    let rows = oracle(HUDI_RS).query(&s3.uri(folder).replace("s3a://", "s3://"), &args);
    job.model.assert_rows("hudi-rs over S3", &job.table, rows);
    oracle(SPARK_0_15).validate(job.table.str(), false);
    assert_eq!(Plain::read(&job.table).strays(), Vec::<String>::new());
}
