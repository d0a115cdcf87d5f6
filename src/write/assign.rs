//! Which rows go to which file (semantics.md §6.2, §6.3): updates to their file groups, inserts to small files first, the
//! rest to new groups. Under the bucket index each row goes to the group of its bucket. Pure, until a [`Plan`] is executed.
//!
//! Merge-on-read: updates are appended to the log of their group, unless the group is rewritten anyhow because it takes
//! inserts.

use super::append::{AppendTask, append};
use super::create::create;
use super::data_file::{Run, WAITING};
use super::merge::{MergeTask, merge};
use super::{Error, Result, WriteContext, WriteStatus};
use crate::config::{BucketConfig, Operation, WriteConfig};
use crate::index::{PartitionPlaces, Tagged, bucket_of, is_deleted, pool};
use crate::record::{KeyedBatch, MergeRule, RowRef};
use crate::table::{CommitMetadata, FileSlice, FileSystemView, WriteStat};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// What is going to be written: the basis of the inflight file's workload profile.
#[derive(Debug)]
pub struct Plan {
    batches: Vec<KeyedBatch>,
    tasks: Vec<Task>,
    profile: CommitMetadata,
    average_record_size: u64,
}

/// The work on one file group.
#[derive(Debug, PartialEq)]
enum Task {
    /// `bucket`: all rows are of this one, whose first file group they make.
    Create {
        partition: String,
        bucket: Option<u32>,
        rows: Vec<RowRef>,
    },
    Merge(Box<MergeTask>),
    Append(Box<AppendTask>),
}

impl Task {
    /// Bytes that are going to be written, roughly.
    fn weight(&self, average_record_size: u64) -> u64 {
        match self {
            Task::Create { rows, .. } => rows.len() as u64 * average_record_size,
            Task::Merge(task) => base_size(&task.slice) + task.rows.len() as u64 * average_record_size,
            Task::Append(task) => (task.rows.len() + task.moved_away.len()) as u64 * average_record_size,
        }
    }
}

/// Merge-on-read, by default: a base file below this size is small whatever comes. It takes some fifty milliseconds to
/// write anew.
const SMALL_FILE: u64 = 1 << 20;
/// And up to so many times the size of what comes.
const SMALL_BESIDE: u64 = 8;

/// New records by partition path.
type Inserts = BTreeMap<String, Vec<RowRef>>;

