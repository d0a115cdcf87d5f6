//! Keys of which there seem to be several: read again by name before they are told of.

use super::super::Result;
use super::finding::{Findings, Kind};
use super::snapshot::Snapshot;
use super::{Context, base_file, logs};
use crate::index::pool;
use crate::storage;
use crate::table::base_file::Reader;
use crate::table::{self, FileSlice};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Keys that are told by name.
const MOST: usize = 100;

pub(super) struct Twice<'a> {
    pub context: &'a Arc<Context>,
    pub holders: &'a [(String, String)],
    pub void: &'a HashSet<u32>,
}

/// Where a key is: file groups, each as often as it has the key.
type Places = BTreeMap<String, Vec<String>>;

impl Twice<'_> {
    /// All as of one moment, that of `snapshot`: what has moved while files were read is not there twice.
    pub async fn tell(&self, snapshot: Arc<Snapshot>, findings: &mut Findings) -> Result<()> {
        let Some(keys) = &self.context.keys else { return Ok(()) };
        let twices = keys.twice(self.void, MOST)?;
        let mut wanted: BTreeMap<u32, HashSet<u128>> = BTreeMap::new();
        for twice in &twices.found {
            for holder in &twice.holders {
                wanted.entry(*holder).or_default().insert(twice.hash);
            }
        }
        let mut places: HashMap<u128, Places> = HashMap::new();
        for (holder, hashes) in wanted {
            let Some((partition, file_id)) = self.holders.get(holder as usize) else { continue };
            let folder = self.context.table.folder(partition).await?;
            let slices = snapshot.slicer.latest(partition, folder.files);
            let Some(slice) = slices.into_iter().find(|slice| slice.file_id == *file_id) else { continue };
            let (context, snapshot) = (Arc::clone(self.context), Arc::clone(&snapshot));
            let found = pool::blocking(move || context.keys_of(&snapshot, &slice, &hashes)).await?;
            for (hash, key) in found {
                let group = format!("{partition}/{file_id}");
                places.entry(hash).or_default().entry(key).or_default().push(group);
            }
        }
        let mut told = 0;
        for (key, groups) in places.into_values().flatten().filter(|(_, groups)| groups.len() > 1) {
            told += 1;
            let distinct: BTreeSet<&String> = groups.iter().collect();
            let others: Vec<&str> = distinct.iter().skip(1).map(|group| group.trim_start_matches('/')).collect();
            let place = match others.is_empty() {
                true => "in this file group".to_string(),
                false => format!("also in {}", others.join(" and ")),
            };
            let path = groups[0].trim_start_matches('/').to_string();
            findings.add(Kind::DuplicateKey, path, format!("{key:.200?} is there {} times, {place}", groups.len()));
        }
        let beyond = twices.total - twices.found.len() as u64;
        // Those that were looked at tell whether the others are to be believed.
        if told > 0 && beyond > 0 {
            let text = super::super::text::count(beyond, "more key");
            findings.add(Kind::DuplicateKey, "", format!("{text} of which there are several"));
        }
        Ok(())
    }
}

impl Context {
    /// The rows of a slice whose keys have one of these hashes.
    fn keys_of(&self, snapshot: &Snapshot, slice: &FileSlice, hashes: &HashSet<u128>) -> Result<Vec<(u128, String)>> {
        let Some(keys) = &self.keys else { return Ok(Vec::new()) };
        let feed = keys.feed(&slice.partition, 0);
        let mut found = Vec::new();
        let mut take = |key: &str| {
            let hash = feed.hash(key);
            if hashes.contains(&hash) {
                found.push((hash, key.to_string()));
            }
            Ok(())
        };
        let mut ignored = Findings::default();
        match &slice.base_file {
            _ if !slice.log_files.is_empty() => {
                logs::merged_keys(&self.table, snapshot, slice, take, &mut ignored)?;
            }
            Some(file) => {
                let read = Reader::open(&self.table.storage, &file.path(), file.size).and_then(|r| r.record_keys());
                match read {
                    Ok(chunks) => chunks.iter().flatten().flatten().try_for_each(&mut take)?,
                    Err(table::Error::Storage(storage::Error::NotFound { .. })) => {}
                    Err(e) => base_file::fault(e, &file.path(), &mut ignored)?,
                }
            }
            None => {}
        }
        Ok(found)
    }
}
