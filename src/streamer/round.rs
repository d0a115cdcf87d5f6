//! One round ("sync once"): the list of stages, each taking what the stage before it gave.
//!
//! ```text
//! roll back leftovers ▶ checkpoint ▶ fetch ▶ transform ▶ schema ▶ key ▶ precombine ▶ tag ▶ [instant] write ▶ commit
//! ```
//!
//! Everything before the instant only reads the table, so that a bad row leaves nothing behind. Bulk insert streams: it
//! reads its rows under the open instant, and a bad row there rolls the instant back before the error is reported.

use super::input::{Input, stream_of, with_position};
use super::{Error, Result, checkpoint, open};
use crate::config::{Operation, StreamerConfig};
use crate::index::{self, StoredOrdering, Tagged};
use crate::observe::{Progress, RoundReport, Stages};
use crate::record::{self, KeyGenerator, KeyedBatch, MergeRule, RecordOptions, RowRef};
use crate::schema::{self, EvolutionOptions, ProvidedSchemas, TableSchema};
use crate::service;
use crate::source::{self, Fetch, FetchRequest, POSITION_COLUMN, Source};
use crate::storage::fault_point;
use crate::table::{Action, CommitMetadata, FileSystemView, Instant, Markers, State, Table, Timeline};
use crate::transform::{self, Transformed};
use crate::write::{self, WriteContext, WriteStatus};
use datafusion::execution::SendableRecordBatchStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio_util::sync::CancellationToken;

/// What became of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Committed,
    NoNewData,
    /// `--dry-run` or `--explain`.
    NothingWritten,
}

/// A job: its configuration, its source, its table.
pub(super) struct Streamer {
    config: StreamerConfig,
    source: Arc<dyn Source>,
    provided: Option<ProvidedSchemas>,
    /// `None` until the first round has something to commit.
    table: Option<Table>,
    rule: MergeRule,
    cancel: CancellationToken,
}

/// The schemas of one round.
struct Schemas {
    /// What commits carry and files are written in.
    writer: TableSchema,
    /// The source schema, where it was inferred: frozen in the commit.
    inferred: Option<TableSchema>,
}

/// Rows that are ready to be written.
enum Work {
    /// Nothing to write, but a position to keep.
    Nothing,
    Upsert(Tagged, FileSystemView),
    BulkInsert {
        rows: Vec<SendableRecordBatchStream>,
        keys: KeyGenerator,
        input: Input,
    },
}

impl Streamer {
    pub async fn open(config: StreamerConfig, cancel: CancellationToken) -> Result<Streamer> {
        let table = open::open(&config).await?;
        let (rule, origin) = open::merge_rule(&config, table.as_ref())?;
        tracing::info!(rule = ?rule.0, from = origin, "merge rule in force");
        let provided = schema::provide(&config.schema).await?;
        let source = source::open(&config.source, config.write.workers)?;
        Ok(Streamer { config, source, provided, table, rule, cancel })
    }

    pub fn config(&self) -> &StreamerConfig {
        &self.config
    }

