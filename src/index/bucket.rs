//! BUCKET: a hash of the key says which file group of its partition holds it, and nothing is read (semantics.md §5.2;
//! `BucketIdentifier`, `HoodieSimpleBucketIndex`, Hudi 0.15).
//!
//! The number of buckets and the fields that are hashed stand in no file of the table, and Hudi writes with wrong ones what
//! it does not find again. Here file groups must have the numbers of buckets, and some stored keys must be in theirs.

use super::{Error, PartitionPlaces, Result, Tagged, TaggedRow};
use crate::config::BucketConfig;
use crate::record::{KeyedBatch, RowRef};
use crate::storage::Storage;
use crate::table::base_file::Reader;
use crate::table::{BaseFile, FileSlice, FileSystemView};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Digits of a bucket's number, which a file id begins with.
const DIGITS: usize = 8;

/// Base files whose key range is checked. A wrong number of buckets, at worst twice the right one, puts every other key into
/// its bucket all the same, and a file has two.
pub(super) const CHECKED_FILES: usize = 8;

/// By partition, the file group of each bucket that has one.
pub(super) type StoredBuckets = HashMap<String, HashMap<u32, Arc<FileSlice>>>;

/// The buckets of all partitions in `view`.
pub(super) fn stored(view: &FileSystemView, config: &BucketConfig) -> Result<StoredBuckets> {
    let mut stored = StoredBuckets::new();
    for slice in view.partitions.values().flatten() {
        let FileSlice { partition, file_id, .. } = &**slice;
        let group = || (partition.clone(), file_id.clone());
        let Some(bucket) = bucket_in(file_id) else {
            let (partition, file_id) = group();
            return Err(Error::NoBucket { partition, file_id });
        };
        if bucket >= config.count {
            let (partition, file_id) = group();
            return Err(Error::BucketBeyond { partition, file_id, count: config.count });
        }
        match stored.entry(partition.clone()).or_default().entry(bucket) {
            Entry::Vacant(free) => free.insert(slice.clone()),
            Entry::Occupied(taken) => {
                let ((partition, other), file_id) = (group(), taken.get().file_id.clone());
                return Err(Error::BucketTwice { partition, bucket, file_id, other });
            }
        };
    }
    Ok(stored)
}

/// Whether the least and the greatest key of `file` are in their bucket.
pub(super) fn check(storage: &Storage, file: &BaseFile, config: &BucketConfig) -> Result<()> {
    let footer = Reader::open(storage, &file.path(), file.size)?.key_footer()?;
    for key in [footer.min_key, footer.max_key].into_iter().flatten() {
        let bucket = bucket_of(&key, config);
        if bucket_in(&file.file_id) != Some(bucket) {
            let key = key.chars().take(200).collect();
            let fields = config.hash_fields.join(",");
            return Err(Error::BucketsDiffer { path: file.path(), key, bucket, count: config.count, fields });
        }
    }
    Ok(())
}

pub(super) fn tag(
    config: &BucketConfig,
    mut stored: StoredBuckets,
    batches: Vec<KeyedBatch>,
    rows: &[RowRef],
) -> Tagged {
    let places = PartitionPlaces::new(&batches);
    // The group of a bucket, once a row has come to it: its index among the groups.
    let mut met: HashMap<(usize, u32), Option<u32>> = HashMap::new();
    let mut groups = Vec::new();
    let place = |row: &RowRef| {
        let place = places.of(&batches, *row);
        let bucket = bucket_of(batches[row.batch as usize].keys.value(row.row as usize), config);
        let group = *met.entry((place, bucket)).or_insert_with(|| {
            let slice = stored.get_mut(places.paths[place])?.remove(&bucket)?;
            groups.push(slice);
            Some(groups.len() as u32 - 1)
        });
        TaggedRow { row: *row, group }
    };
    let rows = rows.iter().map(place).collect();
    Tagged { batches, rows, groups, moves: Vec::new(), revived: Default::default() }
}

/// The bucket of a record key.
pub(crate) fn bucket_of(record_key: &str, config: &BucketConfig) -> u32 {
    (hash(record_key, &config.hash_fields) & i32::MAX) as u32 % config.count
}

/// A file id for the first file group of a bucket: a random UUID that begins with the bucket's number.
pub(crate) fn new_file_id(bucket: u32) -> String {
    format!("{bucket:0DIGITS$}{}-0", &uuid::Uuid::new_v4().to_string()[DIGITS..])
}

fn bucket_in(file_id: &str) -> Option<u32> {
    let number = file_id.get(..DIGITS).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    number?.parse().ok()
}

/// `hashCode` of the list of hashed values. A key with a `:` is taken for one of several fields, `a:1,b:2`, even where it is
/// the value of a single field: it has no part of that name then, and all such keys have the hash of the empty list. (A part
/// without `:` counts, whatever its name.)
fn hash(record_key: &str, fields: &[String]) -> i32 {
    const EMPTY_LIST: i32 = 1;
    let push = |hash: i32, of_value: i32| hash.wrapping_mul(31).wrapping_add(of_value);
    if !record_key.contains(':') {
        return push(EMPTY_LIST, hash_of_text(record_key));
    }
    // As Java splits: without the empty parts at the end.
    let values = record_key.trim_end_matches(',').split(',').filter_map(|part| match part.split_once(':') {
        None => Some(hash_of_text(part)),
        Some((name, _)) if !fields.iter().any(|field| field == name) => None,
        Some((_, "__null__" | "__empty__")) => Some(0),
        Some((_, value)) => Some(hash_of_text(value)),
    });
    values.fold(EMPTY_LIST, push)
}

/// Java's `String.hashCode`, over UTF-16 units.
fn hash_of_text(text: &str) -> i32 {
    text.encode_utf16().fold(0, |hash: i32, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
}

#[cfg(test)]
mod tests;
