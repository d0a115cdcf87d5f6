//! Where jobs go on from stands in commits: the newest of each job must not go out of their sight, as long as one may take
//! the job for alive. Later it is found in the archived timeline, by our jobs.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Result;
use super::rules::{Chosen, Hold};
use crate::table::{Table, Timeline};

/// Beginnings of the keys that hold a position: of Hudi's Streamer (`StreamerCheckpointV1`, `StreamerCheckpointV2`), with
/// what may follow for several of them on one table, and of Spark's structured streaming (`HoodieStreamingSink`).
const POSITIONS: [&str; 3] =
    ["deltastreamer.checkpoint.key", "streamer.checkpoint.key", "_hudi_streaming_sink_checkpoint"];

/// A job that has left its position so many times the greatest number of commits ago does not hold the others' any more:
/// most likely it is gone for good.
const PATIENCE: usize = 3;

/// Lets the newest commit with a position stay, of every job that has left one. Reads the commits that are to be archived,
/// and of the later ones as many as it takes: one, as long as a single job writes the table. `max`: commits that a timeline has at
/// most if nothing is held.
pub(super) async fn hold(table: &Table, timeline: &Timeline, chosen: &mut Chosen, max: usize) -> Result<()> {
    let Some(last) = chosen.writes.last().map(|write| write.time.clone()) else { return Ok(()) };
    let mut later = timeline.completed_writes().rev().take_while(|write| write.time > last);
    let mut known = BTreeSet::new();
    let mut holding = None;
    for write in chosen.writes.iter().rev() {
        let summary = table.commit_summary(write).await?;
        for position in positions(&summary.metadata.extra_metadata) {
            while !known.contains(&position)
                && let Some(later) = later.next()
            {
                known.extend(positions(&table.commit_summary(later).await?.metadata.extra_metadata));
            }
            if !known.insert(position.clone()) {
                continue;
            }
            let after = timeline.completed_writes().rev().take_while(|later| later.time > write.time).count();
            if after <= max.saturating_mul(PATIENCE) {
                holding = Some((write.time.clone(), position));
            } else {
                tracing::warn!(
                    instant = %write.time,
                    position,
                    commits_since = after,
                    "the newest commit with this position is archived with the others: its job seems to be gone. A job of                      hudi-streamer finds it in the archived timeline, Hudi's own do not"
                );
            }
        }
    }
    if let Some((time, position)) = holding {
        chosen.stop_before(&time, Hold::Checkpoint(time.clone(), position));
    }
    Ok(())
}

/// Names of the positions that a commit holds. Where several jobs share a key, its value is a JSON object by their names.
fn positions(extra: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (key, value) in extra.iter().filter(|(_, value)| !value.is_empty()) {
        if !POSITIONS.iter().any(|position| key.starts_with(position)) {
            continue;
        }
        match serde_json::from_str::<BTreeMap<String, serde_json::Value>>(value) {
            Ok(jobs) => found.extend(jobs.keys().map(|job| format!("{key} of {job}"))),
            Err(_) => found.extend([key.clone()]),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_told_from_other_things_that_commits_say() {
        let extra = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        for (pairs, want) in [
            (&[("schema", "{}"), ("deltastreamer.checkpoint.reset_key", "1")][..], &[][..]),
            (&[("deltastreamer.checkpoint.key", "")], &[]),
            (
                &[("deltastreamer.checkpoint.key", "t,0:1"), ("streamer.checkpoint.key.v2", "t,0:1")],
                &["deltastreamer.checkpoint.key", "streamer.checkpoint.key.v2"],
            ),
            (
                &[("_hudi_streaming_sink_checkpoint", r#"{"a":"1","b":"2"}"#)],
                &["_hudi_streaming_sink_checkpoint of a", "_hudi_streaming_sink_checkpoint of b"],
            ),
        ] {
            assert!(positions(&extra(pairs)).iter().eq(want), "{pairs:?}");
        }
    }
}
