//! Merge rules: what becomes of an incoming record and the stored one of the same key (semantics.md §3).

use super::Result;
use crate::config::PayloadClass;
use arrow::array::{ArrayRef, BooleanArray};

/// A payload class, as a rule on columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeRule(pub PayloadClass);

impl MergeRule {
    /// Whether the rule looks at the stored row's ordering value.
    pub fn needs_stored_ordering(self) -> bool {
        self.0 == PayloadClass::DefaultHoodieRecord
    }
    /// For matched pairs: true where the stored row stays (it is copied with its own commit time).
    pub fn keeps_stored(self, _stored: &ArrayRef, _incoming: &ArrayRef) -> Result<BooleanArray> {
        todo!()
    }
}
