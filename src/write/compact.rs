//! A file slice becomes a base file: what `slice` merges is written down, meta columns as they were stored.

use super::data_file::{DataFile, Run};
use super::merge::with_file_name;
use super::row_groups::{join_small, rows_to_join};
use super::status::WriteStatus;
use super::{BATCH_ROWS, Error, Result, WriteContext};
use crate::index::pool;
use crate::slice::{self, LogTotals, MergedBatch, Part, SliceOptions, WholeGroups};
use crate::storage::fault_point;
use crate::table::base_file::Reader;
use crate::table::{CompactionTotals, FileSlice, MarkerType};
use std::sync::Arc;

/// Writes the base file of each slice under the context's instant, `workers` at a time; `memory`: bytes for log rows, of
/// one slice. A slice of which nothing is left becomes a file without rows, since what is written on the compaction's
/// instant needs a base file. After the first failure no file is begun any more.
pub async fn compact(
    context: Arc<WriteContext>,
    slices: Vec<FileSlice>,
    workers: usize,
    memory: usize,
) -> Result<Vec<WriteStatus>> {
    let options = SliceOptions {
        schema: context.schema.with_meta_columns(),
        rule: context.rule,
        ordering_field: context.ordering_field.clone(),
        memory,
        batch_rows: BATCH_ROWS,
    };
    let run = Arc::new(Run::new(context));
    pool::run(workers, &run.stop.clone(), slices, move |slice| {
        run.check_cancelled()?;
        let status = fold(&run, &slice, &options)?;
        fault_point("in-compaction");
        Ok::<_, Error>(status)
    })
    .await
}

fn fold(run: &Arc<Run>, slice: &FileSlice, options: &SliceOptions) -> Result<WriteStatus> {
    let (kind, prev_commit) = match &slice.base_file {
        Some(base) => (MarkerType::Merge, base.instant.to_string()),
        None => (MarkerType::Create, "null".to_string()),
    };
    let folded = || -> Result<DataFile> {
        let mut merged = slice::merge(&run.context.table, &run.context.timeline, slice, options)?;
        let mut file = DataFile::create(run, &slice.partition, &slice.file_id, kind)?;
        file.stat().prev_commit = prev_commit;
        let groups = match merged.base() {
            Some(base) => {
                file.inherits(base, !merged.deletes_any());
                whole_groups(&file, base, run.options().block_size)
            }
            None => WholeGroups::default(),
        };
        while let Some(part) = merged.next_part(&groups)? {
            match part {
                Part::Rows(batch) => write(&mut file, &batch)?,
                Part::RowGroup { base, group, patch } => {
                    file.copy(&base, group, &patch)?;
                    file.stat().num_update_writes += patch.rows.len() as u64;
                }
            }
        }
        file.stat().compaction = Some(totals(&merged.totals()));
        Ok(file)
    };
    let group = format!("{}/{}", slice.partition, slice.file_id);
    folded().map_err(|e| e.in_file("compact file group", group.trim_start_matches('/')))?.finish()
}

fn write(file: &mut DataFile, batch: &MergedBatch) -> Result<()> {
    let rows = with_file_name(file, &batch.rows)?;
    match batch.inserts {
        0 => file.write_stored(&rows)?,
        _ => file.write(&rows)?,
    }
    let stat = file.stat();
    stat.num_inserts += batch.inserts;
    stat.num_update_writes += batch.updates;
    stat.num_deletes += batch.deletes;
    Ok(())
}

/// The row groups of the base file that stay what they are.
fn whole_groups(file: &DataFile, base: &Reader, block_size: u64) -> WholeGroups {
    let groups = base.row_groups();
    if !file.takes_row_groups_of(base) {
        return WholeGroups::default();
    }
    let joined = join_small(&groups, &vec![true; groups.len()], 0, block_size);
    let last_joins = groups.last().map_or(0, |last| rows_to_join(last, block_size));
    WholeGroups { whole: joined.into_iter().map(|joined| !joined).collect(), last_joins }
}

fn totals(read: &LogTotals) -> CompactionTotals {
    CompactionTotals {
        log_records: read.log_records,
        log_files: read.log_files,
        log_bytes: read.log_bytes,
        updated_records: read.updated_records,
        log_blocks: read.log_blocks,
        corrupt_blocks: read.corrupt_blocks,
        rollback_blocks: read.rollback_blocks,
        scan_ms: read.scan_ms,
    }
}
