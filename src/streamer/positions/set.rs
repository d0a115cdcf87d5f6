//! `checkpoint set`: a commit without rows that carries another position.

use super::form::{Position, doubts_about_files};
use super::topic::{self, Oddities};
use super::{Error, Held, text};
use crate::config::{CheckpointConfig, PositionsConfig, SetHow, SourceClass};
use crate::observe::Metrics;
use crate::service::Writers;
use crate::streamer::{Result, checkpoint, open, undo};
use crate::table::{Action, CommitMetadata, InstantTime, Table, Timeline};
use tokio_util::sync::CancellationToken;

/// A write that began this recently may be one of a living process: Hudi's own measure for a silent one
/// (`hoodie.client.heartbeat.interval_in_ms` × `….tolerable.misses`, 0.15).
const YOUNG_MS: i64 = 2 * 60_000;

/// What an empty commit says it was: as a round of the Streamer's default operation, which Hudi knows to hold no rows.
const OPERATION: &str = "UPSERT";

/// Sets the position, or says what that would change.
pub(super) async fn set(config: &PositionsConfig, wanted: &str, how: SetHow) -> Result<String> {
    let position = of_this_source(config, wanted)?;
    let wanted = position.to_string();
    let mut held = Held::open(config).await?;
    let place = held.table.storage.display("");
    let Oddities { doubts, warnings } = oddities(config, &position).await;
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    let before = held.position().map(str::to_string);
    let change = text::change(before.as_deref(), &wanted);
    if before.as_deref() == Some(&wanted) {
        return Ok(format!("{change}\nthe position is this one already: nothing is written"));
    }
    if how.dry_run {
        let doubts: String = doubts.iter().map(|d| format!("\ndoubtful, so wants --force: {d}")).collect();
        return Ok(format!("{change}{doubts}\ndry run: nothing is written"));
    }
    if !doubts.is_empty() && !how.force {
        return Err(Error::Doubtful { checkpoint: wanted, doubts: doubts.join("; ") }.into());
    }
    if !how.force {
        refuse_young_writes(&held.table, &held.timeline).await?;
    }
    let schema = held.table.latest_schema(&held.timeline).await?.ok_or(Error::NoSchema { table: place })?;
    let metadata = metadata(config, &held, &wanted, schema);
    let writers = open::writers(&config.concurrency, &held.table)?;
    let timeline = open::clear(&mut held.table, held.timeline, &Metrics::off(), &writers).await?;
    let instant = commit(&held.table, &timeline, &metadata, &writers).await?;
    tracing::info!(%instant, position = wanted, before, "position set");
    Ok(format!("{change}\nset by commit {instant}: the next run goes on from it"))
}

/// The position, if it is one that the configured source can use.
fn of_this_source(config: &PositionsConfig, text: &str) -> Result<Position> {
    let position = Position::read(text).map_err(|why| Error::Malformed { checkpoint: text.into(), why })?;
    let fits = match config.source {
        SourceClass::JsonDfs => matches!(position, Position::Files(_)),
        SourceClass::JsonKafka | SourceClass::AvroKafka => matches!(position, Position::Kafka(_)),
    };
    match fits {
        true => Ok(position),
        false => Err(Error::Foreign {
            checkpoint: text.into(),
            form: position.form(),
            source_name: config.source_name,
            given: config.source_given,
        }
        .into()),
    }
}

async fn oddities(config: &PositionsConfig, position: &Position) -> Oddities {
    match position {
        Position::Kafka(offsets) => topic::oddities(config, offsets).await,
        Position::Files(millis) => {
            let now = chrono::Utc::now().timestamp_millis();
            Oddities { doubts: doubts_about_files(*millis, now), ..Oddities::default() }
        }
    }
}

/// A round rolls open writes back when it starts; an operator is asked first where their writer may be alive.
async fn refuse_young_writes(table: &Table, timeline: &Timeline) -> Result<()> {
    let listing = table.storage.list(".hoodie").await?;
    let now = chrono::Utc::now().timestamp_millis();
    for open in timeline.pending_writes() {
        let waits = open.action == Action::ReplaceCommit
            && table.requested_replace(open).await?.is_some_and(|plan| plan.clustering_plan.is_some());
        let path = open.path();
        let Some(file) = listing.files.iter().find(|f| f.path == path).filter(|_| !waits) else { continue };
        let age = now.saturating_sub(file.modified_ms);
        if age < YOUNG_MS {
            let (table, instant) = (table.storage.display(""), open.time.to_string());
            return Err(Error::OpenWrite { table, instant, seconds: age / 1000 }.into());
        }
    }
    Ok(())
}

/// What the commit carries: the table's schema, as every commit must; what the last one kept for the next run; and the flags
/// that have counted, lest they count again over the new position.
fn metadata(config: &PositionsConfig, held: &Held, position: &str, schema: String) -> CommitMetadata {
    let mut metadata = CommitMetadata { operation_type: OPERATION.into(), ..CommitMetadata::default() };
    metadata.extra_metadata.insert("schema".into(), schema);
    metadata.extra_metadata.insert(checkpoint::SET_KEY.into(), held.position().unwrap_or("none").into());
    let stored = held.stored.as_ref();
    let flags = config.checkpoint.clone();
    let counted = CheckpointConfig {
        checkpoint: flags.checkpoint.or_else(|| stored.and_then(|s| s.reset_key.clone())),
        ignore_checkpoint: flags.ignore_checkpoint.or_else(|| stored.and_then(|s| s.ignore_key.clone())),
        id: flags.id,
        source: flags.source,
        ..CheckpointConfig::default()
    };
    let inferred = stored.and_then(|s| s.inferred_schema.as_deref());
    checkpoint::store(&mut metadata, &counted, Some(position), inferred, None, None);
    metadata
}

/// The three states of a commit without rows; one that fails in between is rolled back.
async fn commit(
    table: &Table,
    timeline: &Timeline,
    metadata: &CommitMetadata,
    writers: &Writers,
) -> Result<InstantTime> {
    let write = writers.begin(table, Some(timeline), false, CancellationToken::new()).await?;
    let (time, action) = (write.time.clone(), write.action);
    let states = async {
        let profile = CommitMetadata { operation_type: OPERATION.into(), ..CommitMetadata::default() };
        table.mark_inflight(&time, action, profile.to_json()).await?;
        let held = open::lock(writers, "set the position").await?;
        write.check_alive().await?;
        held.check().await?;
        table.complete(&time, action, metadata.to_json()).await?;
        undo::release(held).await;
        Ok(())
    };
    match states.await {
        Ok(()) => {
            undo::end(write).await;
            Ok(time)
        }
        Err(failure) => {
            undo::undo(table, write, writers, &Metrics::off()).await;
            Err(failure)
        }
    }
}
