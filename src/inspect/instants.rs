//! What was done to a table, instant by instant: for `timeline`, and for what `show` tells of the last ones.

use super::Result;
use super::text::count;
use crate::table::{Action, ArchivedInstant, CleanMetadata, CommitMetadata, CompactionPlan, Instant, RestoreMetadata};
use crate::table::{RollbackMetadata, SavepointMetadata, State, Table, TimelineRecord};
use chrono::{DateTime, SecondsFormat};
use futures::stream::{StreamExt, TryStreamExt};
use serde::Serialize;
use std::collections::HashMap;

/// Timeline files read at a time.
const READ_AHEAD: usize = 8;

/// An instant; its field names are those of the JSON.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Entry {
    pub instant: String,
    pub action: String,
    /// `requested`, `inflight` or `completed`.
    pub state: &'static str,
    /// Of a write: Hudi's name of the operation.
    pub operation: Option<String>,
    /// RFC 3339, by the times of the instant's files.
    pub begun_at: Option<String>,
    pub completed_at: Option<String>,
    pub took_ms: Option<u64>,
    /// The rest is `None` for what says nothing of rows.
    #[serde(flatten)]
    pub written: Option<Written>,
    /// What else there is to say, in words.
    pub note: Option<String>,
    /// Why the instant's file cannot be read.
    pub unreadable: Option<String>,
    /// It is on the archived timeline.
    pub archived: bool,
    #[serde(skip)]
    pub completed_ms: Option<i64>,
    #[serde(skip)]
    pub begun_ms: Option<i64>,
}

/// What a commit says of its rows.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Written {
    pub rows_inserted: u64,
    pub rows_updated: u64,
    pub rows_deleted: u64,
    /// In the files that were written: copy-on-write copies rows that did not change.
    pub rows_written: u64,
    pub bytes_written: u64,
    pub files_written: u64,
    /// The archived timeline is not asked for it.
    pub partitions_written: Option<u64>,
}

/// When the files of the timeline were written, in epoch milliseconds, by name.
pub(super) struct Times(HashMap<String, i64>);

impl Times {
    pub async fn load(table: &Table) -> Result<Times> {
        let files = table.storage.list(".hoodie").await?.files;
        let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_string();
        Ok(Times(files.into_iter().map(|file| (name(&file.path), file.modified_ms)).collect()))
    }

    fn of(&self, instant: &Instant) -> Option<i64> {
        self.0.get(&instant.file_name()).copied()
    }

    /// Of the requested file, or of the inflight one where there is none (a savepoint).
    fn begun(&self, instant: &Instant) -> Option<i64> {
        // A compaction completes as a commit.
        let before = |action, state| self.of(&Instant::new(instant.time.clone(), action, state));
        let of = |action| before(action, State::Requested).or_else(|| before(action, State::Inflight));
        match instant.action {
            Action::Commit => of(Action::Commit).or_else(|| of(Action::Compaction)),
            Action::DeltaCommit => of(Action::DeltaCommit).or_else(|| of(Action::LogCompaction)),
            action => of(action),
        }
    }
}

/// These instants, in their order.
pub(super) async fn entries<'a>(
    table: &Table,
    times: &Times,
    instants: impl IntoIterator<Item = &'a Instant>,
) -> Result<Vec<Entry>> {
    let reads = instants.into_iter().map(|instant| entry(table, times, instant));
    futures::stream::iter(reads).buffered(READ_AHEAD).try_collect().await
}

async fn entry(table: &Table, times: &Times, instant: &Instant) -> Result<Entry> {
    let is_done = !instant.is_pending();
    let (begun, completed) = (times.begun(instant), times.of(instant).filter(|_| is_done));
    let took = begun.zip(completed).map(|(begun, completed)| u64::try_from(completed - begun).unwrap_or(0));
    let mut entry = Entry {
        instant: instant.time.to_string(),
        action: instant.action.to_string(),
        state: state(instant.state),
        operation: None,
        begun_at: begun.and_then(rfc3339),
        completed_at: completed.and_then(rfc3339),
        took_ms: took,
        written: None,
        note: None,
        unreadable: None,
        archived: false,
        completed_ms: completed,
        begun_ms: begun,
    };
    if let Err(why) = read_into(&mut entry, table, instant).await {
        entry.unreadable = Some(why.to_string());
    }
    Ok(entry)
}

