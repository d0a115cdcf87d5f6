//! What a plan, Hudi's or ours, means on storage: the slices as they were when it was made.

use crate::service::{Error, Result};
use crate::table::{
    BaseFile, CompactionOperation, CompactionPlan, FileSlice, InstantTime, LogFile, LogFileName, Table,
};
use crate::table::{in_folder, name_of, parse_base_file};
use std::collections::{BTreeMap, HashMap};

/// The slices of a plan, the largest first. Costs one listing a partition. `path`: of the plan, for messages.
pub(super) async fn slices(table: &Table, plan: &CompactionPlan, path: &str) -> Result<Vec<FileSlice>> {
    let unreadable = |why: String| Error::CompactionPlan { path: path.to_string(), why };
    let mut by_partition: BTreeMap<&str, Vec<&CompactionOperation>> = BTreeMap::new();
    for operation in plan.operations.iter().flatten() {
        if operation.bootstrap_file_path.as_deref().is_some_and(|path| !path.is_empty()) {
            return Err(unreadable("it has a bootstrapped file, which only Hudi can merge".to_string()));
        }
        by_partition.entry(operation.partition_path.as_deref().unwrap_or_default()).or_default().push(operation);
    }
    let mut slices = Vec::new();
    // Paths of version 1 were whole ones, later they are names. Only names count, so that a table may have moved since.
    for (partition, operations) in by_partition {
        let listed = table.storage.list(partition).await?.files;
        let sizes: HashMap<&str, u64> = listed.iter().map(|f| (name_of(&f.path), f.size)).collect();
        let size_of = |name: &str| {
            let missing = || Error::CompactionFile { path: table.storage.display(&in_folder(partition, name)) };
            sizes.get(name).copied().ok_or_else(missing)
        };
        for operation in operations {
            slices.push(slice(partition, operation, &size_of, &unreadable)?);
        }
    }
    slices.sort_by_key(|slice| std::cmp::Reverse(bytes(slice)));
    Ok(slices)
}

fn slice(
    partition: &str,
    operation: &CompactionOperation,
    size_of: &dyn Fn(&str) -> Result<u64>,
    unreadable: &dyn Fn(String) -> Error,
) -> Result<FileSlice> {
    let CompactionOperation { base_instant_time, delta_file_paths, data_file_path, file_id, .. } = operation;
    let file_id = file_id.clone().ok_or_else(|| unreadable("an operation names no file group".to_string()))?;
    let base_instant = base_instant_time.as_deref().and_then(InstantTime::parse);
    let base_instant = base_instant.ok_or_else(|| unreadable(format!("group {file_id} has no base instant")))?;
    let base_file = match data_file_path.as_deref().filter(|path| !path.is_empty()) {
        None => None,
        Some(path) => {
            let name = name_of(path);
            let foreign = || unreadable(format!("`{name:.200}` is no base file of group {file_id}"));
            let (_, instant) = parse_base_file(name).filter(|(id, _)| **id == file_id).ok_or_else(foreign)?;
            let (partition, name, size) = (partition.to_string(), name.to_string(), size_of(name)?);
            Some(BaseFile { partition, name, file_id: file_id.clone(), instant, size })
        }
    };
    let mut log_files = Vec::new();
    for path in delta_file_paths.iter().flatten() {
        let foreign = || unreadable(format!("`{:.200}` is no log file of group {file_id}", name_of(path)));
        let name = LogFileName::parse(name_of(path)).filter(|name| name.file_id == file_id).ok_or_else(foreign)?;
        log_files.push(LogFile { size: size_of(name_of(path))?, name });
    }
    log_files.sort_by(|a, b| a.name.cmp(&b.name));
    let partition = partition.to_string();
    Ok(FileSlice { partition, file_id, base_instant, base_file, log_files, pending_compaction: None })
}

fn bytes(slice: &FileSlice) -> u64 {
    let logs = slice.log_files.iter().map(|log| log.size).sum::<u64>();
    logs.saturating_add(slice.base_file.as_ref().map_or(0, |base| base.size))
}
