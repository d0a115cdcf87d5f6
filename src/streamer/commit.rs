//! The part of a round that writes: an instant is opened, files are written under it, and it is completed together with the
//! checkpoint; or it is rolled back.

use super::round::{Outcome, Schemas, Streamer, Work};
use super::{Error, Result, checkpoint, open, overtaken, undo};
use crate::observe::{RoundReport, Stages};
use crate::record;
use crate::schema::TableSchema;
use crate::service::lock::Held;
use crate::service::{Inserted, OpenWrite};
use crate::source::Rejects;
use crate::storage::fault_point;
use crate::table::{Action, CommitMetadata, Instant, InstantTime, Markers, PARTITION_METAFILE, State, Table, Timeline};
use crate::write::{self, WriteContext, WriteStatus};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Streamer {
    /// A batch without rows whose position moved: an empty commit keeps the position.
    pub(super) async fn commit_nothing(
        &mut self,
        timeline: Timeline,
        table_schema: Option<TableSchema>,
        frozen: Option<TableSchema>,
        mut stages: Stages,
        mut report: RoundReport,
    ) -> Result<Outcome> {
        let provided = self.provided.as_ref().map(|p| p.target.clone().unwrap_or_else(|| p.source.clone()));
        let writer = match table_schema.or(provided) {
            Some(writer) if self.config.table.allow_empty_commit => writer,
            writer => {
                // Remembered, so that what comes from now on is not behind the next round's start (`latest`).
                if self.pinned.replace(report.checkpoint.clone()).as_ref() != Some(&report.checkpoint) {
                    let why = match writer {
                        None => "there is no data yet, and no schema to make the table with",
                        Some(_) => "it moved without data, and hoodie.allow.empty.commit=false",
                    };
                    tracing::warn!(
                        position = report.checkpoint,
                        "no commit keeps the position: {why}; this process remembers it"
                    );
                }
                self.keep_quiet(report.checkpoint);
                return Ok(Outcome::NoNewData);
            }
        };
        // Only now: a round that writes nothing leaves another writer's open instant alone.
        let timeline = self.clear(timeline).await?;
        if self.config.run.dry_run || self.config.run.explain {
            stages.leave();
            report.emit_dry_run(&stages);
            return Ok(Outcome::NothingWritten);
        }
        let timeline = self.retry_last_compaction(timeline).await?;
        self.ensure_table(&writer).await?;
        let schemas = Schemas { writer, inferred: frozen };
        self.write(Work::Nothing, None, &timeline, &schemas, &mut stages, &mut report).await?;
        self.committed(timeline, stages, report).await
    }

    /// Says what a round has done, and tells the source. That may fail, and the commit stands all the same.
    pub(super) async fn committed(
        &mut self,
        mut timeline: Timeline,
        mut stages: Stages,
        report: RoundReport,
    ) -> Result<Outcome> {
        stages.leave();
        report.emit(&stages);
        self.pinned = None;
        let action = self.table.as_ref().map_or(Action::Commit, Table::write_action);
        if let Some(own) = InstantTime::parse(&report.instant) {
            timeline.instants.push(Instant::new(own, action, State::Completed));
        }
        self.written_on = Some(timeline);
        if let (Some((newest, _)), Some(own)) = (&mut self.key_prefix, InstantTime::parse(&report.instant)) {
            *newest = own;
        }
        self.source.on_commit(&report.checkpoint).await?;
        Ok(Outcome::Committed)
    }

    /// Opens an instant, writes under it and completes it; a failure rolls it back before it is reported.
    pub(super) async fn write(
        &mut self,
        work: Work,
        rejects: Option<&Rejects>,
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
        report.begun_ms = chrono::Utc::now().timestamp_millis();
        let mut open = match self.opened.take() {
            Some(open) => open,
            None => self.writers.begin(&table, Some(timeline), false, self.cancel.child_token()).await?,
        };
        report.instant = open.time.to_string();
        let failure = match self.write_and_complete(work, rejects, &mut open, schemas, stages, report).await {
            Ok(statuses) => {
                report.completed_ms = chrono::Utc::now().timestamp_millis();
                self.remove_markers(Markers::new(&table.storage, &open.time)).await;
                undo::end(open).await;
                fault_point("after-complete");
                return Ok(statuses);
            }
            // Where nobody heard of it, it was ended, or others have taken its files away: that is to be said.
            Err(e) if !self.cancel.is_cancelled() && matches!(e.code(), "interrupted" | "storage-not-found") => {
                open.check_alive().await.map_or_else(Error::from, |()| e)
            }
            Err(e) => e,
        };
        undo::undo(&table, open, &self.writers, &self.metrics).await;
        Err(failure)
    }

    /// The commit stands: what is left is housekeeping, which the next start can do as well. A job that goes on does it beside
    /// its next round.
    async fn remove_markers(&mut self, markers: Markers) {
        self.tidied().await;
        let removal = tokio::spawn(async move {
            if let Err(e) = markers.remove_all().await {
                let instant = &markers.instant;
                tracing::warn!(error = %e, %instant, "marker files could not be removed; they do no harm");
            }
        });
        self.tidying = Some(removal);
        if !self.config.run.continuous {
            self.tidied().await;
        }
    }

    /// Until nothing is left to do of the last round.
    pub(super) async fn tidied(&mut self) {
        if let Some(removal) = self.tidying.take() {
            // It has told of its failure itself.
            let _ = removal.await;
        }
    }

    async fn write_context(&self, table: Table, open: &OpenWrite, schemas: &Schemas) -> Result<Arc<WriteContext>> {
        let (config, timeline) = (&self.config.write, &open.timeline);
        let average_record_size = table
            .average_record_size(
                timeline,
                config.small_file_limit,
                config.record_size_estimation_threshold,
                config.record_size_estimate,
            )
            .await?;
        Ok(Arc::new(WriteContext {
            timeline: Arc::new(timeline.clone()),
            instant: open.time.clone(),
            attempt: open.attempt,
            config: config.clone(),
            index: self.config.index.clone(),
            operation: self.config.operation,
            rule: self.rule,
            ordering_field: open::known_ordering_field(&self.config, Some(&table), &schemas.writer),
            schema: schemas.writer.clone(),
            average_record_size,
            cancel: open.cancel.clone(),
            rows_written: Arc::default(),
            key_cache: self.key_cache.clone(),
            table,
        }))
    }

    async fn write_and_complete(
        &self,
        work: Work,
        rejects: Option<&Rejects>,
        open: &mut OpenWrite,
        schemas: &Schemas,
        stages: &mut Stages,
        report: &RoundReport,
    ) -> Result<Vec<WriteStatus>> {
        let table = self.table.clone().ok_or(Error::Worker { what: "write", why: "there is no table".into() })?;
        let context = &self.write_context(table, open, schemas).await?;
        let (table, action) = (&context.table, open.action);
        fault_point("before-inflight");
        let mut inserted = None;
        let statuses = match work {
            Work::Nothing => {
                let profile = CommitMetadata { operation_type: report.operation.into(), ..Default::default() };
                table.mark_inflight(&context.instant, action, profile.to_json()).await?;
                Vec::new()
            }
            Work::Upsert(tagged, view) => {
                inserted = self.looks_up().then(|| Inserted::of(&tagged));
                let assigning = context.clone();
                let plan = tokio::task::spawn_blocking(move || write::assign(&assigning, tagged, &view));
                let plan = plan.await.map_err(|e| Error::Worker { what: "assign", why: e.to_string() })??;
                table.mark_inflight(&context.instant, action, plan.workload_profile().to_json()).await?;
                plan.execute(context.clone()).await?
            }
            Work::BulkInsert { rows, keys, input } => {
                let profile = CommitMetadata { operation_type: report.operation.into(), ..Default::default() };
                table.mark_inflight(&context.instant, action, profile.to_json()).await?;
                match write::bulk_insert(context.clone(), rows, *keys).await {
                    Ok(statuses) => {
                        input.verdict().await?;
                        statuses
                    }
                    Err(write::Error::Input(e)) => return Err(input.read_error(e).await),
                    Err(write::Error::Record(e)) => return Err(input.record_error(e).await),
                    Err(e) => return Err(e.into()),
                }
            }
        };
        if open.cancel.is_cancelled() {
            return Err(Error::Interrupted);
        }
        stages.enter("commit");
        check_nesting(table, &statuses).await?;
        let mut metadata = CommitMetadata { operation_type: report.operation.into(), ..Default::default() };
        for status in &statuses {
            let stats = metadata.partition_to_write_stats.entry(status.stat.partition_path.clone()).or_default();
            stats.push(status.stat.clone());
        }
        metadata.extra_metadata.insert("schema".into(), schemas.writer.avro.clone());
        let position = Some(report.checkpoint.as_str()).filter(|c| !c.is_empty());
        let inferred = schemas.inferred.as_ref().map(|s| s.avro.as_str());
        let origin = self.writers.are_several().then_some(&open.time);
        let backlog = self.goes_on().then(|| self.since.as_ref().unwrap_or(&open.time));
        checkpoint::store(&mut metadata, &self.config.checkpoint, position, inferred, origin, backlog);
        if let Some(rejects) = rejects.filter(|rejects| rejects.count() > 0) {
            stages.enter("quarantine");
            self.quarantine(rejects, &report.checkpoint).await?;
            stages.enter("commit");
        }
        fault_point("before-complete");
        self.complete(context, open, metadata, inserted.as_ref(), &statuses).await?;
        Ok(statuses)
    }

    /// The commit point.
    async fn complete(
        &self,
        context: &WriteContext,
        open: &mut OpenWrite,
        metadata: CommitMetadata,
        inserted: Option<&Inserted>,
        statuses: &[WriteStatus],
    ) -> Result<()> {
        let held = open.lock(&self.writers).await?;
        let done = self.complete_locked(context, open, &held, metadata, inserted, statuses).await;
        undo::release(held).await;
        done
    }

    async fn complete_locked(
        &self,
        context: &WriteContext,
        open: &OpenWrite,
        held: &Held,
        mut metadata: CommitMetadata,
        inserted: Option<&Inserted>,
        statuses: &[WriteStatus],
    ) -> Result<()> {
        let table = &context.table;
        if self.writers.are_several() {
            self.among_others(context, open, &mut metadata, inserted, statuses).await?;
        }
        overtaken::check(table, &context.timeline, statuses).await?;
        open.check_alive().await?;
        held.check().await?;
        fault_point("under-lock");
        table.complete(&open.time, open.action, metadata.to_json()).await?;
        let instant = open.instant().in_state(State::Completed);
        table.kept.wrote(&instant, &metadata);
        table.remember(&instant, metadata);
        Ok(())
    }
}

