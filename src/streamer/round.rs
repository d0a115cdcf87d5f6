//! One round ("sync once"): the list of stages, each taking what the stage before it gave.
//!
//! ```text
//! checkpoint ▶ fetch ▶ roll back leftovers ▶ transform ▶ schema ▶ key ▶ precombine ▶ tag ▶ [instant] write ▶ commit
//! ```
//!
//! Bad records that are to be kept are committed to where they go right before the commit (`quarantine/`).
//!
//! Everything before the instant only reads the table, so that a bad row leaves nothing behind. Bulk insert streams: it
//! reads its rows under the open instant, and a bad row there rolls the instant back before the error is reported.

use super::among::Basis;
use super::input::Input;
use super::pace::Pace;
use super::{Error, Result, checkpoint, open, quarantine, undo};
use crate::config::{BadRecordPolicy, Operation, StreamerConfig};
use crate::index::{KeyCache, Tagged};
use crate::observe::{Metrics, Progress, RoundReport, Stages};
use crate::record::{KeyGenerator, MergeRule};
use crate::schema::{self, EvolutionOptions, ProvidedSchemas, SchemaProvider, TableSchema};
use crate::service::{self, CleanMemory, Looked, OpenWrite, Writers};
use crate::source::{self, Batches, Rejects, Source, hidden_columns};
use crate::storage::Storage;
use crate::table::{FileSystemView, InstantTime, Table, Timeline};
use crate::transform::{self, Transformed};
use crate::write::WriteStatus;
use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// An idle job looks at the table and asks the schema provider this often: another writer, or an operator, may have been there.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

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
    pub(super) config: StreamerConfig,
    pub(super) source: Arc<dyn Source>,
    pub(super) provider: SchemaProvider,
    /// What the provider said at the beginning of this round.
    pub(super) provided: Option<ProvidedSchemas>,
    /// `None` until the first round has something to commit.
    pub(super) table: Option<Table>,
    pub(super) rule: MergeRule,
    /// What earlier rounds have learnt of the table's keys; none in a job of one round.
    pub(super) key_cache: Option<Arc<KeyCache>>,
    /// What a stored key has said of prefixes ([`open::complex_single_key_prefixed`]), and the newest commit then, or ours
    /// after it.
    pub(super) key_prefix: Option<(InstantTime, bool)>,
    /// Buckets are what they were when the table was made.
    pub(super) buckets_checked: bool,
    /// A round has said where the job goes on from.
    begun: bool,
    /// What earlier jobs have left that died is removed.
    swept: bool,
    /// The position after which the last rounds found nothing, and when table and schemas were last looked at.
    quiet: Option<(String, Instant)>,
    /// A position that no commit could keep yet: there is no schema to make the table with, or empty commits are not wanted.
    pub(super) pinned: Option<String>,
    /// Asked to stop: no new round begins, and one that has written nothing ends.
    pub(super) stop: CancellationToken,
    /// Asked to give up what is being written.
    pub(super) cancel: CancellationToken,
    pub(super) metrics: Metrics,
    /// Rows that compactions have written: a sign of life.
    pub(super) rows_compacted: Arc<AtomicU64>,
    /// Where compactions were looked for.
    pub(super) looked: Looked,
    /// The timeline as the last commit left it, as far as this job knows.
    pub(super) written_on: Option<Timeline>,
    /// What was told of that keeps the timeline long.
    pub(super) archive_told: super::archive::Told,
    pub(super) writers: Writers,
    /// Among several writers: the instant of this round, until its write takes it.
    pub(super) opened: Option<OpenWrite>,
    /// What the round at hand has read of the table.
    pub(super) basis: Basis,
    /// Rounds that other writers have stood in the way of, one after the other.
    pub(super) lost_in_a_row: u32,
    /// How far cleans have looked.
    pub(super) clean_memory: CleanMemory,
    pub(super) pace: Pace,
    /// The last round took a part of what waits, to fit memory and time.
    pub(super) cut: bool,
    /// Where a one-shot job ends that takes its input in several rounds.
    pub(super) until: Option<String>,
    /// The first of these rounds, also where another job began with it that was stopped.
    pub(super) since: Option<InstantTime>,
    /// The markers of the last round are being removed.
    pub(super) tidying: Option<JoinHandle<()>>,
}

/// How a job is told to end.
pub(super) struct Tokens {
    pub stop: CancellationToken,
    pub cancel: CancellationToken,
}

/// The schemas of one round.
pub(super) struct Schemas {
    /// What commits carry and files are written in.
    pub writer: TableSchema,
    /// The source schema, where it was inferred: frozen in the commit.
    pub inferred: Option<TableSchema>,
}

