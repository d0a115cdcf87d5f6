//! Which file group holds a key: SIMPLE and BLOOM, per partition or global, and BUCKET (semantics.md §5).
//!
//! Reads base files, and of moving records whole slices; writes nothing; knows records and tables, no sources. Look at
//! [`tag`] first, and at [`tag_buckets`], which reads nothing. Invariants: a key that a visible base file holds is always
//! found; memory follows the incoming rows, never the table: the hash table is of the incoming keys, and the stored ones
//! stream past it. What a job of many rounds remembers besides has a budget.

mod bloom;
mod bucket;
mod cache;
mod key_hashes;
mod key_table;
mod look_up;
mod ordering;
mod outdated;
mod places;
pub(crate) mod pool;
mod revived;
mod settle;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub(crate) use bucket::{bucket_of, new_file_id};
pub use cache::{KeyCache, KeyRecorder};
pub(crate) use key_hashes::KeyHasher;
pub(crate) use key_table::KeyTable;
pub(crate) use ordering::incoming_ordering;
pub use outdated::{OwnRows, leave_out_outdated};
pub(crate) use places::PartitionPlaces;
pub use revived::find_revived;

use crate::config::{BucketConfig, IndexConfig};
use crate::record::{KeyedBatch, MergeRule, RowRef};
use crate::slice::SliceOptions;
use crate::table::{BaseFile, FileSlice, FileSystemView, Table, Timeline};
use arrow::array::Array;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Rows and where their keys live.
#[derive(Debug)]
pub struct Tagged {
    pub batches: Vec<KeyedBatch>,
    /// The rows that count, in arrival order. A row whose key lives in several groups (an INSERT may store a key
    /// twice) is listed once a group, as Hudi does.
    pub rows: Vec<TaggedRow>,
    /// File groups that hold at least one of the keys, or may do so (BUCKET).
    pub groups: Vec<Arc<FileSlice>>,
    /// Global indexes: stored rows that move away; the row of `groups[group]` with `rows[..]`'s key is deleted there.
    pub moves: Vec<Move>,
    /// Groups in which a key comes back that their log has deleted: told only under a rule that compares with stored rows.
    pub revived: BTreeSet<u32>,
}

/// One incoming row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaggedRow {
    pub row: RowRef,
    /// Index into [`Tagged::groups`]; `None`: a new key. The row is written into the group's partition, which under a
    /// global index may be another one than the row's own (`update.partition.path=false`).
    pub group: Option<u32>,
}

/// A record whose partition changed under a global index: delete in the old group, insert in the new partition.
/// The row is in [`Tagged::rows`] too, as a new key. Unconditional: if the merge rule lets the stored row win, [`tag`]
/// makes no move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    pub row: RowRef,
    pub group: u32,
}

/// How a global index compares with stored rows, for merge rules that may keep the stored one: a record does not move
/// to a new partition when its stored row wins (semantics.md §5.1).
#[derive(Debug, Clone)]
pub struct StoredOrdering {
    pub rule: MergeRule,
    /// Dotted path of the ordering field.
    pub field: String,
}

/// How slices with log files are read where their base file does not say what is stored: a global index does not move a
/// record that a log has deleted, nor compare with what a log has replaced (`HoodieIndexUtils`, Hudi 0.15); and a key that
/// comes back after a delete is told of.
#[derive(Debug, Clone)]
pub struct Merging {
    pub timeline: Timeline,
    pub options: SliceOptions,
}

/// How keys are looked up.
#[derive(Debug, Clone)]
pub struct TagOptions {
    pub index: IndexConfig,
    /// Matters to global indexes with `update.partition.path=true` alone.
    pub stored_ordering: Option<StoredOrdering>,
    /// Matters to them, to a rule that compares with stored rows, and while a compaction waits; `None` for a table without log
    /// files.
    pub merging: Option<Merging>,
    /// Files that are read and probed at a time, each on a blocking thread.
    pub workers: usize,
    /// What rounds before this one have learnt of base files; `None` where there is one round.
    pub cache: Option<Arc<KeyCache>>,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Table(#[from] crate::table::Error),
    #[error(transparent)]
    Slice(#[from] crate::slice::Error),
    #[error(
        "find multiple file groups of bucket {bucket} in partition {partition:?}, {file_id} and {other}: a bucket has one, by \
         which the index finds its rows; leave one of them, with the rows of both"
    )]
    BucketTwice { partition: String, bucket: u32, file_id: String, other: String },
    #[error(
        "file group {file_id} in partition {partition:?} is none of the {count} buckets: set hoodie.bucket.index.num.buckets to \
         what the table was made with"
    )]
    BucketBeyond { partition: String, file_id: String, count: u32 },
    #[error(
        "file group {file_id} in partition {partition:?} is no bucket: the table was made with another hoodie.index.type than \
         BUCKET, which cannot find its rows"
    )]
    NoBucket { partition: String, file_id: String },
    #[error(
        "{path} holds the key {key:?}, which belongs to bucket {bucket} of {count} by {fields}: set \
         hoodie.bucket.index.num.buckets and hoodie.bucket.index.hash.field to what the table was made with"
    )]
    BucketsDiffer { path: String, key: String, bucket: u32, count: u32, fields: String },
    #[error("compare incoming records with those stored in {path}: {source}")]
    Compare { path: String, source: crate::record::Error },
    #[error("compare incoming records with those stored in {path}: {source}")]
    Ordering { path: String, source: arrow::error::ArrowError },
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Error::Table(e) => e.code(),
            Error::Slice(e) => e.code(),
            Error::BucketTwice { .. } => "index-bucket-twice",
            Error::BucketBeyond { .. } => "index-bucket-count",
            Error::NoBucket { .. } => "index-no-bucket",
            Error::BucketsDiffer { .. } => "index-buckets-differ",
            Error::Compare { source, .. } => source.code(),
            Error::Ordering { .. } => "index-ordering",
        }
    }
}

