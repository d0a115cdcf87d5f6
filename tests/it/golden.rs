//! Tables that Hudi made are opened and continued, and Hudi goes on after us; those we cannot keep whole are refused.

use crate::support::*;

pub const COMMON: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":["null","string"],"default":null},{"name":"rider","type":["null","string"],"default":null},
 {"name":"fare","type":["null","double"],"default":null},{"name":"qty","type":["null","int"],"default":null},{"name":"ts","type":["null","long"],"default":null},
 {"name":"dt","type":["null","string"],"default":null}]}"#;

pub fn event(i: usize, ts: i64) -> Row {
    row! {"id": format!("k{i:02}"), "rider": format!("rider-{i}-{ts}"), "fare": i as f64 + 0.5, "qty": i, "ts": ts, "dt": format!("2024-01-0{}", 1 + i % 3)}
}

/// Upserts of k01 (stored in most of the tables) and of two new keys.
fn batch(ts: i64) -> Vec<Row> {
    vec![event(1, ts), event(50 + ts as usize, ts), event(51, ts)]
}

/// We upsert, Hudi 0.15 upserts, we upsert again; all readers agree with the model after each, and nothing is at fault.
fn goes_on(name: &str, schema: &str, model: impl FnOnce(Model) -> Model, batch: impl Fn(i64) -> Vec<Row>) -> Job {
    println!("golden table {name}");
    let golden = Golden::open(name);
    let mut known = model(Model::new(&[]));
    known.load(&golden.rows());
    let call = golden.streamer(schema);
    let index: Vec<String> = golden.index().into_iter().map(|(k, v)| format!("{k}={v}")).collect();
    let index: Vec<&str> = index.iter().map(String::as_str).collect();
    let (lock, mut job) = golden.into_job(call, known);

    job.upsert(&batch(11));
    job.check();
    oracle(SPARK_0_15).validate(job.table.str(), false);
    assert_eq!(job.table.pending(), Vec::<String>::new(), "{name}");

    let rows = batch(12);
    let file = job.scratch.lines("spark.json", &rows);
    let instant = oracle(SPARK_0_15).write(job.table.str(), "upsert", &file, &index);
    job.model.upsert(&instant, &rows);
    job.upsert(&batch(13));
    job.check();
    oracle(SPARK_0_15).validate(job.table.str(), false);
    drop(lock);
    job
}

/// The instruments first: all readers see, in a table that only Hudi wrote, what Hudi saw.
#[test]
fn readers_and_model_agree_on_a_table_that_we_did_not_touch() {
    needs_peers!();
    for name in ["v6_cow_part", "v6_cow_types"] {
        let golden = Golden::open(name);
        let mut model = Model::new(&[]);
        model.load(&golden.rows());
        model.assert_equals(&golden.table);
    }
}

fn partitioned(model: Model) -> Model {
    model.partitioned("dt")
}

#[test]
fn plain_tables_go_on() {
    needs_peers!();
    goes_on("v6_cow_part", COMMON, partitioned, batch);
    goes_on("v6_cow_nonpart", COMMON, |model| model, batch);
    goes_on("v6_cow_bulk_insert", COMMON, partitioned, batch);
    goes_on("v6_cow_no_mdt", COMMON, partitioned, batch);
    goes_on("cow_v6_by_1x_1.0.2", COMMON, partitioned, batch);
}

#[test]
fn hive_style_and_complex_keys_go_on() {
    needs_peers!();
    let text = |row: &Row, field: &str| row[field].as_str().expect("text").to_owned();
    let hive = move |model: Model| {
        model.keyed_by(move |row| {
            (format!("dt={}", text(row, "dt").replace('/', "%2F").replace('=', "%3D")), text(row, "id"))
        })
    };
    goes_on("v6_cow_hive", COMMON, hive, |ts| {
        let mut rows = batch(ts);
        rows.push(row! {"id": "k05", "rider": "r", "ts": ts, "dt": "a b/c=ü"});
        rows
    });
    let complex = move |model: Model| {
        model.keyed_by(move |row| {
            (
                format!("{}/{}", text(row, "dt"), text(row, "rider")),
                format!("id:{},qty:{}", text(row, "id"), row["qty"]),
            )
        })
    };
    goes_on("v6_cow_complex_key", COMMON, complex, |ts| {
        let rows = batch(ts).into_iter().map(|mut row| {
            row.insert("rider".into(), "x1".into());
            row
        });
        rows.collect()
    });
    goes_on("v6_cow_complex_one_key", COMMON, partitioned, batch);
}

#[test]
fn all_types_that_hudi_wrote_stay_as_they_are() {
    needs_peers!();
    let name = "v6_cow_types";
    let golden = Golden::open(name);
    let mut model = Model::new(&[]).partitioned("dt");
    model.load(&golden.rows());
    let schema = oracle_schema(&golden);
    let call = golden.streamer(&schema);
    let (_lock, mut job) = golden.into_job(call, model);
    // Only the keys: every other column of the new rows is null, and no stored row changes.
    job.upsert(&[row! {"id": "k4", "dt": "2024-01-01", "ts": 11}, row! {"id": "k8", "dt": "2024-01-01", "ts": 11}]);
    job.check();
    oracle(SPARK_0_15).validate(job.table.str(), false);
}

