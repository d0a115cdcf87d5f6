//! `hudi-streamer clean|archive|savepoint|rollback|restore`: one service of a table, asked for by an operator.

use super::{Error, Result, archive, back, clean};
use crate::config::{ServiceCommand, ServiceConfig, ServiceOptions, StorageConfig};
use crate::service::Writers;
use crate::storage::Storage;
use crate::table::Table;

/// What a command tells of what it has done, or would do.
pub(super) struct Answer {
    /// For a person.
    pub text: String,
    /// For a script: `--json`.
    pub json: serde_json::Value,
}

/// Does what the operator asks for; the answer is for standard output.
pub async fn serve(config: ServiceConfig, command: ServiceCommand, options: ServiceOptions) -> Result<String> {
    let mut table = opened(&config.base_path, config.table_name.as_deref(), &config.storage).await?;
    let name = table.properties.get("hoodie.table.name").unwrap_or_default();
    let writers = Writers::open(&config.concurrency, &table.storage, name)?;
    let answer = answer(&config, &mut table, &writers, command, options).await?;
    Ok(if options.json { format!("{:#}", answer.json) } else { answer.text })
}

async fn answer(
    config: &ServiceConfig,
    table: &mut Table,
    writers: &Writers,
    command: ServiceCommand,
    options: ServiceOptions,
) -> Result<Answer> {
    match command {
        ServiceCommand::Clean => clean::command(config, table, writers, options).await,
        ServiceCommand::Archive => archive::command(config, table, options).await,
        ServiceCommand::Savepoint(command) => back::savepoint(table, writers, command, options).await,
        ServiceCommand::Rollback { instant } => back::rollback(table, writers, instant, options).await,
        ServiceCommand::Restore { instant } => back::restore(table, writers, instant, options).await,
    }
}

/// The table of a command; `name` must be its own, where it is given.
pub(super) async fn opened(base_path: &str, name: Option<&str>, config: &StorageConfig) -> Result<Table> {
    let storage = Storage::open_with(base_path, config)?;
    let place = storage.display("");
    let table = Table::open(storage).await?.ok_or_else(|| Error::NoTable { table: place.clone() })?;
    match (name, table.properties.get("hoodie.table.name")) {
        (Some(wanted), Some(name)) if wanted != name => {
            let conflicts = format!("table name is `{wanted}` here and `{name}` in the table");
            Err(Error::Conflict { table: place, conflicts })
        }
        _ => Ok(table),
    }
}
