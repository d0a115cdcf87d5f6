//! Keys that two writers found nowhere, and both have inserted: each has them in a file group of its own, so that no file
//! group tells. Hudi does not look for them, and such a key is there twice from then on.

use crate::config::IndexConfig;
use crate::index::{self, TagOptions, Tagged};
use crate::record::{KeyedBatch, RowRef};
use crate::service::{Error, Result};
use crate::table::{BaseFile, CommitMetadata, FileSlice, FileSystemView, Instant, InstantTime, Table, WriteStat};
use crate::table::{name_of, parse_base_file};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The rows of a write whose keys its look-up found nowhere.
#[derive(Debug)]
pub struct Inserted {
    batches: Vec<KeyedBatch>,
    rows: Vec<RowRef>,
    partitions: BTreeSet<String>,
}

impl Inserted {
    /// Of what is about to be written. Costs no copy of a row.
    pub fn of(tagged: &Tagged) -> Inserted {
        let rows: Vec<RowRef> = tagged.rows.iter().filter(|row| row.group.is_none()).map(|row| row.row).collect();
        let of = |row: &RowRef| tagged.batches[row.batch as usize].partitions.path(row.row as usize).to_string();
        Inserted { partitions: rows.iter().map(of).collect(), batches: tagged.batches.clone(), rows }
    }

    /// Fails where what `others` have committed holds one of the keys: the files in which they have put records of their own.
    pub(super) async fn check(
        &self,
        table: &Table,
        own: &InstantTime,
        others: &[(&Instant, CommitMetadata)],
        index: &IndexConfig,
        workers: usize,
    ) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let everywhere = index.index_type.is_global();
        for (instant, metadata) in others {
            let here = |stat: &&WriteStat| everywhere || self.partitions.contains(&stat.partition_path);
            let files: Vec<BaseFile> =
                metadata.stats().filter(|stat| stat.num_inserts > 0).filter(here).filter_map(base_file).collect();
            if files.is_empty() {
                continue;
            }
            let conflict = |what: String| Error::WriteConflict {
                instant: own.to_string(),
                other: instant.time.to_string(),
                action: instant.action.to_string(),
                what,
            };
            for file in &files {
                if table.storage.size(&file.path()).await?.is_none() {
                    let what = format!("had keys in {}, which is cleaned away already", file.path());
                    return Err(conflict(what));
                }
            }
            // What is remembered of files is of the latest ones, which these need not be any more.
            let options =
                TagOptions { index: index.clone(), stored_ordering: None, merging: None, workers, cache: None };
            let (batches, rows) = (self.batches.clone(), self.rows.clone());
            let tagged = index::tag(table, &view_of(files), options, batches, rows).await?;
            let found = tagged.rows.iter().find(|row| row.group.is_some()).map(|row| row.row);
            if let Some(row) = found.or(tagged.moves.first().map(|moved| moved.row)) {
                let batch = &tagged.batches[row.batch as usize];
                let (key, partition) = (batch.keys.value(row.row as usize), batch.partitions.path(row.row as usize));
                return Err(conflict(format!("has inserted the key {key:.200} of partition {partition:?} too")));
            }
        }
        Ok(())
    }
}

fn base_file(stat: &WriteStat) -> Option<BaseFile> {
    let name = name_of(stat.path.as_deref()?);
    let (file_id, instant) = parse_base_file(name)?;
    Some(BaseFile {
        partition: stat.partition_path.clone(),
        name: name.to_string(),
        file_id: file_id.to_string(),
        instant,
        size: stat.file_size_in_bytes,
    })
}

fn view_of(files: Vec<BaseFile>) -> FileSystemView {
    let mut partitions: BTreeMap<String, Vec<Arc<FileSlice>>> = BTreeMap::new();
    for file in files {
        partitions.entry(file.partition.clone()).or_default().push(Arc::new(FileSlice {
            partition: file.partition.clone(),
            file_id: file.file_id.clone(),
            base_instant: file.instant.clone(),
            base_file: Some(file),
            log_files: Vec::new(),
            pending_compaction: None,
        }));
    }
    FileSystemView { partitions, ..FileSystemView::default() }
}
