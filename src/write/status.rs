//! What became of the files of a write.

use super::{Result, WriteContext};
use crate::table::{MarkerType, Markers, WriteStat};
use std::collections::HashSet;

/// The outcome of one written file.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteStatus {
    pub stat: WriteStat,
}

/// Before the commit point of an instant that more than one attempt may have written under: deletes files that have a
/// marker but no status, which a reader that lists folders would take for part of the instant (table-services.md §1, step
/// 13; `HoodieTable.reconcileAgainstMarkers`, Hudi 0.15). A single attempt has a status for every base file, or fails.
pub async fn finalize(context: &WriteContext, statuses: &[WriteStatus]) -> Result<()> {
    let markers = Markers::new(&context.table.storage, &context.instant);
    let written: HashSet<&str> = statuses.iter().filter_map(|status| status.stat.path.as_deref()).collect();
    for marker in markers.list().await? {
        let is_base_file = matches!(marker.marker_type, MarkerType::Create | MarkerType::Merge);
        if is_base_file && !written.contains(marker.path.as_str()) {
            context.table.storage.delete(&marker.path).await?;
        }
    }
    Ok(())
}
