//! `hoodie.properties` (timeline.md §2).

mod java;
mod update;

use super::instant::TimelineZone;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Keys of `hoodie.properties`, as in `HoodieTableConfig` 0.15.
pub mod keys {
    pub const NAME: &str = "hoodie.table.name";
    pub const DATABASE: &str = "hoodie.database.name";
    pub const TYPE: &str = "hoodie.table.type";
    pub const VERSION: &str = "hoodie.table.version";
    pub const LAYOUT: &str = "hoodie.timeline.layout.version";
    pub const CHECKSUM: &str = "hoodie.table.checksum";
    pub const ARCHIVE_FOLDER: &str = "hoodie.archivelog.folder";
    pub const BASE_FILE_FORMAT: &str = "hoodie.table.base.file.format";
    pub const RECORD_KEY_FIELDS: &str = "hoodie.table.recordkey.fields";
    pub const PARTITION_FIELDS: &str = "hoodie.table.partition.fields";
    pub const PRECOMBINE_FIELD: &str = "hoodie.table.precombine.field";
    pub const KEY_GENERATOR_CLASS: &str = "hoodie.table.keygenerator.class";
    pub const POPULATE_META_FIELDS: &str = "hoodie.populate.meta.fields";
    pub const HIVE_STYLE: &str = "hoodie.datasource.write.hive_style_partitioning";
    pub const URL_ENCODE: &str = "hoodie.datasource.write.partitionpath.urlencode";
    pub const DROP_PARTITION_COLUMNS: &str = "hoodie.datasource.write.drop.partition.columns";
    pub const BASE_FORMAT_METAFILE: &str = "hoodie.partition.metafile.use.base.format";
    pub const CDC_ENABLED: &str = "hoodie.table.cdc.enabled";
    pub const TIMEZONE: &str = "hoodie.table.timeline.timezone";
    pub const CREATE_SCHEMA: &str = "hoodie.table.create.schema";
    pub const PAYLOAD_CLASS: &str = "hoodie.compaction.payload.class";
    pub const MERGER_STRATEGY: &str = "hoodie.compaction.record.merger.strategy";
    pub const METADATA_PARTITIONS: &str = "hoodie.table.metadata.partitions";
    pub const METADATA_PARTITIONS_INFLIGHT: &str = "hoodie.table.metadata.partitions.inflight";
    pub const BOOTSTRAP_BASE_PATH: &str = "hoodie.bootstrap.base.path";
}

/// `hoodie.table.type` of a table whose updates rewrite base files.
pub const COPY_ON_WRITE: &str = "COPY_ON_WRITE";
/// `hoodie.table.type` of a table whose updates go to log files.
pub const MERGE_ON_READ: &str = "MERGE_ON_READ";

/// `HoodieRecordMerger.DEFAULT_MERGER_STRATEGY_UUID` of Hudi 0.15.
const DEFAULT_MERGER_STRATEGY: &str = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5";

/// The table's own settings, unknown keys kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableProperties(pub BTreeMap<String, String>);

/// What makes a new table of version 6.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewTable {
    pub name: String,
    /// Empty for none.
    pub database: String,
    /// [`COPY_ON_WRITE`] or [`MERGE_ON_READ`].
    pub table_type: String,
    pub record_key_fields: Vec<String>,
    /// Empty for a table without partitions.
    pub partition_fields: Vec<String>,
    pub precombine: Option<String>,
    /// Fully qualified Java class.
    pub keygen_class: String,
    pub hive_style: bool,
    pub url_encode: bool,
    /// The streamer's table builder always says it, for copy-on-write too (`StreamSync.initializeEmptyTable` 0.15).
    pub payload_class: String,
    /// `None` leaves Hudi's default, the machine's zone, unsaid.
    pub timezone: Option<TimelineZone>,
    /// Further keys, as `hoodie.keygen.timebased.*`; they win over the ones made from the fields above.
    pub extra: Vec<(String, String)>,
}

