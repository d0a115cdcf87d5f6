//! The stored keys of one base file against the incoming ones.

use super::cache::{KeyCache, KnownFile};
use super::key_hashes::{KeyHasher, KeyHashes};
use super::key_table::KeyTable;
use super::ordering::incoming_ordering;
use super::places::PartitionPlaces;
use super::{Error, Merging, Result, StoredOrdering, bloom, revived};
use crate::config::IndexType;
use crate::record::{self, KeyedBatch, RowRef, ordering_column};
use crate::slice;
use crate::table::base_file::Reader;
use crate::table::{BaseFile, FileSlice, Table};
use arrow::array::{Array, ArrayRef, AsArray, StringArray, UInt64Array};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Rows read at a time; a base file is never in memory whole.
const READ_BATCH_ROWS: usize = 8192;

/// The incoming keys: one hash table a partition path, or a single one when the index is global.
pub(super) struct IncomingKeys {
    batches: Arc<Vec<KeyedBatch>>,
    /// By partition path; by an empty text when the index is global.
    tables: HashMap<String, PartitionKeys>,
    global: bool,
}

/// Those of one partition path, or all.
pub(super) struct PartitionKeys {
    table: KeyTable,
    /// Made when the first file whose keys are known is asked for them.
    hashed: OnceLock<Hashed>,
}

/// Hashes of incoming keys, and the position of the row of each.
struct Hashed {
    hashes: KeyHashes,
    positions: Vec<u32>,
}

impl PartitionKeys {
    /// The positions of the rows whose key `stored` has, in order.
    fn known_in(&self, stored: &KeyHashes, hasher: &KeyHasher) -> Vec<u32> {
        let Hashed { hashes, positions } = self.hashed.get_or_init(|| Hashed::new(&self.table, hasher));
        let common = hashes.common(stored);
        let mut found: Vec<u32> = common.flat_map(|hash| &positions[hashes.find(hash)]).copied().collect();
        found.sort_unstable();
        found
    }
}

impl Hashed {
    fn new(table: &KeyTable, hasher: &KeyHasher) -> Hashed {
        let mut rows: Vec<(u128, u32)> =
            table.positions().map(|position| (hasher.hash(table.key(position)), position)).collect();
        rows.sort_unstable();
        let positions = rows.iter().map(|(_, position)| *position).collect();
        Hashed { hashes: KeyHashes::new(rows.into_iter().map(|(hash, _)| hash).collect()), positions }
    }
}

impl IncomingKeys {
    pub(super) fn new(batches: Arc<Vec<KeyedBatch>>, rows: Arc<Vec<RowRef>>, global: bool) -> IncomingKeys {
        let places = if global { PartitionPlaces::none(&batches) } else { PartitionPlaces::new(&batches) };
        let mut tables: Vec<KeyTable> =
            places.paths.iter().map(|_| KeyTable::new(batches.clone(), rows.clone())).collect();
        for (position, row) in (0u32..).zip(rows.iter()) {
            tables[places.of(&batches, *row)].add(position);
        }
        let tables = places.paths.iter().map(|path| path.to_string()).zip(tables);
        let tables = tables.filter(|(_, table)| !table.is_empty());
        let tables = tables.map(|(path, table)| (path, PartitionKeys { table, hashed: OnceLock::new() })).collect();
        IncomingKeys { batches, tables, global }
    }

    /// The keys that the file could hold; `None`: none of them.
    pub(super) fn of(&self, file: &BaseFile) -> Option<&PartitionKeys> {
        self.tables.get(if self.global { "" } else { &file.partition })
    }
}

/// An incoming row whose key a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    /// Index into the list of rows.
    pub position: u32,
    /// The merge rule keeps the stored row. Asked only where it decides whether a record moves.
    pub stored_wins: bool,
    /// A log has deleted the base file's row. Asked only where [`Merging`] is.
    pub deleted: bool,
}

impl Hit {
    pub fn of(position: u32) -> Hit {
        Hit { position, stored_wins: false, deleted: false }
    }
}

/// What to look up, and how.
pub(super) struct LookUp {
    pub table: Table,
    pub index_type: IndexType,
    pub stored_ordering: Option<StoredOrdering>,
    pub merging: Option<Merging>,
    /// Records move to other partitions.
    pub moving: bool,
    /// It matters what the logs have deleted or replaced, not only what a planned compaction makes of them.
    pub asks_logs: bool,
    pub keys: IncomingKeys,
    pub cache: Option<Arc<KeyCache>>,
}

