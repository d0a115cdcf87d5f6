//! Hudi's plan of a rollback, written and read.

use super::super::{Error, Result};
use super::leftovers::{DataFile, Leftovers, LogSlice, Scope};
use crate::table::{Instant, InstantInfo, InstantTime, LogFileName, RollbackPlan, RollbackRequest, Table, name_of};
use std::collections::BTreeMap;

/// The plan that Hudi's marker-based strategy makes: one request a file, or a slice.
pub(super) fn make(table: &Table, instant: &Instant, leftovers: &Leftovers) -> RollbackPlan {
    let delete = |file: &DataFile| RollbackRequest {
        partition_path: file.partition.clone(),
        file_id: Some(file.file_id.clone()),
        latest_base_instant: Some(base_instant(file).unwrap_or_else(|| instant.time.clone()).to_string()),
        files_to_be_deleted: vec![absolute(table, file)],
        log_blocks_to_be_deleted: Some(BTreeMap::new()),
    };
    let cancel = |slice: &LogSlice| RollbackRequest {
        partition_path: slice.partition.clone(),
        file_id: Some(slice.file_id.clone()),
        latest_base_instant: Some(slice.base_instant.to_string()),
        files_to_be_deleted: Vec::new(),
        log_blocks_to_be_deleted: Some(log_blocks(slice)),
    };
    let requests = leftovers.slices.iter().map(cancel).chain(leftovers.files.iter().map(delete));
    RollbackPlan {
        instant_to_rollback: Some(InstantInfo::from(instant)),
        rollback_requests: Some(requests.collect()),
        version: Some(1),
    }
}

/// Of a log file; it may be another than the write's.
fn base_instant(file: &DataFile) -> Option<InstantTime> {
    LogFileName::parse(&file.name).map(|log| log.base_instant)
}

/// As the marker-based strategy has them: it does not look at sizes, and says 1.
pub(super) fn log_blocks(slice: &LogSlice) -> BTreeMap<String, i64> {
    slice.logs.iter().map(|name| (name.clone(), 1)).collect()
}

/// As Hudi writes it into plans: on local disks without a scheme.
pub(super) fn absolute(table: &Table, file: &DataFile) -> String {
    let uri = table.storage.absolute(&file.path());
    uri.strip_prefix("file:").map(str::to_string).unwrap_or(uri)
}

/// What a plan, Hudi's or ours, undoes. Only partitions and names count, so that a table may have moved since.
pub(super) fn read(plan: &RollbackPlan, target: &Instant, scope: Scope, path: &str) -> Result<Leftovers> {
    let malformed = |why: String| Error::RollbackPlan { path: path.to_string(), why };
    let mut leftovers = Leftovers::default();
    for request in plan.rollback_requests.iter().flatten() {
        for name in request.files_to_be_deleted.iter().map(|file| name_of(file)) {
            // Hudi's listing of a compaction's files names log files on its instant too, which may be committed by now.
            if scope == Scope::Failed && LogFileName::parse(name).is_some() {
                continue;
            }
            // On a slice that is none; whose it is, is looked at before it goes.
            let of_lost_slice = || {
                let (file_id, partition) = (LogFileName::parse(name)?.file_id, request.partition_path.clone());
                Some(DataFile { partition, name: name.to_string(), file_id })
            };
            let file = DataFile::of(target, scope, &request.partition_path, name).or_else(of_lost_slice);
            let why = || format!("`{name:.200}` is no file of {} alone", target.time);
            leftovers.files.push(file.ok_or_else(|| malformed(why()))?);
        }
        let Some(blocks) = request.log_blocks_to_be_deleted.as_ref().filter(|blocks| !blocks.is_empty()) else {
            continue;
        };
        let base_instant = request.latest_base_instant.as_deref().and_then(InstantTime::parse);
        let file_id = request.file_id.clone().filter(|id| !id.is_empty());
        let (Some(base_instant), Some(file_id)) = (base_instant, file_id) else {
            let (partition, first) = (&request.partition_path, blocks.keys().next());
            let what = first.map_or(partition.as_str(), |name| name_of(name));
            return Err(malformed(format!("the slice of log file `{what:.200}` is not said")));
        };
        // Where Hudi knew the slice alone, the key is a folder.
        let names = blocks.keys().map(|name| name_of(name)).filter(|name| LogFileName::parse(name).is_some());
        let logs = names.map(str::to_string).collect();
        leftovers.add(LogSlice { partition: request.partition_path.clone(), file_id, base_instant, logs });
    }
    Ok(leftovers)
}