/// Of two partitions one inside the other, Hudi's reader loses the inner one's rows. Asked again of what was written, since
/// a bulk insert sees its partitions only then, and against what the table holds.
async fn check_nesting(table: &Table, statuses: &[WriteStatus]) -> Result<()> {
    let written: BTreeSet<&str> = statuses.iter().map(|s| s.stat.partition_path.as_str()).collect();
    let written: Vec<&str> = written.into_iter().filter(|p| !p.is_empty()).collect();
    if let Some((outer, inner)) = record::nested_clash(&written) {
        return Err(Error::NestedPartitions { outer, inner });
    }
    let new: BTreeSet<&str> =
        statuses.iter().filter(|s| s.stat.prev_commit == "null").map(|s| s.stat.partition_path.as_str()).collect();
    for path in new.into_iter().filter(|p| !p.is_empty()) {
        for (end, _) in path.match_indices('/') {
            let outer = &path[..end];
            if table.storage.size(&format!("{outer}/{PARTITION_METAFILE}")).await?.is_some() {
                return Err(Error::NestedPartitions { outer: outer.into(), inner: path.into() });
            }
        }
        for folder in table.storage.folders(path).await? {
            // A folder that a failed write left has no rows to lose.
            let files = table.storage.list_recursive(&folder, &|_| true).await?;
            if files.iter().any(|f| f.path.ends_with(".parquet")) {
                return Err(Error::NestedPartitions { outer: path.into(), inner: folder });
            }
        }
    }
    Ok(())
}
