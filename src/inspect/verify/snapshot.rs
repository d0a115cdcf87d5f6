//! What the table is taken for: its timeline at one moment, and what follows from it.

use super::super::Result;
use super::expected::Expected;
use super::finding::{Findings, Kind};
use crate::config::PayloadClass;
use crate::record::MergeRule;
use crate::schema::TableSchema;
use crate::slice::SliceOptions;
use crate::table::{Instant, InstantTime, Slicer, Table, Timeline};
use std::collections::HashSet;

/// Bytes for rows of the logs of one file group, of which only keys are read.
const MERGE_MEMORY: usize = 64 << 20;
/// Rows in a batch.
const BATCH_ROWS: usize = 8192;

pub(super) struct Snapshot {
    pub timeline: Timeline,
    pub slicer: Slicer,
    pub expected: Expected,
    /// How logs are merged for their keys; `None` where nobody can know.
    pub merging: Option<SliceOptions>,
    /// Of everything on the timeline.
    pub instants: HashSet<InstantTime>,
    /// A write has begun and is not completed: what it leaves in a log file may be torn.
    pub has_open_writes: bool,
}

impl Snapshot {
    /// `None`: the timeline cannot be read so far that files could be looked at; `findings` say why.
    pub async fn load(table: &Table, findings: &mut Findings) -> Result<Option<Snapshot>> {
        let timeline = table.timeline_as_it_is().await?;
        let expected = Expected::load(table, &timeline, findings).await?;
        let slicer = match Slicer::load(table, &timeline).await {
            Ok(slicer) => slicer,
            // Named among the findings already, where it is a completed one.
            Err(crate::table::Error::TimelineFile { path, why }) => {
                if !findings.faults.found.iter().any(|finding| path.ends_with(&finding.path)) {
                    findings.add(Kind::TimelineFile, path, why);
                }
                return Ok(None);
            }
            Err(e) => return Err(e.into()),
        };
        let merging = match table.properties.is_merge_on_read() {
            true => merging(table, &timeline, findings).await?,
            false => None,
        };
        let has_open_writes = timeline.pending_writes().next().is_some();
        let instants = timeline.instants.iter().map(|instant| instant.time.clone()).collect();
        Ok(Some(Snapshot { timeline, slicer, expected, merging, instants, has_open_writes }))
    }

    /// Whether nothing has happened on the table in between.
    pub fn is_as_of(&self, timeline: &Timeline) -> bool {
        let same = |(a, b): (&Instant, &Instant)| a == b;
        self.timeline.instants.len() == timeline.instants.len()
            && self.timeline.instants.iter().zip(&timeline.instants).all(same)
    }
}

async fn merging(table: &Table, timeline: &Timeline, findings: &mut Findings) -> Result<Option<SliceOptions>> {
    let schema = match table.latest_schema(timeline).await {
        Ok(schema) => schema.map(|schema| TableSchema::from_avro(&schema)).transpose().map_err(|e| e.to_string()),
        Err(e @ crate::table::Error::SchemaOnRead { .. }) => Err(e.to_string()),
        // A commit that cannot be read is among the findings.
        Err(crate::table::Error::TimelineFile { .. }) => return Ok(None),
        Err(e) => return Err(e.into()),
    };
    let schema = match schema {
        Ok(Some(schema)) => schema,
        Ok(None) => return Ok(None),
        Err(why) => {
            findings.add(Kind::NotRead, "", format!("logs are not merged, and their keys not compared: {why}"));
            return Ok(None);
        }
    };
    // Which records there are is the same under every rule that does not make up deletes of its own.
    let payload = table.properties.payload_class().and_then(PayloadClass::from_java_class);
    let options = SliceOptions {
        schema: schema.with_meta_columns(),
        rule: MergeRule(payload.unwrap_or(PayloadClass::OverwriteWithLatest)),
        ordering_field: table.properties.precombine_field().map(str::to_string),
        memory: MERGE_MEMORY,
        batch_rows: BATCH_ROWS,
    };
    Ok(Some(options.keys_only(&[])))
}
