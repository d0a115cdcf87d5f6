//! A plan made true: each of its slices a base file, then one commit (`HoodieCompactor`, `RunCompactionActionExecutor`, Hudi 0.15).
//!
//! ```text
//! .heartbeat/C            nobody else executes it
//! C.compaction.inflight   what an attempt before this one left is rolled back first
//!   marker, base file     of each slice, several at a time
//! C.commit                from here on readers take the base files
//! ```
//!
//! Whatever ends it, the plan stays, and can be executed again.

use super::heartbeat::{self, Heartbeat};
use super::{Compactor, guard, plan, report};
use crate::config::Operation;
use crate::observe::CompactionReport;
use crate::schema::TableSchema;
use crate::service::{Error, Result, rollback_compaction};
use crate::storage::fault_point;
use crate::table::{self, Action, CommitMetadata, CompactionPlan, FileSlice, Instant, InstantTime, Markers, State};
use crate::table::{Table, Timeline};
use crate::write::{self, WriteContext, WriteStatus};
use bytes::Bytes;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

impl Compactor {
    /// Executes a plan, ours or Hudi's. `None`: somebody else has just completed it.
    pub async fn execute(&self, time: &InstantTime) -> Result<Option<CompactionReport>> {
        let cancel = self.cancel.child_token();
        let heartbeat = Heartbeat::begin(&self.table.storage, time, cancel.clone()).await?;
        let mut attempt = Attempt { compactor: self, heartbeat, cancel, begun: false };
        let executed = attempt.run(time).await;
        let Attempt { heartbeat, begun, .. } = attempt;
        let ended = match &executed {
            Err(_) if begun => heartbeat.give_up().await,
            _ => heartbeat.end().await,
        };
        match ended {
            // It is somebody else's now, which a failure says by itself.
            Err(Error::CompactionTaken { .. }) => {}
            Err(e) => tracing::warn!(error = %e, instant = %time, "the heartbeat could not be removed"),
            Ok(()) => {}
        }
        executed
    }
}

struct Attempt<'a> {
    compactor: &'a Compactor,
    heartbeat: Heartbeat,
    /// Also cancelled when somebody else has taken this attempt for dead.
    cancel: CancellationToken,
    /// What is on storage at the instant is ours, or a dead one's: the next attempt may roll it back.
    begun: bool,
}