pub type Result<T> = std::result::Result<T, Error>;

impl Tagged {
    /// Rows that nothing is looked up for (INSERT).
    pub fn untagged(batches: Vec<KeyedBatch>, rows: Vec<RowRef>) -> Tagged {
        let rows = rows.into_iter().map(|row| TaggedRow { row, group: None }).collect();
        Tagged { batches, rows, groups: Vec::new(), moves: Vec::new(), revived: BTreeSet::new() }
    }
}

/// Looks the keys of `rows` up in the latest base files of `view`: of the rows' partitions, or of all for a global
/// index.
pub async fn tag(
    table: &Table,
    view: &FileSystemView,
    options: TagOptions,
    batches: Vec<KeyedBatch>,
    rows: Vec<RowRef>,
) -> Result<Tagged> {
    let TagOptions { index, stored_ordering, merging, workers, cache } = options;
    let (batches, rows) = (Arc::new(batches), Arc::new(rows));
    let global = index.index_type.is_global();
    let moving = global && index.update_partition_path;
    let keys = {
        let (batches, rows) = (batches.clone(), rows.clone());
        pool::blocking(move || look_up::IncomingKeys::new(batches, rows, global)).await
    };
    let mut slices = Vec::new();
    let mut files = Vec::new();
    for slice in view.partitions.values().flatten() {
        if let Some(file) = slice.base_file.as_ref().filter(|file| keys.of(file).is_some()) {
            files.push(file.clone());
            slices.push(slice.clone());
        }
    }
    let tasks = slices.clone().into_iter().zip(files.clone()).collect();
    cache.iter().for_each(|cache| cache.begin(view, &files));
    let stored_ordering = stored_ordering.filter(|o| moving && o.rule.needs_stored_ordering());
    let look_up = look_up::LookUp {
        table: table.clone(),
        index_type: index.index_type,
        asks_logs: moving || merging.as_ref().is_some_and(|m| m.options.rule.needs_stored_ordering()),
        merging: merging.map(|m| {
            let compared: Vec<&str> = stored_ordering.iter().map(|ordering| ordering.field.as_str()).collect();
            Merging { options: m.options.keys_only(&compared), ..m }
        }),
        stored_ordering,
        moving,
        keys,
        cache,
    };
    let work = move |(slice, file): (Arc<FileSlice>, BaseFile)| look_up.hits(&slice, &file);
    let hits = pool::run(workers, &CancellationToken::new(), tasks, work).await?;
    Ok(pool::blocking(move || settle::settle(Arc::unwrap_or_clone(batches), &rows, slices, &hits, moving)).await)
}

/// Whether stored keys are in the buckets that `config` gives them, by the key ranges of a few base files of `view`; for the
/// first round of a job that sees some. True if there were any.
pub async fn check_buckets(
    table: &Table,
    view: &FileSystemView,
    config: &BucketConfig,
    workers: usize,
) -> Result<bool> {
    // What their names say is said first.
    bucket::stored(view, config)?;
    let files: Vec<BaseFile> = view.latest_base_files().take(bucket::CHECKED_FILES).cloned().collect();
    let (storage, config) = (table.storage.clone(), config.clone());
    let check = move |file: BaseFile| bucket::check(&storage, &file, &config);
    Ok(!pool::run(workers, &CancellationToken::new(), files, check).await?.is_empty())
}

/// Under the bucket index: a row's group is the one of its bucket, whether it holds the key or not.
pub async fn tag_buckets(
    view: &FileSystemView,
    config: &BucketConfig,
    batches: Vec<KeyedBatch>,
    rows: Vec<RowRef>,
) -> Result<Tagged> {
    let (config, stored) = (config.clone(), bucket::stored(view, config)?);
    Ok(pool::blocking(move || bucket::tag(&config, stored, batches, &rows)).await)
}

/// The rows whose key is not stored yet (`--filter-dupes`); under a global index no partition may hold it.
pub fn filter_dupes(tagged: &Tagged) -> Vec<RowRef> {
    let moved: HashSet<RowRef> = tagged.moves.iter().map(|m| m.row).collect();
    tagged.rows.iter().filter(|t| t.group.is_none() && !moved.contains(&t.row)).map(|t| t.row).collect()
}

/// Whether the row is a delete.
pub(crate) fn is_deleted(batch: &KeyedBatch, row: usize) -> bool {
    batch.deleted.as_ref().is_some_and(|deleted| deleted.is_valid(row) && deleted.value(row))
}
