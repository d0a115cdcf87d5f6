//! The table of a job: opened and checked against the configuration, or created; and the rules that follow from both.

use super::{Error, Result};
use crate::config::{
    ConcurrencyConfig, KeyConfig, KeyGeneratorClass, PayloadClass, StreamerConfig, TableType, TimelineTimezone,
};
use crate::observe::Metrics;
use crate::record::MergeRule;
use crate::schema::TableSchema;
use crate::service::lock::Held;
use crate::service::{self, Writers};
use crate::storage::Storage;
use crate::table::base_file::Reader;
use crate::table::{
    self, Action, COPY_ON_WRITE, FileSystemView, MERGE_ON_READ, NewTable, Table, TableProperties, Timeline,
    TimelineZone,
};
use arrow::array::Array;
use std::time::Instant;

impl KeyGeneratorClass {
    /// The class that `hoodie.properties` names.
    fn java_class(self) -> &'static str {
        match self {
            KeyGeneratorClass::Simple => "org.apache.hudi.keygen.SimpleKeyGenerator",
            KeyGeneratorClass::Complex => "org.apache.hudi.keygen.ComplexKeyGenerator",
            KeyGeneratorClass::NonPartitioned => "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            KeyGeneratorClass::TimestampBased => "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        }
    }
}

impl TableType {
    fn hudi_name(self) -> &'static str {
        match self {
            TableType::CopyOnWrite => COPY_ON_WRITE,
            TableType::MergeOnRead => MERGE_ON_READ,
        }
    }
}

/// Opens the table, if there is one, and checks that the configuration agrees with it. Changes nothing: another writer may
/// be at work. Done again before every round, since another writer may have changed the table's properties.
pub(super) async fn open(config: &StreamerConfig) -> Result<Option<Table>> {
    let Some(table) = Table::open(Storage::open_with(&config.table.base_path, &config.storage)?).await? else {
        return Ok(None);
    };
    let place = table.storage.display("");
    let conflicts = conflicts(config, &table.properties);
    if !conflicts.is_empty() {
        return Err(Error::Conflict { table: place, conflicts: conflicts.join("; ") });
    }
    Ok(Some(table))
}

/// Makes the table ready for a write that is about to begin, and only then, as Hudi does (`startCommit`, EAGER): a metadata
/// table, which would go stale, is switched off, and what failed writes left is rolled back.
pub(super) async fn clear(
    table: &mut Table,
    timeline: Timeline,
    metrics: &Metrics,
    writers: &Writers,
) -> Result<Timeline> {
    match writers.are_several() {
        true => disable_metadata_table_among_others(table, writers).await?,
        false => disable_metadata_table(table).await?,
    }
    if !has_leftovers(&timeline) {
        return Ok(timeline);
    }
    let started = Instant::now();
    let rolled_back = service::rollback_failed_writes(table, writers).await?;
    metrics.rolled_back(started.elapsed(), rolled_back.iter().map(|r| r.files_deleted).sum());
    rolled_back.iter().for_each(tell_of_rollback);
    Ok(table.timeline().await?)
}

pub(super) fn tell_of_rollback(done: &service::RolledBack) {
    tracing::warn!(
        instant = %done.instant.time,
        files_deleted = done.files_deleted,
        log_files_written = done.log_files_written,
        "rolled back a write that did not complete"
    );
}

/// Before anything is committed: a metadata table would go stale.
pub(super) async fn disable_metadata_table(table: &mut Table) -> Result<()> {
    if table.has_metadata_table() {
        tracing::warn!(
            table = table.storage.display(""),
            "the table has a metadata table, which is not maintained here yet: it is disabled, as Hudi does with \
             hoodie.metadata.enable=false; a Spark writer builds it anew"
        );
    }
    // Also where there is none: a crash in the middle may have left its folder.
    Ok(table.disable_metadata_table().await?)
}

/// The same under the lock, by what the properties say there. What a crash has left of a folder stays: another writer may be
/// making it.
async fn disable_metadata_table_among_others(table: &mut Table, writers: &Writers) -> Result<()> {
    if !table.has_metadata_table() {
        return Ok(());
    }
    let held = lock(writers, "disable the metadata table").await?;
    reload(table).await?;
    if table.has_metadata_table() {
        held.check().await?;
        disable_metadata_table(table).await?;
    }
    Ok(held.release().await?)
}

