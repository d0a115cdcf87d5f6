//! One folder: its metafile, and its files by name and size.

use super::super::Result;
use super::expected::{Group, Partition, Written};
use super::finding::{Findings, Kind};
use super::snapshot::Snapshot;
use crate::table::{FileSlice, Folder, InstantTime, LogFileName, Table, parse_base_file};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Name of the text that makes a folder a partition.
const METAFILE: &str = ".hoodie_partition_metadata";

/// Looks at the folder; its file groups as readers see them.
pub(super) async fn check(
    table: &Table,
    snapshot: &Snapshot,
    folder: Folder,
    findings: &mut Findings,
) -> Result<Vec<FileSlice>> {
    metafile(table, &folder, findings).await?;
    let sizes: BTreeMap<&str, u64> = folder.files.iter().map(|file| (name_of(&file.path), file.size)).collect();
    twice(&folder.path, sizes.keys().copied(), findings);
    orphans(snapshot, &folder.path, sizes.keys().copied(), findings);
    if let Some(expected) = snapshot.expected.partitions.get(&folder.path) {
        missing(snapshot, &folder.path, expected, &sizes, findings);
    }
    Ok(snapshot.slicer.latest(&folder.path, folder.files))
}

/// The same of a partition that is not there.
pub(super) fn check_gone(snapshot: &Snapshot, path: &str, expected: &Partition, findings: &mut Findings) {
    missing(snapshot, path, expected, &BTreeMap::new(), findings);
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn in_folder(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") }
}

async fn metafile(table: &Table, folder: &Folder, findings: &mut Findings) -> Result<()> {
    let path = in_folder(&folder.path, METAFILE);
    if !folder.is_partition {
        let why = "data files, and no partition metafile: readers do not see them";
        findings.add(Kind::PartitionMetafile, path, why);
        return Ok(());
    }
    // One in the format of base files says the same; nobody but Hudi writes it.
    let Some(bytes) = table.storage.get_opt(&path).await? else { return Ok(()) };
    let text = String::from_utf8_lossy(&bytes);
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    let depth = folder.path.split('/').filter(|level| !level.is_empty()).count();
    match (value("commitTime"), value("partitionDepth").map(str::parse::<usize>)) {
        (Some(_), Some(Ok(said))) if said == depth => {}
        (Some(_), Some(Ok(said))) => {
            findings.add(Kind::PartitionMetafile, path, format!("it says partitionDepth={said}, and it is {depth}"));
        }
        _ => findings.add(Kind::PartitionMetafile, path, "it has no commitTime and partitionDepth: it is torn"),
    }
    Ok(())
}

/// Two base files of one slice: readers take any of them.
fn twice<'a>(folder: &str, names: impl Iterator<Item = &'a str>, findings: &mut Findings) {
    let mut slices: BTreeMap<(&str, InstantTime), &str> = BTreeMap::new();
    for name in names {
        let Some(slice) = parse_base_file(name) else { continue };
        if let Some(other) = slices.insert(slice, name) {
            let told = format!("{other} is of the same file group and instant: readers take any of the two");
            findings.add(Kind::SliceTwice, in_folder(folder, name), told);
        }
    }
}

/// Data files of instants that are neither on the timeline nor older than it. Nobody sees them now, and everybody will once
/// the timeline has moved past them.
fn orphans<'a>(snapshot: &Snapshot, folder: &str, names: impl Iterator<Item = &'a str>, findings: &mut Findings) {
    for name in names {
        let base = parse_base_file(name).map(|(_, instant)| instant);
        let Some(instant) = base.or_else(|| LogFileName::parse(name).map(|log| log.base_instant)) else { continue };
        if !snapshot.timeline.is_valid(&instant) && !snapshot.instants.contains(&instant) {
            let told = format!(
                "its instant {instant} is not on the timeline: nobody will roll it back, and readers will see it once the timeline begins later"
            );
            findings.add(Kind::OrphanFile, in_folder(folder, name), told);
        }
    }
}

/// Files that commits and savepoints name, and that must be there.
fn missing(
    snapshot: &Snapshot,
    folder: &str,
    expected: &Partition,
    sizes: &BTreeMap<&str, u64>,
    findings: &mut Findings,
) {
    let newest = newest_bases(snapshot, sizes);
    let replaced = &snapshot.slicer.replaced;
    for (file_id, Group { base, logs }) in &expected.groups {
        if !replaced.is_empty() && replaced.contains(&(folder.to_string(), file_id.clone())) {
            continue;
        }
        let newest = newest.get(file_id.as_str());
        let is_superseded = |written: &Written| newest.is_some_and(|newest| *newest > written.base_instant);
        for (written, is_log) in base.iter().map(|base| (base, false)).chain(logs.iter().map(|log| (log, true))) {
            let path = || in_folder(folder, &written.name);
            match sizes.get(written.name.as_str()) {
                _ if is_superseded(written) => {}
                None => findings.add(
                    Kind::FileMissing,
                    path(),
                    format!("commit {} wrote it, and it is not there", written.by),
                ),
                // Another writer may have appended to a log file.
                Some(size) if *size == written.size || is_log && *size > written.size => {}
                Some(size) => {
                    let told = format!("it has {size} bytes, and commit {} says {}", written.by, written.size);
                    findings.add(Kind::FileSize, path(), told);
                }
            }
        }
    }
    let mut told = HashSet::new();
    for (name, savepoint) in &expected.savepointed {
        if !sizes.contains_key(name.as_str()) && told.insert(name) {
            let why = format!("savepoint {savepoint} holds it, and it is not there");
            findings.add(Kind::SavepointFile, in_folder(folder, name), why);
        }
    }
}

/// Of each file group, the newest instant of a base file that counts.
fn newest_bases<'a>(snapshot: &Snapshot, sizes: &BTreeMap<&'a str, u64>) -> HashMap<&'a str, InstantTime> {
    let mut newest: HashMap<&str, InstantTime> = HashMap::new();
    for (file_id, instant) in sizes.keys().filter_map(|name| parse_base_file(name)) {
        if snapshot.timeline.is_valid(&instant) && newest.get(file_id).is_none_or(|known| *known < instant) {
            newest.insert(file_id, instant);
        }
    }
    newest
}
