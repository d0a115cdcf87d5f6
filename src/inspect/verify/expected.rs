//! What the commits of the active timeline say of the files that must be there.

use super::super::Result;
use super::finding::{Findings, Kind};
use crate::table::{Action, Instant, InstantTime, LogFileName, Table, TimelineRecord, WriteStat, parse_base_file};
use crate::table::{SavepointMetadata, Timeline};
use futures::stream::StreamExt;
use std::collections::HashMap;

/// Timeline files read at a time.
const READ_AHEAD: usize = 8;

/// By partition and file id: the newest slice of each file group, as far as the active timeline knows of it.
#[derive(Debug, Default)]
pub(super) struct Expected {
    pub partitions: HashMap<String, Partition>,
}

#[derive(Debug, Default)]
pub(super) struct Partition {
    pub groups: HashMap<String, Group>,
    /// Names of the files that savepoints hold, and of which.
    pub savepointed: Vec<(String, InstantTime)>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    pub base: Option<Written>,
    /// On the newest base file, and on compactions that wait.
    pub logs: Vec<Written>,
}

/// A file that a commit wrote.
#[derive(Debug, Clone)]
pub(super) struct Written {
    pub name: String,
    pub size: u64,
    pub rows: u64,
    pub by: InstantTime,
    /// In its name.
    pub base_instant: InstantTime,
}

impl Expected {
    /// Names what cannot be read among `findings`.
    pub async fn load(table: &Table, timeline: &Timeline, findings: &mut Findings) -> Result<Expected> {
        let mut expected = Expected::default();
        let reads = timeline.completed_writes().rev().map(|instant| async move {
            let metadata = table.commit_metadata(instant).await;
            (instant, metadata)
        });
        let mut reads = futures::stream::iter(reads).buffered(READ_AHEAD);
        while let Some((instant, metadata)) = reads.next().await {
            let metadata = match metadata {
                Ok(metadata) if metadata.operation_type == "UNKNOWN" && metadata.stats().next().is_none() => {
                    empty(table, instant, findings).await?;
                    continue;
                }
                Ok(metadata) => metadata,
                Err(e) => {
                    unreadable(e, instant, findings)?;
                    continue;
                }
            };
            for (partition, stats) in metadata.partition_to_write_stats {
                let known = expected.partitions.entry(partition).or_default();
                stats.into_iter().for_each(|stat| known.add(stat, &instant.time));
            }
        }
        expected.add_savepoints(table, timeline, findings).await?;
        Ok(expected)
    }

    async fn add_savepoints(&mut self, table: &Table, timeline: &Timeline, findings: &mut Findings) -> Result<()> {
        let savepoints = timeline.instants.iter().filter(|i| i.action == Action::Savepoint && !i.is_pending());
        for instant in savepoints {
            let read = table.read_instant(instant).await;
            let metadata = match read.map(|bytes| SavepointMetadata::from_file(&bytes)) {
                Ok(Ok(metadata)) => metadata,
                Ok(Err(why)) => {
                    findings.add(Kind::TimelineFile, instant.path(), why);
                    continue;
                }
                Err(e) => {
                    unreadable(e, instant, findings)?;
                    continue;
                }
            };
            for (partition, files) in metadata.partition_metadata {
                let names = files.savepoint_data_file.into_iter().map(|name| (name, instant.time.clone()));
                self.partitions.entry(partition).or_default().savepointed.extend(names);
            }
        }
        Ok(())
    }
}

/// A commit without content is read by Hudi as one that wrote nothing: what it wrote stays, its checkpoint is lost.
async fn empty(table: &Table, instant: &Instant, findings: &mut Findings) -> Result<()> {
    match table.read_instant(instant).await {
        Ok(bytes) if bytes.is_empty() => {
            let why = "the file of a completed commit is empty: its statistics and its checkpoint are lost";
            findings.add(Kind::TimelineFile, instant.path(), why);
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(e) => unreadable(e, instant, findings),
    }
}

/// A file of the timeline that is not what it must be. One that is gone was archived meanwhile.
pub(super) fn unreadable(error: crate::table::Error, instant: &Instant, findings: &mut Findings) -> Result<()> {
    use crate::{storage, table};
    match error {
        table::Error::Storage(storage::Error::NotFound { .. }) => {}
        table::Error::TimelineFile { why, .. } => findings.add(Kind::TimelineFile, instant.path(), why),
        table::Error::Storage(e) if !e.is_retryable() => {
            findings.add(Kind::FileUnreadable, instant.path(), e.to_string());
        }
        other => return Err(other.into()),
    }
    Ok(())
}

impl Partition {
    /// Commits come newest first: what an older one says of a slice that a newer one has replaced does not count.
    fn add(&mut self, stat: WriteStat, by: &InstantTime) {
        let Some(path) = &stat.path else { return };
        let name = path.rsplit('/').next().unwrap_or(path);
        let written = |base_instant| Written {
            name: name.to_string(),
            size: stat.file_size_in_bytes,
            rows: stat.num_writes,
            by: by.clone(),
            base_instant,
        };
        if let Some((file_id, instant)) = parse_base_file(name) {
            let group = self.groups.entry(file_id.to_string()).or_default();
            if group.base.as_ref().is_none_or(|base| base.base_instant < instant) {
                group.logs.retain(|log| log.base_instant >= instant);
                group.base = Some(written(instant));
            }
        } else if let Some(log) = LogFileName::parse(name).filter(|log| !log.cdc) {
            let group = self.groups.entry(log.file_id.clone()).or_default();
            let is_current = group.base.as_ref().is_none_or(|base| base.base_instant <= log.base_instant);
            // A log file that was appended to is told of by each commit that did; the newest knows its size.
            if is_current && group.logs.iter().all(|known| known.name != name) {
                group.logs.push(written(log.base_instant));
            }
        }
    }
}