/// Rows that are ready to be written.
pub(super) enum Work {
    /// Nothing to write, but a position to keep.
    Nothing,
    Upsert(Tagged, FileSystemView),
    BulkInsert {
        rows: Vec<SendableRecordBatchStream>,
        keys: Box<KeyGenerator>,
        input: Input,
    },
}

impl Streamer {
    pub async fn open(config: StreamerConfig, tokens: Tokens, metrics: Metrics) -> Result<Streamer> {
        quarantine::check(&config).await?;
        let provider = SchemaProvider::open(&config.schema, &config.storage)?;
        let source = source::open(&config.source, &config.storage, config.write.workers)?;
        let tags = config.operation == Operation::Upsert && config.index.buckets.is_none();
        let looks_up = tags || config.filter_dupes;
        let remembers = config.run.continuous && looks_up && config.index.cache_bytes > 0;
        let key_cache = remembers.then(|| Arc::new(KeyCache::new(config.index.cache_bytes)));
        let streamer = Streamer::over(config, source, provider, tokens, metrics).await?;
        Ok(Streamer { key_cache, ..streamer })
    }

    /// A job over a source of one's own.
    pub(super) async fn over(
        config: StreamerConfig,
        source: Arc<dyn Source>,
        provider: SchemaProvider,
        tokens: Tokens,
        metrics: Metrics,
    ) -> Result<Streamer> {
        let table = open::open(&config).await?;
        let storage = Storage::open_with(&config.table.base_path, &config.storage)?;
        let mut writers = Writers::open(&config.concurrency, &storage, &config.table.name)?;
        writers.locks = writers.locks.until(tokens.cancel.clone());
        let (rule, origin) = open::merge_rule(&config, table.as_ref())?;
        tracing::info!(rule = ?rule.0, from = origin, "merge rule in force");
        let pace = Pace::new(config.round.clone(), &config.source);
        Ok(Streamer {
            config,
            source,
            provider,
            provided: None,
            table,
            rule,
            key_cache: None,
            key_prefix: None,
            buckets_checked: false,
            begun: false,
            swept: false,
            quiet: None,
            pinned: None,
            stop: tokens.stop,
            cancel: tokens.cancel,
            metrics,
            rows_compacted: Arc::default(),
            looked: Looked::default(),
            written_on: None,
            archive_told: Default::default(),
            writers,
            opened: None,
            basis: Basis::default(),
            lost_in_a_row: 0,
            clean_memory: CleanMemory::default(),
            pace,
            cut: false,
            until: None,
            since: None,
            tidying: None,
        })
    }

    pub fn config(&self) -> &StreamerConfig {
        &self.config
    }

    /// One round. Where another writer stood in the way, so many more as are configured.
    pub async fn sync_once(&mut self) -> Result<Outcome> {
        let mut left = self.config.concurrency.retries_on_conflict;
        loop {
            let done = self.round().await;
            if let (Some(open), Some(table)) = (self.opened.take(), &self.table) {
                undo::undo(table, open, &self.writers, &self.metrics).await;
            }
            if let (Err(_), Some(table)) = (&done, &self.table) {
                table.kept.forget();
            }
            let lost = done.as_ref().is_err_and(Error::is_conflict);
            self.lost_in_a_row = if lost { self.lost_in_a_row.saturating_add(1) } else { 0 };
            match done {
                Err(e) if lost && left > 0 && !self.stop.is_cancelled() => {
                    left -= 1;
                    tracing::warn!(code = e.code(), error = %e, tries_left = left, "the round is done again");
                }
                done => return done,
            }
        }
    }

