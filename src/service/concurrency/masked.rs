//! Rows that readers would not see: a reader of a slice's log files stops at the first block whose instant is greater than the
//! newest commit's (log-file.md §10.1), and passes over all that lies behind.
//!
//! Blocks of another writer that began later, or of a rollback, may lie before ours: their file took the version before.
//! They are harmless once something greater has been committed, which may be never. Hudi does not look for them.

use crate::service::{Error, Result};
use crate::table::log_file::LogReader;
use crate::table::{InstantTime, LogFileName, Table, Timeline, WriteStat, in_folder, name_of};
use std::collections::{BTreeMap, BTreeSet};

/// Fails where a log file that came between what the write knew and what it has written has blocks of a greater instant.
/// Costs one listing a partition, and only where there may be such a block.
pub(super) async fn check(table: &Table, own: &InstantTime, now: &Timeline, stats: &[&WriteStat]) -> Result<()> {
    if !now.instants.iter().any(|instant| instant.time > *own) {
        return Ok(());
    }
    // By partition and file id: the first file that we have written, and all that were known then.
    let mut groups: BTreeMap<&str, BTreeMap<String, (LogFileName, BTreeSet<&str>)>> = BTreeMap::new();
    for stat in stats {
        let Some(log) = &stat.log else { continue };
        let Some(name) = stat.path.as_deref().and_then(|path| LogFileName::parse(name_of(path))) else { continue };
        let group = groups.entry(&stat.partition_path).or_default().entry(name.file_id.clone());
        let (first, known) = group.or_insert_with(|| (name.clone(), BTreeSet::new()));
        *first = name.min(first.clone());
        known.extend(log.log_files.iter().map(String::as_str));
    }
    for (partition, groups) in groups {
        for file in table.storage.list(partition).await?.files {
            let Some(name) = LogFileName::parse(name_of(&file.path)) else { continue };
            let Some((first, known)) = groups.get(&name.file_id) else { continue };
            if name >= *first || known.contains(name_of(&file.path)) {
                continue;
            }
            let (storage, path) = (table.storage.clone(), in_folder(partition, &name.to_string()));
            let looked = tokio::task::spawn_blocking(move || newest_block(LogReader::open(&storage, &path, file.size)));
            let newest =
                looked.await.map_err(|e| Error::Panicked { doing: "look at log files", why: e.to_string() })??;
            if let Some(newest) = newest.filter(|newest| newest > own) {
                return Err(Error::WriteConflict {
                    instant: own.to_string(),
                    other: newest.to_string(),
                    action: "write or rollback".to_string(),
                    what: format!("has blocks in {} before ours, which readers would not see behind them", file.path),
                });
            }
        }
    }
    Ok(())
}

/// On a blocking thread. A block that is still being written, or was torn, is no block to any reader.
fn newest_block(blocks: LogReader) -> Result<Option<InstantTime>> {
    let mut newest = None;
    for block in blocks {
        newest = newest.max(block?.header.instant().cloned());
    }
    Ok(newest)
}
