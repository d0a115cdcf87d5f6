//! The command line and the properties file, as an operator meets them.

use crate::support::*;

fn job() -> Job {
    Job::new(BASE_SCHEMA, Model::new(&["id", "ts", "v"]), |call| call)
}

#[test]
fn help_tells_the_flags() {
    let run = Streamer::bare().switch("--help").run().ok();
    for flag in ["--target-base-path", "--source-ordering-field", "--continuous", "--hoodie-conf", "--checkpoint"] {
        assert!(run.stdout.contains(flag), "{flag} is missing\n{run}");
    }
}

/// What is wrong on the command line is named, with exit code 2, before anything is made.
#[test]
fn a_wrong_command_line_is_refused_by_name() {
    let job = job();
    let call = || job.call.clone();
    let cases: Vec<(Streamer, &[&str])> = vec![
        (call().switch("--continous"), &["--continous", "--continuous"]),
        (call().without("--target-table"), &["--target-table"]),
        (call().without("--table-type"), &["--table-type"]),
        (call().op("UPSRT"), &["UPSRT", "UPSERT", "BULK_INSERT"]),
        (call().op("DELETE_PARTITION"), &["DELETE_PARTITION"]),
        (call().switch("--continuous").switch("true"), &["true"]),
        (call().flag("--source-limit", "10k"), &["--source-limit", "10k"]),
        (call().flag("--table-type", "MERGE_ON_REED"), &["MERGE_ON_REED", "MERGE_ON_READ"]),
        (call().switch("--run-bootstrap"), &["--run-bootstrap"]),
        (call().flag("--source-class", "org.apache.hudi.utilities.sources.ProtoKafkaSource"), &["ProtoKafkaSource"]),
        (call().flag("--source-class", "JsonDFSSorce"), &["JsonDFSSorce", "JsonDFSSource"]),
        (
            call().flag("--payload-class", "org.apache.hudi.common.model.PartialUpdateAvroPayload"),
            &["PartialUpdateAvroPayload"],
        ),
        (
            call().flag("--transformer-class", "org.apache.hudi.utilities.transform.AWSDmsTransformer"),
            &["AWSDmsTransformer"],
        ),
        (call().conf("hoodie.index.type", "RECORD_INDEX"), &["hoodie.index.type", "RECORD_INDEX"]),
        (call().conf("hoodie.parquet.max.file.size", "big"), &["hoodie.parquet.max.file.size", "big"]),
        (
            call().conf("hoodie.datasource.write.keygenerator.class", "org.apache.hudi.keygen.CustomKeyGenerator"),
            &["CustomKeyGenerator"],
        ),
        (call().without("hoodie.streamer.source.dfs.root"), &["hoodie.streamer.source.dfs.root"]),
        (call().switch("--filter-dupes"), &["--filter-dupes", "UPSERT"]),
        (call().flag("--props", job.scratch.path("nothere.properties")), &["nothere.properties"]),
    ];
    for (call, names) in cases {
        call.run().fails_with(2, names);
        assert!(job.table.timeline().is_empty(), "{names:?}");
    }
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let job = job();
    let run =
        job.call.clone().conf("hoodie.parquet.max.file.size", "big").conf("hoodie.index.type", "RECORD_INDEX").run();
    for name in ["hoodie.parquet.max.file.size", "hoodie.index.type"] {
        assert!(run.stderr.contains(name), "{name}\n{run}");
    }
}

#[test]
fn a_misspelt_key_is_told_with_the_right_one() {
    let job = job();
    let run = job.call.clone().conf("hoodie.streamer.source.dfs.rot", "/x").run();
    let told = run
        .stderr
        .lines()
        .any(|l| l.contains("hoodie.streamer.source.dfs.rot") && l.contains("hoodie.streamer.source.dfs.root"));
    assert!(told, "the nearest name is not told\n{run}");
}

#[test]
fn hudi_s_own_words_are_taken() {
    let mut job = job();
    job.feed(&[row! {"id": "a", "ts": 1, "v": "x"}]);
    job.call = job
        .call
        .clone()
        .flag("--source-class", "org.apache.hudi.utilities.sources.JsonDFSSource")
        .flag("--schemaprovider-class", "org.apache.hudi.utilities.schema.FilebasedSchemaProvider")
        .flag("--spark-master", "yarn")
        .conf("spark.executor.memory", "4g")
        .without("hoodie.streamer.source.dfs.root")
        .conf("hoodie.deltastreamer.source.dfs.root", job.scratch.path("in"));
    job.round("UPSERT");
}

