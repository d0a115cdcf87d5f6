//! The bucket index (`hoodie.index.type=BUCKET`): where a row goes follows from its key, in Hudi's way to the byte. If it
//! did not, Spark would look for our rows in other file groups than ours, and the table would hold keys twice.

use std::collections::{BTreeMap, BTreeSet};

use crate::golden::{COMMON, event};
use crate::support::*;

const BUCKETS: [(&str, &str); 2] = [("hoodie.index.type", "BUCKET"), ("hoodie.bucket.index.num.buckets", "4")];
const DELETE_FLAG: &str = r#",{"name":"_hoodie_is_deleted","type":["null","boolean"],"default":null}]}"#;
const COLUMNS: [&str; 7] = ["id", "rider", "fare", "qty", "ts", "dt", "_hoodie_is_deleted"];

fn job(table_type: &str, model: Model, with: impl FnOnce(Streamer) -> Streamer) -> Job {
    let schema = COMMON.replace("]}", DELETE_FLAG);
    Job::new(&schema, model, |call| {
        let call = call.flag("--table-type", table_type).partitioned("dt");
        with(BUCKETS.iter().fold(call, |call, (key, value)| call.conf(key, value)))
    })
}

/// Spark upserts `rows` by the same index and what else both writers must be told.
fn spark_upserts(job: &mut Job, rows: &[Row], more: &[&str]) {
    let file = job.scratch.lines("spark.json", rows);
    let buckets = BUCKETS.map(|(key, value)| format!("{key}={value}"));
    let mut conf: Vec<&str> = buckets.iter().map(String::as_str).chain(more.iter().copied()).collect();
    conf.push("hoodie.compact.inline=false");
    let instant = oracle(SPARK_0_15).write(job.table.str(), "upsert", &file, &conf);
    job.model.upsert(&instant, rows);
}

/// File groups by partition and the number that their ids begin with: at most one each.
fn groups(table: &Table) -> BTreeMap<(String, String), String> {
    let mut groups: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for path in table.base_files().into_iter().chain(table.log_files()) {
        let (partition, name) = path.rsplit_once('/').expect("a partition");
        let file_id = name.trim_start_matches('.').split('_').next().expect("a file id").to_owned();
        groups.entry((partition.to_owned(), file_id[..8].to_owned())).or_default().insert(file_id);
    }
    let one = |(bucket, ids): (_, BTreeSet<String>)| {
        assert!(ids.len() == 1, "{bucket:?} has {ids:?}");
        (bucket, ids.into_iter().next().expect("one"))
    };
    groups.into_iter().map(one).collect()
}

/// Changed, new and deleted rows, and keys with a colon, which Hudi hashes in a way of its own.
fn batch(ts: i64) -> Vec<Row> {
    let mut rows: Vec<Row> = [1, 4, 7, 20 + ts as usize, 40 + ts as usize].map(|i| event(i, ts)).into();
    let mut urn = event(3, ts);
    urn.insert("id".into(), format!("urn:x:{}", ts % 2).into());
    let mut gone = event(10 + ts as usize, ts);
    gone.insert("_hoodie_is_deleted".into(), true.into());
    rows.extend([urn, gone]);
    rows
}

#[test]
fn we_and_spark_find_each_others_rows() {
    needs_peers!();
    for table_type in TABLE_TYPES {
        let mut job = job(table_type, Model::new(&COLUMNS).partitioned("dt"), |call| call);
        job.upsert(&(0..20).map(|i| event(i, 0)).chain(batch(1)).collect::<Vec<_>>());
        let first = groups(&job.table);
        assert_eq!(first.len(), 12, "twenty keys fill four buckets in three partitions");
        job.check();
        spark_upserts(&mut job, &batch(2), &[]);
        job.upsert(&batch(3));
        spark_upserts(&mut job, &batch(4), &[]);
        assert_eq!(groups(&job.table), first, "{table_type}: no writer makes a second group of a bucket");
        assert_eq!(job.table.log_files().is_empty(), table_type == "COPY_ON_WRITE");
        job.check_through_compaction();
        spark_upserts(&mut job, &batch(5), &[]);
        job.upsert(&batch(6));
        assert_eq!(groups(&job.table), first, "{table_type}");
        job.check();
        oracle(SPARK_0_15).validate(job.table.str(), false);
    }
}

#[test]
fn a_part_of_the_key_may_choose_the_bucket() {
    needs_peers!();
    let key = ["hoodie.datasource.write.recordkey.field=id,qty", "hoodie.bucket.index.hash.field=qty"];
    let slot = |row: &Row| (text(&row["dt"]), format!("id:{},qty:{}", text(&row["id"]), row["qty"]));
    let mut job = job("COPY_ON_WRITE", Model::new(&COLUMNS).keyed_by(slot), |call| {
        key.iter().map(|setting| setting.split_once('=').expect("a value")).fold(call, |call, (k, v)| call.conf(k, v))
    });
    let rows = |ts| (0..12).map(|i| event(i, ts)).collect::<Vec<_>>();
    job.upsert(&rows(1));
    let first = groups(&job.table);
    spark_upserts(&mut job, &rows(2), &key[1..]);
    job.upsert(&rows(3));
    assert_eq!(groups(&job.table), first);
    job.check();
    oracle(SPARK_0_15).validate(job.table.str(), false);
}

