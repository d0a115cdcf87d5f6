//! What an operator may give, and what comes of it.

use super::*;

mod archive;
mod clean;
mod compaction;
mod concurrency;
mod index;
mod registry;
mod round;
mod storage;

const FLAGS: &[(&str, &str)] =
    &[("--target-base-path", "/t"), ("--target-table", "trips"), ("--table-type", "COPY_ON_WRITE")];
const PROPERTIES: &[&str] = &["hoodie.streamer.source.dfs.root=/in", "hoodie.datasource.write.recordkey.field=id"];

/// A call in the making.
#[derive(Clone)]
pub(super) struct Call {
    raw: RawArgs,
    env: Vec<(String, String)>,
}

impl Call {
    pub(super) fn new() -> Call {
        let mut call = Call::bare();
        PROPERTIES.iter().for_each(|conf| call.raw.values.entry("--hoodie-conf").or_default().push(conf.to_string()));
        call
    }

    /// The required flags and no property. The global defaults of this machine stay out of it.
    fn bare() -> Call {
        let values = FLAGS.iter().map(|(flag, value)| (*flag, vec![value.to_string()])).collect();
        let env = vec![("HUDI_CONF_DIR".to_string(), "/no/such/folder".to_string())];
        Call { raw: RawArgs { values, ..RawArgs::default() }, env }
    }

    fn flag(mut self, flag: &'static str, value: &str) -> Call {
        self.raw.values.insert(flag, vec![value.to_string()]);
        self
    }

    fn steps(mut self, steps: &[&str]) -> Call {
        self.raw.values.insert("--transformer-class", steps.iter().map(|s| s.to_string()).collect());
        self
    }

    fn switch(mut self, flag: &'static str) -> Call {
        self.raw.switches.insert(flag);
        self
    }

    pub(super) fn conf(mut self, conf: &str) -> Call {
        self.raw.values.entry("--hoodie-conf").or_default().push(conf.to_string());
        self
    }

    fn env(mut self, name: &str, value: &str) -> Call {
        self.env.insert(0, (name.to_string(), value.to_string()));
        self
    }

    fn load(&self) -> Result<StreamerConfig> {
        load(&self.raw, &|name| self.env.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone()))
    }

    #[track_caller]
    pub(super) fn ok(&self) -> StreamerConfig {
        self.load().unwrap_or_else(|e| panic!("{e}"))
    }

    /// The only problem there is, as code and text.
    #[track_caller]
    pub(super) fn problem(&self) -> Problem {
        let error = self.load().err().unwrap_or_else(|| panic!("nothing is wrong with {:?}", self.raw));
        let [problem] = error.problems.as_slice() else { panic!("one problem was expected: {error}") };
        problem.clone()
    }

    #[track_caller]
    fn shown(&self, key: &str) -> EffectiveSetting {
        let effective = self.ok().effective;
        effective.into_iter().find(|s| s.key == key).unwrap_or_else(|| panic!("{key} is not shown"))
    }
}

#[test]
fn defaults_are_those_of_hudi() {
    let config = Call::new().ok();
    assert_eq!(config.operation, Operation::Upsert);
    assert_eq!((config.payload, config.payload_explicit), (PayloadClass::OverwriteWithLatest, false));
    assert_eq!((config.ordering_field.as_deref(), config.ordering_field_explicit), (Some("ts"), false));
    assert_eq!(config.keys.generator, KeyGeneratorClass::NonPartitioned);
    assert_eq!(config.schema, SchemaProviderConfig::None);
    assert_eq!(config.source.limit, None);
    assert_eq!(config.table.timeline_timezone, TimelineTimezone::Utc);
    assert_eq!((config.index.index_type, config.index.update_partition_path), (IndexType::Simple, true));
    let write = &config.write;
    assert_eq!((write.small_file_limit, write.parquet.max_file_size), (104_857_600, 125_829_120));
    assert_eq!((write.parquet.block_size, write.parquet.page_size), (125_829_120, 1_048_576));
    assert_eq!((write.parquet.codec, write.parquet.compression_ratio), (ParquetCodec::Gzip, 0.1));
    assert_eq!((write.bloom.num_entries, write.bloom.fpp), (60_000, 1e-9));
    assert_eq!((write.bloom.dynamic, write.bloom.dynamic_max_entries), (true, 100_000));
    assert_eq!((write.record_size_estimate, write.insert_split_size), (1024, 500_000));
    assert!(write.insert_auto_split && write.allow_duplicate_on_inserts);
    assert_eq!(write.bulk_insert_sort_mode, BulkInsertSortMode::None);
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
}

