//! Savepoints, and the ways back to an earlier write: `hudi-streamer savepoint|rollback|restore`.

use super::commands::Answer;
use super::{Error, Result, checkpoint, open};
use crate::config::{SavepointCommand, ServiceOptions};
use crate::service::{self, Restore, RolledBack, Savepoint, Writers};
use crate::table::{Action, Instant, InstantTime, Table};
use chrono::DateTime;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;

pub(super) async fn savepoint(
    table: &Table,
    writers: &Writers,
    command: SavepointCommand,
    options: ServiceOptions,
) -> Result<Answer> {
    match command {
        SavepointCommand::List => list(table).await,
        SavepointCommand::Create { instant, user, comments } => {
            let instant = instant.as_deref().map(parsed).transpose()?;
            let held = open::lock(writers, "make a savepoint").await?;
            let savepoint = service::prepare_savepoint(table, instant.as_ref(), &user, &comments).await?;
            if !options.dry_run {
                service::create_savepoint(table, &held, &savepoint).await?;
            }
            held.release().await?;
            let Shown { files, partitions, .. } = Shown::of(&savepoint);
            let word = if options.dry_run { "would keep" } else { "created: it keeps" };
            let text = format!("savepoint {} {word} {files} files in {partitions} partitions", savepoint.instant);
            Ok(Answer { text, json: with_dry_run(json!(Shown::of(&savepoint)), options) })
        }
        SavepointCommand::Delete { instant } => {
            let instant = parsed(&instant)?;
            let held = open::lock(writers, "delete a savepoint").await?;
            let savepoint = service::find_savepoint(table, &instant).await?;
            if !options.dry_run {
                service::delete_savepoint(table, &held, &instant).await?;
            }
            held.release().await?;
            let files = Shown::of(&savepoint).files;
            let text = match options.dry_run {
                true => format!("savepoint {instant} would be deleted, and its {files} files be cleaned as others are"),
                false => format!("savepoint {instant} deleted: its {files} files are cleaned as others are"),
            };
            Ok(Answer { text, json: with_dry_run(json!(Shown::of(&savepoint)), options) })
        }
    }
}

async fn list(table: &Table) -> Result<Answer> {
    let savepoints = service::savepoints(table).await?;
    let shown: Vec<Shown> = savepoints.iter().map(Shown::of).collect();
    let line = |s: &Shown| {
        let who = if s.user.is_empty() { String::new() } else { format!(" by {}", s.user) };
        let why = if s.comments.is_empty() { String::new() } else { format!(": {}", s.comments) };
        format!("{}  {} files in {} partitions, made {}{who}{why}", s.savepoint, s.files, s.partitions, s.made)
    };
    let text = match shown.is_empty() {
        true => format!("{} has no savepoints", table.storage.display("")),
        false => shown.iter().map(line).collect::<Vec<_>>().join("\n"),
    };
    Ok(Answer { text, json: json!(shown) })
}

/// A savepoint, as it is told.
#[derive(Debug, Serialize)]
struct Shown {
    savepoint: String,
    made: String,
    user: String,
    comments: String,
    files: usize,
    partitions: usize,
}

impl Shown {
    fn of(savepoint: &Savepoint) -> Shown {
        let metadata = &savepoint.metadata;
        let made = DateTime::from_timestamp_millis(metadata.savepointed_at).unwrap_or_default();
        Shown {
            savepoint: savepoint.instant.to_string(),
            made: made.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
            user: metadata.savepointed_by.clone(),
            comments: metadata.comments.clone(),
            files: metadata.file_names().count(),
            partitions: metadata.partition_metadata.len(),
        }
    }
}