/// As Hudi: a base file keeps rows of equal keys, a log file does not.
#[test]
fn inserts_and_bulk_inserts_go_to_their_buckets() {
    needs_peers!();
    for table_type in TABLE_TYPES {
        let mut job = job(table_type, Model::new(&COLUMNS).partitioned("dt"), |call| call);
        let rows = |keys: std::ops::Range<usize>, ts| keys.map(|i| event(i, ts)).collect::<Vec<_>>();
        job.bulk_insert(&rows(0..30, 1));
        let first = groups(&job.table);
        assert_eq!(first.len(), 12, "{table_type}");
        for (op, batch) in [("INSERT", rows(20..40, 2)), ("BULK_INSERT", rows(35..50, 3))] {
            job.feed(&batch);
            let instant = job.round(op);
            match table_type {
                "COPY_ON_WRITE" => job.model.insert(&instant, &batch),
                _ => job.model.upsert(&instant, &batch),
            }
        }
        assert_eq!(groups(&job.table), first, "{table_type}: no operation makes a second group of a bucket");
        job.check();
        oracle(SPARK_0_15).validate(job.table.str(), table_type == "COPY_ON_WRITE");
    }
}

#[test]
fn filter_dupes_asks_for_the_key_not_for_its_bucket() {
    needs_peers!();
    let mut job = job("COPY_ON_WRITE", Model::new(&COLUMNS).partitioned("dt"), |call| call);
    job.insert(&(0..30).map(|i| event(i, 1)).collect::<Vec<_>>());
    job.feed(&(20..40).map(|i| event(i, 2)).collect::<Vec<_>>());
    let instant = job.commits(&job.call.clone().op("INSERT").switch("--filter-dupes"));
    job.model.insert(&instant, &(30..40).map(|i| event(i, 2)).collect::<Vec<_>>());
    assert_eq!(groups(&job.table).len(), 12);
    job.check();
}

#[test]
fn tables_that_hudi_made_go_on() {
    needs_peers!();
    for name in ["v6_cow_bucket_index", "v6_mor_bucket_index"] {
        println!("golden table {name}");
        let golden = Golden::open(name);
        let mut model = Model::new(&[]).partitioned("dt");
        model.load(&golden.rows());
        let kind = if golden.table.is_merge_on_read() { "MERGE_ON_READ" } else { "COPY_ON_WRITE" };
        let call = golden.streamer(COMMON).flag("--table-type", kind).switch("--disable-compaction");
        let (_lock, mut job) = golden.into_job(call, model);
        let first = groups(&job.table);
        let rows = |ts| [1, 3, 7, 50, 50 + ts as usize].map(|i| event(i, ts));
        job.upsert(&rows(11));
        job.check();
        spark_upserts(&mut job, &rows(12), &[]);
        job.upsert(&rows(13));
        let now = groups(&job.table);
        assert!(first.iter().all(|(bucket, file_id)| now.get(bucket) == Some(file_id)), "{first:?}\n{now:?}");
        job.check_through_compaction();
    }
}

/// Other writers may begin a bucket with a log file; a write to it that died is undone there.
#[test]
fn a_bucket_without_a_base_file_goes_on() {
    needs_peers!();
    let golden = Golden::open("v6_mor_bucket_index");
    let bases: Vec<String> = golden.table.base_files().into_iter().filter(|path| path.contains("/00000003-")).collect();
    let [base] = &bases[..] else { panic!("one base file of bucket 3 was expected: {bases:?}") };
    std::fs::remove_file(golden.table.path.join(base)).expect("remove the base file");
    let mut model = Model::new(&[]).partitioned("dt");
    model.load(&oracle(SPARK_0_15).read(golden.table.str()));
    let call = golden.streamer(COMMON).flag("--table-type", "MERGE_ON_READ").switch("--disable-compaction");
    let (_lock, mut job) = golden.into_job(call, model);
    let first = groups(&job.table);
    let rows = |ts| [1, 4, 13, 16].map(|i| event(i, ts));
    job.feed(&rows(11));
    job.call.clone().env("HUDI_STREAMER_FAULT", "while-writing").run().killed();
    job.feed(&rows(12));
    let instant = job.round("UPSERT");
    assert_eq!(job.table.rollbacks(), 1);
    job.model.upsert(&instant, &[rows(11), rows(12)].concat());
    job.check();
    spark_upserts(&mut job, &rows(13), &[]);
    job.check();
    job.compact("scheduleAndExecute").run().ok();
    assert!(job.table.base_files().iter().any(|path| path.contains("/00000003-")), "its log files are folded");
    job.check();
    let now = groups(&job.table);
    assert!(first.iter().all(|(bucket, file_id)| now.get(bucket) == Some(file_id)), "{first:?}\n{now:?}");
}

#[test]
fn a_table_of_other_buckets_or_none_is_refused() {
    for (name, buckets, names) in [
        ("v6_cow_bucket_index", "2", ["index-bucket-count", "hoodie.bucket.index.num.buckets"]),
        ("v6_cow_bucket_index", "8", ["index-buckets-differ", "hoodie.bucket.index.num.buckets"]),
        ("v6_cow_bucket_index", "256", ["index-buckets-differ", "hoodie.bucket.index.num.buckets"]),
        ("v6_cow_part", "4", ["index-no-bucket", "hoodie.index.type"]),
    ] {
        let golden = Golden::open(name);
        golden.scratch.lines("in/a.json", &[event(1, 11), event(0, 11), event(4, 11)]);
        let table = &golden.table;
        let before = (table.writes(), table.pending(), table.base_files());
        let call = golden.streamer(COMMON).conf("hoodie.index.type", "BUCKET");
        call.conf("hoodie.bucket.index.num.buckets", buckets).run().fails_with(1, &names);
        assert_eq!(before, (table.writes(), table.pending(), table.base_files()), "{name} is left alone");
    }
}