#[test]
fn words_that_are_not_done_misspelt_or_foreign_are_refused_by_name() {
    let unsupported = "config-unsupported";
    let bad = "config-bad-value";
    let cases: &[(&str, &str, &str, &[&str])] = &[
        ("--table-type", "MERGE_ON_RAED", bad, &["COPY_ON_WRITE, MERGE_ON_READ", "did you mean MERGE_ON_READ?"]),
        ("--op", "DELETE_PARTITION", unsupported, &["UPSERT", "BULK_INSERT"]),
        ("--op", "UPSRT", bad, &["UPSERT, INSERT, BULK_INSERT", "did you mean UPSERT?"]),
        ("--base-file-format", "ORC", unsupported, &["PARQUET"]),
        ("--source-class", "org.apache.hudi.utilities.sources.ProtoKafkaSource", unsupported, &["JsonDFSSource"]),
        ("--source-class", "JsonDFSSorce", bad, &["did you mean JsonDFSSource?"]),
        ("--source-class", "com.acme.JsonDFSSource", unsupported, &["not a class of Hudi"]),
        ("--payload-class", "org.apache.hudi.common.model.PartialUpdateAvroPayload", unsupported, &["Default"]),
        ("--payload-class", "com.acme.DefaultHoodieRecordPayload", unsupported, &["not a class of Hudi"]),
        (
            "--schemaprovider-class",
            "HiveSchemaProvider",
            unsupported,
            &["FilebasedSchemaProvider", "SchemaRegistryProvider"],
        ),
        ("--transformer-class", "FlatteningTransformer", unsupported, &["SqlQueryBasedTransformer"]),
        ("--transformer-class", "com.acme.SqlQueryBasedTransformer", unsupported, &["not a class of Hudi"]),
        ("--source-limit", "10k", bad, &["whole number"]),
        ("--source-limit", "-1", bad, &["whole number"]),
        ("--min-sync-interval-seconds", "1.5", bad, &["whole number"]),
        ("--target-base-path", " ", "config-missing", &[]),
        ("--target-table", "", "config-missing", &[]),
    ];
    for (flag, value, code, words) in cases {
        let mut call = Call::new().flag(flag, value);
        if *flag == "--schemaprovider-class" {
            call = call.conf("hoodie.streamer.schemaprovider.source.schema.file=/s");
        }
        let problem = call.problem();
        let named = [*flag, value.trim()].into_iter().chain(words.iter().copied());
        assert_eq!(problem.code, *code, "{flag} {value}: {}", problem.text);
        named.for_each(|w| assert!(problem.text.contains(w), "{flag} {value}: {w:?} is missing in {}", problem.text));
    }
}

