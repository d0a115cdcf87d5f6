//! The answer, for people and for scripts.

use super::super::{Heading, text};
use super::finding::{Counted, Finding};
use super::{Looked, LookedAt};
use serde::Serialize;
use std::fmt::Write;

/// Its field names are those of the JSON.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    #[serde(flatten)]
    heading: &'a Heading,
    whole: bool,
    looked_at: &'a LookedAt,
    faults: &'a [Finding],
    /// More than are named, where there are very many.
    faults_total: u64,
    notes: &'a [Finding],
    notes_total: u64,
}

pub(super) fn document(looked: &Looked) -> Document<'_> {
    let Looked { heading, looked_at, findings } = looked;
    Document {
        heading,
        whole: !findings.has_faults(),
        looked_at,
        faults: &findings.faults.found,
        faults_total: findings.faults.total,
        notes: &findings.notes.found,
        notes_total: findings.notes.total,
    }
}

pub(super) fn text(looked: &Looked) -> String {
    let Looked { heading, looked_at, findings } = looked;
    let mut out = format!("{heading}\n");
    let LookedAt { partitions, file_groups, base_files, base_bytes, log_files, log_bytes, .. } = *looked_at;
    let _ = writeln!(
        out,
        "looked at {} of {} in {}: {} ({}), {} ({})",
        text::count(looked_at.rows, "row"),
        text::count(file_groups, "file group"),
        text::count(partitions, "partition"),
        text::count(base_files, "base file"),
        text::size(base_bytes),
        text::count(log_files, "log file"),
        text::size(log_bytes),
    );
    list(&mut out, "fault", &findings.faults);
    list(&mut out, "note", &findings.notes);
    let took = text::took(looked_at.took_ms);
    let _ = match findings.faults.total {
        0 => writeln!(out, "whole: nothing is wrong with it ({took})"),
        faults => writeln!(out, "DAMAGED: {} ({took})", text::count(faults, "fault")),
    };
    out
}

/// Two lines a finding: names of files are long.
fn list(out: &mut String, what: &str, counted: &Counted) {
    for Finding { path, code, detail } in &counted.found {
        let path = if path.is_empty() { "the table" } else { path };
        let _ = writeln!(out, "{what} {code}: {path}\n    {detail}");
    }
    let beyond = counted.total - counted.found.len() as u64;
    if beyond > 0 {
        let _ = writeln!(out, "and {} that are not named", text::count(beyond, &format!("more {what}")));
    }
}
