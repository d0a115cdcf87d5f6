//! What `checkpoint show` tells, as data; its field names are those of the JSON.

use super::form::{Position, date};
use super::{Held, Result, checkpoint, topic};
use crate::config::PositionsConfig;
use crate::table::{CommitMetadata, Instant, Table, Timeline};
use futures::stream::{StreamExt, TryStreamExt};
use serde::Serialize;
use std::collections::BTreeMap;

/// Timeline files read at a time.
const READ_AHEAD: usize = 8;

#[derive(Debug, Serialize)]
pub(super) struct Shown {
    pub table: String,
    pub table_name: Option<String>,
    pub source: &'static str,
    /// `None`: no commit of the active timeline carries one.
    pub position: Option<InForce>,
    pub next_run: NextRun,
    /// Writes that have begun and are not completed.
    pub open_writes: Vec<String>,
    /// Newest first.
    pub history: Vec<Entry>,
    /// Commits of the active timeline that the history leaves out.
    pub older_commits: usize,
}

/// The position in force.
#[derive(Debug, Serialize)]
pub(super) struct InForce {
    pub checkpoint: Option<String>,
    #[serde(flatten)]
    pub meaning: Meaning,
    pub instant: String,
    /// RFC 3339: when that commit was completed, by its file's time.
    pub committed_at: Option<String>,
    /// Another writer has archived that commit.
    pub archived: bool,
    /// Every key of that commit that is about checkpoints, of other jobs on the table too.
    pub keys: BTreeMap<String, String>,
    /// `deltastreamer.checkpoint.key`, read by Hudi 0.x.
    pub v1: Option<String>,
    /// `streamer.checkpoint.key.v2`, read first by Hudi 1.x and here.
    pub v2: Option<String>,
    pub spellings_agree: bool,
    pub reset_key: Option<String>,
    pub ignore_key: Option<String>,
}

/// What the text says, as far as it can be read.
#[derive(Debug, Default, Serialize)]
pub(super) struct Meaning {
    /// `kafka`, `files`, or `None` for what neither is.
    pub form: Option<&'static str>,
    /// For files: the time of the newest file read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<topic::Partition>,
    /// Of all partitions that the next run can read on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<i64>,
    /// Why the lag is not told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_unknown: Option<String>,
}

/// Where the next run starts, with the flags that were given.
#[derive(Debug, Serialize)]
pub(super) struct NextRun {
    /// `None`: at the source's own beginning, or not at all.
    pub checkpoint: Option<String>,
    pub why: String,
}

/// One commit.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    pub instant: String,
    pub action: String,
    pub operation: String,
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
    /// `None`: a commit of another writer, or of a service.
    pub checkpoint: Option<String>,
    /// For a position that was set by hand: the one it took the place of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_in_place_of: Option<String>,
}

impl Meaning {
    async fn of(text: &str, config: &PositionsConfig) -> Meaning {
        match Position::read(text) {
            Ok(Position::Files(millis)) => Meaning { form: Some("files"), time: date(millis), ..Meaning::default() },
            Ok(Position::Kafka(offsets)) => {
                let (partitions, lag, lag_unknown) = match topic::held_against(config, &offsets).await {
                    Ok(partitions) => {
                        let lag = partitions.iter().filter_map(|p| p.lag).fold(0, i64::saturating_add);
                        (partitions, Some(lag), None)
                    }
                    Err(why) => (topic::unbounded(&offsets), None, Some(why)),
                };
                let (form, topic) = (Some("kafka"), Some(offsets.topic));
                Meaning { form, topic, partitions, lag, lag_unknown, time: None }
            }
            Err(_) => Meaning::default(),
        }
    }
}

pub(super) async fn show(config: &PositionsConfig, history: usize) -> Result<Shown> {
    let held = Held::open(config).await?;
    let Held { table, timeline, stored } = &held;
    let position = match stored {
        None => None,
        Some(stored) => {
            let instant = timeline.write_at(&stored.instant);
            let metadata = match instant {
                Some(instant) => table.commit_metadata(instant).await?,
                None => CommitMetadata::default(),
            };
            let (v1, v2) = checkpoint::spellings(&metadata);
            Some(InForce {
                meaning: match &stored.key {
                    Some(key) => Meaning::of(key, config).await,
                    None => Meaning::default(),
                },
                checkpoint: stored.key.clone(),
                instant: stored.instant.to_string(),
                committed_at: committed_at(table, instant).await?,
                archived: stored.is_archived,
                keys: metadata.extra_metadata.into_iter().filter(|(key, _)| key.contains("checkpoint")).collect(),
                spellings_agree: v1 == v2,
                v1,
                v2,
                reset_key: stored.reset_key.clone(),
                ignore_key: stored.ignore_key.clone(),
            })
        }
    };
    let entries = entries(table, timeline, history).await?;
    Ok(Shown {
        table: table.storage.display(""),
        table_name: table.properties.get("hoodie.table.name").map(str::to_string),
        source: config.source_name,
        position,
        next_run: next_run(config, &held),
        open_writes: timeline.pending_writes().map(Instant::file_name).collect(),
        older_commits: timeline.completed_writes().count() - entries.len(),
        history: entries,
    })
}

/// When the instant's file came to be.
async fn committed_at(table: &Table, instant: Option<&Instant>) -> Result<Option<String>> {
    let Some(instant) = instant else { return Ok(None) };
    let files = table.storage.list(".hoodie").await?.files;
    let file = files.into_iter().find(|file| file.path == instant.path());
    Ok(file.and_then(|file| date(file.modified_ms)))
}

fn next_run(config: &PositionsConfig, held: &Held) -> NextRun {
    let flags = &config.checkpoint;
    match checkpoint::resume(held.stored.as_ref(), flags) {
        Err(e) => NextRun { checkpoint: None, why: format!("it fails: {e}") },
        Ok(None) => {
            let why = match flags.ignore_checkpoint {
                Some(_) if held.stored.is_some() => {
                    "--ignore-checkpoint counts: it starts as the source does by default"
                }
                _ => "no position is stored: it starts as the source does by default",
            };
            NextRun { checkpoint: None, why: why.into() }
        }
        Ok(Some(checkpoint)) => {
            let why = match held.position() {
                Some(stored) if stored == checkpoint => "it goes on from the stored position",
                _ => "--checkpoint counts",
            };
            NextRun { checkpoint: Some(checkpoint), why: why.into() }
        }
    }
}

async fn entries(table: &Table, timeline: &Timeline, count: usize) -> Result<Vec<Entry>> {
    let reads = timeline.completed_writes().rev().take(count).map(|instant| async move {
        let metadata = table.commit_metadata(instant).await?;
        let sum = |of: fn(&crate::table::WriteStat) -> u64| metadata.stats().map(of).fold(0, u64::saturating_add);
        let (v1, v2) = checkpoint::spellings(&metadata);
        Ok::<_, crate::table::Error>(Entry {
            instant: instant.time.to_string(),
            action: instant.action.to_string(),
            inserted: sum(|s| s.num_inserts),
            updated: sum(|s| s.num_update_writes),
            deleted: sum(|s| s.num_deletes),
            checkpoint: v2.or(v1),
            set_in_place_of: metadata.extra(checkpoint::SET_KEY).map(str::to_string),
            operation: metadata.operation_type,
        })
    });
    Ok(futures::stream::iter(reads).buffered(READ_AHEAD).try_collect().await?)
}

/// The answer for machines.
pub(super) fn json(shown: &Shown) -> String {
    serde_json::to_string_pretty(shown).expect("texts and numbers become JSON")
}
