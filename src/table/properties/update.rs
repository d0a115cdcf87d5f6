//! How the file is read and changed: the protocol of `HoodieTableConfig.modify` 0.15, so that a reader or a crash at any
//! point finds a whole file in one of two places.

use super::TableProperties;
use crate::storage::Storage;
use crate::table::{Error, PROPERTIES, Result};
use bytes::Bytes;

const BACKUP: &str = ".hoodie/hoodie.properties.backup";

impl TableProperties {
    /// The file, or its backup where the file is missing or torn; `None` when both are missing.
    pub(in crate::table) async fn load(storage: &Storage) -> Result<Option<TableProperties>> {
        Ok(read(storage).await?.map(|found| found.properties))
    }

    /// Sets keys (unknown ones stay as they are) and writes the file; `self` is then what was written.
    ///
    /// A crash leaves the old or the new content; what is left of the backup is taken up by the next update.
    pub(in crate::table) async fn update(&mut self, storage: &Storage, changes: &[(&str, &str)]) -> Result<()> {
        let Some(found) = read(storage).await? else {
            return Err(Error::PropertiesMissing { path: storage.display(PROPERTIES) });
        };
        if found.from_backup {
            storage.put(PROPERTIES, found.bytes.clone()).await?;
        }
        storage.delete(BACKUP).await?;

        let mut changed = found.properties;
        for (key, value) in changes {
            changed.0.insert(key.to_string(), value.to_string());
        }
        changed.set_checksum();

        storage.create(BACKUP, found.bytes).await?;
        // Hudi deletes the file first because Hadoop cannot replace one; a put is atomic, and readers never miss the file.
        storage.put(PROPERTIES, changed.to_bytes("Updated")).await?;
        let written = TableProperties::parse(&storage.get(PROPERTIES).await?);
        if written.as_ref() != Ok(&changed) {
            let why = "another process has changed it at the same time".to_string();
            return Err(Error::PropertiesMalformed { path: storage.display(PROPERTIES), why });
        }
        storage.delete(BACKUP).await?;
        *self = changed;
        Ok(())
    }
}

struct Found {
    properties: TableProperties,
    bytes: Bytes,
    from_backup: bool,
}

async fn read(storage: &Storage) -> Result<Option<Found>> {
    let mut wrong = None;
    for (path, from_backup) in [(PROPERTIES, false), (BACKUP, true)] {
        let Some(bytes) = storage.get_opt(path).await? else { continue };
        match TableProperties::parse(&bytes) {
            Ok(properties) => return Ok(Some(Found { properties, bytes, from_backup })),
            Err(why) => wrong = wrong.or(Some(Error::PropertiesMalformed { path: storage.display(path), why })),
        }
    }
    wrong.map_or(Ok(None), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::properties::{NewTable, keys};

    async fn table() -> (tempfile::TempDir, Storage, TableProperties) {
        let folder = tempfile::tempdir().expect("a folder");
        let storage = Storage::open(folder.path().to_str().expect("utf-8")).expect("storage");
        let new = NewTable { name: "t".into(), extra: vec![("my.own".into(), "kept".into())], ..NewTable::default() };
        let properties = TableProperties::for_new_table(&new);
        storage.create(PROPERTIES, properties.to_bytes("Properties saved")).await.expect("created");
        (folder, storage, properties)
    }

    #[tokio::test]
    async fn an_update_keeps_unknown_keys_and_no_backup_nor_stale_checksum() {
        let (folder, storage, mut properties) = table().await;
        let crc = folder.path().join(".hoodie/.hoodie.properties.crc");
        std::fs::write(&crc, "stale").expect("crc");
        properties.update(&storage, &[(keys::METADATA_PARTITIONS, "files")]).await.expect("updated");
        let read = TableProperties::load(&storage).await.expect("read").expect("there");
        assert_eq!(read, properties);
        assert_eq!((read.get("my.own"), read.metadata_partitions()), (Some("kept"), vec!["files"]));
        assert!(!crc.exists());
        assert_eq!(storage.get_opt(BACKUP).await.expect("looked"), None);
    }

    #[tokio::test]
    async fn a_crash_in_an_update_is_taken_up() {
        for (name, file, backup) in [
            ("after the backup", Some(true), true),
            ("between delete and write", None, true),
            ("torn write", Some(false), true),
            ("before the backup went", Some(true), true),
        ] {
            let (_folder, storage, mut properties) = table().await;
            let whole = properties.to_bytes("Updated");
            match file {
                Some(true) => {}
                Some(false) => storage.put(PROPERTIES, whole.slice(..whole.len() / 2)).await.expect("torn"),
                None => storage.delete(PROPERTIES).await.expect("deleted"),
            }
            if backup {
                storage.create(BACKUP, whole).await.expect("backup");
            }
            assert_eq!(TableProperties::load(&storage).await.expect(name).as_ref(), Some(&properties), "{name}");
            properties.update(&storage, &[("a", "b")]).await.expect(name);
            assert_eq!(TableProperties::load(&storage).await.expect(name).expect(name).get("a"), Some("b"), "{name}");
            assert_eq!(storage.get_opt(BACKUP).await.expect(name), None, "{name}");
        }
    }

    #[tokio::test]
    async fn a_torn_file_without_backup_is_an_error_that_names_it() {
        let (_folder, storage, _) = table().await;
        storage.put(PROPERTIES, Bytes::from_static(b"hoodie.table.nam")).await.expect("torn");
        let error = TableProperties::load(&storage).await.expect_err("torn");
        assert_eq!(error.code(), "table-properties-malformed");
        assert!(error.to_string().contains("hoodie.properties"), "{error}");
    }
}
