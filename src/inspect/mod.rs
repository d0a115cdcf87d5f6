//! A table, for a person who looks at it: what it is, what was done to it, where its bytes are, and whether it is whole.
//!
//! Reads tables and writes nothing but the answer; knows no sources. Look at [`run`] first, then at `verify`. Invariants: any
//! table of version 6 is looked at, of whatever writer and in whatever state, also while others write; memory follows the
//! largest partition and the active timeline, never the table.

mod error;
mod files;
mod instants;
mod show;
pub mod text;
mod timeline;
mod verify;

pub use error::{Error, Result};

use crate::config::{InspectConfig, TableCommand};
use crate::storage::Storage;
use crate::table::Table;
use serde::Serialize;
use std::io::Write;

/// How it went with what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Answered,
    /// Of `verify`: something is wrong with the table.
    Damaged,
}

/// Answers on `out`.
pub async fn run(config: &InspectConfig, command: &TableCommand, out: &mut (dyn Write + Send)) -> Result<Verdict> {
    let table = open(config).await?;
    match command {
        TableCommand::Show => show::show(&table, config, out).await?,
        TableCommand::Timeline { limit, archived } => {
            timeline::timeline(&table, *limit, *archived, config.json, out).await?;
        }
        TableCommand::Files(command) => files::files(&table, config, command, out).await?,
        TableCommand::Verify(command) => return verify::verify(table, config, command, out).await,
        TableCommand::Checkpoint { .. } => {
            let why = "another room answers this".into();
            return Err(Error::Internal { doing: "look at a table", why });
        }
    }
    Ok(Verdict::Answered)
}

async fn open(config: &InspectConfig) -> Result<Table> {
    let storage = Storage::open_with(&config.base_path, &config.storage)?;
    let path = storage.display("");
    let table = Table::open_to_look(storage).await?.ok_or_else(|| Error::NoTable { path: path.clone() })?;
    match &config.table_name {
        Some(wanted) if wanted != table.properties.name() => {
            let (name, wanted) = (table.properties.name().to_string(), wanted.clone());
            Err(Error::OtherTable { path, name, wanted })
        }
        _ => Ok(table),
    }
}

/// Which table it is; its field names are those of every answer in JSON.
#[derive(Debug, Clone, Serialize)]
struct Heading {
    table: String,
    table_name: String,
    table_type: String,
}

impl Heading {
    fn of(table: &Table) -> Heading {
        Heading {
            table: table.storage.display(""),
            table_name: table.properties.name().to_string(),
            table_type: table.properties.table_type().to_string(),
        }
    }
}

impl std::fmt::Display for Heading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}), {}", self.table, self.table_name, self.table_type)
    }
}

fn write(out: &mut (dyn Write + Send), text: &str) -> Result<()> {
    out.write_all(text.as_bytes()).map_err(Error::Answer)
}

/// A document, for people who read JSON too.
fn write_json(out: &mut (dyn Write + Send), answer: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(answer).expect("texts and numbers become JSON");
    write(out, &format!("{text}\n"))
}

/// One of many objects, each on a line of its own.
fn write_json_line(out: &mut (dyn Write + Send), answer: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(answer).expect("texts and numbers become JSON");
    write(out, &format!("{text}\n"))
}