impl Attempt<'_> {
    async fn run(&mut self, time: &InstantTime) -> Result<Option<CompactionReport>> {
        let started = std::time::Instant::now();
        let timeline = self.compactor.table.timeline().await?;
        if timeline.write_at(time).is_some_and(|write| !write.is_pending()) {
            return Ok(None);
        }
        let found = timeline.pending(Action::Compaction).find(|pending| pending.time == *time);
        let pending = found.ok_or_else(|| Error::NoSuchCompaction { instant: time.to_string() })?;
        let table = self.compactor.without_metadata_table(pending).await?;
        table.remove_stale_markers(&timeline).await?;
        // On a merge-on-read table a commit is a compaction.
        let is_commit = |write: &Instant| !write.is_pending() && write.action == Action::Commit;
        heartbeat::remove_stale(&table.storage, |time| timeline.write_at(time).is_some_and(is_commit)).await?;
        let path = table.storage.display(&pending.in_state(State::Requested).path());
        guard::check_plan(&table, pending).await?;
        let plan = table.compaction_plan(pending).await?;
        if pending.state == State::Inflight {
            self.roll_back(&table, pending, &plan).await?;
        }
        let slices = plan::slices(&table, &plan, &path).await?;
        let no_schema = || Error::CompactionPlan { path, why: "the table has no schema".to_string() };
        let schema = table.latest_schema(&timeline).await?.ok_or_else(no_schema)?;
        let context = self.context(table.clone(), timeline.clone(), time, TableSchema::from_avro(&schema)?);

        let done = self.write_and_complete(Arc::new(context), pending, slices, schema).await;
        if let Err(Error::CompactionTaken { .. }) = &done {
            let partitions = guard::partitions(plan.operations.iter().flatten());
            guard::remove_attempt(&table, pending, self.heartbeat.attempt(), &partitions).await?;
        }
        let statuses = done?;
        fault_point("after-compaction-complete");
        if let Err(e) = Markers::new(&table.storage, time).remove_all().await {
            tracing::warn!(error = %e, instant = %time, "marker files could not be removed; they do no harm");
        }
        Ok(Some(CompactionReport { took: started.elapsed(), ..report(time, &statuses) }))
    }

    /// Of an attempt that did not complete, and is dead as far as can be known.
    async fn roll_back(&mut self, table: &Table, pending: &Instant, plan: &CompactionPlan) -> Result<()> {
        let Some(began_ms) = guard::began_ms(table, pending).await? else {
            return Err(Error::CompactionTaken { instant: pending.time.to_string() });
        };
        if !self.heartbeat.follows(began_ms) {
            guard::refuse_young(table, pending, began_ms, plan).await?;
        }
        self.heartbeat.check().await?;
        self.begun = true;
        tracing::warn!(instant = %pending.time, "an earlier attempt at this compaction did not complete: rolling it back");
        rollback_compaction(table, pending).await?;
        self.begun = false;
        Ok(())
    }

    /// Up to the commit point. Whoever has lost the heartbeat neither completes nor removes anything of the one that has it.
    async fn write_and_complete(
        &mut self,
        context: Arc<WriteContext>,
        pending: &Instant,
        slices: Vec<FileSlice>,
        schema: String,
    ) -> Result<Vec<WriteStatus>> {
        let (table, time, config) = (context.table.clone(), &pending.time, &self.compactor.config);
        self.heartbeat.check().await?;
        match table.mark_inflight(time, Action::Compaction, Bytes::new()).await {
            Err(table::Error::StateMissing { .. }) => return Err(guard::taken_back(pending)),
            Err(table::Error::InstantExists { .. }) => return Err(guard::just_begun(pending)),
            // A failure may have left the file all the same: the next attempt is to know whose it is.
            marked => {
                self.begun = true;
                marked?;
            }
        }
        if let Err(gone) = guard::check_plan(&table, pending).await {
            // Whoever takes a plan back looks for this file, and puts the plan back if he sees it.
            table.storage.delete(&pending.in_state(State::Inflight).path()).await?;
            self.begun = false;
            return Err(gone);
        }
        let written = write::compact(context.clone(), slices, config.workers, config.memory).await;
        self.heartbeat.check().await?;
        let statuses = written?;
        write::finalize(&context, &statuses).await?;
        fault_point("before-compaction-complete");
        let held = self.compactor.writers.locks.lock("complete a compaction").await?;
        self.compactor.without_metadata_table_under(&held, pending).await?;
        guard::check_plan(&table, pending).await?;
        self.heartbeat.check().await?;
        held.check().await?;
        table.complete(time, Action::Compaction, metadata(&statuses, schema).to_json()).await?;
        if let Err(e) = held.release().await {
            tracing::warn!(error = %e, instant = %time, "the lock was not released in order; the compaction stands");
        }
        Ok(statuses)
    }

    fn context(&self, table: Table, timeline: Timeline, instant: &InstantTime, schema: TableSchema) -> WriteContext {
        let compactor = self.compactor;
        WriteContext {
            table,
            timeline: Arc::new(timeline),
            instant: instant.clone(),
            attempt: self.heartbeat.attempt(),
            config: compactor.write.clone(),
            index: compactor.index.clone(),
            operation: Operation::Upsert,
            rule: compactor.rule,
            ordering_field: compactor.ordering_field.clone(),
            schema,
            average_record_size: compactor.write.record_size_estimate,
            cancel: self.cancel.clone(),
            rows_written: compactor.rows_written.clone(),
            key_cache: compactor.key_cache.clone(),
        }
    }
}

/// No checkpoint: whoever looks for one passes over compactions.
fn metadata(statuses: &[WriteStatus], schema: String) -> CommitMetadata {
    let mut metadata =
        CommitMetadata { compacted: true, operation_type: "COMPACT".to_string(), ..CommitMetadata::default() };
    metadata.extra_metadata.insert("schema".to_string(), schema);
    for WriteStatus { stat } in statuses {
        metadata.partition_to_write_stats.entry(stat.partition_path.clone()).or_default().push(stat.clone());
    }
    metadata
}
