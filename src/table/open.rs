//! Opening and creating a table: what we must not write to is refused here, by name.

use super::{
    COPY_ON_WRITE, Error, KeptView, MERGE_ON_READ, META_FOLDER, PROPERTIES, Result, Summaries, Table, TableProperties,
    Timeline, keys,
};
use crate::storage::{self, Storage};

impl Table {
    /// Of which nothing is known yet.
    pub(crate) fn new(storage: Storage, properties: TableProperties) -> Table {
        Table { storage, properties, zone_override: None, summaries: Summaries::default(), kept: KeptView::default() }
    }

    /// Takes over what an earlier opening has come to know: for a job that opens the table again and again.
    pub fn remember_as(&mut self, before: &Table) {
        (self.summaries, self.kept) = (before.summaries.clone(), before.kept.clone());
    }

    /// `None` if there is no table at the place (no `hoodie.properties`, no backup, empty timeline).
    ///
    /// Refuses what `hoodie.properties` says and we cannot keep up: another table version or layout, another base file
    /// format, tables without meta fields, … A pending restore is refused by [`Table::timeline`], a schema history by
    /// [`Table::latest_schema`]. A merge-on-read table is opened: ask [`TableProperties::is_merge_on_read`].
    pub async fn open(storage: Storage) -> Result<Option<Table>> {
        let table = Table::open_to_look(storage).await?;
        if let Some(table) = &table {
            check(&table.properties, &table.storage.display(""))?;
        }
        Ok(table)
    }

    /// The same for those who only look: another table version alone is refused.
    pub async fn open_to_look(storage: Storage) -> Result<Option<Table>> {
        let Some(properties) = TableProperties::load(&storage).await? else {
            let names = storage.names(META_FOLDER).await?;
            if !Timeline::from_file_names(names.iter().map(String::as_str)).instants.is_empty() {
                return Err(Error::PropertiesMissing { path: storage.display(PROPERTIES) });
            }
            return Ok(None);
        };
        check_version(&properties, &storage.display(""))?;
        Ok(Some(Table::new(storage, properties)))
    }

    /// Writes `hoodie.properties`, which makes a folder a table. The folders that Hudi makes besides come to be with the
    /// first file in them; an object store has none anyway.
    pub async fn create(storage: Storage, properties: TableProperties) -> Result<Table> {
        check(&properties, &storage.display(""))?;
        match storage.create(PROPERTIES, properties.to_bytes("Properties saved")).await {
            Err(storage::Error::AlreadyExists { .. }) => Err(Error::TableExists { path: storage.display("") }),
            other => {
                other?;
                Ok(Table::new(storage, properties))
            }
        }
    }
}

fn check(properties: &TableProperties, path: &str) -> Result<()> {
    check_version(properties, path)?;
    let unknown = |key: &'static str, value: &str| Error::UnknownValue { path: path.into(), key, value: value.into() };
    let table_type = properties.table_type();
    if ![COPY_ON_WRITE, MERGE_ON_READ].contains(&table_type) {
        return Err(unknown(keys::TYPE, table_type));
    }
    let zone = properties.get(keys::TIMEZONE).unwrap_or("LOCAL");
    if !["LOCAL", "UTC"].iter().any(|known| known.eq_ignore_ascii_case(zone)) {
        return Err(unknown(keys::TIMEZONE, zone));
    }
    for (key, is_kept, hint) in KEPT {
        let value = properties.get(key).unwrap_or_default();
        if !is_kept(value) {
            return Err(Error::Unsupported { path: path.into(), key, value: value.into(), hint });
        }
    }
    Ok(())
}

/// A key, which of its values we can keep up (empty: not said), and what to do about any other.
type Kept = (&'static str, fn(&str) -> bool, &'static str);

const KEPT: [Kept; 6] = [
    (keys::LAYOUT, |v| v == "1", "upgrade the table with Hudi 0.15"),
    (keys::BASE_FILE_FORMAT, |v| v.is_empty() || v.eq_ignore_ascii_case("PARQUET"), "write to it with Hudi"),
    (keys::POPULATE_META_FIELDS, |v| v.is_empty() || v.eq_ignore_ascii_case("true"), "write to it with Hudi"),
    (keys::DROP_PARTITION_COLUMNS, |v| !v.eq_ignore_ascii_case("true"), "write to it with Hudi"),
    (keys::CDC_ENABLED, |v| !v.eq_ignore_ascii_case("true"), "write to it with Hudi, or turn change data capture off"),
    (keys::BOOTSTRAP_BASE_PATH, str::is_empty, "rewrite the bootstrapped partitions with Hudi"),
];

fn check_version(properties: &TableProperties, path: &str) -> Result<()> {
    let hint = match properties.version().parse::<u32>() {
        Ok(6) => return Ok(()),
        Ok(0..6) => "upgrade the table with Hudi 0.15 (`hudi-cli upgrade table`, or one write with it)",
        Ok(7..) => "tables of Hudi 1.x are not done yet; with Hudi 1.x itself, write with hoodie.write.table.version=6",
        Err(_) => "correct hoodie.table.version in hoodie.properties",
    };
    Err(Error::TableVersion { path: path.into(), version: properties.version().into(), hint })
}