pub(super) async fn rollback(
    table: &mut Table,
    writers: &Writers,
    instant: Option<String>,
    options: ServiceOptions,
) -> Result<Answer> {
    let wanted = instant.as_deref().map(parsed).transpose()?;
    let held = open::lock(writers, "roll back a write").await?;
    if !options.dry_run {
        open::disable_metadata_table(table).await?;
        let finished = service::finish_rollbacks(table).await?;
        let is_it = |done: &RolledBack| wanted.as_ref().is_none_or(|wanted| *wanted == done.instant.time);
        if let Some(done) = finished.into_iter().rfind(is_it) {
            held.release().await?;
            return rolled_back(table, vec![], &done, "had begun already, and is finished").await;
        }
    }
    let Some(target) = service::find_newest(table, wanted.as_ref()).await? else {
        let text = format!("{} has no write to roll back", table.storage.display(""));
        return Ok(Answer { text, json: with_dry_run(json!({ "undone": [], "checkpoint": null }), options) });
    };
    let undone = vec![Write::read(table, &target).await?];
    if options.dry_run {
        let stays = service::newest_before(&table.timeline().await?, &target.time);
        return would(table, undone, stays.as_ref()).await;
    }
    undone.iter().for_each(Write::warn);
    let done = service::rollback_newest(table, writers, &held, &target).await?;
    held.release().await?;
    rolled_back(table, undone, &done, "is rolled back").await
}

async fn rolled_back(table: &Table, mut undone: Vec<Write>, done: &RolledBack, what: &str) -> Result<Answer> {
    if undone.is_empty() {
        undone.push(Write::gone(&done.instant));
    }
    let now = Now::read(table, None).await?;
    let counts = counts(done.files_deleted, done.log_files_written);
    let text = format!("{} {what}: {counts}\n{}", undone[0].told(), now.told("is"));
    let json = json!({
        "undone": undone, "files_deleted": done.files_deleted, "log_files_written": done.log_files_written,
        "newest": now.newest, "checkpoint": now.checkpoint, "checkpoints": now.checkpoints, "dry_run": false,
    });
    Ok(Answer { text, json })
}

pub(super) async fn restore(
    table: &mut Table,
    writers: &Writers,
    instant: Option<String>,
    options: ServiceOptions,
) -> Result<Answer> {
    let wanted = instant.as_deref().map(parsed).transpose()?;
    let held = open::lock(writers, "restore the table").await?;
    let planned = service::plan_restore(table, writers, wanted.as_ref()).await?;
    let mut undone = Vec::new();
    for instant in &planned.undo {
        undone.push(Write::read(table, instant).await?);
    }
    let Restore { to, is_savepoint, pending, .. } = &planned;
    if options.dry_run {
        return would(table, undone, Some(to)).await;
    }
    open::disable_metadata_table(table).await?;
    undone.iter().for_each(Write::warn);
    let done = service::restore(table, &held, &planned).await?;
    held.release().await?;
    let now = Now::read(table, None).await?;
    let place = format!("{}{to}", if *is_savepoint { "savepoint " } else { "" });
    let mut text = match (done.undone.len(), pending) {
        (0, None) => format!("nothing was written after {place}"),
        (count, pending) => {
            let begun = if pending.is_some() { "a restore that had begun is finished: " } else { "" };
            let counts = counts(done.files_deleted, done.log_files_written);
            let plural = if count == 1 { "" } else { "s" };
            format!("{begun}restored to {place}: {count} write{plural} undone, {counts}")
        }
    };
    for write in &undone {
        text.push_str(&format!("\n  {}", write.told()));
    }
    text.push_str(&format!("\n{}", now.told("is")));
    let json = json!({
        "to": to.to_string(), "is_savepoint": is_savepoint,
        "undone": done.undone.iter().map(|info| &info.commit_time).collect::<Vec<_>>(), "writes": undone,
        "files_deleted": done.files_deleted, "log_files_written": done.log_files_written,
        "newest": now.newest, "checkpoint": now.checkpoint, "checkpoints": now.checkpoints, "dry_run": false,
    });
    Ok(Answer { text, json })
}

/// What would become of the table. `stays`: the newest write afterwards.
async fn would(table: &Table, undone: Vec<Write>, stays: Option<&InstantTime>) -> Result<Answer> {
    let now = Now::read(table, Some(stays)).await?;
    let mut text = match undone.len() {
        0 => "nothing would be undone".to_string(),
        _ => "would be undone:".to_string(),
    };
    for write in &undone {
        text.push_str(&format!("\n  {}", write.told()));
    }
    text.push_str(&format!("\n{}", now.told("would be")));
    let json = json!({
        "undone": undone, "newest": now.newest, "checkpoint": now.checkpoint, "checkpoints": now.checkpoints,
        "dry_run": true,
    });
    Ok(Answer { text, json })
}

