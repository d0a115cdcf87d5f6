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

use super::heartbeat::Heartbeat;
use super::{Compactor, plan, report};
use crate::config::Operation;
use crate::observe::CompactionReport;
use crate::schema::TableSchema;
use crate::service::{Error, Result, rollback_compaction};
use crate::storage::fault_point;
use crate::table::{Action, CommitMetadata, InstantTime, Markers, State, Timeline};
use crate::write::{self, WriteContext, WriteStatus};
use bytes::Bytes;
use std::sync::Arc;

impl Compactor {
    /// Executes a plan, ours or Hudi's. `None`: somebody else has just completed it.
    pub async fn execute(&self, time: &InstantTime) -> Result<Option<CompactionReport>> {
        let heartbeat = Heartbeat::begin(&self.table.storage, time).await?;
        let executed = self.execute_alone(time, &heartbeat).await;
        match heartbeat.end().await {
            // It is somebody else's now, which a failure says by itself.
            Err(Error::CompactionTaken { .. }) => {}
            Err(e) => tracing::warn!(error = %e, instant = %time, "the heartbeat could not be removed"),
            Ok(()) => {}
        }
        executed
    }

    async fn execute_alone(&self, time: &InstantTime, heartbeat: &Heartbeat) -> Result<Option<CompactionReport>> {
        let started = std::time::Instant::now();
        let timeline = self.table.timeline().await?;
        if timeline.write_at(time).is_some_and(|write| !write.is_pending()) {
            return Ok(None);
        }
        self.table.remove_stale_markers(&timeline).await?;
        let found = timeline.pending(Action::Compaction).find(|pending| pending.time == *time);
        let pending = found.ok_or_else(|| Error::NoSuchCompaction { instant: time.to_string() })?;
        let path = self.table.storage.display(&pending.in_state(State::Requested).path());
        let plan = self.table.compaction_plan(pending).await?;
        if pending.state == State::Inflight {
            tracing::warn!(instant = %time, "an earlier attempt at this compaction did not complete: rolling it back");
            rollback_compaction(&self.table, pending).await?;
        }
        let slices = plan::slices(&self.table, &plan, &path).await?;
        let no_schema = || Error::CompactionPlan { path, why: "the table has no schema".to_string() };
        let schema = self.table.latest_schema(&timeline).await?.ok_or_else(no_schema)?;
        let context = Arc::new(self.context(timeline, time, TableSchema::from_avro(&schema)?));

        self.table.mark_inflight(time, Action::Compaction, Bytes::new()).await?;
        let statuses = write::compact(context.clone(), slices, self.config.workers, self.config.memory).await?;
        write::finalize(&context, &statuses).await?;
        fault_point("before-compaction-complete");
        heartbeat.check().await?;
        let metadata = metadata(&statuses, schema).to_json();
        self.table.complete(time, Action::Compaction, metadata).await?;
        fault_point("after-compaction-complete");
        if let Err(e) = Markers::new(&self.table.storage, time).remove_all().await {
            tracing::warn!(error = %e, instant = %time, "marker files could not be removed; they do no harm");
        }
        Ok(Some(CompactionReport { took: started.elapsed(), ..report(time, &statuses) }))
    }

    fn context(&self, timeline: Timeline, instant: &InstantTime, schema: TableSchema) -> WriteContext {
        WriteContext {
            table: self.table.clone(),
            timeline: Arc::new(timeline),
            instant: instant.clone(),
            config: self.write.clone(),
            index: self.index.clone(),
            operation: Operation::Upsert,
            rule: self.rule,
            ordering_field: self.ordering_field.clone(),
            schema,
            average_record_size: self.write.record_size_estimate,
            cancel: self.cancel.clone(),
            rows_written: self.rows_written.clone(),
            key_cache: self.key_cache.clone(),
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
