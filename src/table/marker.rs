//! Marker files under `.hoodie/.temp/<instant>/`: written direct, read direct and timeline-server (table-services.md §7).

use super::{InstantTime, Result};
use crate::storage::Storage;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkerType {
    Create,
    Merge,
    Append,
}

/// Says that a write meant to make `path` (relative to the table).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    pub path: String,
    pub marker_type: MarkerType,
}

/// The markers of one instant.
#[derive(Debug, Clone)]
pub struct Markers {
    pub storage: Storage,
    pub instant: InstantTime,
}

impl Markers {
    pub async fn create(&self, _marker: &Marker) -> Result<()> {
        todo!()
    }
    pub async fn list(&self) -> Result<Vec<Marker>> {
        todo!()
    }
    pub async fn remove_all(&self) -> Result<()> {
        todo!()
    }
}
