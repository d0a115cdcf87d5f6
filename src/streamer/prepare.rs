//! Everything of a round that only reads: key, precombine, filter, tag. The table is made here, where there is none yet.

use super::input::{Input, stream_of, with_hidden};
use super::round::{Schemas, Streamer, Work};
use super::{Error, Result, open};
use crate::config::Operation;
use crate::index::{self, Merging, OwnRows, StoredOrdering, TagOptions, Tagged};
use crate::observe::{Progress, RoundReport, Stages};
use crate::record::{self, KeyGenerator, KeyedBatch, RecordOptions, RowRef};
use crate::schema::TableSchema;
use crate::slice::SliceOptions;
use crate::source::{POSITION_COLUMN, TOMBSTONE_COLUMN};
use crate::table::{FileSystemView, Table, Timeline};
use crate::write::BATCH_ROWS;

impl Streamer {
    /// Key, precombine, filter and tag: everything that only reads. The table is created here if there is none yet.
    pub(super) async fn prepare(
        &mut self,
        timeline: &Timeline,
        schemas: &Schemas,
        input: Input,
        progress: &Progress,
        stages: &mut Stages,
        report: &mut RoundReport,
    ) -> Result<Work> {
        let combines = self.config.operation == Operation::Upsert || self.config.filter_dupes;
        let ordering_field = match combines {
            true => Some(open::required_ordering_field(&self.config, self.table.as_ref(), &schemas.writer)?),
            false => None,
        };
        let newest = timeline.last_completed_write().map(|instant| &instant.time);
        let prefixed = match (&self.table, &self.key_prefix) {
            (None, _) => false,
            (Some(_), Some((at, prefixed))) if newest == Some(at) => *prefixed,
            (Some(table), _) => open::complex_single_key_prefixed(&self.config, table, timeline).await?,
        };
        self.key_prefix = newest.map(|newest| (newest.clone(), prefixed));
        let rows_schema = with_hidden(&schemas.writer.arrow, &input.transformed.schema);
        let options = RecordOptions {
            ordering_field,
            complex_single_key_prefixed: prefixed,
            position_column: Some(POSITION_COLUMN),
            tombstone_column: Some(TOMBSTONE_COLUMN),
        };
        let keys = input.sifting(KeyGenerator::new(&self.config.keys, options.clone(), &rows_schema)?);

        // Which file group a row goes to is asked also where no key is looked up.
        let bucketed = self.config.index.buckets.is_some();
        if self.config.operation == Operation::BulkInsert && !combines && !bucketed {
            if self.config.run.dry_run {
                input.collect(&keys, &self.cancel).await?;
            } else {
                self.ensure_table(&schemas.writer).await?;
            }
            let rows = input.streams()?;
            return Ok(Work::BulkInsert { rows, keys: Box::new(keys), input });
        }

        stages.enter("read");
        progress.stage("read");
        let batches = input.collect(&keys, &self.cancel).await?;
        self.pace.holds(batches.iter().map(|batch| batch.memory() as u64).sum());
        check_nesting(&batches, self.config.keys.partition_fields.len())?;

        stages.enter("precombine");
        let global = self.config.index.index_type.is_global();
        let (batches, rows) = self.precombine(batches, combines, global, report).await?;

        stages.enter("tag");
        progress.stage("tag");
        if !self.config.run.dry_run {
            self.ensure_table(&schemas.writer).await?;
        }
        let Some(table) = &self.table else { return Ok(Work::Nothing) };
        let partitions = (!global).then(|| partitions_of(&batches));
        let view = FileSystemView::load_kept(table, timeline, partitions.as_deref()).await?;
        let merge_on_read = table.properties.is_merge_on_read();
        let merging = merge_on_read.then(|| self.merging(table, timeline, &schemas.writer));
        let buckets = self.config.index.buckets.as_ref();
        if let Some(buckets) = buckets.filter(|_| !self.buckets_checked) {
            self.buckets_checked = index::check_buckets(table, &view, buckets, self.config.write.workers).await?;
        }
        // By its bucket alone nobody knows whether a key is stored.
        let by_bucket = buckets.filter(|_| !self.config.filter_dupes);
        let tagged = if let Some(buckets) = by_bucket {
            let tagged = index::tag_buckets(&view, buckets, batches, rows).await?;
            index::find_revived(table, merging.clone(), self.config.write.workers, tagged).await?
        } else if combines {
            let options = TagOptions {
                index: self.config.index.clone(),
                stored_ordering: open::known_ordering_field(&self.config, Some(table), &schemas.writer)
                    .map(|field| StoredOrdering { rule: self.rule, field }),
                merging: merging.clone(),
                workers: self.config.write.workers,
                cache: self.key_cache.clone(),
            };
            index::tag(table, &view, options, batches, rows).await?
        } else {
            Tagged::untagged(batches, rows)
        };
        if !self.config.filter_dupes {
            let own = self.own_rows(&schemas.writer).filter(|_| combines);
            let Some(own) = own else { return Ok(Work::Upsert(tagged, view)) };
            let workers = self.config.write.workers;
            let (tagged, outdated) = index::leave_out_outdated(table, own, merging, workers, tagged).await?;
            report.rows_combined += outdated;
            return Ok(Work::Upsert(tagged, view));
        }
        let chosen = index::filter_dupes(&tagged);
        report.rows_filtered = (tagged.rows.len() - chosen.len()) as u64;
        if let Some(buckets) = buckets {
            // What comes back is filtered out: the base file still has its key.
            return Ok(Work::Upsert(index::tag_buckets(&view, buckets, tagged.batches, chosen).await?, view));
        }
        if self.config.operation == Operation::BulkInsert {
            let schema = schemas.writer.arrow.clone();
            let keys = KeyGenerator::new(&self.config.keys, options, &schema)?;
            let rows = vec![stream_of(schema, tagged.batches, chosen)];
            return Ok(Work::BulkInsert { rows, keys: Box::new(keys), input });
        }
        Ok(Work::Upsert(Tagged::untagged(tagged.batches, chosen), view))
    }