#[test]
fn settings_that_would_change_the_table_are_refused_by_name() {
    let cases: &[(&str, &str, &[&str])] = &[
        // Accepted with the value we act by only.
        ("hoodie.metadata.enable=true", "config-unsupported", &["false"]),
        ("hoodie.populate.meta.fields=false", "config-unsupported", &["true"]),
        ("hoodie.write.concurrency.mode=NON_BLOCKING_CONCURRENCY_CONTROL", "config-unsupported", &["single_writer"]),
        ("hoodie.combine.before.upsert=false", "config-unsupported", &["true"]),
        ("hoodie.write.table.version=8", "config-unsupported", &["6"]),
        ("hoodie.clustering.inline=true", "config-unsupported", &["Spark"]),
        // Known, not done, and what to do instead.
        ("hoodie.index.type=RECORD_INDEX", "config-unsupported", &["SIMPLE", "BLOOM"]),
        ("hoodie.bulkinsert.sort.mode=PARTITION_PATH_REPARTITION", "config-unsupported", &["GLOBAL_SORT"]),
        ("hoodie.parquet.compression.codec=brotli", "config-unsupported", &["ZSTD"]),
        ("hoodie.logfile.data.block.format=hfile", "config-unsupported", &["avro", "parquet"]),
        ("hoodie.bucket.index.max.num.buckets=4", "config-unsupported", &["hoodie.bucket.index.num.buckets"]),
        ("hoodie.payload.delete.field=gone", "config-unsupported", &["_hoodie_is_deleted"]),
        ("hoodie.write.record.merge.mode=EVENT_TIME_ORDERING", "config-unsupported", &["--payload-class"]),
        ("hoodie.compaction.record.merger.strategy=x", "config-unsupported", &["--payload-class"]),
        ("hoodie.streamer.schemaprovider.registry.schemaconverter=x", "config-unsupported", &["as Avro"]),
        ("hoodie.streamer.schemaprovider.registry.baseUrl=http://h", "config-unsupported", &["registry.url"]),
        ("hoodie.streamer.schemaprovider.schema_post_processor=x", "config-unsupported", &["source.schema.file"]),
        ("schema.registry.ssl.key.password=x", "config-unsupported", &["nocrypt"]),
        ("hoodie.bulkinsert.user.defined.partitioner.class=x", "config-unsupported", &["sort.mode"]),
        ("hoodie.datasource.write.keygenerator.type=CUSTOM", "config-unsupported", &["SIMPLE"]),
        // Values.
        ("hoodie.parquet.max.file.size=big", "config-bad-value", &["bytes"]),
        (
            "hoodie.parquet.page.size=http://me:hunter2@host/",
            "config-bad-value",
            &["http://SENSITIVE_INFO_MASKED@host/"],
        ),
        ("hoodie.parquet.max.file.size=0", "config-bad-value", &["above 0"]),
        ("hoodie.logfile.max.size=0", "config-bad-value", &["above 0"]),
        ("hoodie.logfile.data.block.max.size=1073741825", "config-bad-value", &["up to 1073741824 (1 GiB)"]),
        ("hoodie.parquet.block.size=128MB", "config-bad-value", &["bytes"]),
        ("hoodie.parquet.compression.ratio=NaN", "config-bad-value", &["above 0"]),
        ("hoodie.index.bloom.fpp=1", "config-bad-value", &["between 0 and 1"]),
        ("hoodie.index.bloom.num_entries=0", "config-bad-value", &["above 0"]),
        ("hoodie.streamer.workers=0", "config-bad-value", &["above 0"]),
        ("hoodie.datasource.write.hive_style_partitioning=yes", "config-bad-value", &["true, false"]),
        // Keys that a flag decides.
        ("hoodie.datasource.write.operation=insert", "config-conflict", &["--op", "UPSERT"]),
        ("hoodie.table.name=other", "config-conflict", &["--target-table", "trips"]),
        ("hoodie.combine.before.insert=true", "config-conflict", &["--filter-dupes"]),
        ("hoodie.payload.ordering.field=other", "config-conflict", &["--source-ordering-field"]),
        // Names.
        ("hoodie.streamer.source.dfs.rot=/x", "config-unknown-key", &["did you mean hoodie.streamer.source.dfs.root?"]),
        ("hoodie.parquet.max.file.sise=1", "config-unknown-key", &["did you mean hoodie.parquet.max.file.size?"]),
        ("hoodie.no.such.thing.at.all=1", "config-unknown-key", &["not a key"]),
        ("hoodie.fileid.prefix.provider.class=x", "config-unsupported", &["a key of Hudi"]),
    ];
    for (conf, code, words) in cases {
        let problem = Call::new().conf(conf).problem();
        let key = conf.split('=').next().unwrap_or_default();
        assert_eq!(problem.code, *code, "{conf}: {}", problem.text);
        let named = [key].into_iter().chain(words.iter().copied());
        named.for_each(|w| assert!(problem.text.contains(w), "{conf}: {w:?} is missing in {}", problem.text));
    }
}

#[test]
fn the_value_we_act_by_is_accepted() {
    for (key, value, _) in keys::FIXED {
        let config = Call::new().conf(&format!("{key}={value}")).ok();
        assert!(config.warnings.is_empty(), "{key}: {:?}", config.warnings);
    }
    let class = "hoodie.streamer.source.input.selector=DFSPathSelector";
    Call::new().conf(class).conf("hoodie.datasource.write.operation=upsert").conf("hoodie.table.name=trips").ok();
    Call::new().switch("--filter-dupes").flag("--op", "INSERT").conf("hoodie.combine.before.insert=true").ok();
    Call::new().conf("hoodie.payload.ordering.field=ts").ok();
    Call::new().flag("--base-file-format", "PARQUET").ok();
}