/// The table's properties as they are now.
pub(super) async fn reload(table: &mut Table) -> Result<()> {
    let now = Table::open(table.storage.clone()).await?;
    table.properties = now.ok_or_else(|| Error::Gone { table: table.storage.display("") })?.properties;
    Ok(())
}

/// The lock of the table.
pub(super) async fn lock(writers: &Writers, doing: &'static str) -> Result<Held> {
    Ok(writers.locks.lock(doing).await?)
}

/// The other writers of a table.
pub(super) fn writers(config: &ConcurrencyConfig, table: &Table) -> Result<Writers> {
    let name = table.properties.get("hoodie.table.name").unwrap_or_default();
    Ok(Writers::open(config, &table.storage, name)?)
}

/// Whether a write, or a rollback, did not complete.
pub(super) fn has_leftovers(timeline: &Timeline) -> bool {
    timeline.pending_writes().next().or(timeline.pending(Action::Rollback).next()).is_some()
}

/// Every setting in which the configuration and an existing table differ (`HoodieWriterUtils.validateTableConfig`, 0.15).
fn conflicts(config: &StreamerConfig, table: &TableProperties) -> Vec<String> {
    let keys = &config.keys;
    let mut found = Vec::new();
    let mut check = |what: &str, configured: &str, stored: Option<&str>| {
        if let Some(stored) = stored.filter(|s| *s != configured) {
            found.push(format!("{what} is `{configured}` here and `{stored}` in the table"));
        }
    };
    check("table type", config.table.table_type.hudi_name(), Some(table.table_type()));
    check("table name", &config.table.name, table.get("hoodie.table.name"));
    check("record key", &keys.record_key_fields.join(","), table.get("hoodie.table.recordkey.fields"));
    let partition_fields = keys.partition_fields.join(",");
    check("partition fields", &partition_fields, table.get("hoodie.table.partition.fields"));
    // Spark may have stored the Avro twin of the class: the same keys.
    let generator = table.get("hoodie.table.keygenerator.class").map(|c| c.replace("AvroKeyGenerator", "KeyGenerator"));
    check("key generator", keys.generator.java_class(), generator.as_deref());
    let flag = |on: bool| if on { "true" } else { "false" };
    let hive_style = table.get("hoodie.datasource.write.hive_style_partitioning");
    check("hive style partitioning", flag(keys.hive_style), hive_style);
    let url_encode = table.get("hoodie.datasource.write.partitionpath.urlencode");
    check("URL encoding of partition paths", flag(keys.url_encode), url_encode);
    if config.payload_explicit {
        check("payload class", config.payload.java_class(), table.payload_class());
    }
    if let Some(field) = config.ordering_field.as_deref().filter(|_| config.ordering_field_explicit) {
        check("ordering field", field, table.precombine_field());
    }
    found
}

/// Creates the table, its ordering field being the one that the first batch was ordered by, or would have been.
pub(super) async fn create(config: &StreamerConfig, schema: &TableSchema) -> Result<Table> {
    let KeyConfig { generator, record_key_fields, partition_fields, hive_style, url_encode, timestamp, .. } =
        &config.keys;
    let properties = TableProperties::for_new_table(&NewTable {
        name: config.table.name.clone(),
        database: config.table.database.clone(),
        table_type: config.table.table_type.hudi_name().into(),
        record_key_fields: record_key_fields.clone(),
        partition_fields: partition_fields.clone(),
        precombine: known_ordering_field(config, None, schema),
        keygen_class: generator.java_class().into(),
        hive_style: *hive_style,
        url_encode: *url_encode,
        payload_class: config.payload.java_class().into(),
        timezone: Some(match config.table.timeline_timezone {
            TimelineTimezone::Utc => TimelineZone::Utc,
            TimelineTimezone::Local => TimelineZone::Local,
        }),
        extra: timestamp.as_ref().map(|t| t.persisted.clone()).unwrap_or_default(),
    });
    let storage = Storage::open_with(&config.table.base_path, &config.storage)?;
    let table = match Table::create(storage, properties).await {
        Err(exists @ table::Error::TableExists { .. }) if config.concurrency.lock.is_some() => {
            return open(config).await?.ok_or_else(|| exists.into());
        }
        created => created?,
    };
    tracing::info!(table = table.storage.display(""), name = config.table.name, "table created");
    Ok(table)
}