/// Reads the instant's own file, of kinds that say something.
async fn read_into(entry: &mut Entry, table: &Table, instant: &Instant) -> crate::table::Result<()> {
    let is_done = !instant.is_pending();
    match instant.action {
        action if action.is_write() && is_done => {
            let metadata = table.commit_metadata(instant).await?;
            entry.written = Some(Written::of(&metadata));
            entry.note = replaced(&metadata);
            entry.operation = Some(metadata.operation_type);
        }
        Action::Compaction => {
            let plan: CompactionPlan = table.compaction_plan(instant).await?;
            let groups = plan.operations.map_or(0, |operations| operations.len() as u64);
            entry.note = Some(format!("{} planned", count(groups, "file group")));
        }
        Action::Rollback if is_done => {
            let metadata: RollbackMetadata = record(table, instant).await?;
            entry.note = Some(format!("of {}", metadata.commits_rollback.join(", ")));
        }
        Action::Clean if is_done => {
            let metadata: CleanMetadata = record(table, instant).await?;
            let deleted = u64::try_from(metadata.total_files_deleted).unwrap_or(0);
            entry.note = Some(format!("{} deleted", count(deleted, "file")));
        }
        Action::Savepoint if is_done => {
            let metadata: SavepointMetadata = record(table, instant).await?;
            let files = count(metadata.file_names().count() as u64, "file");
            let why = [metadata.savepointed_by, metadata.comments].join(" ");
            entry.note = Some(format!("{files} kept {why}").trim_end().to_string());
        }
        Action::Restore if is_done => {
            let metadata: RestoreMetadata = record(table, instant).await?;
            entry.note = Some(format!("{} undone", count(metadata.instants_to_rollback.len() as u64, "instant")));
        }
        Action::ReplaceCommit => {
            let plan = table.requested_replace(instant).await?.and_then(|plan| plan.clustering_plan);
            if let Some(plan) = plan {
                let slices: usize =
                    plan.input_groups.into_iter().flatten().filter_map(|group| Some(group.slices?.len())).sum();
                entry.operation = Some("CLUSTER".to_string());
                entry.note = Some(format!("{} planned", count(slices as u64, "file group")));
            }
        }
        _ => {}
    }
    Ok(())
}

async fn record<R: TimelineRecord>(table: &Table, instant: &Instant) -> crate::table::Result<R> {
    let bytes = table.read_instant(instant).await?;
    let path = table.storage.display(&instant.path());
    R::from_file(&bytes).map_err(|why| crate::table::Error::TimelineFile { path, why })
}

fn replaced(metadata: &CommitMetadata) -> Option<String> {
    let groups: usize = metadata.partition_to_replace_file_ids.iter().flatten().map(|(_, ids)| ids.len()).sum();
    (groups > 0).then(|| format!("{} replaced", count(groups as u64, "file group")))
}

impl Written {
    fn of(metadata: &CommitMetadata) -> Written {
        let sum = |of: fn(&crate::table::WriteStat) -> u64| metadata.stats().map(of).fold(0, u64::saturating_add);
        Written {
            rows_inserted: sum(|s| s.num_inserts),
            rows_updated: sum(|s| s.num_update_writes),
            rows_deleted: sum(|s| s.num_deletes),
            rows_written: sum(|s| s.num_writes),
            bytes_written: sum(|s| s.total_write_bytes),
            files_written: metadata.stats().filter(|s| s.path.is_some()).count() as u64,
            partitions_written: Some(metadata.partition_to_write_stats.len() as u64),
        }
    }
}

fn state(state: State) -> &'static str {
    match state {
        State::Requested => "requested",
        State::Inflight => "inflight",
        State::Completed => "completed",
    }
}

/// A time for scripts.
pub(super) fn rfc3339(millis: i64) -> Option<String> {
    Some(DateTime::from_timestamp_millis(millis)?.to_rfc3339_opts(SecondsFormat::Millis, true))
}

impl From<ArchivedInstant> for Entry {
    fn from(archived: ArchivedInstant) -> Entry {
        let ArchivedInstant { instant, commit, .. } = archived;
        let written = commit.as_ref().map(|commit| Written {
            rows_inserted: commit.inserted,
            rows_updated: commit.updated,
            rows_deleted: commit.deleted,
            rows_written: commit.rows,
            bytes_written: commit.bytes,
            files_written: commit.files,
            partitions_written: None,
        });
        Entry {
            instant: instant.time.to_string(),
            action: instant.action.to_string(),
            state: state(instant.state),
            operation: commit.map(|commit| commit.operation_type),
            begun_at: None,
            completed_at: None,
            took_ms: None,
            written,
            note: None,
            unreadable: None,
            archived: true,
            completed_ms: None,
            begun_ms: None,
        }
    }
}

impl Entry {
    /// The action, with its state where it is not completed, as in the name of its file.
    pub fn action_and_state(&self) -> String {
        if self.state == "completed" { self.action.clone() } else { format!("{}.{}", self.action, self.state) }
    }

    /// How long ago it completed, or began; in words.
    pub fn age(&self, now_ms: i64) -> String {
        let since = self.completed_ms.or(self.begun_ms);
        since.map_or_else(String::new, |then| super::text::span(u64::try_from(now_ms - then).unwrap_or(0)))
    }
}
