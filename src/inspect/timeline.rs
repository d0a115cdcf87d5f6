//! `table timeline`

use super::instants::{Entry, Times, entries};
use super::text::{self, Side::Left, Side::Right};
use super::{Heading, Result, write};
use crate::table::{ArchivedInstant, Table};
use serde::Serialize;
use std::io::Write;

/// Its field names are those of the JSON.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    heading: Heading,
    /// Newest first.
    instants: Vec<Entry>,
    /// Instants of the active timeline that are left out.
    older_instants: usize,
}

/// `archived`: go on with the archived timeline, where the active one has fewer than `limit`.
pub(super) async fn timeline(
    table: &Table,
    limit: usize,
    archived: bool,
    json: bool,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let timeline = table.timeline_as_it_is().await?;
    let times = Times::load(table).await?;
    let mut instants = entries(table, &times, timeline.instants.iter().rev().take(limit)).await?;
    let older_instants = timeline.instants.len() - instants.len();
    let room = limit - instants.len();
    if archived && room > 0 {
        // An archiver that died has left some on both.
        let both = timeline.instants.len();
        let old = table.archived_timeline(room.saturating_add(both)).await?.into_iter().rev();
        let is_active = |old: &ArchivedInstant| timeline.instants.iter().any(|i| i.time == old.instant.time);
        instants.extend(old.filter(|old| !is_active(old)).take(room).map(Entry::from));
    }
    let shown = Shown { heading: Heading::of(table), instants, older_instants };
    match json {
        true => super::write_json(out, &shown),
        false => write(out, &report(&shown, chrono::Utc::now().timestamp_millis())),
    }
}

fn report(shown: &Shown, now_ms: i64) -> String {
    let mut out = format!("{}\n", shown.heading);
    let columns = [
        ("instant", Left),
        ("action", Left),
        ("operation", Left),
        ("rows", Right),
        ("bytes", Right),
        ("took", Right),
        ("ago", Right),
    ];
    let rows = shown.instants.iter().map(|entry| {
        let written = entry.written.as_ref();
        let said = entry.unreadable.as_ref().map(|_| "UNREADABLE".to_string());
        vec![
            entry.instant.clone(),
            entry.action_and_state() + if entry.archived { " (archived)" } else { "" },
            said.or(entry.operation.clone()).or(entry.note.clone()).unwrap_or_default(),
            written.map_or(String::new(), |w| w.rows_written.to_string()),
            written.map_or(String::new(), |w| text::size(w.bytes_written)),
            entry.took_ms.map_or(String::new(), text::took),
            entry.age(now_ms),
        ]
    });
    text::table(&mut out, &columns, rows.collect());
    for entry in &shown.instants {
        if let Some(why) = &entry.unreadable {
            out.push_str(&format!("{}: {why}\n", entry.instant));
        }
    }
    if shown.older_instants > 0 {
        out.push_str(&format!("  {} left out (--limit)\n", text::count(shown.older_instants as u64, "older instant")));
    }
    out
}
