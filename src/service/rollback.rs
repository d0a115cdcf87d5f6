//! Rollback of failed writes, marker based, file by file as Hudi does it (table-services.md §6).

use super::Result;
use crate::table::{Instant, Table};

/// What was rolled back.
#[derive(Debug, Clone)]
pub struct RolledBack {
    pub instant: Instant,
    pub files_deleted: usize,
}

/// At the start of a write: resumes pending rollbacks, then rolls back every pending write, newest first.
pub async fn rollback_failed_writes(_table: &Table) -> Result<Vec<RolledBack>> {
    todo!()
}

/// Rolls back one pending write.
pub async fn rollback(_table: &Table, _instant: &Instant) -> Result<RolledBack> {
    todo!()
}
