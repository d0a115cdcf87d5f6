//! Which rows go to which file (semantics.md §6.2): updates to their file groups, inserts to small files first, the rest to
//! new groups. Pure, until a [`Plan`] is executed.

use super::create::create;
use super::data_file::Run;
use super::merge::{MergeTask, merge};
use super::{Error, Result, WriteContext, WriteStatus};
use crate::config::{Operation, WriteConfig};
use crate::index::{PartitionPlaces, Tagged, is_deleted, pool};
use crate::record::{KeyedBatch, RowRef};
use crate::table::{CommitMetadata, FileSlice, FileSystemView, WriteStat};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
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
    Create { partition: String, rows: Vec<RowRef> },
    Merge(Box<MergeTask>),
}

impl Task {
    /// Bytes that are going to be written, roughly.
    fn weight(&self, average_record_size: u64) -> u64 {
        match self {
            Task::Create { rows, .. } => rows.len() as u64 * average_record_size,
            Task::Merge(task) => base_size(&task.slice) + task.rows.len() as u64 * average_record_size,
        }
    }
}

/// New records by partition path.
type Inserts = BTreeMap<String, Vec<RowRef>>;

/// Upsert and insert: updates go to their groups, inserts to small files, then to new groups. Rows that are deleted and
/// not stored are dropped. An update of a group that is being clustered is refused, as Hudi does by default
/// (`SparkRejectUpdateStrategy`): it would be lost when the clustering completes.
pub fn assign(context: &WriteContext, tagged: Tagged, view: &FileSystemView) -> Result<Plan> {
    let Tagged { batches, rows, groups, moves } = tagged;
    if let Some(slice) = groups.iter().find(|slice| is_clustering(view, slice)) {
        return Err(Error::PendingClustering { partition: slice.partition.clone(), file_id: slice.file_id.clone() });
    }
    let keeps_duplicates = context.operation == Operation::Insert && context.config.allow_duplicate_on_inserts;
    let mut merges: Vec<MergeTask> = groups.into_iter().map(|slice| MergeTask::new(slice, false)).collect();
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
    let mut creates = Vec::new();
    let average = context.average_record_size.max(1);
    for (partition, rows) in inserts {
        let mut rest = rows.as_slice();
        for slice in small_files(&context.config, view, &partition) {
            let room = usize::try_from(context.config.parquet.max_file_size.saturating_sub(base_size(slice)) / average);
            let (packed, left) = rest.split_at(room.unwrap_or(usize::MAX).min(rest.len()));
            rest = left;
            if !packed.is_empty() {
                let at = *by_file_id.entry(slice.file_id.clone()).or_insert_with(|| {
                    merges.push(MergeTask::new(slice.clone(), keeps_duplicates));
                    merges.len() - 1
                });
                merges[at].rows.extend_from_slice(packed);
            }
        }
        for rows in rest.chunks(rows_per_new_group(&context.config, average)) {
            creates.push(Task::Create { partition: partition.clone(), rows: rows.to_vec() });
        }
    }
    let tasks = merges.into_iter().map(|merge| Task::Merge(Box::new(merge))).chain(creates).collect();
    Ok(Plan { batches, tasks, profile, average_record_size: average })
}

/// File groups of a partition that may take inserts, in the order of the listing.
fn small_files<'a>(
    config: &WriteConfig,
    view: &'a FileSystemView,
    partition: &str,
) -> impl Iterator<Item = &'a FileSlice> {
    let limit = config.small_file_limit;
    let slices = view.partitions.get(partition).into_iter().flatten();
    slices.filter(move |slice| {
        slice.log_files.is_empty()
            && slice.base_file.as_ref().is_some_and(|file| file.size < limit)
            && !is_clustering(view, slice)
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
            prev_commit: merge.slice.base_instant.to_string(),
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

    /// Writes the files, `workers` at a time, the largest first; statuses in the order of the plan. After the first failure
    /// no file is begun any more.
    pub async fn execute(self, context: Arc<WriteContext>) -> Result<Vec<WriteStatus>> {
        let Plan { batches, tasks, average_record_size, .. } = self;
        let workers = context.config.workers;
        let batches = Arc::new(batches);
        let run = Arc::new(Run::new(context));
        let mut tasks: Vec<(usize, Task)> = tasks.into_iter().enumerate().collect();
        tasks.sort_by_key(|(_, task)| Reverse(task.weight(average_record_size)));
        let mut written = pool::run(workers, &run.stop.clone(), tasks, move |(at, task)| {
            run.check_cancelled()?;
            let statuses = match task {
                Task::Create { partition, rows } => create(run.clone(), &batches, &partition, &rows)?,
                Task::Merge(task) => vec![merge(&run, &batches, *task)?],
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
