//! Whether a table can be brought back to an earlier write: whether the files are still there that readers saw then.

#[cfg(test)]
mod tests;

use super::{BackError, Result, clean};
use crate::table::{CommitMetadata, FileGroupId, FileSlice, FileSystemView, Instant, InstantTime, Table, Timeline};
use futures::stream::{StreamExt, TryStreamExt};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Timeline files read at a time.
const READ_AHEAD: usize = 8;

/// The writes since then, and with them the partitions in which something may be missing.
#[derive(Debug, Clone, Copy)]
pub(super) enum Undone<'a> {
    /// All partitions are looked at.
    AllAfter,
    Only(&'a [Instant]),
}

/// The table as it was at the write `at`. Fails where cleaning has taken away what later writes have replaced: they name
/// the slices that they rest on.
pub(super) async fn view_at(
    table: &Table,
    timeline: &Timeline,
    at: &InstantTime,
    undone: Undone<'_>,
) -> Result<FileSystemView> {
    let mut later: Vec<&Instant> = match undone {
        Undone::AllAfter => timeline.completed_writes().filter(|write| write.time > *at).collect(),
        Undone::Only(writes) => writes.iter().filter(|write| !write.is_pending()).collect(),
    };
    // Ascending, lest a group seem older than the write that has opened it.
    later.sort_unstable_by_key(|write| &write.time);
    let reads = later.into_iter().map(|write| table.commit_metadata(write));
    let later: Vec<CommitMetadata> = futures::stream::iter(reads).buffered(READ_AHEAD).try_collect().await?;
    let view = match undone {
        Undone::AllAfter => FileSystemView::load_at(table, timeline, at, None).await?,
        Undone::Only(_) => {
            let touched: BTreeSet<String> = later.iter().flat_map(partitions).cloned().collect();
            let touched: Vec<String> = touched.into_iter().collect();
            FileSystemView::load_at(table, timeline, at, Some(&touched)).await?
        }
    };
    if let Some((partition, file_id)) = missing(&view, at, &later) {
        return Err(BackError::Cleaned { instant: at.to_string(), partition, file_id }.into());
    }
    match about_to_go(table, timeline, names(&view)).await? {
        None => Ok(view),
        Some((clean, file)) => Err(BackError::CleanPending { instant: at.to_string(), clean, file }.into()),
    }
}

fn names(view: &FileSystemView) -> impl Iterator<Item = String> {
    view.partitions.values().flatten().flat_map(|slice| {
        let base = slice.base_file.iter().map(|base| base.name.clone());
        base.chain(slice.log_files.iter().map(|log| log.name.to_string()))
    })
}

/// One of these files that a clean which is pending is going to delete, and the clean: ours spares what is needed by then,
/// Spark's does not.
pub(super) async fn about_to_go(
    table: &Table,
    timeline: &Timeline,
    names: impl Iterator<Item = String>,
) -> Result<Option<(String, String)>> {
    let doomed = clean::doomed(table, timeline).await?;
    if doomed.is_empty() {
        return Ok(None);
    }
    Ok(names.into_iter().find_map(|name| Some((doomed.get(&name)?.to_string(), name))))
}

fn partitions(metadata: &CommitMetadata) -> impl Iterator<Item = &String> {
    let replaced = metadata.partition_to_replace_file_ids.iter().flat_map(BTreeMap::keys);
    metadata.partition_to_write_stats.keys().chain(replaced)
}

/// A file group of which a slice is gone.
fn missing(view: &FileSystemView, at: &InstantTime, later: &[CommitMetadata]) -> Option<FileGroupId> {
    let slices: HashMap<(&str, &str), &FileSlice> =
        view.partitions.values().flatten().map(|s| ((s.partition.as_str(), s.file_id.as_str()), &**s)).collect();
    let mut born = BTreeSet::new();
    for metadata in later {
        for stat in metadata.stats() {
            let group = (stat.partition_path.as_str(), stat.file_id.as_str());
            let Some(before) = InstantTime::parse(&stat.prev_commit) else {
                born.insert(group);
                continue;
            };
            if before > *at || born.contains(&group) {
                continue;
            }
            let is_whole = |slice: &&FileSlice| {
                let base = stat.log.as_ref().map(|log| log.base_file.as_str()).filter(|base| !base.is_empty());
                match (before == slice.base_instant, base) {
                    (true, Some(base)) => slice.base_file.as_ref().is_some_and(|file| file.name == base),
                    (true, None) => stat.log.is_some() || stat.compaction.is_some() || slice.base_file.is_some(),
                    (false, _) => slice.base_instant > before || slice.pending_compaction.as_ref() == Some(&before),
                }
            };
            if slices.get(&group).filter(|slice| is_whole(slice)).is_none() {
                return Some((group.0.to_string(), group.1.to_string()));
            }
        }
        for (partition, file_ids) in metadata.partition_to_replace_file_ids.iter().flatten() {
            for file_id in file_ids {
                let group = (partition.as_str(), file_id.as_str());
                if !born.contains(&group) && !slices.contains_key(&group) {
                    return Some((partition.clone(), file_id.clone()));
                }
            }
        }
    }
    None
}