    /// What a one-shot job's earlier rounds have stored, where its merge rule would not compare with them.
    fn own_rows(&self, schema: &TableSchema) -> Option<OwnRows> {
        let since = self.since.clone().filter(|_| !self.rule.needs_stored_ordering())?;
        let ordering_field = open::known_ordering_field(&self.config, self.table.as_ref(), schema)?;
        Some(OwnRows { since, ordering_field })
    }

    fn merging(&self, table: &Table, timeline: &Timeline, schema: &TableSchema) -> Merging {
        let options = SliceOptions {
            schema: schema.with_meta_columns(),
            rule: self.rule,
            ordering_field: table.properties.precombine_field().map(str::to_string),
            memory: self.config.compaction.memory,
            batch_rows: BATCH_ROWS,
        };
        Merging { timeline: timeline.clone(), options }
    }

    /// One row a key, or every row where the operation keeps duplicates.
    async fn precombine(
        &self,
        mut batches: Vec<KeyedBatch>,
        combines: bool,
        global: bool,
        report: &mut RoundReport,
    ) -> Result<(Vec<KeyedBatch>, Vec<RowRef>)> {
        let work = tokio::task::spawn_blocking(move || -> record::Result<_> {
            if !combines {
                let rows = all_rows(&batches);
                return Ok((batches, rows, 0));
            }
            let found = record::precombine(&mut batches, global)?;
            Ok((batches, found.winners, found.dropped))
        });
        let (batches, rows, dropped) =
            work.await.map_err(|e| Error::Worker { what: "precombine", why: e.to_string() })??;
        report.rows_combined = dropped;
        Ok((batches, rows))
    }

    pub(super) async fn ensure_table(&mut self, schema: &TableSchema) -> Result<()> {
        if self.table.is_none() {
            self.table = Some(open::create(&self.config, schema).await?);
        }
        Ok(())
    }
}

fn all_rows(batches: &[KeyedBatch]) -> Vec<RowRef> {
    let rows = |(batch, keyed): (usize, &KeyedBatch)| {
        (0..keyed.rows.num_rows() as u32).map(move |row| RowRef { batch: batch as u32, row })
    };
    batches.iter().enumerate().flat_map(rows).collect()
}

fn partitions_of(batches: &[KeyedBatch]) -> Vec<String> {
    let paths: std::collections::BTreeSet<&String> = batches.iter().flat_map(|b| b.partitions.paths.iter()).collect();
    paths.into_iter().cloned().collect()
}

/// Values with `/` make nested folders; two of which one holds the other lose rows in Hudi's reader.
fn check_nesting(batches: &[KeyedBatch], fields: usize) -> Result<()> {
    let paths = partitions_of(batches);
    if paths.iter().all(|p| p.split('/').count() <= fields.max(1)) {
        return Ok(());
    }
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    match record::nested_clash(&paths) {
        Some((outer, inner)) => Err(Error::NestedPartitions { outer, inner }),
        None => Ok(()),
    }
}
