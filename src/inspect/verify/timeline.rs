//! hoodie.properties, and what is on the timeline besides commits.

use super::super::Result;
use super::expected::unreadable;
use super::finding::{Findings, Kind};
use crate::table::{
    Action, CleanMetadata, Instant, RestoreMetadata, RollbackMetadata, Table, TableProperties, TimelineRecord, keys,
};

/// Of the table's own settings.
const PROPERTIES: &str = ".hoodie/hoodie.properties";

pub(super) async fn check(table: &Table, findings: &mut Findings) -> Result<()> {
    properties(table, findings).await?;
    let timeline = table.timeline_as_it_is().await?;
    for instant in &timeline.instants {
        if instant.is_pending() {
            let told = "not completed; `table show` says since when";
            findings.add(Kind::OpenWrite, instant.path(), told);
            continue;
        }
        let wrong = match instant.action {
            Action::Rollback => reads::<RollbackMetadata>(table, instant, findings).await?,
            Action::Clean => reads::<CleanMetadata>(table, instant, findings).await?,
            Action::Restore => reads::<RestoreMetadata>(table, instant, findings).await?,
            _ => None,
        };
        if let Some(why) = wrong {
            findings.add(Kind::TimelineFile, instant.path(), why);
        }
    }
    Ok(())
}

/// What is wrong with a record.
async fn reads<R: TimelineRecord>(table: &Table, instant: &Instant, findings: &mut Findings) -> Result<Option<String>> {
    match table.read_instant(instant).await {
        Ok(bytes) => Ok(R::from_file(&bytes).err()),
        Err(e) => {
            unreadable(e, instant, findings)?;
            Ok(None)
        }
    }
}

/// The table is open, so that the file or its backup is whole.
async fn properties(table: &Table, findings: &mut Findings) -> Result<()> {
    match table.storage.get_opt(PROPERTIES).await? {
        None => findings.add(Kind::Properties, PROPERTIES, "it is not there; its backup is, and counts"),
        Some(bytes) => match TableProperties::parse(&bytes) {
            Err(why) => findings.add(Kind::Properties, PROPERTIES, format!("{why}; its backup is whole, and counts")),
            Ok(properties) if properties.get(keys::CHECKSUM).is_none() => {
                let told = format!("it has no {}: a torn file would not be known", keys::CHECKSUM);
                findings.add(Kind::NoChecksum, PROPERTIES, told);
            }
            Ok(_) => {}
        },
    }
    Ok(())
}
