//! `table files`

use super::instants::rfc3339;
use super::text::{self, Side::Left, Side::Right};
use super::{Error, Heading, Result, write};
use crate::config::{FilesCommand, InspectConfig};
use crate::table::{FileSlice, Folder, Slicer, Table};
use futures::stream::{StreamExt, TryStreamExt};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::Write;

/// Folders listed at a time.
const READ_AHEAD: usize = 8;

/// A partition; its field names are those of the JSON.
#[derive(Debug, Default, Serialize)]
pub(super) struct Partition {
    pub partition: String,
    pub file_groups: u64,
    pub base_files: u64,
    pub base_bytes: u64,
    pub log_files: u64,
    pub log_bytes: u64,
    /// Base files below `hoodie.parquet.small.file.limit`.
    pub small_files: u64,
    /// RFC 3339: when a file of it was last written, of older slices too.
    pub changed_at: Option<String>,
    #[serde(skip)]
    changed_ms: i64,
}

/// A file group in its newest slice; its field names are those of the JSON.
#[derive(Debug, Serialize)]
struct Group {
    partition: String,
    file_id: String,
    base_instant: String,
    base_file: Option<String>,
    base_bytes: u64,
    /// Names, in Hudi's order.
    log_files: Vec<String>,
    log_bytes: u64,
    /// The compaction that is to make a base file of it.
    pending_compaction: Option<String>,
}

impl Partition {
    pub fn of(folder: Folder, slicer: &Slicer, small_file_limit: u64) -> Partition {
        let changed_ms = folder.files.iter().map(|file| file.modified_ms).max().unwrap_or(0);
        let changed_at = Some(changed_ms).filter(|ms| *ms > 0).and_then(rfc3339);
        let mut partition = Partition { partition: folder.path, changed_ms, changed_at, ..Partition::default() };
        for slice in slicer.latest(&partition.partition, folder.files) {
            partition.add(&slice, small_file_limit);
        }
        partition
    }

    fn add(&mut self, slice: &FileSlice, small_file_limit: u64) {
        self.file_groups += 1;
        if let Some(base) = &slice.base_file {
            self.base_files += 1;
            self.base_bytes += base.size;
            self.small_files += u64::from(base.size < small_file_limit);
        }
        self.log_files += slice.log_files.len() as u64;
        self.log_bytes += slice.log_files.iter().map(|log| log.size).sum::<u64>();
    }

    /// One line for all of them.
    pub fn add_up(&mut self, other: &Partition) {
        self.file_groups += other.file_groups;
        self.base_files += other.base_files;
        self.base_bytes += other.base_bytes;
        self.log_files += other.log_files;
        self.log_bytes += other.log_bytes;
        self.small_files += other.small_files;
        self.changed_ms = self.changed_ms.max(other.changed_ms);
    }

    fn row(&self, name: String, now_ms: i64) -> Vec<String> {
        let ago = match self.changed_ms {
            0 => String::new(),
            then => text::span(u64::try_from(now_ms - then).unwrap_or(0)),
        };
        vec![
            self.file_groups.to_string(),
            text::size(self.base_bytes),
            self.log_files.to_string(),
            text::size(self.log_bytes),
            self.small_files.to_string(),
            ago,
            name,
        ]
    }
}

impl From<FileSlice> for Group {
    fn from(slice: FileSlice) -> Group {
        Group {
            log_files: slice.log_files.iter().map(|log| log.name.to_string()).collect(),
            log_bytes: slice.log_files.iter().map(|log| log.size).sum(),
            base_bytes: slice.base_file.as_ref().map_or(0, |base| base.size),
            base_file: slice.base_file.map(|base| base.name),
            base_instant: slice.base_instant.to_string(),
            pending_compaction: slice.pending_compaction.map(|instant| instant.to_string()),
            partition: slice.partition,
            file_id: slice.file_id,
        }
    }
}

