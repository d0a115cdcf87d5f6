//! What a commit among several writers carries for the others: their checkpoints, so that archiving never takes the last
//! commit of a job that rests.
//!
//! Commits become complete in another order than that of their instants: the newest may know less than an older one that was
//! completed after it. Each position therefore says which commit has put it there, and each commit how far back one of those
//! may lie that it does not know of ([`AS_OF_KEY`]).

use super::{
    BACKLOG_KEY, IGNORE_KEY, INFERRED_SCHEMA_KEY, KEY_V1, KEY_V2, ORIGIN_KEY, RESET_KEY_V1, RESET_KEY_V2, SOURCE_KEY,
    named,
};
use crate::config::CheckpointConfig;
use crate::streamer::Result;
use crate::table::{CommitMetadata, InstantTime, Table, Timeline};
use std::collections::BTreeMap;

/// The oldest write that was open when the commit became complete, or its own instant: all that became complete later is not
/// older.
const AS_OF_KEY: &str = "deltastreamer.checkpoint.as_of";

/// All that a job with an id keeps in commits.
const KEYS: [&str; 9] =
    [KEY_V1, KEY_V2, RESET_KEY_V1, RESET_KEY_V2, IGNORE_KEY, INFERRED_SCHEMA_KEY, ORIGIN_KEY, SOURCE_KEY, BACKLOG_KEY];

/// Under the lock: puts what other jobs have kept into the commit, and what `hoodie.write.meta.key.prefixes` asks for. What the
/// commit says itself stays. (Hudi's writers put the older value over their own.)
pub(in crate::streamer) async fn carry(
    metadata: &mut CommitMetadata,
    table: &Table,
    now: &Timeline,
    own: &InstantTime,
    config: &CheckpointConfig,
) -> Result<()> {
    // By id: which commit has put it there, and what it says.
    let mut others: BTreeMap<String, (InstantTime, Vec<(String, String)>)> = BTreeMap::new();
    let mut reaches_to: Option<InstantTime> = None;
    for (at, instant) in now.completed_writes().rev().enumerate() {
        if reaches_to.as_ref().is_some_and(|to| instant.time < *to) {
            break;
        }
        let summary = table.commit_summary(instant).await?;
        let said = &summary.metadata;
        if at == 0 {
            let asked = said
                .extra_metadata
                .iter()
                .filter(|(key, _)| config.carried_prefixes.iter().any(|prefix| key.starts_with(prefix.as_str())));
            for (key, value) in asked {
                metadata.extra_metadata.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        let as_of = said.extra(AS_OF_KEY).and_then(InstantTime::parse);
        reaches_to = reaches_to.max(as_of);
        for (id, origin) in origins(said) {
            let known = others.get(id).is_some_and(|(known, _)| *known >= origin);
            if !known && config.id.as_deref() != Some(id) {
                let values = KEYS.iter().filter_map(|key| {
                    let key = named(key, Some(id));
                    said.extra(&key).map(|value| (key.clone(), value.to_string()))
                });
                others.insert(id.to_string(), (origin, values.collect()));
            }
        }
    }
    for (key, value) in others.into_values().flat_map(|(_, values)| values) {
        metadata.extra_metadata.insert(key, value);
    }
    let open = now.pending_writes().map(|write| &write.time).chain([own]).min();
    metadata.extra_metadata.insert(AS_OF_KEY.to_string(), open.unwrap_or(own).to_string());
    Ok(())
}

/// The ids that a commit knows of, and which commit has put their positions there.
fn origins(metadata: &CommitMetadata) -> impl Iterator<Item = (&str, InstantTime)> {
    metadata.extra_metadata.iter().filter_map(|(key, origin)| {
        let id = key.strip_prefix(ORIGIN_KEY)?.strip_prefix('.')?;
        Some((id, InstantTime::parse(origin)?))
    })
}

#[cfg(test)]
mod tests;
