//! The command line, as strings: what `cli` hands over.

use std::collections::{BTreeMap, BTreeSet};

/// Flags as given, under their first names, checked for their form only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawArgs {
    /// Flags with a value; list flags have one entry an element.
    pub values: BTreeMap<&'static str, Vec<String>>,
    /// Presence flags.
    pub switches: BTreeSet<&'static str>,
    /// Warnings about flags that have no effect.
    pub warnings: Vec<String>,
}

impl RawArgs {
    /// The value of a flag that stands once.
    pub fn value(&self, flag: &str) -> Option<&str> {
        self.values.get(flag).and_then(|v| v.first()).map(String::as_str)
    }

    /// The elements of a list flag.
    pub fn list(&self, flag: &str) -> &[String] {
        self.values.get(flag).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether a presence flag stands.
    pub fn has(&self, flag: &str) -> bool {
        self.switches.contains(flag)
    }
}

/// What `hudi-streamer demo` is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoOptions {
    /// Events a second.
    pub rate: u64,
    /// `None`: until Ctrl-C.
    pub time: Option<std::time::Duration>,
    /// Folder of the table; `None`: a new one below the working directory.
    pub table: Option<std::path::PathBuf>,
}
