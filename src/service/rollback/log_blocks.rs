//! Rollback blocks: what makes readers pass over the blocks of a failed write, which stay where they are
//! (table-services.md §6.4).

use super::super::Result;
use super::CONCURRENCY;
use super::leftovers::LogSlice;
use crate::storage;
use crate::table::log_file::{BlockHeader, BlockKind, create_log_file, encode_block};
use crate::table::{self, Instant, InstantTime, LogFileName, Marker, MarkerType, Markers, Table, in_folder};
use futures::stream::{StreamExt, TryStreamExt};
use std::collections::{BTreeSet, HashMap};

/// `HoodieLogFormat.UNKNOWN_WRITE_TOKEN` of Hudi 0.15, which its rollbacks write.
const WRITE_TOKEN: &str = "1-0-1";

/// A log file that this rollback has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Appended {
    pub partition: String,
    pub name: LogFileName,
    pub size: u64,
}

impl Appended {
    /// Relative to the table.
    pub(super) fn path(&self) -> String {
        in_folder(&self.partition, &self.name.to_string())
    }
}

/// A block in a new log file of each slice, as Hudi does even where no file of the write has come to be: one that an
/// object store shows late would come behind it all the same.
pub(super) async fn append(
    table: &Table,
    time: &InstantTime,
    target: &Instant,
    slices: &[LogSlice],
) -> Result<Vec<Appended>> {
    if slices.is_empty() {
        return Ok(Vec::new());
    }
    let header = BlockHeader::of_rollback(time, &target.time);
    let block = encode_block(BlockKind::Command, &header, &[])
        .map_err(|error| table::Error::LogWrite { path: table.storage.display(""), error })?;
    let newest = newest_versions(table, slices).await?;
    let markers = Markers::new(&table.storage, time);
    let appends = slices.iter().map(|slice| {
        let version = newest.get(&(&slice.partition, &slice.file_id, &slice.base_instant)).copied().unwrap_or(0);
        let first = LogFileName {
            file_id: slice.file_id.clone(),
            base_instant: slice.base_instant.clone(),
            version: version.saturating_add(1),
            token: Some(WRITE_TOKEN.to_string()),
            cdc: false,
        };
        let (block, markers) = (block.clone(), &markers);
        async move {
            for log in &slice.logs {
                table.storage.discard_uploads(&in_folder(&slice.partition, log)).await?;
            }
            let mark =
                async |name: &LogFileName| mark(table, markers, &in_folder(&slice.partition, &name.to_string())).await;
            let created = create_log_file(&table.storage, &slice.partition, first, vec![block], mark).await;
            created.map(|(name, size)| Appended { partition: slice.partition.clone(), name, size })
        }
    });
    let appended: Vec<Appended> = futures::stream::iter(appends).buffered(CONCURRENCY).try_collect().await?;
    Ok(appended)
}

/// A marker that is there already is of this very rollback, before a crash.
async fn mark(table: &Table, markers: &Markers, path: &str) -> table::Result<()> {
    table.storage.discard_uploads(path).await?;
    match markers.create(&Marker { path: path.to_string(), marker_type: MarkerType::Append }).await {
        Err(table::Error::Storage(storage::Error::AlreadyExists { .. })) => Ok(()),
        other => other,
    }
}

/// By partition, file id and base instant; none for slices that have no log file yet.
async fn newest_versions<'a>(
    table: &Table,
    slices: &'a [LogSlice],
) -> Result<HashMap<(&'a String, &'a String, &'a InstantTime), u32>> {
    let partitions: BTreeSet<&String> = slices.iter().map(|slice| &slice.partition).collect();
    let listings =
        partitions.into_iter().map(|p| async move { Ok::<_, storage::Error>((p, table.storage.list(p).await?)) });
    let listings: Vec<_> = futures::stream::iter(listings).buffer_unordered(CONCURRENCY).try_collect().await?;
    let mut newest_of: HashMap<(&str, String, InstantTime), u32> = HashMap::new();
    for (partition, listing) in &listings {
        let names =
            listing.files.iter().filter_map(|f| LogFileName::parse(f.path.rsplit('/').next().unwrap_or(&f.path)));
        for name in names {
            let newest = newest_of.entry((partition.as_str(), name.file_id, name.base_instant)).or_default();
            *newest = name.version.max(*newest);
        }
    }
    let newest = slices.iter().filter_map(|slice| {
        let key = (slice.partition.as_str(), slice.file_id.clone(), slice.base_instant.clone());
        let version = newest_of.get(&key)?;
        Some(((&slice.partition, &slice.file_id, &slice.base_instant), *version))
    });
    Ok(newest.collect())
}
