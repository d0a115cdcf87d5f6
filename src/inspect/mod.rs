//! A table, for a person who looks at it: what it is, what was done to it, where its bytes are, and whether it is whole.
//!
//! Reads tables and writes nothing but the answer; knows no sources. Look at [`run`] first, then at `verify`. Invariants: any
//! table of version 6 is looked at, of whatever writer and in whatever state, also while others write; memory follows the
//! largest partition and the active timeline, never the table.

mod error;
pub mod text;

pub use error::{Error, Result};

use crate::config::{InspectConfig, TableCommand};
use crate::storage::Storage;
use crate::table::Table;
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
    let _table = open(config).await?;
    let _ = (command, out);
    Err(Error::Internal { doing: "look at a table", why: "not done yet".into() })
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
