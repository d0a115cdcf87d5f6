//! A job whose positions the table keeps under another name: to start anew there, as on a new table, or from where it stood
//! under its old name, would read input a second time.

use super::{KEY_V1, KEY_V2, SOURCE_KEY, Stored, latest, named};
use crate::config::CheckpointConfig;
use crate::streamer::{Error, Result};
use crate::table::{Table, Timeline};
use std::collections::BTreeMap;

/// What is in force of what the job's own name says (`stored`) and of other names. A job that gets its id takes over the
/// position that its source had without one. Fails where nobody can tell, unless a flag says where to start.
pub(in crate::streamer) async fn take_over(
    table: &Table,
    timeline: &Timeline,
    stored: Option<Stored>,
    config: &CheckpointConfig,
) -> Result<Option<Stored>> {
    if config.checkpoint.is_some() || config.ignore_checkpoint.is_some() {
        return Ok(stored);
    }
    match &config.id {
        None => {
            let others = sources(table, timeline, stored.as_ref()).await?;
            let is_ours = |source: &Option<String>| match source {
                Some(source) => *source == config.source,
                None => stored.is_none(),
            };
            let ids: Vec<String> = others.into_iter().filter(|(_, source)| is_ours(source)).map(|(id, _)| id).collect();
            match ids.is_empty() {
                true => Ok(stored),
                false => Err(Error::CheckpointsHaveIds { ids: ids.join(", ") }),
            }
        }
        Some(_) if stored.is_some() => Ok(stored),
        Some(id) => {
            let Some(unnamed) = latest(table, timeline, None).await? else { return Ok(None) };
            match &unnamed.source {
                Some(source) if *source == config.source => {
                    tracing::info!(id, instant = %unnamed.instant, "taking over the position that this source had without an id");
                    Ok(Some(unnamed))
                }
                Some(_) => Ok(None),
                None => {
                    let position = unnamed.key.or(unnamed.reset_key).unwrap_or_default();
                    Err(Error::CheckpointHasNoId { instant: unnamed.instant.to_string(), id: id.clone(), position })
                }
            }
        }
    }
}

/// Ids of jobs, and their sources, by the newest commit that carries any and is newer than `stored`: it carries those of all.
async fn sources(
    table: &Table,
    timeline: &Timeline,
    stored: Option<&Stored>,
) -> Result<BTreeMap<String, Option<String>>> {
    let newer = timeline.completed_writes().rev();
    for instant in newer.take_while(|instant| stored.is_none_or(|stored| instant.time > stored.instant)) {
        let summary = table.commit_summary(instant).await?;
        let metadata = &summary.metadata;
        let ids = metadata.extra_metadata.keys().filter_map(|key| id_of(key));
        let source = |id: &str| metadata.extra(&named(SOURCE_KEY, Some(id))).map(str::to_string);
        let found: BTreeMap<String, Option<String>> = ids.map(|id| (id.to_string(), source(id))).collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(BTreeMap::new())
}

fn id_of(key: &str) -> Option<&str> {
    [KEY_V1, KEY_V2].into_iter().find_map(|known| key.strip_prefix(known)?.strip_prefix('.'))
}