impl TableProperties {
    /// Properties of a new table of version 6, with checksum.
    pub fn for_new_table(new: &NewTable) -> TableProperties {
        let mut pairs = BTreeMap::new();
        let mut set = |key: &str, value: &str| pairs.insert(key.to_string(), value.to_string());
        set(keys::NAME, &new.name);
        set(keys::DATABASE, &new.database);
        set(keys::TYPE, &new.table_type);
        set(keys::VERSION, "6");
        set(keys::LAYOUT, "1");
        set(keys::ARCHIVE_FOLDER, "archived");
        set(keys::BASE_FILE_FORMAT, "PARQUET");
        if !new.record_key_fields.is_empty() {
            set(keys::RECORD_KEY_FIELDS, &new.record_key_fields.join(","));
        }
        set(keys::PARTITION_FIELDS, &new.partition_fields.join(","));
        if let Some(field) = &new.precombine {
            set(keys::PRECOMBINE_FIELD, field);
        }
        set(keys::KEY_GENERATOR_CLASS, &new.keygen_class);
        set(keys::POPULATE_META_FIELDS, "true");
        set(keys::HIVE_STYLE, text(new.hive_style));
        set(keys::URL_ENCODE, text(new.url_encode));
        set(keys::DROP_PARTITION_COLUMNS, "false");
        set(keys::BASE_FORMAT_METAFILE, "false");
        set(keys::CDC_ENABLED, "false");
        if !new.payload_class.is_empty() {
            set(keys::PAYLOAD_CLASS, &new.payload_class);
        }
        if new.table_type == MERGE_ON_READ {
            set(keys::MERGER_STRATEGY, DEFAULT_MERGER_STRATEGY);
        }
        match new.timezone {
            Some(TimelineZone::Utc) => set(keys::TIMEZONE, "UTC"),
            Some(TimelineZone::Local) => set(keys::TIMEZONE, "LOCAL"),
            None => None,
        };
        for (key, value) in &new.extra {
            set(key, value);
        }
        let mut properties = TableProperties(pairs);
        properties.set_checksum();
        properties
    }

    /// Reads the file. The error says what is wrong with it; a checksum that does not fit is wrong (a torn file).
    pub fn parse(bytes: &[u8]) -> Result<TableProperties, String> {
        let properties = TableProperties(java::parse(bytes)?);
        if properties.get(keys::NAME).is_none() {
            return Err(format!("it has no {}", keys::NAME));
        }
        match properties.get(keys::CHECKSUM) {
            Some(said) if said.parse() != Ok(properties.checksum()) => {
                Err(format!("{} is {said}, its content makes {}", keys::CHECKSUM, properties.checksum()))
            }
            _ => Ok(properties),
        }
    }

    /// The file, keys in alphabetical order. `why`: `Properties saved` for a new table, else `Updated`.
    pub fn to_bytes(&self, why: &str) -> Bytes {
        let now = chrono::Utc::now();
        let mut out = format!(
            "#{why} at {}\n#{}\n",
            now.to_rfc3339_opts(chrono::SecondsFormat::Nanos, true),
            super::java_date(now)
        );
        java::write(&mut out, &self.0);
        Bytes::from(out)
    }

    /// A value; absent and empty differ.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// CRC-32 of `<database>.<name>`: guards against a torn file, nothing more (`HoodieTableConfig.generateChecksum`).
    pub fn checksum(&self) -> u32 {
        crc32fast::hash(format!("{}.{}", self.database(), self.name()).as_bytes())
    }

    fn set_checksum(&mut self) {
        let checksum = self.checksum().to_string();
        self.0.insert(keys::CHECKSUM.to_string(), checksum);
    }

    /// Table name.
    pub fn name(&self) -> &str {
        self.get(keys::NAME).unwrap_or_default()
    }

    /// Database, empty for none.
    pub fn database(&self) -> &str {
        self.get(keys::DATABASE).unwrap_or_default()
    }

    /// [`COPY_ON_WRITE`] (also when not said) or [`MERGE_ON_READ`].
    pub fn table_type(&self) -> &str {
        self.get(keys::TYPE).unwrap_or(COPY_ON_WRITE)
    }

    /// Updates go to log files.
    pub fn is_merge_on_read(&self) -> bool {
        self.table_type() == MERGE_ON_READ
    }

    /// Table version as written; `"0"` when not said, as Hudi reads it.
    pub fn version(&self) -> &str {
        self.get(keys::VERSION).unwrap_or("0")
    }

    /// Record key fields, none for a table with generated keys.
    pub fn record_key_fields(&self) -> Vec<&str> {
        self.list(keys::RECORD_KEY_FIELDS)
    }

    /// Partition fields, without the `:simple`, `:timestamp` types that 1.x writes for a custom key generator.
    pub fn partition_fields(&self) -> Vec<&str> {
        let fields = self.list(keys::PARTITION_FIELDS);
        fields.into_iter().map(|f| f.split_once(':').map_or(f, |(name, _)| name)).collect()
    }

    /// The ordering field.
    pub fn precombine_field(&self) -> Option<&str> {
        self.get(keys::PRECOMBINE_FIELD).filter(|f| !f.is_empty())
    }

    /// Java class of the key generator; `None` on old tables.
    pub fn key_generator_class(&self) -> Option<&str> {
        self.get(keys::KEY_GENERATOR_CLASS).filter(|c| !c.is_empty())
    }

    /// Java class of the payload; copy-on-write tables made by Spark do not say it.
    pub fn payload_class(&self) -> Option<&str> {
        self.get(keys::PAYLOAD_CLASS).filter(|c| !c.is_empty())
    }

    /// `field=value` partition folders.
    pub fn is_hive_style(&self) -> bool {
        self.is_true(keys::HIVE_STYLE, false)
    }

    /// Partition values are URL-encoded.
    pub fn is_url_encoded(&self) -> bool {
        self.is_true(keys::URL_ENCODE, false)
    }

