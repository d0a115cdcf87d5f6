//! `hudi-streamer checkpoint`: looks at the position that a table holds, and changes it.
//!
//! A position is changed as everything here is: by a commit. Look at [`run`] first, then at `set.rs`. Invariants: looking
//! changes nothing; a position that the next run could not use, or that skips or repeats rows by mistake, is not set
//! unless the operator insists.

mod error;
mod form;
mod set;
mod show;
mod text;
mod topic;

pub use error::Error;

use super::{Result, checkpoint};
use crate::config::{PositionsCommand, PositionsConfig, StartFrom};
use crate::storage::Storage;
use crate::table::{Table, Timeline};
use checkpoint::Stored;

/// Does what the operator asks for; the answer is for standard output.
pub async fn run(config: PositionsConfig, command: PositionsCommand) -> Result<String> {
    match command {
        PositionsCommand::Show { history, json } => {
            let shown = show::show(&config, history).await?;
            Ok(if json { show::json(&shown) } else { text::report(&shown) })
        }
        PositionsCommand::Set { checkpoint, how } => set::set(&config, &checkpoint, how).await,
        PositionsCommand::From { start, set } => {
            let checkpoint = from(&config, &start).await?;
            match set {
                Some(how) => set::set(&config, &checkpoint, how).await,
                None => Ok(checkpoint),
            }
        }
    }
}

/// The checkpoint of a place in the source.
async fn from(config: &PositionsConfig, start: &StartFrom) -> Result<String> {
    if config.source.is_kafka() {
        return Ok(topic::find(config, start).await?.to_string());
    }
    match start {
        // A file counts when it is newer than the position.
        StartFrom::Timestamp(millis) => Ok(millis.saturating_sub(1).to_string()),
        StartFrom::Earliest => Ok("0".into()),
        StartFrom::Group(_) => {
            Err(Error::NoGroups { source_name: config.source_name, given: config.source_given }.into())
        }
    }
}

/// A table and what its timeline says of positions.
struct Held {
    table: Table,
    timeline: Timeline,
    stored: Option<Stored>,
}

impl Held {
    async fn open(config: &PositionsConfig) -> Result<Held> {
        let storage = Storage::open_with(&config.base_path, &config.storage)?;
        let place = storage.display("");
        let table = Table::open(storage).await?.ok_or_else(|| Error::NoTable { table: place.clone() })?;
        let (wanted, name) = (config.table_name.as_deref(), table.properties.get("hoodie.table.name"));
        if let (Some(wanted), Some(name)) = (wanted, name)
            && wanted != name
        {
            let conflicts = format!("table name is `{wanted}` here and `{name}` in the table");
            return Err(super::Error::Conflict { table: place, conflicts });
        }
        let timeline = table.timeline().await?;
        let stored = checkpoint::latest(&table, &timeline, config.checkpoint.id.as_deref()).await?;
        Ok(Held { table, timeline, stored })
    }

    /// The position in force, flags aside.
    fn position(&self) -> Option<&str> {
        self.stored.as_ref().and_then(|s| s.key.as_deref())
    }
}