    /// One round.
    pub async fn sync_once(&mut self) -> Result<Outcome> {
        let mut stages = Stages::start();
        let mut report = RoundReport { operation: self.operation_name(), ..Default::default() };

        stages.enter("timeline");
        let timeline = self.timeline_without_leftovers().await?;
        let stored = match &self.table {
            Some(table) => checkpoint::latest(table, &timeline).await?,
            None => None,
        };
        let resume = checkpoint::resume(stored.as_ref(), &self.config.checkpoint)?;

        stages.enter("fetch");
        let table_schema = self.table_schema(&timeline).await?;
        let frozen =
            stored.as_ref().and_then(|s| s.inferred_schema.as_deref()).map(TableSchema::from_avro).transpose()?;
        let reader = self.reader_schema(frozen.as_ref(), table_schema.as_ref());
        let fetch = self.fetch(resume.clone(), reader.as_ref()).await?;
        report.files_read = fetch.stats.files;
        report.bytes_read = fetch.stats.bytes;
        if fetch.checkpoint == resume && !self.config.checkpoint.allow_commit_on_no_change {
            tracing::info!(checkpoint = resume, "no new data: the source's checkpoint has not changed");
            return Ok(Outcome::NoNewData);
        }
        report.checkpoint = fetch.checkpoint.clone().unwrap_or_default();

        let Some(batches) = &fetch.batches else {
            return self.commit_nothing(&timeline, table_schema, frozen, stages, report).await;
        };
        let progress = Progress::follow(report.bytes_read, batches.bytes_read.clone(), !self.config.run.no_progress);

        stages.enter("transform");
        let transformed = transform::apply(&self.config.transformers, batches).await?;
        let schemas = self.schemas(&transformed, batches.schema.clone(), reader, frozen, table_schema)?;
        if self.config.run.explain {
            println!("{}", self.explain(&transformed));
            return Ok(Outcome::NothingWritten);
        }

        let rows_read = Arc::new(AtomicU64::new(0));
        let input = Input {
            transformed,
            writer: schemas.writer.arrow.clone(),
            source: self.source.clone(),
            workers: self.config.write.workers,
            rows_read: rows_read.clone(),
        };
        let work = self.prepare(&timeline, &schemas, input, &progress, &mut stages, &mut report).await?;
        if self.config.run.dry_run {
            report.rows_read = rows_read.load(Ordering::Relaxed);
            report.rows_skipped = batches.skipped.load(Ordering::Relaxed);
            stages.leave();
            report.emit_dry_run(&stages);
            return Ok(Outcome::NothingWritten);
        }
        progress.stage("write");
        let statuses = self.write(work, &timeline, &schemas, &mut stages, &mut report).await?;
        report.rows_read = rows_read.load(Ordering::Relaxed);
        report.rows_skipped = batches.skipped.load(Ordering::Relaxed);
        drop(progress);
        count(&statuses, &mut report);
        stages.leave();
        report.emit(&stages);
        Ok(Outcome::Committed)
    }

