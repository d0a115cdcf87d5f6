//! `hoodie.properties` (timeline.md §2).

use std::collections::BTreeMap;

/// The table's own settings, unknown keys kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableProperties(pub BTreeMap<String, String>);
