//! Keys that come back after a log has deleted them.
//!
//! Under a rule that compares with stored rows a record that is appended after a delete of its key is measured against the base
//! file's row all the same, and the row that is gone may win (log-file.md §10); where the delete has no ordering value, Hudi
//! 1.0.2 cannot even read the slice. So whoever appends must know.

use super::key_table::KeyTable;
use super::look_up::Hit;
use super::{Merging, Result, Tagged, is_deleted, pool};
use crate::record::RowRef;
use crate::slice;
use crate::table::{FileSlice, Table};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Marks the hits whose key the slice's log has deleted. Costs a look at each block; no record is read where there are no
/// delete blocks.
pub(super) fn mark(
    table: &Table,
    merging: &Merging,
    slice: &FileSlice,
    keys: &KeyTable,
    hits: &mut [Hit],
) -> Result<()> {
    let deleted = slice::deleted_keys(table, &merging.timeline, slice, &merging.options)?;
    for hit in hits {
        hit.deleted = deleted.contains(keys.key(hit.position));
    }
    Ok(())
}

/// Fills in [`Tagged::revived`], for an index that looks into no file. `merging`: `None` for a table without log files.
pub async fn find_revived(
    table: &Table,
    merging: Option<Merging>,
    workers: usize,
    mut tagged: Tagged,
) -> Result<Tagged> {
    let has_logs = tagged.groups.iter().any(|slice| !slice.log_files.is_empty());
    let compares = merging.filter(|merging| has_logs && merging.options.rule.needs_stored_ordering());
    let Some(merging) = compares else { return Ok(tagged) };
    let mut coming: Vec<Vec<RowRef>> = vec![Vec::new(); tagged.groups.len()];
    for row in &tagged.rows {
        if let Some(group) =
            row.group.filter(|_| !is_deleted(&tagged.batches[row.row.batch as usize], row.row.row as usize))
        {
            coming[group as usize].push(row.row);
        }
    }
    let batches = Arc::new(std::mem::take(&mut tagged.batches));
    let groups = tagged.groups.iter().cloned().zip(coming).zip(0u32..);
    let tasks = groups.filter(|((slice, rows), _)| !slice.log_files.is_empty() && !rows.is_empty()).collect();
    let (table, keys_of) = (table.clone(), batches.clone());
    let merging = Merging { options: merging.options.keys_only(&[]), ..merging };
    let work = move |((slice, rows), group): ((Arc<FileSlice>, Vec<RowRef>), u32)| {
        let deleted = slice::deleted_keys(&table, &merging.timeline, &slice, &merging.options)?;
        let comes_back = |row: &RowRef| deleted.contains(keys_of[row.batch as usize].keys.value(row.row as usize));
        Ok::<_, super::Error>(rows.iter().any(comes_back).then_some(group))
    };
    let revived = pool::run(workers, &CancellationToken::new(), tasks, work).await?;
    tagged.batches = Arc::unwrap_or_clone(batches);
    tagged.revived.extend(revived.into_iter().flatten());
    Ok(tagged)
}
