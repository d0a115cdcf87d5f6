//! `hudi-streamer compact`: makes and executes plans for a table that another job ingests.

use super::compaction::is_elsewhere;
use super::continuous::FIRST_BACKOFF;
use super::{Error, Result, open, shutdown};
use crate::config::{CompactCommand, CompactConfig, CompactMode, PayloadClass};
use crate::observe::Metrics;
use crate::record::MergeRule;
use crate::service::Compactor;
use crate::table::{InstantTime, Table};

/// Does what the operator asks for; the answer is for standard output. An interrupted execution leaves its plan waiting.
pub async fn compact(config: CompactConfig, command: CompactCommand) -> Result<String> {
    let cancel = shutdown::listen()?;
    let at = command.instant.as_deref().map(instant).transpose()?;
    let table = opened(&config).await?;
    let writers = open::writers(&config.concurrency, &table)?;
    let mut left = command.retries;
    loop {
        let compactor = Compactor {
            rule: rule(&config, &table)?,
            ordering_field: table.properties.precombine_field().map(str::to_string),
            table: table.clone(),
            config: config.compaction.clone(),
            write: config.write.clone(),
            index: config.index.clone(),
            cancel: cancel.clone(),
            rows_written: Default::default(),
            key_cache: None,
            looked: Default::default(),
            writers: writers.clone(),
        };
        match once(compactor, command.mode, at.as_ref()).await {
            Err(e) if left > 0 && e.is_retryable() && !cancel.is_cancelled() => {
                tracing::error!(code = e.code(), error = %e, tries_left = left, "compaction failed; trying again");
                left -= 1;
                tokio::time::sleep(FIRST_BACKOFF).await;
            }
            done => return done,
        }
    }
}

async fn once(compactor: Compactor, mode: CompactMode, at: Option<&InstantTime>) -> Result<String> {
    let mut told = Vec::new();
    let plans = match mode {
        CompactMode::Execute => match at {
            Some(instant) => vec![instant.clone()],
            None => compactor.pending().await?,
        },
        CompactMode::Schedule | CompactMode::ScheduleAndExecute => match compactor.schedule(at).await? {
            Some(planned) => {
                told.push(format!("compaction {planned} planned"));
                vec![planned]
            }
            None => return Ok("no compaction is due, or there is nothing to compact".to_string()),
        },
    };
    if mode == CompactMode::Schedule {
        return Ok(told.join("\n"));
    }
    if plans.is_empty() {
        return Ok("no compaction is pending".to_string());
    }
    for plan in &plans {
        told.push(match compactor.execute(plan).await {
            Err(e) if at.is_none() && is_elsewhere(&e) => format!("compaction {plan} is left alone: {e}"),
            Err(e) => return Err(e.into()),
            Ok(Some(report)) => {
                report.emit(&Metrics::off());
                format!(
                    "compaction {plan} completed: {} log files of {} file groups, {} rows in new base files",
                    report.log_files, report.groups, report.rows
                )
            }
            Ok(None) => format!("compaction {plan} has been completed by another process"),
        });
    }
    Ok(told.join("\n"))
}

fn instant(text: &str) -> Result<InstantTime> {
    let whole = InstantTime::parse(text).filter(|_| [14, 17].contains(&text.len()));
    whole.ok_or_else(|| Error::NotAnInstant { text: text.to_string() })
}

async fn opened(config: &CompactConfig) -> Result<Table> {
    let table = super::commands::opened(&config.base_path, config.table_name.as_deref(), &config.storage).await?;
    if !table.properties.is_merge_on_read() {
        let found = table.properties.table_type().to_string();
        return Err(Error::NothingToCompact { table: table.storage.display(""), found });
    }
    Ok(table)
}

/// The table's own rule: log files are merged as their writer and every reader take them.
fn rule(config: &CompactConfig, table: &Table) -> Result<MergeRule> {
    let stored = open::stored_rule(table)?;
    match (config.payload.map(MergeRule), stored) {
        (Some(chosen), Some(stored)) if chosen != stored => {
            let conflicts = format!("merge rule is {:?} here and {:?} in the table", chosen.0, stored.0);
            Err(Error::Conflict { table: table.storage.display(""), conflicts })
        }
        (chosen, stored) => Ok(stored.or(chosen).unwrap_or(MergeRule(PayloadClass::OverwriteWithLatest))),
    }
}