#[test]
fn settings_without_effect_are_told() {
    let cases = [
        ("spark.executor.memory=4g", "Spark"),
        ("hoodie.upsert.shuffle.parallelism=200", "change nothing"),
        ("hoodie.embed.timeline.server=false", "change nothing"),
        ("hoodie.logfile.to.parquet.compression.ratio=0.35", "change nothing"),
        ("hoodie.streamer.source.kafka.topic=t", "Kafka"),
        ("auto.reset.offsets=earliest", "Kafka client"),
        ("a.b=1,hoodie.c=2", "Kafka client"),
    ];
    for (conf, word) in cases {
        let warnings = Call::new().conf(conf).ok().warnings;
        let key = conf.split('=').next().unwrap_or_default();
        assert!(matches!(warnings.as_slice(), [w] if w.contains(key) && w.contains(word)), "{conf}: {warnings:?}");
    }
    let config = Call::new().conf("spark.a=1").conf("spark.b=2").ok();
    assert_eq!(config.warnings.len(), 1, "one warning for all of Spark: {:?}", config.warnings);
}

#[test]
fn tombstones_delete_where_they_can() {
    let call = Call::new()
        .flag("--source-class", "JsonKafkaSource")
        .conf("hoodie.streamer.source.kafka.topic=t")
        .conf("bootstrap.servers=b:1")
        .conf("auto.offset.reset=earliest")
        .conf("hoodie.streamer.source.kafka.tombstones=delete");
    let partitioned = call.clone().conf("hoodie.datasource.write.partitionpath.field=day");
    let transformed = call.clone().steps(&["SqlQueryBasedTransformer"]);
    let transformed = transformed.conf("hoodie.streamer.transformer.sql=SELECT * FROM <SRC>");
    for (call, word) in [
        (call.clone().flag("--op", "INSERT"), "--op UPSERT"),
        (transformed, "--transformer-class"),
        (partitioned.clone(), "GLOBAL_SIMPLE"),
    ] {
        let problem = call.problem();
        assert!(problem.code == "config-conflict" && problem.text.contains(word), "{}", problem.text);
    }
    for call in [call, partitioned.conf("hoodie.index.type=GLOBAL_BLOOM")] {
        assert_eq!(call.ok().source.kafka.expect("a topic").tombstones, Tombstones::Delete);
    }
}

#[test]
fn names_are_listed_once() {
    let aliases = keys::ALL.iter().flat_map(|k| std::iter::once(k.name).chain(k.aliases.iter().copied()));
    let mut names: Vec<&str> = aliases.chain(keys::FIXED.iter().map(|f| f.0)).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(keys::known_to_hudi().count() > 500, "the names of Hudi's keys are lost");
}

/// Accepting or refusing a key twice over would make one of the lists a lie.
#[test]
fn a_key_stands_in_one_list_only() {
    let is_registered = |name: &str| keys::ALL.iter().any(|k| k.name == name || k.aliases.contains(&name));
    for (name, _, _) in keys::FIXED {
        assert!(!is_registered(name), "{name} is in the registry and fixed");
        assert!(!keys::IDLE_PREFIXES.iter().any(|p| name.starts_with(p)), "{name} is fixed, but never looked at");
    }
    for (prefix, _) in keys::REFUSED_PREFIXES.iter().chain(keys::LATER_PREFIXES) {
        assert!(!keys::IDLE_PREFIXES.iter().any(|p| prefix.starts_with(p)), "{prefix} is never looked at");
    }
}

#[test]
fn every_key_that_counts_stands_in_the_reference() {
    let reference = reference();
    let names = keys::ALL.iter().map(|k| k.name).chain(keys::FIXED.iter().map(|f| f.0));
    names.for_each(|name| assert!(reference.contains(&format!("| `{name}` |")), "{name}"));
}

#[test]
fn later_layers_win() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("hudi-defaults.conf", "hoodie.parquet.page.size 1\nhoodie.parquet.block.size=1\nhoodie.index.type=BLOOM\n");
    write("job.properties", "hoodie.parquet.block.size=2\nhoodie.parquet.page.size=2\nhoodie.parquet.page.size=3\n");
    let folder_name = folder.path().to_str().expect("UTF-8");
    let call = Call::new()
        .env("HUDI_CONF_DIR", folder_name)
        .flag("--props", &format!("{folder_name}/job.properties"))
        .conf("hoodie.parquet.page.size=4");
    let config = call.ok();
    assert_eq!(config.index.index_type, IndexType::Bloom, "hudi-defaults.conf fills what is not set");
    assert_eq!(config.write.parquet.block_size, 2, "the file wins over hudi-defaults.conf");
    assert_eq!(config.write.parquet.page_size, 4, "--hoodie-conf wins over the file");
    let origin = |key| call.shown(key).origin;
    assert_eq!(origin("hoodie.index.type"), "hudi-defaults.conf:3");
    assert_eq!(origin("hoodie.parquet.block.size"), "job.properties:1");
    assert_eq!(origin("hoodie.parquet.page.size"), "--hoodie-conf");
    assert_eq!(origin("hoodie.parquet.compression.codec"), "default");
    let gone = Call::new().flag("--props", "/no/such/nothere.properties").problem();
    assert!(gone.code == "config-properties-file" && gone.text.contains("nothere.properties"), "{}", gone.text);
}

