//! Which files a failed write has made, or was about to make.

use super::super::{Error, Result};
use crate::table::{self, Instant, InstantInfo, MarkerType, Markers, RollbackPlan, RollbackRequest, State, Table};
use crate::table::{LogFileName, parse_base_file};
use std::collections::BTreeMap;

/// A base file of the failed write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DataFile {
    pub partition: String,
    pub name: String,
}

impl DataFile {
    /// `None` unless the name is that of a base file of this very instant: nothing else is ever deleted.
    fn of(instant: &Instant, partition: &str, name: &str) -> Option<DataFile> {
        let (_, time) = parse_base_file(name)?;
        (time == instant.time).then(|| DataFile { partition: partition.to_string(), name: name.to_string() })
    }

    /// Relative to the table.
    pub(super) fn path(&self) -> String {
        if self.partition.is_empty() { self.name.clone() } else { format!("{}/{}", self.partition, self.name) }
    }
}

/// By the markers; by looking at every folder where they cannot be read, or are gone although data may be there.
pub(super) async fn files_of(table: &Table, instant: &Instant) -> Result<Vec<DataFile>> {
    if instant.state == State::Requested {
        return Ok(Vec::new());
    }
    let markers = match Markers::new(&table.storage, &instant.time).list().await {
        Ok(markers) => markers,
        Err(table::Error::Marker { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    if markers.iter().any(|marker| marker.marker_type == MarkerType::Append) {
        return Err(Error::MergeOnRead { instant: instant.time.to_string(), action: instant.action.to_string() });
    }
    let marked = markers.iter().map(|marker| data_file(instant, &marker.path)).collect::<Option<Vec<_>>>();
    match marked {
        Some(files) if !files.is_empty() => Ok(files),
        _ => {
            let all = table.storage.list_recursive("", &|folder| folder != ".hoodie").await?;
            Ok(all.iter().filter_map(|file| data_file(instant, &file.path)).collect())
        }
    }
}

fn data_file(instant: &Instant, path: &str) -> Option<DataFile> {
    let (partition, name) = path.rsplit_once('/').unwrap_or(("", path));
    DataFile::of(instant, partition, name)
}

/// The plan that Hudi's marker-based strategy makes: one request a file.
pub(super) fn make(table: &Table, instant: &Instant, files: &[DataFile]) -> RollbackPlan {
    let request = |file: &DataFile| RollbackRequest {
        partition_path: file.partition.clone(),
        file_id: parse_base_file(&file.name).map(|(file_id, _)| file_id.to_string()),
        latest_base_instant: Some(instant.time.to_string()),
        files_to_be_deleted: vec![absolute(table, file)],
        log_blocks_to_be_deleted: Some(BTreeMap::new()),
    };
    RollbackPlan {
        instant_to_rollback: Some(InstantInfo::from(instant)),
        rollback_requests: Some(files.iter().map(request).collect()),
        version: Some(1),
    }
}

/// As Hudi writes it into plans: on local disks without a scheme.
pub(super) fn absolute(table: &Table, file: &DataFile) -> String {
    let uri = table.storage.absolute(&file.path());
    uri.strip_prefix("file:").map(str::to_string).unwrap_or(uri)
}

/// The files of a plan, Hudi's or ours. Only partition and name count, so that a table may have moved since.
pub(super) fn read(plan: &RollbackPlan, target: &Instant, path: &str) -> Result<Vec<DataFile>> {
    let mut files = Vec::new();
    for request in plan.rollback_requests.iter().flatten() {
        let names = request.files_to_be_deleted.iter().map(|file| file.rsplit('/').next().unwrap_or(file));
        let has_logs = request.log_blocks_to_be_deleted.as_ref().is_some_and(|logs| !logs.is_empty());
        if has_logs || names.clone().any(|name| LogFileName::parse(name).is_some()) {
            return Err(Error::MergeOnRead { instant: target.time.to_string(), action: target.action.to_string() });
        }
        for name in names {
            let why = || format!("`{name:.200}` is no base file of {}", target.time);
            let file = DataFile::of(target, &request.partition_path, name);
            files.push(file.ok_or_else(|| Error::RollbackPlan { path: path.to_string(), why: why() })?);
        }
    }
    Ok(files)
}