    async fn round(&mut self) -> Result<Outcome> {
        let mut stages = Stages::start(self.metrics.clone());
        let (operation, table) = (self.operation_name(), self.config.table.name.clone());
        let mut report = RoundReport { operation, table, ..Default::default() };

        stages.enter("schema");
        if self.is_quiet().await? {
            return Ok(Outcome::NoNewData);
        }
        self.provided = tokio::select! {
            provided = self.provider.provide() => provided?,
            () = self.stop.cancelled() => return Err(Error::Interrupted),
        };
        stages.enter("timeline");
        let timeline = self.look().await?;
        let stored = match &self.table {
            Some(table) => checkpoint::latest(table, &timeline, self.config.checkpoint.id.as_deref()).await?,
            None => None,
        };
        self.basis.position = stored.as_ref().map(|stored| stored.origin.clone());
        let stored = match &self.table {
            Some(table) if stored.is_none() || !self.begun => {
                checkpoint::take_over(table, &timeline, stored, &self.config.checkpoint).await?
            }
            _ => stored,
        };
        let resume = checkpoint::resume(stored.as_ref(), &self.config.checkpoint)?.or_else(|| self.pinned.clone());
        self.metrics.resumes(resume.as_deref());
        if !std::mem::replace(&mut self.begun, true) {
            if !self.config.run.continuous {
                self.since = checkpoint::backlog(stored.as_ref(), resume.as_deref());
            }
            self.finish_cleans(&timeline).await;
            let commits = timeline.completed_writes().count();
            checkpoint::tell(resume.as_deref(), stored.as_ref(), commits, self.config.source.kafka.as_ref());
        }

        stages.enter("fetch");
        let table_schema = self.table_schema(&timeline).await?;
        self.basis.schema = table_schema.clone();
        let frozen =
            stored.as_ref().and_then(|s| s.inferred_schema.as_deref()).map(TableSchema::from_avro).transpose()?;
        let reader = self.reader_schema(frozen.as_ref(), table_schema.as_ref())?;
        let fetch = self.fetch(resume.clone(), reader.as_ref()).await?;
        report.files_read = fetch.stats.files;
        report.bytes_read = fetch.stats.bytes;
        report.offsets_lost = fetch.stats.lost;
        self.metrics.fetched(fetch.batches.as_ref().map_or(0, |b| b.partitions.len()), fetch.stats.bytes);
        if let Some(topic) = &fetch.stats.topic {
            self.metrics.kafka(topic, &fetch.stats.lag, fetch.stats.events);
        }
        // A flag that has not counted yet is kept by a commit, lest the old position be in force once the flag is taken off.
        let counted = checkpoint::has_counted(stored.as_ref(), &self.config.checkpoint);
        if fetch.checkpoint == resume && counted && !self.config.checkpoint.allow_commit_on_no_change {
            if self.quiet.is_none() {
                tracing::info!(checkpoint = resume, "no new data: the source's checkpoint has not changed");
            }
            self.keep_quiet(resume.unwrap_or_default());
            return Ok(Outcome::NoNewData);
        }
        self.quiet = None;
        report.checkpoint = fetch.checkpoint.clone().unwrap_or_default();
        let Some(batches) = &fetch.batches else {
            return self.commit_nothing(timeline, table_schema, frozen, stages, report).await;
        };
        let timeline = self.clear(timeline).await?;
        let timeline = self.retry_last_compaction(timeline).await?;
        let timeline = self.begin(timeline).await?;
        let progress = Progress::follow(report.bytes_read, batches.bytes_read.clone(), !self.config.run.no_progress);

        stages.enter("transform");
        let transformed = self.transform(batches).await?;
        let schemas = self.schemas(&transformed, batches.schema.clone(), reader, frozen, table_schema)?;
        if self.config.run.explain {
            println!("{}", self.explain(&transformed));
            return Ok(Outcome::NothingWritten);
        }

        let rows_read = Arc::new(AtomicU64::new(0));
        self.metrics.watch(vec![batches.bytes_read.clone(), rows_read.clone()]);
        let input = Input {
            transformed,
            writer: schemas.writer.arrow.clone(),
            source: self.source.clone(),
            workers: self.config.write.workers,
            rows_read: rows_read.clone(),
            rejects: batches.rejects.clone(),
        };
        let work = self.prepare(&timeline, &schemas, input, &progress, &mut stages, &mut report).await?;
        if self.config.run.dry_run {
            report.rows_read = rows_read.load(Ordering::Relaxed);
            left_out(&batches.rejects, &mut report);
            stages.leave();
            batches.rejects.warn(&*self.source).await;
            report.emit_dry_run(&stages);
            return Ok(Outcome::NothingWritten);
        }
        progress.stage("write");
        let statuses = self.write(work, Some(&batches.rejects), &timeline, &schemas, &mut stages, &mut report).await?;
        report.rows_read = rows_read.load(Ordering::Relaxed);
        report.bytes_read = batches.bytes_read.load(Ordering::Relaxed);
        self.pace.end(fetch.stats.weight.unwrap_or(report.bytes_read));
        left_out(&batches.rejects, &mut report);
        report.event_times_ms = batches.times.range();
        drop(progress);
        batches.rejects.warn(&*self.source).await;
        count(&statuses, &mut report);
        if self.until.is_some() && self.since.is_none() {
            self.since = InstantTime::parse(&report.instant);
        }
        self.committed(timeline, stages, report).await
    }

    /// Whether the source alone says that there is still nothing new: an idle job asks it ten times a second, and the table
    /// and the schema provider only now and then.
    async fn is_quiet(&self) -> Result<bool> {
        match &self.quiet {
            Some((position, looked)) if looked.elapsed() < LOOK_AGAIN => tokio::select! {
                nothing = self.source.has_nothing_after(position) => Ok(nothing?),
                () = self.stop.cancelled() => Err(Error::Interrupted),
            },
            _ => Ok(false),
        }
    }

    /// Whether this round takes a part of a backlog, and not the last one.
    pub(super) fn goes_on(&self) -> bool {
        self.cut && self.until.is_some()
    }