#[test]
fn old_names_count_until_the_new_one_is_set() {
    let bare = Call::bare().conf("hoodie.datasource.write.recordkey.field=id");
    let old = bare.clone().conf("hoodie.deltastreamer.source.dfs.root=/old");
    assert_eq!(old.ok().source.dfs_root.as_deref(), Some("/old"));
    assert!(old.ok().warnings[0].contains("old name of hoodie.streamer.source.dfs.root"), "{:?}", old.ok().warnings);
    let both = [
        bare.clone().conf("hoodie.streamer.source.dfs.root=/new").conf("hoodie.deltastreamer.source.dfs.root=/old"),
        old.conf("hoodie.streamer.source.dfs.root=/new"),
    ];
    for call in both {
        let config = call.ok();
        assert_eq!(config.source.dfs_root.as_deref(), Some("/new"));
        assert!(config.warnings[0].contains("has no effect"), "{:?}", config.warnings);
    }
}

#[test]
fn values_come_from_the_environment_and_from_files() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "name\r\n").expect("written");
    let key = format!("hoodie.datasource.write.recordkey.field=${{env:KEY}},${{file:{}}}", file.path().display());
    let config = Call::new().env("KEY", "id").conf(&key).ok();
    assert_eq!(config.keys.record_key_fields, ["id", "name"]);
    for (value, word) in [("${env:NOT_SET}", "NOT_SET"), ("${file:/no/such/file}", "/no/such/file")] {
        let problem = Call::new().conf(&format!("hoodie.database.name={value}")).problem();
        assert!(problem.code == "config-reference" && problem.text.contains(word), "{}", problem.text);
    }
}

#[test]
fn secrets_are_never_shown() {
    let call = Call::new()
        .conf("some.client.password=s3cr3t")
        .conf("ssl.keystore.location=s3cr3t")
        .conf("my.private.thing=s3cr3t")
        .conf("hoodie.sensitive.config.keys=private, other")
        .conf("url.of.proxy=http://me:s3cr3t@host/x")
        .conf("jaas.rest=\"me\" password=\"s3cr3t\";")
        .conf("an.env.secret=${env:HIDDEN}")
        .env("HIDDEN", "s3cr3t");
    let config = call.ok();
    let shown = format!("{:?} {:?}", config.effective, config.warnings);
    assert!(!shown.contains("s3cr3t"), "{shown}");
    for line in ["client.password:s3cr3t", "=\"me\" password=\"s3cr3t\";"] {
        let text = Call::new().conf(line).problem().text;
        assert!(text.contains("password") && !text.contains("s3cr3t"), "{text}");
    }
}

#[test]
fn key_generators_are_inferred_as_in_hudi() {
    use KeyGeneratorClass::*;
    let cases: &[(&str, &str, KeyGeneratorClass)] = &[
        ("id", "", NonPartitioned),
        ("id", "dt", Simple),
        ("id", "dt,hour", Complex),
        ("id,line", "dt", Complex),
        ("id,line", "", NonPartitioned),
    ];
    for (record_key, partition, want) in cases {
        let call = Call::new()
            .conf(&format!("hoodie.datasource.write.recordkey.field={record_key}"))
            .conf(&format!("hoodie.datasource.write.partitionpath.field={partition}"));
        assert_eq!(call.ok().keys.generator, *want, "{record_key} {partition}");
    }
    let class = "hoodie.datasource.write.keygenerator.class=org.apache.hudi.keygen.ComplexKeyGenerator";
    let both = Call::new().conf("hoodie.datasource.write.partitionpath.field=dt").conf(class);
    assert_eq!(both.clone().conf("hoodie.datasource.write.keygenerator.type=SIMPLE").ok().keys.generator, Complex);
    for partition in ["dt:SIMPLE", "dt,ms:TIMESTAMP"] {
        let problem = Call::new().conf(&format!("hoodie.datasource.write.partitionpath.field={partition}")).problem();
        assert!(
            problem.code == "config-unsupported" && problem.text.contains("CustomKeyGenerator"),
            "{}",
            problem.text
        );
    }
    let none = Call::bare().conf("hoodie.streamer.source.dfs.root=/in").problem();
    assert!(none.code == "config-missing" && none.text.contains("recordkey.field"), "{}", none.text);
    let empty = Call::new().conf("hoodie.datasource.write.recordkey.field=").problem();
    assert!(empty.code == "config-missing" && empty.text.contains("recordkey.field"), "{}", empty.text);
    let simple = Call::new().conf("hoodie.datasource.write.keygenerator.type=SIMPLE").problem();
    assert!(simple.code == "config-key-generator" && simple.text.contains("Nonpartitioned"), "{}", simple.text);
}

