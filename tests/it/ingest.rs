//! The main job: JSON files become rows of a table that Hudi itself reads and goes on writing.

use crate::support::*;
use parquet::file::metadata::ParquetMetaDataReader;

/// Every operation once, read after each; then Hudi on Spark writes into the table, and we after it.
fn a_table_lives(mut job: Job) -> Job {
    job.bulk_insert(&trips(0..20, 1));
    job.check();
    job.insert(&trips(20..30, 1));
    job.check();

    let mut batch = trips(5..15, 2);
    batch.extend([trip(5, 3), trip(30, 2), trip(30, 4), trip(30, 3), trip(31, 2)]);
    job.upsert(&batch);
    job.check();
    // A row whose optional fields are absent, one with nulls, and a late one, which wins under this table's rule.
    let late = row! {"id": "k001", "ts": 0, "dt": "2024-01-02", "rider": null, "fare": null};
    job.upsert(&[row! {"id": "k000", "ts": 5, "dt": "2024-01-01"}, late, trip(32, 5)]);
    job.check();
    job.upsert(&trips(0..40, 6));
    job.check();
    oracle(SPARK_0_15).validate(job.table.str(), false);
    oracle(SPARK_1_0).validate(job.table.str(), false);

    for (spark, ts) in [(SPARK_0_15, 7), (SPARK_1_0, 9)] {
        let rows = [trips(10..14, ts), trips(100 + ts as usize..103 + ts as usize, ts)].concat();
        let file = job.scratch.lines(&format!("spark-{ts}.json"), &rows);
        let instant = oracle(spark).write(job.table.str(), "upsert", &file, &[]);
        job.model.upsert(&instant, &rows);
        job.check();

        job.upsert(&[trips(12..16, ts + 1), trips(105..111, ts + 1)].concat());
        job.check();
        oracle(spark).validate(job.table.str(), false);
    }
    assert_eq!(job.table.pending(), Vec::<String>::new());
    job
}

#[test]
fn a_partitioned_table_lives_with_spark() {
    needs_peers!();
    let model = Model::new(&TRIP_COLUMNS).partitioned("dt");
    a_table_lives(Job::new(TRIPS, model, |call| call.partitioned("dt")));
}

#[test]
fn a_table_without_partitions_lives_with_spark() {
    needs_peers!();
    a_table_lives(Job::new(TRIPS, Model::new(&TRIP_COLUMNS), |call| call));
}

/// Each batch of rows that is written is a row group of its own, and goes from file to file until one of its rows changes;
/// those of Spark's files too.
#[test]
fn a_table_whose_row_groups_are_copied_lives_with_spark() {
    needs_peers!();
    let job = Job::new(TRIPS, Model::new(&TRIP_COLUMNS), |call| call.conf("hoodie.parquet.block.size", "1"));
    let Job { scratch: _scratch, table, .. } = a_table_lives(job);
    let groups = |path: &String| {
        let file = std::fs::File::open(table.path.join(path)).expect("a base file");
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).expect("a Parquet file");
        metadata.row_groups().iter().map(|group| group.num_rows()).collect::<Vec<_>>()
    };
    let files: Vec<_> = table.base_files().iter().map(groups).collect();
    assert!(files.iter().any(|groups| groups.len() > 2), "rows in row groups: {files:?}");
}

#[test]
fn bulk_insert_writes_all_rows_in_every_sort_mode() {
    needs_peers!();
    for mode in ["NONE", "GLOBAL_SORT", "PARTITION_SORT"] {
        let model = Model::new(&TRIP_COLUMNS).partitioned("dt");
        let mut job = Job::new(TRIPS, model, |call| call.partitioned("dt").conf("hoodie.bulkinsert.sort.mode", mode));
        // Numbers in an order that is none.
        let rows: Vec<Row> = (0..60).map(|i| trip(i * 37 % 60, 1)).collect();
        job.bulk_insert(&rows);
        job.check();
        if mode != "NONE" {
            assert_sorted_in_files(&oracle(HUDI_RS).read(job.table.str()), mode);
        }
        job.upsert(&trips(30..70, 2));
        job.check();
        oracle(SPARK_0_15).validate(job.table.str(), false);
    }
}

/// Within a file the keys ascend with the row numbers (the last part of the sequence number).
fn assert_sorted_in_files(rows: &[Row], mode: &str) {
    let text = |row: &Row, column: &str| row[column].as_str().expect("text").to_owned();
    let number = |seqno: &str| seqno.rsplit('_').next().and_then(|n| n.parse::<u64>().ok()).expect("a row number");
    let mut rows: Vec<_> = rows
        .iter()
        .map(|r| (text(r, "_hoodie_file_name"), number(&text(r, "_hoodie_commit_seqno")), text(r, "id")))
        .collect();
    rows.sort();
    for pair in rows.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        assert!(pair[0].2 < pair[1].2, "{mode}: {} comes before {} in {}", pair[0].2, pair[1].2, pair[0].0);
    }
}