/// Case 11, with files in Kafka's place.
#[test]
fn the_properties_file_is_read_as_hudi_reads_it() {
    let mut job = job();
    job.feed(&[row! {"id": "n0", "ts": 1, "v": "x"}, row! {"id": "n1", "ts": 1, "v": "x"}, row! {"id": "zz", "ts": 1}]);
    std::fs::create_dir(job.scratch.path("olds")).expect("make a folder");
    let w = job.scratch.path("");
    let w = w.to_str().expect("UTF-8").trim_end_matches('/');
    job.scratch.file(
        "base.properties",
        "hoodie.datasource.write.recordkey.field=wrong\nhoodie.datasource.write.partitionpath.field=\n",
    );
    let file = format!(
        "# a comment\ninclude=base.properties\nhoodie.datasource.write.recordkey.field   =   id\n\
         hoodie.deltastreamer.source.dfs.root={w}/olds\nhoodie.streamer.source.dfs.root={w}/in\n\
         hoodie.streamer.schemaprovider.source.schema.file={w}/schema.avsc\n\
         hoodie.streamer.transformer.sql=SELECT id, ts, 'p=q' AS v FROM <SRC> WHERE id <> 'zz'\nsome.empty.key=\n"
    );
    let props = job.scratch.file("job.properties", &file);
    let bare = job
        .call
        .clone()
        .flag("--props", &props)
        .flag("--transformer-class", "org.apache.hudi.utilities.transform.SqlQueryBasedTransformer")
        .without("hoodie.streamer.source.dfs.root")
        .without("hoodie.streamer.schemaprovider.source.schema.file")
        .without("hoodie.datasource.write.recordkey.field")
        .without("hoodie.datasource.write.partitionpath.field");
    bare.run().ok().says(&["WARN", "hoodie.deltastreamer.source.dfs.root"]);
    let instant = job.table.last_commit();
    job.model.upsert(&instant, &["n0", "n1"].map(|id| row! {"id": id, "ts": 1, "v": "p=q"}));
    if peers_enabled() {
        job.check();
    }

    for (text, names) in [
        (file.clone() + "include=missing.properties\n", &["missing.properties"][..]),
        (file.clone() + "include=job.properties\n", &["job.properties"]),
        (file.clone() + "colon:value\n", &["job.properties", "colon:value"]),
    ] {
        job.scratch.file("job.properties", text);
        bare.run().fails_with(2, names);
    }
    job.scratch.file("job.properties", &file);
    bare.clone().conf("hoodie.datasource.write.recordkey.field", "nope").run().fails_with_any(&["nope"]);
}

#[test]
fn secrets_are_masked_everywhere() {
    let mut job = job();
    job.feed(&[row! {"id": "a", "ts": 1}]);
    let run =
        job.call.clone().conf("some.client.password", "s3cr3t-one").conf("ssl.key.token", "s3cr3t-two").run().ok();
    assert!(!run.stderr.contains("s3cr3t") && !run.stdout.contains("s3cr3t"), "a secret is shown\n{run}");
    let url = job.call.clone().flag("--target-base-path", "gs://user:s3cr3t@bucket/t").run();
    assert!(url.code != Some(0) && !url.stderr.contains("s3cr3t"), "a secret is shown\n{url}");
}

#[test]
fn values_come_from_the_environment_and_from_files() {
    let mut job = job();
    job.feed(&[row! {"id": "a", "ts": 1}]);
    let key = job.scratch.file("key.txt", "id\n");
    job.call = job
        .call
        .clone()
        .env("INPUT_FOLDER", job.scratch.path("in").to_str().expect("UTF-8"))
        .conf("hoodie.streamer.source.dfs.root", "${env:INPUT_FOLDER}")
        .conf("hoodie.datasource.write.recordkey.field", format!("${{file:{}}}", key.display()));
    job.round("UPSERT");
    job.call.clone().conf("hoodie.streamer.source.dfs.root", "${env:NOT_SET}").run().fails_with(2, &["NOT_SET"]);
}

#[test]
fn a_dry_run_and_a_plan_write_nothing() {
    let mut job = job();
    job.feed(&[row! {"id": "a", "ts": 1}]);
    for switch in ["--dry-run", "--explain"] {
        job.call.clone().switch(switch).run().ok();
        assert!(
            job.table.timeline().is_empty() && job.table.base_files().is_empty(),
            "{switch} wrote {:?}",
            job.table.files()
        );
    }
    job.round("UPSERT");
}

#[test]
fn a_round_says_what_it_did() {
    let mut job = job();
    job.feed(&[row! {"id": "a", "ts": 1}, row! {"id": "b", "ts": 1}]);
    let position = job.position();
    job.call.run().ok().says(&["2", &position]);
}