pub(super) async fn files(
    table: &Table,
    config: &InspectConfig,
    command: &FilesCommand,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let timeline = table.timeline_as_it_is().await?;
    let slicer = Slicer::load(table, &timeline).await?;
    if !config.json {
        write(out, &format!("{}\n", Heading::of(table)))?;
    }
    match &command.partition {
        Some(partition) => groups(table, &slicer, vec![the_partition(table, partition).await?], config.json, out).await,
        None if command.slices => groups(table, &slicer, table.partitions().await?, config.json, out).await,
        None => partitions(table, &slicer, config, out).await,
    }
}

/// The path of a partition that there is.
pub(super) async fn the_partition(table: &Table, given: &str) -> Result<String> {
    let path = given.trim_matches('/').to_string();
    match table.folder(&path).await?.is_partition {
        true => Ok(path),
        false => Err(Error::NoPartition { path: table.storage.display(""), partition: given.to_string() }),
    }
}

async fn partitions(
    table: &Table,
    slicer: &Slicer,
    config: &InspectConfig,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let folders = table.folders().try_filter(|folder| std::future::ready(folder.is_partition));
    let partitions = folders.map_ok(|folder| Partition::of(folder, slicer, config.small_file_limit));
    let mut partitions: Vec<Partition> = partitions.try_collect().await?;
    partitions.sort_unstable_by(|a, b| a.partition.cmp(&b.partition));
    if config.json {
        return partitions.iter().try_for_each(|partition| super::write_json_line(out, partition));
    }
    let now_ms = chrono::Utc::now().timestamp_millis();
    let mut total = Partition::default();
    partitions.iter().for_each(|partition| total.add_up(partition));
    let mut rows: Vec<Vec<String>> =
        partitions.iter().map(|partition| partition.row(name(&partition.partition), now_ms)).collect();
    if partitions.len() > 1 {
        rows.push(total.row(format!("all {} partitions", text::number(partitions.len() as u64)), now_ms));
    }
    let columns = [
        ("groups", Right),
        ("base", Right),
        ("logs", Right),
        ("in logs", Right),
        ("small", Right),
        ("ago", Right),
        ("partition", Left),
    ];
    let mut text = String::new();
    text::table(&mut text, &columns, rows);
    write(out, &text)
}

/// The root has no name.
fn name(partition: &str) -> String {
    if partition.is_empty() { "(the table's folder)".to_string() } else { partition.to_string() }
}

async fn groups(
    table: &Table,
    slicer: &Slicer,
    partitions: Vec<String>,
    json: bool,
    out: &mut (dyn Write + Send),
) -> Result<()> {
    let folders = partitions.into_iter().map(|path| async move { table.folder(&path).await });
    let mut folders = futures::stream::iter(folders).buffered(READ_AHEAD);
    while let Some(Folder { path, files, .. }) = folders.try_next().await? {
        let groups: Vec<Group> = slicer.latest(&path, files).into_iter().map(Group::from).collect();
        match json {
            true => groups.iter().try_for_each(|group| super::write_json_line(out, group))?,
            false => write(out, &report(&path, &groups))?,
        }
    }
    Ok(())
}

fn report(partition: &str, groups: &[Group]) -> String {
    let mut out = format!("partition {}: {}\n", name(partition), text::count(groups.len() as u64, "file group"));
    let row = |group: &Group| {
        vec![
            group.file_id.clone(),
            group.base_instant.clone(),
            group.base_file.as_ref().map_or("–".to_string(), |_| text::size(group.base_bytes)),
            group.log_files.len().to_string(),
            text::size(group.log_bytes) + if group.pending_compaction.is_some() { "*" } else { "" },
        ]
    };
    let columns = [("file group", Left), ("base instant", Left), ("base", Right), ("logs", Right), ("bytes", Right)];
    // A line fits into 80 columns, which leaves no room for blanks in front.
    for line in text::lines(&columns, groups.iter().map(row).collect()) {
        out.push_str(&line);
        out.push('\n');
    }
    let compactions: BTreeSet<&String> = groups.iter().filter_map(|group| group.pending_compaction.as_ref()).collect();
    for compaction in compactions {
        out.push_str(&format!("* waits for compaction {compaction}\n"));
    }
    out
}