    /// The rows carry the five meta columns.
    pub fn has_meta_fields(&self) -> bool {
        self.is_true(keys::POPULATE_META_FIELDS, true)
    }

    /// Zone of the instants.
    pub fn timeline_zone(&self) -> TimelineZone {
        match self.get(keys::TIMEZONE) {
            Some(zone) if zone.eq_ignore_ascii_case("UTC") => TimelineZone::Utc,
            _ => TimelineZone::Local,
        }
    }

    /// Partitions of the metadata table that are built or being built; empty: there is no metadata table.
    pub fn metadata_partitions(&self) -> Vec<&str> {
        let mut all = self.list(keys::METADATA_PARTITIONS);
        all.extend(self.list(keys::METADATA_PARTITIONS_INFLIGHT));
        all
    }

    /// Schema that the table was created with in SQL (Avro JSON).
    pub fn create_schema(&self) -> Option<&str> {
        self.get(keys::CREATE_SCHEMA).filter(|s| !s.is_empty())
    }

    fn list(&self, key: &str) -> Vec<&str> {
        let value = self.get(key).unwrap_or_default();
        value.split(',').map(str::trim).filter(|v| !v.is_empty()).collect()
    }

    pub(super) fn is_true(&self, key: &str, default: bool) -> bool {
        self.get(key).map_or(default, |v| v.eq_ignore_ascii_case("true"))
    }
}

fn text(flag: bool) -> &'static str {
    if flag { "true" } else { "false" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_table() -> NewTable {
        NewTable {
            name: "orders".into(),
            database: "db1".into(),
            table_type: COPY_ON_WRITE.into(),
            record_key_fields: vec!["id".into(), "line".into()],
            partition_fields: vec!["dt".into()],
            precombine: Some("ts".into()),
            keygen_class: "org.apache.hudi.keygen.ComplexKeyGenerator".into(),
            payload_class: "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload".into(),
            timezone: Some(TimelineZone::Utc),
            ..NewTable::default()
        }
    }

    #[test]
    fn checksum_is_hudis() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../../../tests/vectors/properties_checksum.json")).expect("vectors");
        let cases = vectors["cases"].as_array().expect("cases");
        assert_eq!(cases.len(), 5);
        for case in cases {
            let mut pairs = BTreeMap::from([(keys::NAME.to_string(), case["table"].as_str().unwrap().to_string())]);
            if let Some(database) = case["database"].as_str() {
                pairs.insert(keys::DATABASE.to_string(), database.to_string());
            }
            assert_eq!(u64::from(TableProperties(pairs).checksum()), case["checksum"].as_u64().unwrap(), "{case}");
        }
    }

    #[test]
    fn a_new_table_is_read_back() {
        let made = TableProperties::for_new_table(&new_table());
        let bytes = made.to_bytes("Properties saved");
        assert!(bytes.starts_with(b"#Properties saved at 2"));
        let read = TableProperties::parse(&bytes).expect("our own file");
        assert_eq!(read, made);
        assert_eq!(read.get(keys::CHECKSUM), Some("3407554609"));
        assert_eq!(read.record_key_fields(), ["id", "line"]);
        assert_eq!(read.partition_fields(), ["dt"]);
        assert_eq!(read.precombine_field(), Some("ts"));
        assert_eq!(read.timeline_zone(), TimelineZone::Utc);
        assert_eq!((read.version(), read.database()), ("6", "db1"));
        assert!(read.has_meta_fields() && !read.is_hive_style() && !read.is_url_encoded() && !read.is_merge_on_read());
        assert_eq!(read.metadata_partitions(), [""; 0]);
        assert_eq!(read.get(keys::MERGER_STRATEGY), None);
    }

    #[test]
    fn merge_on_read_says_its_merger_and_extra_keys_win() {
        let new = NewTable {
            table_type: MERGE_ON_READ.into(),
            extra: vec![(keys::ARCHIVE_FOLDER.into(), "old".into())],
            ..new_table()
        };
        let made = TableProperties::for_new_table(&new);
        assert!(made.is_merge_on_read());
        assert_eq!(made.get(keys::MERGER_STRATEGY), Some(DEFAULT_MERGER_STRATEGY));
        assert_eq!(made.get(keys::ARCHIVE_FOLDER), Some("old"));
    }

    #[test]
    fn a_torn_file_is_not_taken() {
        let whole = "hoodie.table.name=cow\nhoodie.database.name=\nhoodie.table.checksum=121430431\n";
        assert!(TableProperties::parse(whole.as_bytes()).is_ok());
        let torn = TableProperties::parse(b"hoodie.table.name=co\nhoodie.table.checksum=121430431\n");
        assert!(torn.unwrap_err().contains("hoodie.table.checksum is 121430431"));
        assert_eq!(TableProperties::parse(b"").unwrap_err(), "it has no hoodie.table.name");
    }
}
