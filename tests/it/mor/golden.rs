//! Merge-on-read tables that Hudi made are read, continued and compacted, and Hudi goes on after us; those whose merging
//! we do not know are refused.

use super::*;
use crate::golden::{COMMON, event};

/// Upserts of two stored keys, one of them late under event time, and of two new ones.
fn batch(ts: i64) -> Vec<Row> {
    vec![event(1, ts), event(3, ts - 8), event(50 + (ts % 100) as usize, ts), event(51, ts)]
}

/// We upsert, Hudi 0.15 upserts, we upsert and compact, we upsert again; after each all readers see the model by every
/// query, and nothing is at fault.
fn goes_on(name: &str, schema: &str, with: impl FnOnce(MorModel) -> MorModel, batch: impl Fn(i64) -> Vec<Row>) {
    println!("golden table {name}");
    let golden = Golden::open(name);
    let (lock, mut job) = MorJob::on(golden, schema, with);
    let idle = job.call.clone().switch("--disable-compaction");
    job.upsert_by(&idle, &batch(11));
    job.check();
    job.spark_upserts(SPARK_0_15, &batch(12));
    job.check();
    let compacting = job.call.clone().conf("hoodie.compact.inline.max.delta.commits", "1");
    let compactions = job.table.compactions().len();
    job.upsert_by(&compacting, &batch(13));
    assert!(job.table.compactions().len() > compactions, "{name}: a compaction was due");
    job.check();
    job.upsert_by(&idle, &batch(14));
    job.spark_compacts(SPARK_0_15, "compact");
    job.check();
    assert_eq!(job.table.pending(), Vec::<String>::new(), "{name}");
    drop(lock);
}

fn partitioned(model: MorModel) -> MorModel {
    model.partitioned("dt")
}

/// The instruments first: all readers see, in tables that only Hudi wrote, what the model makes of them.
#[test]
fn readers_and_model_agree_on_tables_that_we_did_not_touch() {
    needs_peers!();
    for name in ["v6_mor_logs", "v6_mor_compaction_pending", "v6_mor_event_time"] {
        let (_lock, job) = MorJob::on(Golden::open(name), COMMON, partitioned);
        job.check();
    }
}

#[test]
fn log_files_of_every_kind_go_on() {
    needs_peers!();
    for name in ["v6_mor_logs", "v6_mor_no_mdt", "v6_mor_parquet_log", "v6_mor_bulk_insert", "mor_v6_by_1x_1.0.2"] {
        goes_on(name, COMMON, partitioned, batch);
    }
    goes_on("v6_mor_nonpart", COMMON, |model| model, batch);
}

#[test]
fn compacted_tables_and_pending_plans_go_on() {
    needs_peers!();
    for name in ["v6_mor_compacted", "v6_mor_compaction_pending"] {
        goes_on(name, COMMON, partitioned, batch);
    }
}

#[test]
fn failed_and_rolled_back_delta_commits_go_on() {
    needs_peers!();
    for name in ["v6_mor_inflight", "v6_mor_rollback", "v6_mor_rollback_hides"] {
        goes_on(name, COMMON, partitioned, batch);
    }
}

#[test]
fn event_times_and_delete_flags_go_on() {
    needs_peers!();
    goes_on("v6_mor_event_time", COMMON, partitioned, |ts| batch(1_700_000_000_200 + ts));
    let deleting = COMMON.replace("]}", r#",{"name":"_hoodie_is_deleted","type":["null","boolean"],"default":null}]}"#);
    goes_on("v6_mor_is_deleted", &deleting, partitioned, |ts| {
        let mut gone = event(2 * (ts as usize - 11), ts);
        gone.insert("_hoodie_is_deleted".into(), true.into());
        [vec![gone], batch(ts)].concat()
    });
}

#[test]
fn an_evolved_schema_goes_on() {
    needs_peers!();
    let evolved = COMMON.replace(r#""qty","type":["null","int"]"#, r#""qty","type":["null","long"]"#);
    let evolved = evolved.replace("]}", r#",{"name":"note","type":["null","string"],"default":null}]}"#);
    goes_on("v6_mor_evolution", &evolved, partitioned, |ts| {
        let mut rows = batch(ts);
        rows[1].insert("qty".into(), (1_i64 << 41).into());
        rows[2].insert("note".into(), "ours".into());
        rows
    });
}

/// Only the keys: every other column of the new rows is null, and no stored row changes but by those.
#[test]
fn all_types_that_hudi_wrote_stay_as_they_are() {
    needs_peers!();
    let golden = Golden::open("v6_mor_types");
    let metadata = golden.table.commit_metadata(&golden.table.last_commit());
    let schema = metadata["extraMetadata"]["schema"].as_str().expect("a commit of rows has its schema").to_owned();
    drop(golden);
    let bare = |key: usize, ts: i64| row! {"id": format!("k{key}"), "dt": "2024-01-01", "ts": ts};
    goes_on("v6_mor_types", &schema, partitioned, |ts| vec![bare(40, ts), bare(ts as usize, ts)]);
}

#[test]
fn merging_that_we_do_not_know_is_refused_by_name() {
    for (name, class) in [
        ("v6_mor_partial_update", "PartialUpdateAvroPayload"),
        ("v6_mor_overwrite_nondefaults", "OverwriteNonDefaultsWithLatestAvroPayload"),
    ] {
        let golden = Golden::open(name);
        golden.scratch.lines("in/a.json", &batch(11));
        let before = golden.table.files();
        let call = golden.streamer(COMMON).flag("--table-type", "MERGE_ON_READ");
        call.clone().run().fails_with_any(&[class]);
        // Nor is it forgotten that the table says so, where the call does not.
        call.without("hoodie.datasource.write.payload.class").run().fails_with_any(&[class]);
        let compact = Streamer::bare().after(&["compact"]).flag("--target-base-path", &golden.table.path);
        compact.run().fails_with_any(&[class]);
        assert_eq!(before, golden.table.files(), "{name} is left alone");
    }
}

#[test]
fn a_table_of_the_other_type_is_refused() {
    for (name, wanted, names) in [
        ("v6_mor_logs", "COPY_ON_WRITE", ["MERGE_ON_READ", "COPY_ON_WRITE"]),
        ("v6_cow_part", "MERGE_ON_READ", ["COPY_ON_WRITE", "MERGE_ON_READ"]),
    ] {
        let golden = Golden::open(name);
        golden.scratch.lines("in/a.json", &batch(11));
        let before = golden.table.files();
        golden.streamer(COMMON).flag("--table-type", wanted).run().fails_with_any(&names);
        assert_eq!(before, golden.table.files(), "{name} is left alone");
    }
}