impl LookUp {
    /// The rows that the slice of `file` holds, each once, in the order of the list of rows.
    pub(super) fn hits(&self, slice: &FileSlice, file: &BaseFile) -> Result<Vec<Hit>> {
        let Some(merging) = self.merging.as_ref().filter(|_| !slice.log_files.is_empty()) else {
            return self.hits_in(file, self.stored_ordering.as_ref());
        };
        let mut hits = self.hits_in(file, None)?;
        let Some(incoming) = self.keys.of(file).filter(|_| !hits.is_empty()) else { return Ok(hits) };
        self.leave_out_what_the_plan_deletes(merging, &incoming.table, slice, file, &mut hits)?;
        if !self.asks_logs || hits.is_empty() {
            return Ok(hits);
        }
        if !self.moving {
            revived::mark(&self.table, merging, slice, &incoming.table, &mut hits)?;
            return Ok(hits);
        }
        let merged = self.merged_hits(merging, &incoming.table, slice, file)?;
        for hit in &mut hits {
            match merged.binary_search_by_key(&hit.position, |merged| merged.position) {
                Ok(at) => *hit = merged[at],
                Err(_) => hit.deleted = true,
            }
        }
        Ok(hits)
    }

    /// A key that the logs of a planned compaction delete is a new one already now: the base file to come will not have it, so
    /// that what is appended on top would be found by nobody, and its next change would be a second record. (Hudi appends it.)
    fn leave_out_what_the_plan_deletes(
        &self,
        merging: &Merging,
        keys: &KeyTable,
        slice: &FileSlice,
        file: &BaseFile,
        hits: &mut Vec<Hit>,
    ) -> Result<()> {
        let Some(plan) = &slice.pending_compaction else { return Ok(()) };
        let mut planned = slice.clone();
        planned.log_files.retain(|log| log.name.base_instant != *plan);
        if planned.log_files.is_empty() {
            return Ok(());
        }
        let deleted = slice::deleted_keys(&self.table, &merging.timeline, &planned, &merging.options)?;
        if hits.iter().any(|hit| deleted.may_contain(keys.key(hit.position))) {
            let stays = self.merged_hits(merging, keys, &planned, file)?;
            hits.retain(|hit| stays.binary_search_by_key(&hit.position, |stays| stays.position).is_ok());
        }
        Ok(())
    }

    /// The same of a base file, compared by `ordering`.
    fn hits_in(&self, file: &BaseFile, ordering: Option<&StoredOrdering>) -> Result<Vec<Hit>> {
        let Some(incoming) = self.keys.of(file) else { return Ok(Vec::new()) };
        let keys = &incoming.table;
        let known = self.cache.as_ref().and_then(|cache| Some((cache, cache.get(file)?)));
        let mut prune = matches!(self.index_type, IndexType::Bloom | IndexType::GlobalBloom);
        if let Some((cache, known)) = known {
            match &*known {
                KnownFile::Keys(stored) => {
                    let found = incoming.known_in(stored, &cache.hasher);
                    if ordering.is_none() || !self.ordering_decides(keys, file, found.iter().copied()) {
                        return Ok(found.into_iter().map(Hit::of).collect());
                    }
                }
                KnownFile::Footer(footer) if !bloom::may_hold_any(footer, keys) => return Ok(Vec::new()),
                KnownFile::Footer(_) => {}
            }
            prune = false;
        }
        let reader = Reader::open(&self.table.storage, &file.path(), file.size)?;
        if prune {
            let footer = reader.key_footer()?;
            if !bloom::may_hold_any(&footer, keys) {
                self.cache.iter().for_each(|cache| cache.keep_footer(file, footer.clone()));
                return Ok(Vec::new());
            }
        }
        let stored = reader.record_keys()?;
        self.cache.iter().for_each(|cache| cache.keep_keys(file, &stored));
        let mut pairs = pairs(keys, &stored);
        let stored_wins = match ordering {
            Some(ordering) => self.stored_wins(ordering, keys, &reader, file, &pairs)?,
            None => vec![false; pairs.len()],
        };
        let hits = pairs.drain(..).zip(stored_wins);
        Ok(each_once(hits.map(|(pair, stored_wins)| Hit { stored_wins, ..Hit::of(pair.position) }).collect()))
    }

    /// The same of the base file with its logs on top: what they have deleted is not there, and ordering values are theirs.
    fn merged_hits(&self, merging: &Merging, keys: &KeyTable, slice: &FileSlice, file: &BaseFile) -> Result<Vec<Hit>> {
        let mut hits = Vec::new();
        for batch in slice::merge(&self.table, &merging.timeline, slice, &merging.options)? {
            let rows = batch?.rows;
            let stored = rows.column_by_name(slice::RECORD_KEY).and_then(|keys| keys.as_string_opt::<i32>());
            let pairs = stored.map(|stored| pairs(keys, std::slice::from_ref(stored))).unwrap_or_default();
            let mut stored_wins = vec![false; pairs.len()];
            if let Some(ordering) = &self.stored_ordering
                && self.ordering_decides(keys, file, pairs.iter().map(|pair| pair.position))
                && let Ok(column) = ordering_column(&rows, &ordering.field)
            {
                let wanted = UInt64Array::from_iter_values(pairs.iter().map(|pair| pair.stored));
                let column = arrow::compute::take(&column, &wanted, None)
                    .map_err(|source| Error::Ordering { path: file.path(), source })?;
                stored_wins = self.kept(ordering, keys, file, &column, &pairs)?;
            }
            let new = pairs.iter().zip(stored_wins);
            hits.extend(new.map(|(pair, stored_wins)| Hit { stored_wins, ..Hit::of(pair.position) }));
        }
        Ok(each_once(hits))
    }