fn counts(files: usize, blocks: usize) -> String {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    format!("{files} file{} deleted, {blocks} rollback block{} written", plural(files), plural(blocks))
}

/// A write that is undone, as it is told before and after.
#[derive(Debug, Serialize)]
struct Write {
    instant: String,
    action: String,
    completed: bool,
    operation: String,
    inserted: u64,
    updated: u64,
    deleted: u64,
    /// The position that goes with it.
    checkpoint: Option<String>,
}

impl Write {
    /// As far as the timeline still tells.
    async fn read(table: &Table, instant: &Instant) -> Result<Write> {
        if instant.is_pending() {
            return Ok(Write::gone(instant));
        }
        let metadata = table.commit_metadata(instant).await?;
        let sum = |of: fn(&crate::table::WriteStat) -> u64| metadata.stats().map(of).fold(0, u64::saturating_add);
        Ok(Write {
            completed: true,
            operation: metadata.operation_type.clone(),
            inserted: sum(|s| s.num_inserts),
            updated: sum(|s| s.num_update_writes),
            deleted: sum(|s| s.num_deletes),
            checkpoint: checkpoint::put_by(&metadata, &instant.time),
            ..Write::gone(instant)
        })
    }

    fn gone(instant: &Instant) -> Write {
        Write {
            instant: instant.time.to_string(),
            action: instant.action.to_string(),
            completed: false,
            operation: String::new(),
            inserted: 0,
            updated: 0,
            deleted: 0,
            checkpoint: None,
        }
    }

    fn told(&self) -> String {
        let Write { instant, action, operation, inserted, updated, deleted, .. } = self;
        match self.completed {
            true => {
                format!("{action} {instant} ({operation}, {inserted} inserted, {updated} updated, {deleted} deleted)")
            }
            false if action == Action::Compaction.as_str() => format!("{action} {instant} (not completed)"),
            false => format!("{action} {instant}"),
        }
    }

    /// What is about to go is in the log, whatever comes next.
    fn warn(&self) {
        let Write { instant, action, operation, inserted, updated, deleted, checkpoint, .. } = self;
        tracing::warn!(instant, action, operation, inserted, updated, deleted, checkpoint, "about to be undone");
    }
}

/// Where the table stands afterwards.
struct Now {
    newest: Option<String>,
    /// Of the job without an id.
    checkpoint: Option<String>,
    checkpoints: BTreeMap<String, String>,
}

impl Now {
    /// `after`: with this write as the newest, or with none; else as it is.
    async fn read(table: &Table, after: Option<Option<&InstantTime>>) -> Result<Now> {
        let timeline = table.timeline_as_it_is().await?;
        let timeline = match after {
            None => timeline,
            Some(None) => Default::default(),
            Some(Some(last)) => timeline.until(last),
        };
        Ok(Now {
            newest: timeline.last_completed_write().map(|write| write.time.to_string()),
            checkpoint: checkpoint::position(table, &timeline).await?,
            checkpoints: checkpoint::positions(table, &timeline).await?,
        })
    }

    fn told(&self, is: &str) -> String {
        let Some(newest) = &self.newest else { return format!("the table {is} without a write") };
        let of_one = |job: String, position: &String| format!("{job} goes on from position {position}");
        let plain = self.checkpoint.iter().map(|position| of_one("a job".into(), position));
        let named = self.checkpoints.iter().map(|(id, position)| of_one(format!("job {id}"), position));
        let jobs: Vec<String> = plain.chain(named).collect();
        match jobs.is_empty() {
            false => format!("the newest write {is} {newest}, and {}", jobs.join(", ")),
            true => format!("the newest write {is} {newest}; none carries a position"),
        }
    }
}

fn with_dry_run(mut json: serde_json::Value, options: ServiceOptions) -> serde_json::Value {
    json["dry_run"] = json!(options.dry_run);
    json
}

fn parsed(text: &str) -> Result<InstantTime> {
    let whole = InstantTime::parse(text).filter(|_| [14, 17].contains(&text.len()));
    whole.ok_or_else(|| Error::NotAnInstant { text: text.to_string() })
}
