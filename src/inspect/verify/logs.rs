//! The log files of one slice, block by block.

use super::super::Result;
use super::base_file::fault;
use super::expected::Group;
use super::finding::{Findings, Kind};
use super::keys::Feed;
use super::snapshot::Snapshot;
use crate::slice::{self, Fault};
use crate::storage;
use crate::table::log_file::{Block, BlockError, BlockKind, LogReader};
use crate::table::{self, FileSlice, Table};
use arrow::array::AsArray;

/// A block that is none, so far.
struct Torn {
    path: String,
    offset: u64,
    bytes: u64,
}

/// Looks at every block; how many there are.
pub(super) fn check(
    table: &Table,
    snapshot: &Snapshot,
    slice: &FileSlice,
    expected: Option<&Group>,
    findings: &mut Findings,
) -> Result<u64> {
    let (mut blocks, mut torn) = (0, Vec::new());
    for log in &slice.log_files {
        let path = slice.log_path(log);
        let before = blocks;
        for block in LogReader::open(&table.storage, &path, log.size) {
            match block {
                Ok(block) => {
                    blocks += 1;
                    take(&path, &block, &mut torn);
                }
                Err(error) => {
                    fault(error, &path, findings)?;
                    blocks += 1;
                    break;
                }
            }
        }
        let name = log.name.to_string();
        let is_committed = expected.is_some_and(|group| group.logs.iter().any(|written| written.name == name));
        if blocks == before && is_committed {
            findings.add(Kind::LogBlock, &path, "it has no block, and a commit wrote it");
        }
    }
    for Torn { path, offset, bytes } in torn {
        let told = format!("{bytes} bytes at byte {offset} are no block: readers pass over them");
        let kind = if snapshot.has_open_writes { Kind::TornByOpenWrite } else { Kind::LogBlock };
        findings.add(kind, path, told);
    }
    Ok(blocks)
}

/// A rollback takes what is torn with it, as Hudi's readers do.
fn take(path: &str, block: &Block, torn: &mut Vec<Torn>) {
    match block.kind {
        BlockKind::Corrupt => {
            let (offset, bytes) = (block.offset(), block.content_size());
            torn.push(Torn { path: path.to_string(), offset, bytes });
        }
        BlockKind::Command => torn.clear(),
        _ => {}
    }
}

/// Gives away the keys of the merged slice; its rows.
pub(super) fn merged_keys(
    table: &Table,
    snapshot: &Snapshot,
    slice: &FileSlice,
    mut take: impl FnMut(&str) -> Result<()>,
    findings: &mut Findings,
) -> Result<u64> {
    let Some(options) = &snapshot.merging else { return Ok(0) };
    let mut rows = 0;
    let batches = match slice::merge(table, &snapshot.timeline, slice, options) {
        Ok(batches) => batches,
        Err(error) => return tell(table, error, slice, findings).map(|()| 0),
    };
    for batch in batches {
        let batch = match batch {
            Ok(batch) => batch.rows,
            Err(error) => {
                tell(table, error, slice, findings)?;
                break;
            }
        };
        rows += batch.num_rows() as u64;
        let keys = batch.column_by_name(slice::RECORD_KEY).and_then(|keys| keys.as_string_opt::<i32>());
        for key in keys.into_iter().flatten().flatten() {
            take(key)?;
        }
    }
    Ok(rows)
}

/// The same for who compares them all.
pub(super) fn feed(
    table: &Table,
    snapshot: &Snapshot,
    slice: &FileSlice,
    keys: &mut Feed,
    findings: &mut Findings,
) -> Result<u64> {
    let rows = merged_keys(table, snapshot, slice, |key| keys.add(key), findings)?;
    keys.finish()?;
    Ok(rows)
}

fn tell(table: &Table, error: slice::Error, slice: &FileSlice, findings: &mut Findings) -> Result<()> {
    let group = format!("{}/{}", slice.partition, slice.file_id);
    let group = group.trim_start_matches('/');
    match error {
        slice::Error::Table(error) => {
            let path = path_in(&error).map_or_else(|| group.to_string(), |path| relative(table, &path));
            // A block that was told of before is not told of again.
            match findings.has_faults() {
                true => Ok(()),
                false => fault(error, &path, findings),
            }
        }
        slice::Error::Log { path, offset, fault } => {
            let kind = match &*fault {
                Fault::Block(BlockError::Unsupported { .. }) => Kind::NotRead,
                Fault::Parquet(table::Error::Storage(e)) if e.is_retryable() => return Err(e_of(*fault)),
                _ => Kind::LogBlock,
            };
            findings.add(kind, relative(table, &path), format!("block at byte {offset}: {fault}"));
            Ok(())
        }
        slice::Error::Group { fault, .. } => {
            findings.add(Kind::NotRead, group, format!("its logs are not merged: {fault}"));
            Ok(())
        }
    }
}

fn e_of(fault: Fault) -> super::super::Error {
    match fault {
        Fault::Parquet(e) => e.into(),
        other => super::super::Error::Internal { doing: "read a log block", why: other.to_string() },
    }
}

/// Below the table.
fn relative(table: &Table, path: &str) -> String {
    let root = table.storage.display("");
    path.strip_prefix(&root).map_or(path, |path| path.trim_start_matches('/')).to_string()
}

/// The file that an error is about.
fn path_in(error: &table::Error) -> Option<String> {
    match error {
        table::Error::Storage(storage::Error::NotFound { path, .. } | storage::Error::Io { path, .. })
        | table::Error::LogBlock { path, .. } => Some(path.clone()),
        _ => None,
    }
}
