//! Every slice of every file group of a partition: what those look at who remove files.

use super::file_name::{LogFileName, parse_base_file};
use super::view::{CONCURRENCY, Slicing};
use super::{InstantTime, Result, Table, Timeline, name_of};
use futures::stream::{StreamExt, TryStreamExt};
use std::collections::BTreeMap;

/// The data files of a partition, sorted. Groups that were replaced are among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionFiles {
    /// By file id, the slices that count, newest first.
    pub groups: BTreeMap<String, Vec<SliceFiles>>,
    /// Names of data files that are no part of the table: their writes are open, or have failed.
    pub uncommitted: Vec<String>,
}

/// The files on one base instant of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceFiles {
    pub base_instant: InstantTime,
    /// Base file, log files, and those with change data.
    pub names: Vec<String>,
}

impl PartitionFiles {
    /// `partitions`: only these (those that do not exist are empty); `None`: every partition of the table. Costs one listing
    /// of names a partition; for `None` of files, and of every folder above them.
    pub async fn load(
        table: &Table,
        timeline: &Timeline,
        partitions: Option<&[String]>,
    ) -> Result<BTreeMap<String, PartitionFiles>> {
        let mut slicing = Slicing::new(timeline, None);
        let mut found = BTreeMap::new();
        match partitions {
            Some(partitions) => {
                let names = partitions
                    .iter()
                    .map(|path| async move { Ok::<_, super::Error>((path, table.storage.names(path).await?)) });
                let mut listings = futures::stream::iter(names).buffer_unordered(CONCURRENCY);
                while let Some((path, names)) = listings.try_next().await? {
                    found.insert(path.clone(), PartitionFiles::of(&mut slicing, names));
                }
            }
            None => {
                let mut folders = std::pin::pin!(table.folders());
                while let Some(folder) = folders.try_next().await? {
                    if folder.is_partition {
                        let names = folder.files.iter().map(|file| name_of(&file.path).to_string()).collect();
                        found.insert(folder.path, PartitionFiles::of(&mut slicing, names));
                    }
                }
            }
        }
        Ok(found)
    }

    fn of(slicing: &mut Slicing, names: Vec<String>) -> PartitionFiles {
        let mut files = PartitionFiles::default();
        let mut groups: BTreeMap<String, BTreeMap<InstantTime, Vec<String>>> = BTreeMap::new();
        for name in names {
            let parsed = match parse_base_file(&name) {
                Some((file_id, instant)) => Some((file_id.to_string(), instant)),
                None => LogFileName::parse(&name).map(|log| (log.file_id, log.base_instant)),
            };
            match parsed {
                Some((file_id, instant)) if slicing.counts(&instant) => {
                    groups.entry(file_id).or_default().entry(instant).or_default().push(name);
                }
                Some(_) => files.uncommitted.push(name),
                None => {}
            }
        }
        let slice = |(base_instant, mut names): (InstantTime, Vec<String>)| {
            names.sort_unstable();
            SliceFiles { base_instant, names }
        };
        files.groups =
            groups.into_iter().map(|(id, slices)| (id, slices.into_iter().rev().map(slice).collect())).collect();
        files.uncommitted.sort_unstable();
        files
    }
}