/// Upsert and insert: updates go to their groups, inserts to small files, then to new groups. Rows that are deleted and
/// not stored are dropped. An update of a group that is being clustered is refused, as Hudi does by default
/// (`SparkRejectUpdateStrategy`): it would be lost when the clustering completes.
pub fn assign(context: &WriteContext, tagged: Tagged, view: &FileSystemView) -> Result<Plan> {
    let Tagged { batches, rows, groups, moves, revived } = tagged;
    if let Some(slice) = groups.iter().find(|slice| is_clustering(view, slice)) {
        return Err(Error::PendingClustering { partition: slice.partition.clone(), file_id: slice.file_id.clone() });
    }
    let merge_on_read = context.table.properties.is_merge_on_read();
    let keeps_duplicates = context.operation != Operation::Upsert && context.config.allow_duplicate_on_inserts;
    let looked_for = context.operation == Operation::Upsert && context.index.buckets.is_none();
    // Only the bucket index gives inserts a group. A log, too, would have one row a key.
    let beside_stored = keeps_duplicates && !merge_on_read;
    let mut merges: Vec<MergeTask> = groups.into_iter().map(|slice| MergeTask::new(slice, beside_stored)).collect();
    let places = PartitionPlaces::new(&batches);
    let mut by_place: Vec<Vec<RowRef>> = vec![Vec::new(); places.paths.len()];
    for tagged in rows {
        match tagged.group {
            Some(group) => merges[group as usize].rows.push(tagged.row),
            None if is_deleted(&batches[tagged.row.batch as usize], tagged.row.row as usize) => {}
            None => by_place[places.of(&batches, tagged.row)].push(tagged.row),
        }
    }
    let inserts = places.paths.iter().map(|path| path.to_string()).zip(by_place);
    let inserts: Inserts = inserts.filter(|(_, rows)| !rows.is_empty()).collect();
    for gone in moves {
        merges[gone.group as usize].moved_away.push(gone.row);
    }
    let profile = profile(context.operation, &merges, &inserts);

    let mut by_file_id: HashMap<String, usize> =
        merges.iter().enumerate().map(|(at, merge)| (merge.slice.file_id.clone(), at)).collect();
    // Groups whose base file is written anew though the table is merge-on-read.
    let mut rewritten: HashSet<usize> = HashSet::new();
    let mut creates = Vec::new();
    let average = context.average_record_size.max(1);
    for (partition, rows) in inserts {
        if let Some(buckets) = &context.index.buckets {
            creates.extend(new_buckets(buckets, &batches, &partition, rows));
            continue;
        }
        let mut rest = rows.as_slice();
        let coming = rest.len() as u64 * average;
        for slice in small_files(&context.config, merge_on_read, view, &partition, coming) {
            let room = usize::try_from(context.config.parquet.max_file_size.saturating_sub(base_size(slice)) / average);
            let (packed, left) = rest.split_at(room.unwrap_or(usize::MAX).min(rest.len()));
            rest = left;
            if !packed.is_empty() {
                let at = *by_file_id.entry(slice.file_id.clone()).or_insert_with(|| {
                    merges.push(MergeTask::new(slice.clone(), keeps_duplicates));
                    merges.len() - 1
                });
                merges[at].rows.extend_from_slice(packed);
                merges[at].new_rows += if looked_for { packed.len() } else { 0 };
                rewritten.insert(at);
            }
        }
        for rows in rest.chunks(rows_per_new_group(&context.config, average)) {
            creates.push(Task::Create { partition: partition.clone(), bucket: None, rows: rows.to_vec() });
        }
    }
    let updates = merges.into_iter().enumerate().map(|(at, merge)| {
        let revived = u32::try_from(at).is_ok_and(|group| revived.contains(&group));
        let rewrite = rewritten.contains(&at) || only_a_rewrite_will_do(context.rule, &batches, &merge, revived);
        if !merge_on_read || rewrite {
            return Ok(Task::Merge(Box::new(merge)));
        }
        let MergeTask { slice, rows, moved_away, .. } = merge;
        let task = AppendTask { slice, rows, moved_away };
        task.check(context, &batches)?;
        Ok(Task::Append(Box::new(task)))
    });
    let tasks = updates.chain(creates.into_iter().map(Ok)).collect::<Result<_>>()?;
    Ok(Plan { batches, tasks, profile, average_record_size: average })
}

/// File groups of a partition that may take inserts, of which `coming` bytes come.
///
/// Copy-on-write: in the order of the listing. Merge-on-read: those that have no log files (which a new base file would
/// hide) and wait for no compaction, the smallest first, so many as are configured (`SparkUpsertDeltaCommitPartitioner`,
/// Hudi 0.15). There, where the limit is Hudi's default, a file counts as small only beside what comes: Hudi rewrites up
/// to 100 MB for a single insert, which costs more than the log files spare.
fn small_files<'a>(
    config: &WriteConfig,
    merge_on_read: bool,
    view: &'a FileSystemView,
    partition: &str,
    coming: u64,
) -> Vec<&'a Arc<FileSlice>> {
    let limit = match merge_on_read && !config.small_file_limit_explicit {
        true => config.small_file_limit.min(SMALL_FILE.max(SMALL_BESIDE.saturating_mul(coming))),
        false => config.small_file_limit,
    };
    let slices = view.partitions.get(partition).into_iter().flatten();
    let mut small: Vec<&Arc<FileSlice>> = slices
        .filter(|slice| {
            slice.log_files.is_empty()
                && slice.pending_compaction.is_none()
                && slice.base_file.as_ref().is_some_and(|file| file.size < limit)
                && !is_clustering(view, slice)
        })
        .collect();
    if merge_on_read {
        small.sort_by_key(|slice| base_size(slice));
        small.truncate(config.small_file_candidates);
    }
    small
}

/// Whether a record comes after a delete of its key, in this batch or (`revived`) in the log, and must not be measured against
/// what was deleted. Readers of a merge-on-read table compare a log's record with the base file's whatever lies between
/// (log-file.md §10), and those of Hudi 1.0.2 fail on it; so the group gets a base file with what is there. While it waits for
/// its compaction it cannot have one, and the record is appended as Hudi does it.
fn only_a_rewrite_will_do(rule: MergeRule, batches: &[KeyedBatch], merge: &MergeTask, revived: bool) -> bool {
    let newer_than_all = |row: &RowRef| {
        let (batch, row) = (&batches[row.batch as usize], row.row as usize);
        !is_deleted(batch, row) && batch.ordering.as_ref().is_some_and(|ordering| ordering.is_null(row))
    };
    rule.needs_stored_ordering()
        && merge.slice.pending_compaction.is_none()
        && (revived || merge.rows.iter().any(newer_than_all))
}