/// The table's own schema, as the newest commit keeps it.
fn oracle_schema(golden: &Golden) -> String {
    let metadata = golden.table.commit_metadata(&golden.table.last_commit());
    metadata["extraMetadata"]["schema"].as_str().expect("a commit of rows has its schema").to_owned()
}

#[test]
fn a_commit_that_died_is_rolled_back_first() {
    needs_peers!();
    for name in ["v6_cow_inflight", "v6_cow_inflight_direct_markers"] {
        let job = goes_on(name, COMMON, partitioned, batch);
        assert!(job.table.rollbacks() >= 1, "{name}: the dead commit is rolled back");
    }
}

#[test]
fn tables_with_a_history_go_on() {
    needs_peers!();
    for name in ["v6_cow_rollback", "v6_cow_archived", "v6_cow_insert_overwrite", "v6_cow_clustering"] {
        goes_on(name, COMMON, partitioned, batch);
    }
    goes_on(
        "v6_cow_global_simple",
        COMMON,
        |model| model.partitioned("dt").global(),
        |ts| {
            let mut moves = event(2, ts);
            moves.insert("dt".into(), format!("2024-02-{ts}").into());
            vec![moves, event(60, ts)]
        },
    );
    const DELETING: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":["null","string"],"default":null},{"name":"rider","type":["null","string"],"default":null},
 {"name":"fare","type":["null","double"],"default":null},{"name":"qty","type":["null","int"],"default":null},{"name":"ts","type":["null","long"],"default":null},
 {"name":"dt","type":["null","string"],"default":null},{"name":"_hoodie_is_deleted","type":["null","boolean"],"default":null}]}"#;
    goes_on("v6_cow_is_deleted", DELETING, partitioned, |ts| {
        let mut gone = event(0, ts);
        gone.insert("_hoodie_is_deleted".into(), true.into());
        [vec![gone], batch(ts)].concat()
    });
}

#[test]
fn an_evolved_schema_is_kept() {
    needs_peers!();
    const EVOLVED: &str = r#"{"type":"record","name":"R","fields":[{"name":"id","type":["null","string"],"default":null},{"name":"rider","type":["null","string"],"default":null},
 {"name":"fare","type":["null","double"],"default":null},{"name":"qty","type":["null","long"],"default":null},{"name":"ts","type":["null","long"],"default":null},
 {"name":"dt","type":["null","string"],"default":null},{"name":"note","type":["null","string"],"default":null}]}"#;
    goes_on("v6_cow_evolution", EVOLVED, partitioned, |ts| {
        let mut row = event(3, ts);
        row.insert("qty".into(), (1_i64 << 41).into());
        row.insert("note".into(), "ours".into());
        vec![row, event(70, ts)]
    });
}

#[test]
fn a_checkpoint_of_another_source_is_refused_by_name() {
    let golden = Golden::open("v6_cow_checkpoint");
    golden.scratch.lines("in/a.json", &batch(11));
    let before = golden.table.timeline();
    golden.streamer(COMMON).run().fails_with(1, &["trips,0:5,1:3"]);
    assert_eq!(before, golden.table.timeline());
    // The way out: forget that checkpoint.
    golden.streamer(COMMON).flag("--ignore-checkpoint", "kafka is gone").run().ok();
    assert_eq!(golden.table.commits().len(), 3);
}

#[test]
fn a_metadata_table_is_switched_off_before_it_could_become_stale() {
    needs_peers!();
    let golden = Golden::open("v6_cow_mdt_all");
    assert!(golden.table.path.join(".hoodie/metadata").is_dir());
    drop(golden);
    // `goes_on` lets Spark, which makes a metadata table anew, read and upsert after us, and us after it.
    let job = goes_on("v6_cow_mdt_all", COMMON, partitioned, batch);
    let properties =
        std::fs::read_to_string(job.table.path.join(".hoodie/hoodie.properties")).expect("the table's properties");
    let partitions =
        properties.lines().find_map(|l| l.strip_prefix("hoodie.table.metadata.partitions=")).unwrap_or_default();
    assert_eq!(partitions, "", "no partition of a metadata table is declared");
    assert!(!job.table.path.join(".hoodie/metadata").exists());
}

#[test]
fn tables_that_we_cannot_keep_whole_are_refused_by_name() {
    for (name, names) in [("v8_cow_part", &["version", "8", "6"][..]), ("v9_cow_part", &["version", "9", "6"])] {
        let golden = Golden::open(name);
        golden.scratch.lines("in/a.json", &batch(11));
        let before = golden.table.files();
        golden.streamer(COMMON).run().fails_with_any(names);
        assert_eq!(before, golden.table.files(), "{name} is left alone");
    }
}