#[test]
fn timestamp_keys_take_both_prefixes() {
    for prefix in ["hoodie.keygen.timebased.", "hoodie.deltastreamer.keygen.timebased."] {
        let config = Call::new()
            .conf("hoodie.datasource.write.partitionpath.field=at")
            .conf("hoodie.datasource.write.keygenerator.type=TIMESTAMP")
            .conf(&format!("{prefix}timestamp.type=DATE_STRING"))
            .conf(&format!("{prefix}input.dateformat=yyyy-MM-dd,dd/MM/yyyy"))
            .conf(&format!("{prefix}input.timezone="))
            .conf(&format!("{prefix}output.dateformat=yyyy/MM"))
            .ok();
        let timestamp = config.keys.timestamp.expect("a timestamp key");
        assert_eq!(timestamp.timestamp_type, TimestampType::DateString, "{prefix}");
        assert_eq!(timestamp.input_formats, ["yyyy-MM-dd", "dd/MM/yyyy"], "{prefix}");
        assert_eq!((timestamp.input_timezone.as_str(), timestamp.output_timezone.as_str()), ("", "UTC"), "{prefix}");
        assert!(timestamp.persisted.iter().all(|(k, _)| k.starts_with("hoodie.keygen.")), "{:?}", timestamp.persisted);
        assert_eq!(config.warnings.is_empty(), prefix == "hoodie.keygen.timebased.", "{:?}", config.warnings);
    }
    let scalar = Call::new()
        .conf("hoodie.datasource.write.partitionpath.field=at")
        .conf("hoodie.datasource.write.keygenerator.class=org.apache.hudi.keygen.TimestampBasedAvroKeyGenerator")
        .conf("hoodie.keygen.timebased.timestamp.type=SCALAR")
        .conf("hoodie.keygen.timebased.timestamp.scalar.time.unit=days")
        .conf("hoodie.keygen.timebased.output.dateformat=yyyy-MM-dd")
        .conf("hoodie.keygen.timebased.timezone=GMT+8:00");
    let scalar = scalar.ok().keys.timestamp.expect("a timestamp key");
    assert_eq!((scalar.timestamp_type, scalar.scalar_unit_nanos), (TimestampType::Scalar, 86_400_000_000_000));
    assert_eq!((scalar.input_timezone.as_str(), scalar.output_timezone.as_str()), ("GMT+8:00", "GMT+8:00"));
    let unset = Call::new()
        .conf("hoodie.datasource.write.partitionpath.field=at")
        .conf("hoodie.datasource.write.keygenerator.type=TIMESTAMP")
        .load()
        .expect_err("no type, no format");
    for key in ["hoodie.keygen.timebased.timestamp.type", "hoodie.keygen.timebased.output.dateformat"] {
        assert!(unset.to_string().contains(key), "{unset}");
    }
}