/// The first file group of each bucket that rows of a partition come to.
fn new_buckets<'a>(
    buckets: &BucketConfig,
    batches: &[KeyedBatch],
    partition: &'a str,
    rows: Vec<RowRef>,
) -> impl Iterator<Item = Task> + use<'a> {
    let mut by_bucket: BTreeMap<u32, Vec<RowRef>> = BTreeMap::new();
    for row in rows {
        let key = batches[row.batch as usize].keys.value(row.row as usize);
        by_bucket.entry(bucket_of(key, buckets)).or_default().push(row);
    }
    by_bucket.into_iter().map(|(bucket, rows)| Task::Create {
        partition: partition.to_string(),
        bucket: Some(bucket),
        rows,
    })
}

fn is_clustering(view: &FileSystemView, slice: &FileSlice) -> bool {
    view.is_in_pending_clustering(&slice.partition, &slice.file_id)
}

/// Bytes of the base file; 0 where there is none.
fn base_size(slice: &FileSlice) -> u64 {
    slice.base_file.as_ref().map_or(0, |file| file.size)
}

fn rows_per_new_group(config: &WriteConfig, average_record_size: u64) -> usize {
    let rows = if config.insert_auto_split {
        config.parquet.max_file_size.div_ceil(average_record_size)
    } else {
        config.insert_split_size
    };
    usize::try_from(rows).unwrap_or(usize::MAX).max(1)
}

/// timeline.md §7.4: per partition its inserts, then its updated groups; small files do not count as updated yet.
fn profile(operation: Operation, merges: &[MergeTask], inserts: &Inserts) -> CommitMetadata {
    let mut stats: BTreeMap<String, Vec<WriteStat>> = BTreeMap::new();
    let partitions = inserts.keys().chain(merges.iter().map(|merge| &merge.slice.partition));
    for partition in partitions {
        stats.entry(partition.clone()).or_insert_with(|| {
            vec![WriteStat {
                prev_commit: "null".to_string(),
                num_inserts: inserts.get(partition).map_or(0, |rows| rows.len() as u64),
                ..WriteStat::default()
            }]
        });
    }
    for merge in merges {
        stats.entry(merge.slice.partition.clone()).or_default().push(WriteStat {
            file_id: merge.slice.file_id.clone(),
            prev_commit: merge.slice.append_instant().to_string(),
            num_update_writes: (merge.rows.len() + merge.moved_away.len()) as u64,
            ..WriteStat::default()
        });
    }
    let operation_type = match operation {
        Operation::Upsert => "UPSERT",
        Operation::Insert => "INSERT",
        Operation::BulkInsert => "BULK_INSERT",
    };
    CommitMetadata {
        partition_to_write_stats: stats,
        operation_type: operation_type.to_string(),
        ..CommitMetadata::default()
    }
}

impl Plan {
    /// The inflight file's content (timeline.md §7.4).
    pub fn workload_profile(&self) -> CommitMetadata {
        self.profile.clone()
    }

    /// Writes the files, `workers` at a time, the largest first, and a few more that wait for storage; statuses in the
    /// order of the plan. After the first failure no file is begun any more.
    pub async fn execute(self, context: Arc<WriteContext>) -> Result<Vec<WriteStatus>> {
        let Plan { batches, tasks, average_record_size, .. } = self;
        let workers = context.config.workers;
        let batches = Arc::new(batches);
        let run = Arc::new(Run::new(context));
        let mut tasks: Vec<(usize, Task)> = tasks.into_iter().enumerate().collect();
        tasks.sort_by_key(|(_, task)| Reverse(task.weight(average_record_size)));
        let mut written = pool::run(workers + WAITING, &run.stop.clone(), tasks, move |(at, task)| {
            let _at_work = run.at_work();
            run.check_cancelled()?;
            let statuses = match task {
                Task::Create { partition, bucket, rows } => create(run.clone(), &batches, &partition, bucket, &rows)?,
                Task::Merge(task) => vec![merge(&run, &batches, *task)?],
                Task::Append(task) => append(&run, &batches, &task)?,
            };
            Ok::<_, Error>((at, statuses))
        })
        .await?;
        written.sort_by_key(|(at, _)| *at);
        Ok(written.into_iter().flat_map(|(_, statuses)| statuses).collect())
    }
}

#[cfg(test)]
mod tests;
