//! `table show`

use super::files::Partition;
use super::instants::{Entry, Times, entries, rfc3339};
use super::text;
use super::{Heading, Result, write};
use crate::config::InspectConfig;
use crate::table::{Action, Instant, LogFileName, Slicer, Table, Timeline, keys, parse_base_file};
use futures::stream::TryStreamExt;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write;

/// Its field names are those of the JSON.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    heading: Heading,
    version: String,
    record_key_fields: Vec<String>,
    partition_fields: Vec<String>,
    ordering_field: Option<String>,
    payload_class: Option<String>,
    timeline_zone: String,
    /// Of its metadata table; empty: it has none.
    metadata_partitions: Vec<String>,
    /// What readers see now.
    file_groups: u64,
    base_files: u64,
    base_bytes: u64,
    log_files: u64,
    log_bytes: u64,
    small_files: u64,
    small_file_limit: u64,
    partitions: u64,
    /// Data files that readers do not see: older slices, replaced file groups, failed writes, folders without metafile.
    unseen_files: u64,
    unseen_bytes: u64,
    /// Folders that have data files and no partition metafile, so that Hudi does not see them.
    folders_without_metafile: u64,
    instants: usize,
    completed_writes: usize,
    /// Files of the archived timeline.
    archived_files: usize,
    archived_bytes: u64,
    archived_at: Option<String>,
    last_write: Option<Entry>,
    last_compaction: Option<Entry>,
    last_clean: Option<Entry>,
    last_rollback: Option<Entry>,
    savepoints: Vec<String>,
    /// Not completed, oldest first.
    pending: Vec<Entry>,
    #[serde(skip)]
    archived_ms: Option<i64>,
}

pub(super) async fn show(table: &Table, config: &InspectConfig, out: &mut (dyn Write + Send)) -> Result<()> {
    let shown = look(table, config).await?;
    match config.json {
        true => super::write_json(out, &shown),
        false => write(out, &report(&shown, chrono::Utc::now().timestamp_millis())),
    }
}

async fn look(table: &Table, config: &InspectConfig) -> Result<Shown> {
    let timeline = table.timeline_as_it_is().await?;
    let slicer = Slicer::load(table, &timeline).await?;
    let mut seen = Partition::default();
    let (mut partitions, mut without_metafile, mut all) = (0, 0, (0u64, 0u64));
    let mut folders = std::pin::pin!(table.folders());
    while let Some(folder) = folders.try_next().await? {
        for file in folder.files.iter().filter(|file| is_data_file(&file.path)) {
            all = (all.0 + 1, all.1 + file.size);
        }
        match folder.is_partition {
            true => {
                partitions += 1;
                seen.add_up(&Partition::of(folder, &slicer, config.small_file_limit));
            }
            false => without_metafile += 1,
        }
    }
    let times = Times::load(table).await?;
    let archived = archived(table).await?;
    let one = async |instant: Option<&Instant>| Ok::<_, super::Error>(entries(table, &times, instant).await?.pop());
    let properties = &table.properties;
    let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_string).collect();
    Ok(Shown {
        heading: Heading::of(table),
        version: properties.version().to_string(),
        record_key_fields: owned(properties.record_key_fields()),
        partition_fields: owned(properties.partition_fields()),
        ordering_field: properties.precombine_field().map(str::to_string),
        payload_class: properties.payload_class().map(str::to_string),
        timeline_zone: properties.get(keys::TIMEZONE).unwrap_or("LOCAL").to_uppercase(),
        metadata_partitions: owned(properties.metadata_partitions()),
        file_groups: seen.file_groups,
        base_files: seen.base_files,
        base_bytes: seen.base_bytes,
        log_files: seen.log_files,
        log_bytes: seen.log_bytes,
        small_files: seen.small_files,
        small_file_limit: config.small_file_limit,
        partitions,
        unseen_files: all.0.saturating_sub(seen.base_files + seen.log_files),
        unseen_bytes: all.1.saturating_sub(seen.base_bytes + seen.log_bytes),
        folders_without_metafile: without_metafile,
        instants: timeline.instants.len(),
        completed_writes: timeline.completed_writes().count(),
        archived_files: archived.files,
        archived_bytes: archived.bytes,
        archived_at: archived.newest_ms.and_then(rfc3339),
        archived_ms: archived.newest_ms,
        last_write: one(last_write(table, &timeline)).await?,
        last_compaction: one(last_compaction(table, &timeline)).await?,
        last_clean: one(last(&timeline, Action::Clean)).await?,
        last_rollback: one(last(&timeline, Action::Rollback)).await?,
        savepoints: savepoints(&timeline),
        pending: entries(table, &times, timeline.instants.iter().filter(|i| i.is_pending())).await?,
    })
}

fn is_data_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    parse_base_file(name).is_some() || LogFileName::parse(name).is_some()
}

/// The newest completed instant of an action.
fn last(timeline: &Timeline, action: Action) -> Option<&Instant> {
    timeline.instants.iter().rev().find(|instant| instant.action == action && !instant.is_pending())
}

/// A commit of a merge-on-read table is a compaction.
fn last_compaction<'a>(table: &Table, timeline: &'a Timeline) -> Option<&'a Instant> {
    last(timeline, Action::Commit).filter(|_| table.properties.is_merge_on_read())
}