/// The merge rule in force and where it comes from.
pub(super) fn merge_rule(config: &StreamerConfig, table: Option<&Table>) -> Result<(MergeRule, &'static str)> {
    if config.payload_explicit {
        return Ok((MergeRule(config.payload), "the configuration"));
    }
    match table.map(stored_rule).transpose()?.flatten() {
        None => Ok((MergeRule(config.payload), "the default")),
        Some(rule) => Ok((rule, "the table")),
    }
}

/// The merge rule that the table names, if it names one.
pub(super) fn stored_rule(table: &Table) -> Result<Option<MergeRule>> {
    let Some(class) = table.properties.payload_class() else { return Ok(None) };
    PayloadClass::from_java_class(class).map(|p| Some(MergeRule(p))).ok_or_else(|| {
        let what = format!("payload class {class} of the table is not done yet: the rules that are done are those of OverwriteWithLatestAvroPayload and DefaultHoodieRecordPayload");
        Error::from(crate::record::Error::Unsupported { what })
    })
}

/// The ordering field, if there is one: the flag, the table's, or Hudi's silent `ts` where the schema has it.
pub(super) fn known_ordering_field(
    config: &StreamerConfig,
    table: Option<&Table>,
    schema: &TableSchema,
) -> Option<String> {
    if config.ordering_field_explicit {
        return config.ordering_field.clone();
    }
    let stored = table.and_then(|t| t.properties.precombine_field()).map(str::to_string);
    stored.or_else(|| config.ordering_field.clone().filter(|f| schema.arrow.field_with_name(f).is_ok()))
}

/// The same for an operation that cannot do without.
pub(super) fn required_ordering_field(
    config: &StreamerConfig,
    table: Option<&Table>,
    schema: &TableSchema,
) -> Result<String> {
    known_ordering_field(config, table, schema).ok_or_else(|| {
        let fields: Vec<&str> = schema.arrow.fields().iter().map(|f| f.name().as_str()).collect();
        Error::NoOrderingField { fields: fields.join(", ") }
    })
}

/// Whether a table with a Complex key of one field stores it as `field:value`: releases differ, so a stored key is asked
/// (semantics.md §4.1). New tables store the value alone, as 0.15 does.
pub(super) async fn complex_single_key_prefixed(
    config: &StreamerConfig,
    table: &Table,
    timeline: &Timeline,
) -> Result<bool> {
    let [field] = config.keys.record_key_fields.as_slice() else { return Ok(false) };
    if config.keys.generator != KeyGeneratorClass::Complex {
        return Ok(false);
    }
    let is_prefixed = |key: String| key.starts_with(&format!("{field}:"));
    for instant in timeline.completed_writes().rev() {
        let metadata = table.commit_metadata(instant).await?;
        for stat in metadata.partition_to_write_stats.values().flatten().filter(|s| s.num_writes > 0) {
            let Some(path) = stat.path.as_ref().filter(|p| p.ends_with(".parquet")) else { continue };
            // A cleaned file says nothing; the next may.
            let Some(size) = table.storage.size(path).await? else { continue };
            if let Some(key) = first_key(table, path.clone(), size).await? {
                return Ok(is_prefixed(key));
            }
        }
    }
    // The commits that wrote rows may all be archived.
    for file in FileSystemView::load(table, timeline, None).await?.latest_base_files() {
        if let Some(key) = first_key(table, file.path(), file.size).await? {
            return Ok(is_prefixed(key));
        }
    }
    Ok(false)
}

async fn first_key(table: &Table, path: String, size: u64) -> Result<Option<String>> {
    let storage = table.storage.clone();
    let first = tokio::task::spawn_blocking(move || -> crate::table::Result<Option<String>> {
        let keys = Reader::open(&storage, &path, size)?.record_keys()?;
        Ok(keys.iter().find(|chunk| !chunk.is_empty()).map(|chunk| chunk.value(0).to_string()))
    });
    Ok(first.await.map_err(|e| Error::Worker { what: "read a stored key", why: e.to_string() })??)
}