    /// Whether one of these rows, whose keys `file` holds, moves to another partition or stays by the stored row's ordering
    /// value.
    fn ordering_decides(&self, keys: &KeyTable, file: &BaseFile, mut positions: impl Iterator<Item = u32>) -> bool {
        let moves = |position| {
            let row = keys.row(position);
            self.keys.batches[row.batch as usize].partitions.path(row.row as usize) != file.partition
        };
        self.stored_ordering.is_some()
            && self.keys.batches.iter().all(|batch| batch.ordering.is_some())
            && positions.any(moves)
    }

    /// For each pair, whether the stored row is kept by the merge rule.
    fn stored_wins(
        &self,
        ordering: &StoredOrdering,
        keys: &KeyTable,
        reader: &Reader,
        file: &BaseFile,
        pairs: &[Pair],
    ) -> Result<Vec<bool>> {
        if !self.ordering_decides(keys, file, pairs.iter().map(|pair| pair.position)) {
            return Ok(vec![false; pairs.len()]);
        }
        let Some(stored) = stored_column(reader, file, &ordering.field, pairs)? else {
            return Ok(vec![false; pairs.len()]);
        };
        self.kept(ordering, keys, file, &stored, pairs)
    }

    /// For each pair, whether the rule keeps the stored row, by its ordering value in `stored`.
    fn kept(
        &self,
        ordering: &StoredOrdering,
        keys: &KeyTable,
        file: &BaseFile,
        stored: &ArrayRef,
        pairs: &[Pair],
    ) -> Result<Vec<bool>> {
        let incoming = incoming_ordering(&self.keys.batches, pairs.iter().map(|pair| keys.row(pair.position)))
            .map_err(|source| Error::Ordering { path: file.path(), source })?;
        let kept = ordering
            .rule
            .keeps_stored(stored, &incoming)
            .map_err(|source| Error::Compare { path: file.path(), source })?;
        Ok((0..kept.len()).map(|i| kept.is_valid(i) && kept.value(i)).collect())
    }
}

/// Of a key that is stored more than once the stored row wins only if all of them do.
fn each_once(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.sort_unstable_by_key(|hit| (hit.position, hit.stored_wins));
    hits.dedup_by_key(|hit| hit.position);
    hits
}

/// A stored row and the incoming one of the same key.
#[derive(Clone, Copy)]
struct Pair {
    stored: u64,
    position: u32,
}

fn pairs(keys: &KeyTable, stored: &[StringArray]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let mut start = 0;
    for chunk in stored {
        for (row, key) in chunk.iter().enumerate() {
            if let Some(key) = key {
                pairs.extend(keys.find(key).map(|position| Pair { stored: start + row as u64, position }));
            }
        }
        start += chunk.len() as u64;
    }
    pairs
}

/// The ordering values of the pairs' stored rows; `None` if the file has no such column.
fn stored_column(reader: &Reader, file: &BaseFile, field: &str, pairs: &[Pair]) -> Result<Option<ArrayRef>> {
    let schema = reader.schema();
    let has = |name: &str| schema.column_with_name(name).is_some();
    let top = if has(field) { field } else { field.split('.').next().unwrap_or(field) };
    if !has(top) {
        return Ok(None);
    }
    let mut chunks: Vec<ArrayRef> = Vec::new();
    for batch in reader.batches(Some(&[top]), READ_BATCH_ROWS)? {
        match ordering_column(&batch?, field) {
            Ok(column) => chunks.push(column),
            Err(record::Error::MissingField { .. }) => return Ok(None),
            Err(source) => return Err(Error::Compare { path: file.path(), source }),
        }
    }
    let chunks: Vec<&dyn Array> = chunks.iter().map(|chunk| chunk.as_ref()).collect();
    let wanted = UInt64Array::from_iter_values(pairs.iter().map(|pair| pair.stored));
    arrow::compute::concat(&chunks)
        .and_then(|column| arrow::compute::take(&column, &wanted, None))
        .map(Some)
        .map_err(|source| Error::Ordering { path: file.path(), source })
}