fn last_write<'a>(table: &Table, timeline: &'a Timeline) -> Option<&'a Instant> {
    let is_rows = |i: &&Instant| i.action != Action::Commit || !table.properties.is_merge_on_read();
    timeline.completed_writes().rev().find(is_rows)
}

fn savepoints(timeline: &Timeline) -> Vec<String> {
    let savepoints = timeline.instants.iter().filter(|i| i.action == Action::Savepoint && !i.is_pending());
    savepoints.map(|i| i.time.to_string()).collect()
}

#[derive(Default)]
struct Archived {
    files: usize,
    bytes: u64,
    newest_ms: Option<i64>,
}

async fn archived(table: &Table) -> Result<Archived> {
    let mut files = table.storage.list(&table.archive_folder()).await?.files;
    files.retain(|file| file.path.contains("commits_.archive."));
    let newest_ms = files.iter().map(|file| file.modified_ms).max();
    Ok(Archived { files: files.len(), bytes: files.iter().map(|file| file.size).sum(), newest_ms })
}

fn report(shown: &Shown, now_ms: i64) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<12} {value}");
    };
    let ago = |ms: i64| text::span(u64::try_from(now_ms - ms).unwrap_or(0));
    line("table", format!("{} ({})", shown.heading.table, shown.heading.table_name));
    line(
        "type",
        format!("{}, version {}, instants in {}", shown.heading.table_type, shown.version, shown.timeline_zone),
    );
    let fields = |fields: &[String], none: &str| if fields.is_empty() { none.to_string() } else { fields.join(", ") };
    line("key", fields(&shown.record_key_fields, "generated"));
    line("partitioned", fields(&shown.partition_fields, "not at all"));
    line("ordered", shown.ordering_field.clone().unwrap_or_else(|| "by arrival".to_string()));
    if !shown.metadata_partitions.is_empty() {
        line("metadata", format!("a metadata table: {}", shown.metadata_partitions.join(", ")));
    }
    line(
        "size",
        format!("{} in {}", text::size(shown.base_bytes + shown.log_bytes), text::count(shown.partitions, "partition")),
    );
    line(
        "  groups",
        format!(
            "{}, {} of them small (below {})",
            text::count(shown.file_groups, "file group"),
            text::number(shown.small_files),
            text::size(shown.small_file_limit)
        ),
    );
    line("  base", format!("{} in {}", text::size(shown.base_bytes), text::count(shown.base_files, "file")));
    if shown.log_files > 0 || shown.heading.table_type != crate::table::COPY_ON_WRITE {
        line("  logs", format!("{} in {}", text::size(shown.log_bytes), text::count(shown.log_files, "file")));
    }
    line(
        "  unseen",
        format!(
            "{} in {} of older slices and failed writes",
            text::size(shown.unseen_bytes),
            text::count(shown.unseen_files, "file")
        ),
    );
    if shown.folders_without_metafile > 0 {
        line(
            "  lost",
            format!(
                "{} with data files and no partition metafile: readers do not see them",
                text::count(shown.folders_without_metafile, "folder")
            ),
        );
    }
    line(
        "timeline",
        format!(
            "{}, {} completed writes",
            text::count(shown.instants as u64, "active instant"),
            shown.completed_writes
        ),
    );
    let archive = match shown.archived_ms {
        None => "nothing".to_string(),
        Some(ms) => format!(
            "{} in {}, last {} ago",
            text::size(shown.archived_bytes),
            text::count(shown.archived_files as u64, "file"),
            ago(ms)
        ),
    };
    line("  archived", archive);
    let told = |entry: &Option<Entry>, none: &str| entry.as_ref().map_or(none.to_string(), |entry| told(entry, now_ms));
    line("last write", told(&shown.last_write, "none"));
    if let Some(written) = shown.last_write.as_ref().and_then(|entry| entry.written.as_ref()) {
        line(
            "",
            format!(
                "{} inserted, {} updated, {} deleted",
                text::number(written.rows_inserted),
                text::number(written.rows_updated),
                text::number(written.rows_deleted)
            ),
        );
    }
    if shown.heading.table_type != crate::table::COPY_ON_WRITE {
        line("  compaction", told(&shown.last_compaction, "none on the active timeline"));
    }
    line("  clean", told(&shown.last_clean, "none on the active timeline"));
    line("  rollback", told(&shown.last_rollback, "none on the active timeline"));
    if !shown.savepoints.is_empty() {
        line("savepoints", shown.savepoints.join(", "));
    }
    for (at, entry) in shown.pending.iter().enumerate() {
        line(if at == 0 { "pending" } else { "" }, self::told(entry, now_ms));
    }
    out
}

/// An instant in one line.
fn told(entry: &Entry, now_ms: i64) -> String {
    let mut text = format!("{} {}", entry.instant, entry.action_and_state());
    for more in [&entry.operation, &entry.note].into_iter().flatten() {
        let _ = write!(text, " {more}");
    }
    if entry.unreadable.is_some() {
        text.push_str(" UNREADABLE");
    }
    match (entry.age(now_ms), entry.took_ms) {
        (age, _) if age.is_empty() => {}
        (age, Some(took)) => {
            let _ = write!(text, ", {age} ago, took {}", text::took(took));
        }
        (age, None) => {
            let _ = write!(text, ", begun {age} ago");
        }
    }
    text
}
