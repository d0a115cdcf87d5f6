//! One number a partition path over several batches, each of which has its own list of paths.

use crate::record::{KeyedBatch, RowRef};
use std::collections::HashMap;

/// Partition paths of some batches, and where each batch's own path ids are among them.
pub(crate) struct PartitionPlaces<'a> {
    pub(crate) paths: Vec<&'a str>,
    /// A batch's path id → index into `paths`.
    by_batch: Vec<Vec<usize>>,
}

impl<'a> PartitionPlaces<'a> {
    pub(crate) fn new(batches: &'a [KeyedBatch]) -> PartitionPlaces<'a> {
        let mut paths = Vec::new();
        let mut known: HashMap<&str, usize> = HashMap::new();
        let mut place = |path: &'a String| {
            *known.entry(path).or_insert_with(|| {
                paths.push(path.as_str());
                paths.len() - 1
            })
        };
        let by_batch = batches.iter().map(|batch| batch.partitions.paths.iter().map(&mut place).collect()).collect();
        PartitionPlaces { paths, by_batch }
    }

    /// All rows in one place, whatever their partition path.
    pub(crate) fn none(batches: &[KeyedBatch]) -> PartitionPlaces<'a> {
        let by_batch = batches.iter().map(|batch| vec![0; batch.partitions.paths.len()]).collect();
        PartitionPlaces { paths: vec![""], by_batch }
    }

    /// Index into `paths`.
    pub(crate) fn of(&self, batches: &[KeyedBatch], row: RowRef) -> usize {
        let id = batches[row.batch as usize].partitions.ids[row.row as usize];
        self.by_batch[row.batch as usize][id as usize]
    }
}