    /// There is nothing after this position, and the table has just been looked at.
    pub(super) fn keep_quiet(&mut self, position: String) {
        self.quiet = Some((position, Instant::now()));
    }

    pub(super) fn operation_name(&self) -> &'static str {
        match self.config.operation {
            Operation::Upsert => "UPSERT",
            Operation::Insert => "INSERT",
            Operation::BulkInsert => "BULK_INSERT",
        }
    }

    /// The table and its timeline as they stand now.
    async fn look(&mut self) -> Result<Timeline> {
        let mut now = open::open(&self.config).await?;
        match (&self.table, &mut now) {
            (Some(before), None) => return Err(Error::Gone { table: before.storage.display("") }),
            (Some(before), Some(now)) => now.remember_as(before),
            (None, _) => {}
        }
        self.table = now;
        match &self.table {
            Some(table) => Ok(table.timeline().await?),
            None => Ok(Timeline::default()),
        }
    }

    /// The timeline to write on: cleared of what failed writes left, which a dry run only tells of.
    pub(super) async fn clear(&mut self, timeline: Timeline) -> Result<Timeline> {
        let Some(table) = &mut self.table else { return Ok(timeline) };
        if !self.config.run.dry_run && !self.config.run.explain {
            let timeline = open::clear(table, timeline, &self.metrics, &self.writers).await?;
            if !self.swept || self.writers.are_several() {
                let lost = service::remove_lost(table, &self.writers).await?;
                if !self.swept {
                    table.sweep().await?;
                }
                self.swept = lost.wait.is_empty();
                if !lost.rolled_back.is_empty() {
                    lost.rolled_back.iter().for_each(open::tell_of_rollback);
                    return Ok(table.timeline().await?);
                }
            }
            return Ok(timeline);
        }
        if open::has_leftovers(&timeline) {
            tracing::warn!("the table has failed writes; a real run rolls them back first");
        }
        Ok(timeline)
    }

    async fn table_schema(&self, timeline: &Timeline) -> Result<Option<TableSchema>> {
        let Some(table) = &self.table else { return Ok(None) };
        let text = table.latest_schema(timeline).await?;
        Ok(text.as_deref().map(TableSchema::from_avro).transpose()?)
    }

    pub(super) async fn transform(&self, batches: &Batches) -> Result<Transformed> {
        Ok(transform::apply(&self.config.transformers, batches, self.config.memory.rows).await?)
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
        read: SchemaRef,
        reader: Option<TableSchema>,
        frozen: Option<TableSchema>,
        table: Option<TableSchema>,
    ) -> Result<Schemas> {
        let name = &self.config.table.name;
        let was_inferred = reader.is_none();
        let source = match reader {
            Some(reader) => reader,
            None => TableSchema::from_arrow(&without_hidden(&read), name)?,
        };
        let target = self.provided.as_ref().and_then(|p| p.target.clone());
        let incoming = match target {
            Some(target) => target,
            None if self.config.transformers.is_empty() => source.clone(),
            None => TableSchema::from_arrow(&transformed.schema, name)?,
        };
        let writer = schema::deduce_writer_schema(&incoming, table.as_ref(), self.evolution())?;
        let changes = table.map(|table| schema::changes(&table.arrow, &writer.arrow)).unwrap_or_default();
        if !changes.is_empty() {
            tracing::info!(changes = changes.join(", "), "the table's schema changes with this commit");
        }
        Ok(Schemas { writer, inferred: if was_inferred { Some(source) } else { frozen } })
    }
}

fn without_hidden(schema: &SchemaRef) -> SchemaRef {
    let fields: Vec<_> = schema.fields()[..schema.fields().len() - hidden_columns(schema)].to_vec();
    Arc::new(arrow::datatypes::Schema::new(fields))
}

fn left_out(rejects: &Rejects, report: &mut RoundReport) {
    match rejects.policy() {
        BadRecordPolicy::Quarantine => report.rows_quarantined = rejects.count(),
        BadRecordPolicy::Fail | BadRecordPolicy::Skip => report.rows_skipped = rejects.count(),
    }
}

fn count(statuses: &[WriteStatus], report: &mut RoundReport) {
    let partitions: BTreeSet<&str> = statuses.iter().map(|s| s.stat.partition_path.as_str()).collect();
    report.partitions_written = partitions.len() as u64;
    for WriteStatus { stat } in statuses {
        report.rows_in_files += stat.num_writes;
        report.files_inserted += u64::from(stat.prev_commit == "null");
        report.create_time_ms += stat.total_create_time;
        report.upsert_time_ms += stat.total_upsert_time;
        report.inserted += stat.num_inserts;
        report.updated += stat.num_update_writes;
        report.deleted += stat.num_deletes;
        report.files_written += 1;
        report.bytes_written += stat.total_write_bytes;
    }
}
