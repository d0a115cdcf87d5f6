//! What a round among several writers does besides: its instant stands before it looks at the table, and right before the
//! commit whatever the others have done meanwhile is held against it (`service/concurrency`), and against what the round has
//! read: the schema of the table, and the position that it went on from.

use super::round::Streamer;
use super::{Error, Result, checkpoint, open};
use crate::config::Operation;
use crate::schema::TableSchema;
use crate::service::{Conflicts, Inserted, OpenWrite};
use crate::table::{CommitMetadata, InstantTime, Timeline};
use crate::write::{WriteContext, WriteStatus};

/// A job whose rounds another one is always quicker than would never get on: after so many lost ones in a row it does one
/// under the lock.
const LOST_BEFORE_ALONE: u32 = 2;

/// What a round has read of the table before it began.
#[derive(Debug, Clone, Default)]
pub(super) struct Basis {
    /// Of the commit whose position it goes on from.
    pub position: Option<InstantTime>,
    pub schema: Option<TableSchema>,
}

impl Streamer {
    /// The timeline to base the round on. Among several writers the instant is drawn first, as Hudi does it: from then on the
    /// others' cleaning and archiving keeps what it looks at.
    pub(super) async fn begin(&mut self, timeline: Timeline) -> Result<Timeline> {
        let only_looks = self.config.run.dry_run || self.config.run.explain;
        let Some(table) = self.table.as_ref().filter(|_| self.writers.are_several() && !only_looks) else {
            return Ok(timeline);
        };
        let alone = self.lost_in_a_row >= LOST_BEFORE_ALONE;
        if alone {
            tracing::info!(lost = self.lost_in_a_row, "this round keeps the lock, so that nobody is in its way again");
        }
        let open = self.writers.begin(table, None, alone, self.cancel.child_token()).await?;
        let timeline = open.timeline.clone();
        self.opened = Some(open);
        Ok(timeline)
    }

    /// Whether the keys of what is written were looked up, so that those not found are new.
    pub(super) fn looks_up(&self) -> bool {
        self.config.operation == Operation::Upsert || self.config.filter_dupes
    }

    /// Under the lock: fails where the round is to be done again, and puts into the commit what it carries for others.
    pub(super) async fn among_others(
        &self,
        context: &WriteContext,
        write: &OpenWrite,
        metadata: &mut CommitMetadata,
        inserted: Option<&Inserted>,
        statuses: &[WriteStatus],
    ) -> Result<()> {
        // A metadata table that somebody has built since would not know of the commit.
        let mut table = context.table.clone();
        open::reload(&mut table).await?;
        if table.has_metadata_table() {
            open::disable_metadata_table(&mut table).await?;
        }
        let now = table.timeline().await?;
        let conflicts = Conflicts {
            table: &table,
            instant: &write.time,
            based_on: &write.timeline,
            stats: statuses.iter().map(|status| &status.stat).collect(),
            inserted,
            index: &self.config.index,
            workers: self.config.write.workers,
        };
        conflicts.check(&now).await?;
        let config = &self.config.checkpoint;
        let position = checkpoint::latest(&table, &now, config.id.as_deref()).await?.map(|stored| stored.origin);
        if position != self.basis.position {
            let instant = position.map(|instant| instant.to_string()).unwrap_or_default();
            return Err(Error::PositionMoved { instant });
        }
        let schema = table.latest_schema(&now).await?.as_deref().map(TableSchema::from_avro).transpose()?;
        if schema.as_ref().map(|s| s.arrow.fields()) != self.basis.schema.as_ref().map(|s| s.arrow.fields()) {
            return Err(Error::SchemaMoved { table: table.storage.display("") });
        }
        checkpoint::carry(metadata, &table, &now, &write.time, config).await
    }
}
