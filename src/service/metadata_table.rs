//! What services do about a metadata table, which is not maintained here yet: files that come or go beside one are seen
//! wrongly by readers that trust it.

use super::lock::Held;
use super::rollback::is_clustering;
use super::{Error, Result, Writers};
use crate::storage;
use crate::table::{InstantTime, Table};

/// The table as it is now, without a metadata table. One that a Spark writer has built is disabled, by a single writer only
/// while nothing is being written: other writers look once more under the lock, right before they commit; a writer without
/// it would not.
pub(super) async fn without_metadata_table(
    table: &Table,
    writers: &Writers,
    held: &Held,
    doing: &'static str,
    instant: &InstantTime,
) -> Result<Table> {
    let opened = Table::open(table.storage.clone()).await?;
    let gone = || storage::Error::NotFound { doing: "open", path: table.storage.display("") };
    let mut table = Table { properties: opened.ok_or_else(gone)?.properties, ..table.clone() };
    if !table.has_metadata_table() {
        return Ok(table);
    }
    for write in table.timeline().await?.pending_writes().filter(|_| !writers.are_several()) {
        if !is_clustering(&table, write).await? {
            let (write, action) = (write.time.to_string(), write.action.to_string());
            return Err(Error::MetadataTableInUse { doing, instant: instant.to_string(), write, action });
        }
    }
    tracing::warn!(
        table = table.storage.display(""),
        "the table has a metadata table again, which is not maintained here yet: it is disabled before services run"
    );
    held.check().await?;
    table.disable_metadata_table().await?;
    Ok(table)
}