#[test]
fn small_files_are_filled_before_new_ones_are_begun() {
    let mut job = Job::new(TRIPS, Model::new(&TRIP_COLUMNS), |call| call);
    job.insert(&trips(0..10, 1));
    job.insert(&trips(10..20, 1));
    job.upsert(&trips(15..25, 2));
    assert_eq!(file_groups(&job.table).len(), 1, "one small file takes them all: {:?}", job.table.base_files());

    job.call = job.call.conf("hoodie.parquet.small.file.limit", "0");
    job.insert(&trips(30..40, 1));
    assert_eq!(file_groups(&job.table).len(), 2, "with packing off inserts go to a new file group");
    if peers_enabled() {
        job.check();
        oracle(SPARK_0_15).validate(job.table.str(), false);
    }
}

#[test]
fn a_new_file_group_is_begun_when_the_maximum_size_is_reached() {
    for op in ["BULK_INSERT", "INSERT"] {
        let mut job = Job::new(TRIPS, Model::new(&TRIP_COLUMNS), |call| {
            let call =
                call.conf("hoodie.parquet.max.file.size", "200000").conf("hoodie.parquet.small.file.limit", "100000");
            call.conf("hoodie.copyonwrite.record.size.estimate", "100")
        });
        // Text that does not compress, so that sizes mean what they say.
        let noise = |i: usize| format!("{:x}", (i as u128 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C834));
        let rows: Vec<Row> =
            (0..20_000).map(|i| row! {"id": format!("k{i:06}"), "ts": 1, "dt": "d", "rider": noise(i)}).collect();
        job.feed(&rows);
        let instant = job.round(op);
        job.model.insert(&instant, &rows);
        let groups = file_groups(&job.table).len();
        assert!(groups > 1, "{op}: {groups} file group for {} rows", rows.len());
        if peers_enabled() {
            job.model.assert_read_by(&job.table, &[HUDI_RS]);
            oracle(SPARK_0_15).validate(job.table.str(), false);
        }
    }
}

fn file_groups(table: &Table) -> std::collections::BTreeSet<String> {
    let id =
        |file: String| file.rsplit('/').next().and_then(|name| name.split('_').next()).expect("a file id").to_owned();
    table.base_files().into_iter().map(id).collect()
}

#[test]
fn transformers_run_one_after_the_other() {
    needs_peers!();
    const TARGET: &str = r#"{"type":"record","name":"Out","fields":[{"name":"id","type":"string"},{"name":"ts","type":"long"},{"name":"who","type":["null","string"],"default":null}]}"#;
    let mut job = Job::new(TRIPS, Model::new(&["id", "ts", "who"]), |call| {
        call.flag(
            "--transformer-class",
            "SqlQueryBasedTransformer,org.apache.hudi.utilities.transform.SqlFileBasedTransformer",
        )
        .conf("hoodie.streamer.transformer.sql", "SELECT id, ts, upper(rider) AS who FROM <SRC> WHERE id <> 'k002'")
    });
    let (sql, target) = (
        job.scratch.file("step.sql", "SELECT id, ts, concat(who, '!') AS who FROM <SRC>"),
        job.scratch.file("target.avsc", TARGET),
    );
    job.call = job.call.clone().conf("hoodie.streamer.transformer.sql.file", sql);
    job.call = job.call.clone().conf("hoodie.streamer.schemaprovider.target.schema.file", target);
    job.feed(&trips(0..4, 1));
    let instant = job.round("UPSERT");
    let out = |i: i64| row! {"id": format!("k{i:03}"), "ts": 1, "who": format!("RIDER-{i}-1!")};
    job.model.upsert(&instant, &[out(0), out(1), out(3)]);
    job.check();
    oracle(SPARK_0_15).validate(job.table.str(), false);
}

#[test]
fn without_a_schema_provider_the_first_batch_fixes_the_schema() {
    needs_peers!();
    let mut job = Job::new(TRIPS, Model::new(&["id", "ts", "tags", "at"]), |call| {
        call.without("--schemaprovider-class").without("hoodie.streamer.schemaprovider.source.schema.file")
    });
    let first = [row! {"id": "a", "ts": 1, "tags": ["x"]}, row! {"id": "b", "ts": 2, "at": {"lat": 1.5, "lon": 2.5}}];
    job.feed(&first);
    job.call.run().ok().says(&["schema"]);
    let instant = job.table.last_commit();
    job.model.upsert(&instant, &first);
    job.check();
    job.upsert(&[row! {"id": "b", "ts": 3, "tags": [], "at": {"lat": 0.5, "lon": 0.25}}]);
    job.check();
}

#[test]
fn compressed_files_are_read_like_plain_ones() {
    let mut job = Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| call);
    let plain = job.feed(&[row! {"id": "a", "ts": 1, "v": "x"}]);
    let path = job.scratch.path(&format!("in/{plain}"));
    let gzip = std::process::Command::new("gzip").arg("-k").arg(&path).status().expect("run gzip");
    assert!(gzip.success());
    std::fs::remove_file(&path).expect("leave only the compressed file");
    job.scratch.touch(&format!("in/{plain}.gz"), BASE_TIME_MS + 1000);
    job.round("UPSERT");
    let metadata = job.table.commit_metadata(&job.table.last_commit());
    let written: u64 = metadata["partitionToWriteStats"][""]
        .as_array()
        .expect("statistics")
        .iter()
        .map(|s| s["numWrites"].as_u64().unwrap_or(0))
        .sum();
    assert_eq!(written, 1);
}