#[test]
fn transformers_make_a_chain() {
    let sql = "hoodie.streamer.transformer.sql=SELECT 'a   b=c' FROM <SRC>";
    let step = TransformerConfig::SqlQuery("SELECT 'a   b=c' FROM <SRC>".into());
    let class = "org.apache.hudi.utilities.transform.SqlQueryBasedTransformer";
    assert_eq!(Call::new().steps(&[class]).conf(sql).ok().transformers, std::slice::from_ref(&step));
    let own = Call::new()
        .steps(&[&format!("t1:{class}"), "t2:SqlQueryBasedTransformer", "t3:SqlFileBasedTransformer"])
        .conf(sql)
        .conf("hoodie.streamer.transformer.sql.t2=SELECT 2 FROM <SRC>")
        .conf("hoodie.deltastreamer.transformer.sql.file.t3=/three.sql")
        .ok();
    let second = TransformerConfig::SqlQuery("SELECT 2 FROM <SRC>".into());
    assert_eq!(own.transformers, [step, second, TransformerConfig::SqlFile("/three.sql".into())]);
    let missing = Call::new().steps(&[class]).problem();
    assert!(missing.code == "config-missing" && missing.text.contains("transformer.sql"), "{}", missing.text);
    for steps in [["a:SqlQueryBasedTransformer", "SqlQueryBasedTransformer"], ["a:SqlQueryBasedTransformer"; 2]] {
        let problem = Call::new().steps(&steps).conf(sql).problem();
        assert!(
            problem.text.contains("--transformer-class") && problem.text.contains("identifier"),
            "{}",
            problem.text
        );
    }
}

#[test]
fn payload_and_ordering_come_from_a_flag_or_from_a_property() {
    let class = "org.apache.hudi.common.model.DefaultHoodieRecordPayload";
    for key in ["hoodie.datasource.write.payload.class", "hoodie.compaction.payload.class"] {
        let config = Call::new().conf(&format!("{key}={class}")).ok();
        assert_eq!((config.payload, config.payload_explicit), (PayloadClass::DefaultHoodieRecord, true), "{key}");
    }
    let property = Call::new().conf("hoodie.datasource.write.precombine.field=at");
    let config = property.ok();
    assert_eq!((config.ordering_field.as_deref(), config.ordering_field_explicit), (Some("at"), true));
    let config = property.flag("--source-ordering-field", "ts").ok();
    assert_eq!(config.ordering_field.as_deref(), Some("ts"));
    assert!(config.warnings[0].contains("wins over"), "{:?}", config.warnings);
    let several = Call::new().flag("--source-ordering-field", "a,b").problem();
    assert!(several.code == "config-unsupported" && several.text.contains("a,b"), "{}", several.text);
}

#[test]
fn filter_dupes_is_not_for_upserts() {
    let problem = Call::new().switch("--filter-dupes").problem();
    assert!(problem.code == "config-filter-dupes" && problem.text.contains("UPSERT"), "{}", problem.text);
    assert!(Call::new().switch("--filter-dupes").flag("--op", "BULK_INSERT").ok().filter_dupes);
}

#[test]
fn a_daemon_that_has_nothing_to_do_may_end() {
    let call = Call::new().conf("max.rounds.without.new.data.to.shutdown=7");
    assert_eq!(call.ok().run.max_rounds_without_new_data, None, "without the strategy nothing counts rounds");
    let class = "org.apache.hudi.utilities.streamer.NoNewDataTerminationStrategy";
    let strategy = "--post-write-termination-strategy-class";
    assert_eq!(call.flag(strategy, class).ok().run.max_rounds_without_new_data, Some(7));
    assert_eq!(Call::new().flag(strategy, class).ok().run.max_rounds_without_new_data, Some(3));
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let error = Call::new()
        .flag("--op", "UPSRT")
        .conf("hoodie.parquet.page.size=x")
        .conf("hoodie.no.such.thing.at.all=1")
        .conf("colon:value")
        .load()
        .expect_err("much is wrong");
    assert_eq!(error.problems.len(), 4, "{error}");
    assert_eq!(error.code(), error.problems[0].code);
    for word in ["UPSRT", "hoodie.parquet.page.size", "hoodie.no.such.thing.at.all", "colon:value"] {
        assert!(error.to_string().contains(word), "{word}: {error}");
    }
}

#[test]
fn a_schema_provider_and_its_file_go_together() {
    let provider = Call::new().flag("--schemaprovider-class", "FilebasedSchemaProvider");
    let problem = provider.problem();
    assert!(problem.code == "config-missing" && problem.text.contains("source.schema.file"), "{}", problem.text);
    let file = "hoodie.streamer.schemaprovider.source.schema.file=/s.avsc";
    let want = SchemaProviderConfig::File { source: "/s.avsc".into(), target: None };
    assert_eq!(provider.conf(file).ok().schema, want);
    let problem = Call::new().conf(file).problem();
    assert!(problem.code == "config-missing" && problem.text.contains("--schemaprovider-class"), "{}", problem.text);
}