    fn operation_name(&self) -> &'static str {
        match self.config.operation {
            Operation::Upsert => "UPSERT",
            Operation::Insert => "INSERT",
            Operation::BulkInsert => "BULK_INSERT",
        }
    }

    /// The timeline after every failed write was rolled back; a dry run only tells of them.
    async fn timeline_without_leftovers(&self) -> Result<Timeline> {
        let Some(table) = &self.table else { return Ok(Timeline::default()) };
        let timeline = table.timeline().await?;
        let left = timeline.pending_writes().next().or(timeline.pending(Action::Rollback).next());
        if left.is_some() {
            if self.config.run.dry_run || self.config.run.explain {
                tracing::warn!("the table has failed writes; a real run rolls them back first");
                return Ok(timeline);
            }
            for done in service::rollback_failed_writes(table).await? {
                tracing::warn!(
                    instant = %done.instant.time,
                    files_deleted = done.files_deleted,
                    "rolled back a write that did not complete"
                );
            }
            return Ok(table.timeline().await?);
        }
        Ok(timeline)
    }

    async fn table_schema(&self, timeline: &Timeline) -> Result<Option<TableSchema>> {
        let Some(table) = &self.table else { return Ok(None) };
        let text = table.latest_schema(timeline).await?;
        Ok(text.as_deref().map(TableSchema::from_avro).transpose()?)
    }

    /// What the source decodes with: the provider's schema, else the one inferred and frozen before, else the table's
    /// own where rows are written as they are read; `None`: to be inferred.
    fn reader_schema(&self, frozen: Option<&TableSchema>, table: Option<&TableSchema>) -> Option<TableSchema> {
        let provided = self.provided.as_ref().map(|p| &p.source);
        let own = table.filter(|_| self.config.transformers.is_empty());
        provided.or(frozen).or(own).cloned()
    }

    async fn fetch(&self, from: Option<String>, reader: Option<&TableSchema>) -> Result<Fetch> {
        let request = FetchRequest {
            from,
            limit: self.config.source.limit,
            schema: reader.map(|s| s.arrow.clone()),
            positions: self.config.transformers.is_empty(),
        };
        let run = &self.config.run;
        let tries = if run.retry_on_source_failures { run.max_retry_count.max(1) } else { 1 };
        let mut tried = 1;
        loop {
            match self.source.fetch(request.clone()).await {
                Ok(fetch) => {
                    fetch.stats.warnings.iter().for_each(|w| tracing::warn!("{w}"));
                    return Ok(fetch);
                }
                Err(e) => {
                    let e = Error::from(e);
                    if tried == tries || !e.is_retryable() {
                        return Err(e);
                    }
                    tracing::warn!(error = %e, tried, "fetch failed; trying again");
                    tried += 1;
                    tokio::select! {
                        () = tokio::time::sleep(run.retry_interval) => {}
                        () = self.cancel.cancelled() => return Err(Error::Interrupted),
                    }
                }
            }
        }
    }

    fn evolution(&self) -> EvolutionOptions {
        EvolutionOptions {
            reconcile: self.config.write.reconcile_schema,
            set_null_for_missing_columns: self.config.write.set_null_for_missing_columns,
            allow_column_drop: self.config.write.allow_column_drop,
        }
    }

    fn schemas(
        &self,
        transformed: &Transformed,
        read: arrow::datatypes::SchemaRef,
        reader: Option<TableSchema>,
        frozen: Option<TableSchema>,
        table: Option<TableSchema>,
    ) -> Result<Schemas> {
        let name = &self.config.table.name;
        let was_inferred = reader.is_none();
        let source = match reader {
            Some(reader) => reader,
            None => TableSchema::from_arrow(&without_position(&read), name)?,
        };
        let target = self.provided.as_ref().and_then(|p| p.target.clone());
        let incoming = match target {
            Some(target) => target,
            None if self.config.transformers.is_empty() => source.clone(),
            None => TableSchema::from_arrow(&transformed.schema, name)?,
        };
        let writer = schema::deduce_writer_schema(&incoming, table.as_ref(), self.evolution())?;
        Ok(Schemas { writer, inferred: if was_inferred { Some(source) } else { frozen } })
    }

    fn explain(&self, transformed: &Transformed) -> String {
        let stages = match self.config.operation {
            Operation::Upsert => {
                "write: small files first, then new file groups; merge handles rewrite tagged file groups\ntag\nprecombine\nkey"
            }
            Operation::Insert => "write: small files first, then new file groups\nkey",
            Operation::BulkInsert => "write: one open file a worker and partition\nkey",
        };
        let settings = format!(
            "index={:?} payload={:?} sort={:?} workers={}",
            self.config.index.index_type,
            self.rule.0,
            self.config.write.bulk_insert_sort_mode,
            self.config.write.workers
        );
        let mut text = format!("commit: {} ({settings})\n", self.operation_name());
        let mut depth = 1;
        for line in stages.lines() {
            text.push_str(&format!("{}{line}\n", "  ".repeat(depth)));
            depth += 1;
        }
        for line in transform::explain(transformed).lines() {
            text.push_str(&format!("{}{line}\n", "  ".repeat(depth)));
        }
        text
    }

    /// Key, precombine, filter and tag: everything that only reads. The table is created here if there is none yet.
    async fn prepare(
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
        let prefixed = match &self.table {
            Some(table) => open::complex_single_key_prefixed(&self.config, table, timeline).await?,
            None => false,
        };
        let rows_schema = with_position(&schemas.writer.arrow, &input.transformed.schema);
        let positions = rows_schema.fields().len() > schemas.writer.arrow.fields().len();
        let options = RecordOptions {
            ordering_field,
            complex_single_key_prefixed: prefixed,
            position_column: positions.then_some(POSITION_COLUMN),
        };
        let keys = KeyGenerator::new(&self.config.keys, options.clone(), &rows_schema)?;

        if self.config.operation == Operation::BulkInsert && !combines {
            if self.config.run.dry_run {
                input.collect(&keys, &self.cancel).await?;
            } else {
                self.ensure_table(&schemas.writer).await?;
            }
            let rows = input.streams()?;
            return Ok(Work::BulkInsert { rows, keys, input });
        }

        stages.enter("read");
        progress.stage("read");
        let batches = input.collect(&keys, &self.cancel).await?;
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
        let view = FileSystemView::load(table, timeline, partitions.as_deref()).await?;
        let tagged = if combines {
            let stored = open::known_ordering_field(&self.config, Some(table), &schemas.writer)
                .map(|field| StoredOrdering { rule: self.rule, field });
            index::tag(table, &view, &self.config.index, stored, self.config.write.workers, batches, rows).await?
        } else {
            Tagged::untagged(batches, rows)
        };
        if !self.config.filter_dupes {
            return Ok(Work::Upsert(tagged, view));
        }
        let chosen = index::filter_dupes(&tagged);
        report.rows_filtered = (tagged.rows.len() - chosen.len()) as u64;
        if self.config.operation == Operation::BulkInsert {
            let schema = schemas.writer.arrow.clone();
            let keys =
                KeyGenerator::new(&self.config.keys, RecordOptions { position_column: None, ..options }, &schema)?;
            let rows = vec![stream_of(schema, tagged.batches, chosen)];
            return Ok(Work::BulkInsert { rows, keys, input });
        }
        Ok(Work::Upsert(Tagged::untagged(tagged.batches, chosen), view))
    }

    /// One row a key, or every row where the operation keeps duplicates.
    async fn precombine(
        &self,
        batches: Vec<KeyedBatch>,
        combines: bool,
        global: bool,
        report: &mut RoundReport,
    ) -> Result<(Vec<KeyedBatch>, Vec<RowRef>)> {
        let work = tokio::task::spawn_blocking(move || -> record::Result<_> {
            if !combines {
                let rows = all_rows(&batches);
                return Ok((batches, rows, 0));
            }
            let found = record::precombine(&batches, global)?;
            Ok((batches, found.winners, found.dropped))
        });
        let (batches, rows, dropped) =
            work.await.map_err(|e| Error::Worker { what: "precombine", why: e.to_string() })??;
        report.rows_combined = dropped;
        Ok((batches, rows))
    }

    async fn ensure_table(&mut self, schema: &TableSchema) -> Result<()> {
        if self.table.is_none() {
            self.table = Some(open::create(&self.config, schema).await?);
        }
        Ok(())
    }

    /// A batch without rows whose position moved: an empty commit keeps the position.
    async fn commit_nothing(
        &mut self,
        timeline: &Timeline,
        table_schema: Option<TableSchema>,
        frozen: Option<TableSchema>,
        mut stages: Stages,
        mut report: RoundReport,
    ) -> Result<Outcome> {
        let provided = self.provided.as_ref().map(|p| p.target.clone().unwrap_or_else(|| p.source.clone()));
        let Some(writer) = table_schema.or(provided) else {
            tracing::info!("no data yet, and no schema to make the table with: nothing is committed");
            return Ok(Outcome::NoNewData);
        };
        if !self.config.table.allow_empty_commit {
            tracing::warn!("the position moved without data and hoodie.allow.empty.commit=false: it is not kept");
            return Ok(Outcome::NoNewData);
        }
        if self.config.run.dry_run || self.config.run.explain {
            stages.leave();
            report.emit_dry_run(&stages);
            return Ok(Outcome::NothingWritten);
        }
        self.ensure_table(&writer).await?;
        let schemas = Schemas { writer, inferred: frozen };
        self.write(Work::Nothing, timeline, &schemas, &mut stages, &mut report).await?;
        stages.leave();
        report.emit(&stages);
        Ok(Outcome::Committed)
    }

    /// Opens an instant, writes under it and completes it; a failure rolls it back before it is reported.
    async fn write(
        &self,
        work: Work,
        timeline: &Timeline,
        schemas: &Schemas,
        stages: &mut Stages,
        report: &mut RoundReport,
    ) -> Result<Vec<WriteStatus>> {
        stages.enter("write");
        let table = self.table.clone().ok_or(Error::Worker { what: "write", why: "there is no table".into() })?;
        if self.cancel.is_cancelled() {
            return Err(Error::Interrupted);
        }
        let time = table.new_instant(timeline);
        report.instant = time.to_string();
        let context = self.write_context(table.clone(), timeline, time.clone(), schemas).await?;
        table.request(&time, Action::Commit).await?;
        let written = self.write_and_complete(work, &context, schemas, stages, report).await;
        let failure = match written {
            Ok(statuses) => {
                // The commit stands: what is left is housekeeping, which the next start can do as well.
                if let Err(e) = Markers::new(&table.storage, &time).remove_all().await {
                    tracing::warn!(error = %e, instant = %time, "marker files could not be removed; they do no harm");
                }
                fault_point("after-complete");
                self.source.on_commit(&report.checkpoint).await?;
                return Ok(statuses);
            }
            Err(e) => e,
        };
        // A failed create may still have gone through: the timeline knows.
        let now = table.timeline().await;
        let pending = Instant { time: time.clone(), action: Action::Commit, state: State::Inflight };
        let still_pending = now.is_ok_and(|t| t.pending_writes().any(|i| i.time == time));
        if still_pending && let Err(e) = service::rollback(&table, &pending).await {
            tracing::error!(error = %e, instant = %time, "the failed write could not be rolled back; the next start does it");
        }
        Err(failure)
    }

    async fn write_context(
        &self,
        table: Table,
        timeline: &Timeline,
        instant: crate::table::InstantTime,
        schemas: &Schemas,
    ) -> Result<Arc<WriteContext>> {
        let config = &self.config.write;
        let average_record_size = table
            .average_record_size(
                timeline,
                config.small_file_limit,
                config.record_size_estimation_threshold,
                config.record_size_estimate,
            )
            .await?;
        Ok(Arc::new(WriteContext {
            instant,
            config: config.clone(),
            index: self.config.index.clone(),
            operation: self.config.operation,
            rule: self.rule,
            ordering_field: open::known_ordering_field(&self.config, Some(&table), &schemas.writer),
            schema: schemas.writer.clone(),
            average_record_size,
            cancel: self.cancel.clone(),
            rows_written: Arc::default(),
            table,
        }))
    }

    async fn write_and_complete(
        &self,
        work: Work,
        context: &Arc<WriteContext>,
        schemas: &Schemas,
        stages: &mut Stages,
        report: &RoundReport,
    ) -> Result<Vec<WriteStatus>> {
        let table = &context.table;
        fault_point("before-inflight");
        let statuses = match work {
            Work::Nothing => {
                let profile = CommitMetadata { operation_type: report.operation.into(), ..Default::default() };
                table.mark_inflight(&context.instant, Action::Commit, profile.to_json()).await?;
                Vec::new()
            }
            Work::Upsert(tagged, view) => {
                let (assigning, profile_of) = (context.clone(), context.operation);
                debug_assert_eq!(profile_of, self.config.operation);
                let plan = tokio::task::spawn_blocking(move || write::assign(&assigning, tagged, &view));
                let plan = plan.await.map_err(|e| Error::Worker { what: "assign", why: e.to_string() })??;
                table.mark_inflight(&context.instant, Action::Commit, plan.workload_profile().to_json()).await?;
                plan.execute(context.clone()).await?
            }
            Work::BulkInsert { rows, keys, input } => {
                let profile = CommitMetadata { operation_type: report.operation.into(), ..Default::default() };
                table.mark_inflight(&context.instant, Action::Commit, profile.to_json()).await?;
                match write::bulk_insert(context.clone(), rows, keys).await {
                    Ok(statuses) => statuses,
                    Err(write::Error::Input(e)) => return Err(input.input_error(e)),
                    Err(write::Error::Record(e)) => return Err(input.record_error(e).await),
                    Err(write::Error::Cancelled) => return Err(Error::Interrupted),
                    Err(e) => return Err(e.into()),
                }
            }
        };
        if self.cancel.is_cancelled() {
            return Err(Error::Interrupted);
        }
        stages.enter("commit");
        write::finalize(context, &statuses).await?;
        let mut metadata = CommitMetadata { operation_type: report.operation.into(), ..Default::default() };
        for status in &statuses {
            let stats = metadata.partition_to_write_stats.entry(status.stat.partition_path.clone()).or_default();
            stats.push(status.stat.clone());
        }
        metadata.extra_metadata.insert("schema".into(), schemas.writer.avro.clone());
        let position = Some(report.checkpoint.as_str()).filter(|c| !c.is_empty());
        let inferred = schemas.inferred.as_ref().map(|s| s.avro.as_str());
        checkpoint::store(&mut metadata, &self.config.checkpoint, position, inferred);
        fault_point("before-complete");
        table.complete(&context.instant, Action::Commit, metadata.to_json()).await?;
        Ok(statuses)
    }
}

fn without_position(schema: &arrow::datatypes::SchemaRef) -> arrow::datatypes::SchemaRef {
    let fields: Vec<_> = schema.fields().iter().filter(|f| f.name() != POSITION_COLUMN).cloned().collect();
    Arc::new(arrow::datatypes::Schema::new(fields))
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

fn count(statuses: &[WriteStatus], report: &mut RoundReport) {
    for WriteStatus { stat } in statuses {
        report.inserted += stat.num_inserts;
        report.updated += stat.num_update_writes;
        report.deleted += stat.num_deletes;
        report.files_written += 1;
        report.bytes_written += stat.total_write_bytes;
    }
}
