use super::*;

fn raw(flags: &[(&'static str, &str)], confs: &[&str]) -> RawArgs {
    let mut raw = RawArgs::default();
    let base = [("--target-base-path", "/t"), ("--target-table", "trips"), ("--table-type", "COPY_ON_WRITE")];
    for (flag, value) in base.iter().chain(flags) {
        if value.is_empty() {
            raw.switches.insert(flag);
        } else {
            raw.values.insert(flag, value.split(',').map(str::to_string).collect());
        }
    }
    let base = ["hoodie.streamer.source.dfs.root=/in", "hoodie.datasource.write.recordkey.field=id"];
    raw.values.insert("--hoodie-conf", base.iter().chain(confs).map(|c| c.to_string()).collect());
    raw
}

fn env(name: &str) -> Option<String> {
    match name {
        "HUDI_CONF_DIR" => Some("/no/such/folder".into()),
        "ROOT" => Some("/from/env".into()),
        _ => None,
    }
}

fn ok(flags: &[(&'static str, &str)], confs: &[&str]) -> StreamerConfig {
    load(&raw(flags, confs), &env).unwrap_or_else(|e| panic!("{flags:?} {confs:?}: {e}"))
}

#[test]
fn defaults_are_hudis() {
    let config = ok(&[], &[]);
    assert_eq!(config.operation, Operation::Upsert);
    assert_eq!((config.ordering_field.as_deref(), config.ordering_field_explicit), (Some("ts"), false));
    assert_eq!((config.payload, config.payload_explicit), (PayloadClass::OverwriteWithLatest, false));
    assert_eq!(config.index.index_type, IndexType::Simple);
    assert_eq!(config.keys.generator, KeyGeneratorClass::NonPartitioned);
    let write = config.write;
    assert_eq!(
        (write.parquet.codec, write.parquet.max_file_size, write.small_file_limit),
        (ParquetCodec::Gzip, 125_829_120, 104_857_600)
    );
    assert_eq!((write.bloom.num_entries, write.bloom.fpp, write.bloom.dynamic), (60_000, 1e-9, true));
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
}

#[test]
fn the_later_layer_wins() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    write("hudi-defaults.conf", "hoodie.parquet.page.size 1\nhoodie.parquet.block.size=1\nhoodie.index.type=BLOOM\n");
    let props = write("job.properties", "hoodie.parquet.block.size=2\nhoodie.parquet.max.file.size=2\n");
    let home = folder.path().display().to_string();
    let env = |name: &str| (name == "HUDI_CONF_DIR").then(|| home.clone());
    let config =
        load(&raw(&[("--props", &props)], &["hoodie.parquet.max.file.size=3"]), &env).expect("a configuration");
    let parquet = &config.write.parquet;
    assert_eq!((parquet.page_size, parquet.block_size, parquet.max_file_size), (1, 2, 3));
    assert_eq!(config.index.index_type, IndexType::Bloom);
    let origin =
        |key: &str| config.effective.iter().find(|s| s.key == key).map(|s| s.origin.clone()).unwrap_or_default();
    assert_eq!(origin("hoodie.parquet.page.size"), "hudi-defaults.conf:1");
    assert_eq!(origin("hoodie.parquet.block.size"), "job.properties:1");
    assert_eq!(origin("hoodie.parquet.max.file.size"), "--hoodie-conf");
    assert_eq!(origin("hoodie.parquet.compression.codec"), "default");
}

#[test]
fn old_names_count_where_new_ones_are_not_set() {
    let old = ok(&[], &["hoodie.deltastreamer.checkpoint.force.skip=true"]);
    assert!(old.checkpoint.force_skip);
    assert!(old.warnings[0].contains("hoodie.deltastreamer.checkpoint.force.skip"), "{:?}", old.warnings);
    let both = ["hoodie.deltastreamer.checkpoint.force.skip=true", "hoodie.streamer.checkpoint.force.skip=false"];
    assert!(!ok(&[], &both).checkpoint.force_skip);
}

#[test]
fn values_come_from_elsewhere() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "/from/file\n").expect("written");
    let reference = format!("hoodie.streamer.source.dfs.root=x${{file:{}}}y", file.path().display());
    assert_eq!(ok(&[], &[&reference]).source.dfs_root.as_deref(), Some("x/from/filey"));
    assert_eq!(ok(&[], &["hoodie.streamer.source.dfs.root=${env:ROOT}"]).source.dfs_root.as_deref(), Some("/from/env"));
}

#[test]
fn key_generators_are_inferred_as_hudi_infers_them() {
    let partition = "hoodie.datasource.write.partitionpath.field=";
    let key = "hoodie.datasource.write.recordkey.field=";
    let cases = [
        (key.to_owned() + "a", partition.to_owned() + "p", KeyGeneratorClass::Simple),
        (key.to_owned() + "a,b", partition.to_owned() + "p", KeyGeneratorClass::Complex),
        (key.to_owned() + "a", partition.to_owned() + "p,q", KeyGeneratorClass::Complex),
        (key.to_owned() + "a,b", partition.to_owned(), KeyGeneratorClass::NonPartitioned),
    ];
    for (key, partition, want) in cases {
        assert_eq!(ok(&[], &[&key, &partition]).keys.generator, want, "{key} {partition}");
    }
    let timestamp = [
        "hoodie.datasource.write.partitionpath.field=t",
        "hoodie.datasource.write.keygenerator.class=org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.deltastreamer.keygen.timebased.timestamp.type=SCALAR",
        "hoodie.keygen.timebased.timestamp.scalar.time.unit=days",
        "hoodie.keygen.timebased.output.dateformat=yyyy-MM-dd",
        "hoodie.keygen.timebased.timezone=GMT+8:00",
    ];
    let timestamp = ok(&[], &timestamp).keys.timestamp.expect("a timestamp generator");
    assert_eq!((timestamp.timestamp_type, timestamp.scalar_unit_nanos), (TimestampType::Scalar, 86_400_000_000_000));
    assert_eq!((timestamp.input_timezone.as_str(), timestamp.output_timezone.as_str()), ("GMT+8:00", "GMT+8:00"));
}

#[test]
fn a_chain_of_transformers_has_keys_of_its_own() {
    let chain = ok(
        &[(
            "--transformer-class",
            "a:SqlQueryBasedTransformer,b:org.apache.hudi.utilities.transform.SqlFileBasedTransformer",
        )],
        &["hoodie.streamer.transformer.sql.a=SELECT 1", "hoodie.streamer.transformer.sql.file=f.sql"],
    );
    let want = [TransformerConfig::SqlQuery("SELECT 1".into()), TransformerConfig::SqlFile("f.sql".into())];
    assert_eq!(chain.transformers, want);
}

#[test]
fn what_is_wrong_is_named_with_a_stable_code() {
    let cases: &[(&[(&str, &str)], &[&str], &str, &[&str])] = &[
        (&[("--op", "UPSRT")], &[], "config-bad-value", &["UPSRT", "did you mean UPSERT"]),
        (&[("--op", "DELETE_PARTITION")], &[], "config-unsupported", &["DELETE_PARTITION"]),
        (&[("--table-type", "MERGE_ON_READ")], &[], "config-unsupported", &["MERGE_ON_READ"]),
        (&[("--source-class", "JsonKafkaSource")], &[], "config-unsupported", &["JsonKafkaSource"]),
        (&[("--source-limit", "10k")], &[], "config-bad-value", &["--source-limit", "10k"]),
        (&[("--filter-dupes", "")], &[], "config-filter-dupes", &["UPSERT"]),
        (&[("--schemaprovider-class", "FilebasedSchemaProvider")], &[], "config-missing", &["source.schema.file"]),
        (&[], &["hoodie.datasource.write.recordkey.field="], "config-missing", &["recordkey.field"]),
        (&[], &["hoodie.parquet.max.file.size=big"], "config-bad-value", &["hoodie.parquet.max.file.size", "big"]),
        (
            &[],
            &["hoodie.parquet.max.file.sise=1"],
            "config-unknown-key",
            &["did you mean hoodie.parquet.max.file.size"],
        ),
        (&[], &["hoodie.metadata.enable=true"], "config-unsupported", &["hoodie.metadata.enable"]),
        (&[], &["hoodie.write.concurrency.mode=optimistic_concurrency_control"], "config-unsupported", &["locks"]),
        (&[], &["hoodie.bucket.index.num.buckets=4"], "config-unsupported", &["hoodie.bucket.index.num.buckets"]),
        (&[], &["hoodie.table.name=other"], "config-conflict", &["--target-table", "trips"]),
        (&[], &["hoodie.index.type=RECORD_INDEX"], "config-unsupported", &["RECORD_INDEX"]),
        (&[], &["hoodie.streamer.source.dfs.root=${env:NOPE}"], "config-reference", &["NOPE"]),
        (&[], &["justakey"], "config-properties-file", &["justakey"]),
        (&[("--props", "/no/such/file")], &[], "config-properties-file", &["/no/such/file"]),
    ];
    for (flags, confs, code, words) in cases {
        let error = load(&raw(flags, confs), &env).expect_err(words[0]);
        assert_eq!(error.code(), *code, "{error}");
        assert!(words.iter().all(|w| error.to_string().contains(w)), "{words:?}: {error}");
    }
    let both = load(&raw(&[("--op", "X")], &["hoodie.parquet.page.size=y"]), &env).expect_err("two problems");
    assert_eq!(both.problems.len(), 2);
}

#[test]
fn what_has_no_effect_is_warned_of_by_name() {
    let confs = [
        "spark.executor.memory=4g",
        "hoodie.upsert.shuffle.parallelism=2",
        "hoodie.cleaner.commits.retained=3",
        "auto.reset.offsets=earliest",
        "hoodie.metadata.enable=false",
        "hoodie.table.name=trips",
    ];
    let warnings = ok(&[], &confs).warnings.join("\n");
    for word in [
        "spark.executor.memory",
        "hoodie.upsert.shuffle.parallelism",
        "hoodie.cleaner.commits.retained",
        "auto.reset.offsets",
    ] {
        assert!(warnings.contains(word), "{word}: {warnings}");
    }
}

#[test]
fn secrets_do_not_reach_the_log() {
    let config = ok(&[], &["some.client.password=hunter2", "other.url=http://me:hunter2@host/"]);
    assert!(config.effective.iter().all(|s| !s.value.contains("hunter2")));
    let error = load(&raw(&[], &["hoodie.parquet.page.size=http://me:hunter2@host/"]), &env).expect_err("no number");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn every_key_of_the_registry_is_listed_once() {
    let mut names: Vec<&str> =
        keys::ALL.iter().flat_map(|k| std::iter::once(k.name).chain(k.aliases.iter().copied())).collect();
    names.extend(keys::FIXED.iter().map(|f| f.0));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(keys::ALL.iter().all(|k| reference().contains(k.name)));
    assert!(keys::known_to_hudi().count() > 500);
}
