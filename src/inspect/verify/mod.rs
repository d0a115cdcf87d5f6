//! `table verify`: whether the table is whole.
//!
//! ```text
//! timeline ─▶ Snapshot ─┐
//! folder by folder ─────┴▶ names and sizes ─▶ slice by slice, several at a time ─▶ Findings
//!                                                  └─▶ Keys ─▶ what is there twice ─┘
//! ```
//!
//! All is taken as of one moment, the timeline's. Others may write meanwhile, and remove files that nobody needs any more:
//! what has findings is looked at once more, as of a later moment, before it is told of.

mod base_file;
mod expected;
mod finding;
mod keys;
mod logs;
mod partition;
mod report;
mod snapshot;
mod timeline;
mod twice;

use super::{Heading, Result, Verdict};
use crate::config::{InspectConfig, UniqueKeys, VerifyCommand};
use crate::index::pool;
use crate::observe::Progress;
use crate::table::{FileSlice, Folder, Table};
use expected::Group;
use finding::Findings;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use keys::Keys;
use serde::Serialize;
use snapshot::Snapshot;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often a log line tells how far it is, where nobody sees a bar.
const TELL_EVERY: Duration = Duration::from_secs(30);

/// What was read; its field names are those of the JSON.
#[derive(Debug, Clone, Default, Serialize)]
struct LookedAt {
    partitions: u64,
    file_groups: u64,
    base_files: u64,
    base_bytes: u64,
    log_files: u64,
    log_bytes: u64,
    log_blocks: u64,
    /// In merged slices.
    rows: u64,
    /// Whether keys were compared, and within what: `partition`, `table` or `nowhere`.
    unique_keys: &'static str,
    took_ms: u64,
}

/// The answer.
struct Looked {
    heading: Heading,
    looked_at: LookedAt,
    findings: Findings,
}

/// What every look at a slice needs.
struct Context {
    table: Table,
    keys: Option<Keys>,
    all_columns: bool,
    /// Bytes of the files that were read.
    read: Arc<AtomicU64>,
}

/// A slice to be looked at.
struct Task {
    snapshot: Arc<Snapshot>,
    slice: FileSlice,
    expected: Option<Group>,
    /// Its number among all that are looked at.
    holder: u32,
}

/// What came of it.
struct Done {
    slice: FileSlice,
    findings: Findings,
    rows: u64,
    blocks: u64,
    holder: u32,
}

pub(super) async fn verify(
    table: Table,
    config: &InspectConfig,
    command: &VerifyCommand,
    out: &mut (dyn Write + Send),
) -> Result<Verdict> {
    let looked = look(table, config, command).await?;
    match config.json {
        true => super::write_json(out, &report::document(&looked))?,
        false => super::write(out, &report::text(&looked))?,
    }
    Ok(if looked.findings.has_faults() { Verdict::Damaged } else { Verdict::Answered })
}

async fn look(table: Table, config: &InspectConfig, command: &VerifyCommand) -> Result<Looked> {
    let begun = Instant::now();
    let heading = Heading::of(&table);
    let mut verify = Verify::new(table, config, command);
    verify.run(command.partition.as_deref()).await?;
    let Verify { mut looked_at, mut findings, .. } = verify;
    findings.sort();
    looked_at.unique_keys = match command.unique {
        UniqueKeys::Partition => "partition",
        UniqueKeys::Table => "table",
        UniqueKeys::Nowhere => "nowhere",
    };
    looked_at.took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Looked { heading, looked_at, findings })
}

struct Verify<'a> {
    config: &'a InspectConfig,
    context: Arc<Context>,
    looked_at: LookedAt,
    findings: Findings,
    /// By number, the file group that was looked at.
    holders: Vec<(String, String)>,
    /// Numbers of looks that were repeated.
    void: HashSet<u32>,
    /// By partition: what is to be told of it unless it is gone at a second look.
    suspects: HashMap<String, Suspect>,
}

/// What a partition's first look has found.
#[derive(Default)]
struct Suspect {
    findings: Findings,
    /// File groups with findings of their own, and the numbers of those looks.
    groups: HashMap<String, u32>,
    /// The folder itself has findings.
    folder: bool,
}

impl<'a> Verify<'a> {
    fn new(table: Table, config: &'a InspectConfig, command: &VerifyCommand) -> Verify<'a> {
        let compares = command.unique != UniqueKeys::Nowhere && table.properties.has_meta_fields();
        let by_partition = command.unique == UniqueKeys::Partition;
        let keys = compares.then(|| Keys::new(by_partition, command.spill.as_deref()));
        let context = Context { table, keys, all_columns: command.all_columns, read: Arc::default() };
        Verify {
            config,
            context: Arc::new(context),
            looked_at: LookedAt::default(),
            findings: Findings::default(),
            holders: Vec::new(),
            void: HashSet::new(),
            suspects: HashMap::new(),
        }
    }

    async fn run(&mut self, partition: Option<&str>) -> Result<()> {
        let context = Arc::clone(&self.context);
        let table = &context.table;
        timeline::check(table, &mut self.findings).await?;
        let Some(snapshot) = Snapshot::load(table, &mut self.findings).await?.map(Arc::new) else { return Ok(()) };
        let only = partition.map(|given| given.trim_matches('/').to_string());
        if let Some(only) = &only {
            // Its metafile may be what is wrong with it.
            let is_known = snapshot.expected.partitions.contains_key(only);
            if !is_known {
                super::files::the_partition(table, only).await?;
            }
        }
        let progress = self.progress(table, &snapshot, only.as_deref()).await?;
        let seen = self.each_folder(&snapshot, only.as_deref(), &progress).await?;
        for (path, expected) in &snapshot.expected.partitions {
            if !seen.contains(path) && only.as_ref().is_none_or(|only| only == path) {
                let mut found = Findings::default();
                partition::check_gone(&snapshot, path, expected, &mut found);
                self.suspect_folder(path, found);
            }
        }
        let latest = self.second_look(&snapshot).await?;
        progress.stage("comparing keys");
        if self.context.keys.is_some() {
            let twice = twice::Twice { context: &self.context, holders: &self.holders, void: &self.void };
            twice.tell(latest, &mut self.findings).await?;
        }
        Ok(())
    }

    /// A bar as long as all files are large, which costs a walk of its own; only where somebody sees it.
    async fn progress(&self, table: &Table, snapshot: &Snapshot, only: Option<&str>) -> Result<Progress> {
        let enabled = self.config.progress && Progress::is_seen();
        let mut total = 0;
        if enabled {
            let mut folders = folders(table, only);
            while let Some(Folder { path, files, .. }) = folders.try_next().await? {
                total += snapshot.slicer.latest(&path, files).iter().map(bytes).sum::<u64>();
            }
        }
        Ok(Progress::follow(total, Arc::clone(&self.context.read), enabled))
    }

    /// Every folder's names and sizes, then every slice in it, several at a time. The paths of the folders.
    async fn each_folder(
        &mut self,
        snapshot: &Arc<Snapshot>,
        only: Option<&str>,
        progress: &Progress,
    ) -> Result<HashSet<String>> {
        progress.stage("reading files");
        let context = Arc::clone(&self.context);
        let mut seen = HashSet::new();
        let mut told = Instant::now();
        let mut running = futures::stream::FuturesUnordered::new();
        let mut folders = folders(&context.table, only);
        while let Some(folder) = folders.try_next().await? {
            let (path, mut found) = (folder.path.clone(), Findings::default());
            let slices = partition::check(&context.table, snapshot, folder, &mut found).await?;
            self.suspect_folder(&path, found);
            self.looked_at.partitions += 1;
            for slice in slices {
                while running.len() >= self.config.workers.max(1) {
                    if let Some(done) = running.next().await {
                        self.take(done?);
                    }
                }
                running.push(self.begin(snapshot, slice));
                if told.elapsed() >= TELL_EVERY && !Progress::is_seen() {
                    told = Instant::now();
                    let LookedAt { partitions, file_groups, rows, .. } = self.looked_at;
                    tracing::info!(partitions, file_groups, rows, "verifying");
                }
            }
            seen.insert(path);
        }
        while let Some(done) = running.next().await {
            self.take(done?);
        }
        Ok(seen)
    }

    fn begin(&mut self, snapshot: &Arc<Snapshot>, slice: FileSlice) -> impl Future<Output = Result<Done>> + use<> {
        let holder = u32::try_from(self.holders.len()).unwrap_or(u32::MAX);
        self.holders.push((slice.partition.clone(), slice.file_id.clone()));
        let expected = snapshot.expected.partitions.get(&slice.partition);
        let expected = expected.and_then(|partition| partition.groups.get(&slice.file_id)).cloned();
        let task = Task { snapshot: Arc::clone(snapshot), slice, expected, holder };
        let context = Arc::clone(&self.context);
        async move { pool::blocking(move || context.look(task)).await }
    }

    fn take(&mut self, done: Done) {
        let Done { slice, findings, rows, blocks, holder } = done;
        let looked_at = &mut self.looked_at;
        looked_at.file_groups += 1;
        looked_at.rows += rows;
        looked_at.log_blocks += blocks;
        if let Some(base) = &slice.base_file {
            looked_at.base_files += 1;
            looked_at.base_bytes += base.size;
        }
        looked_at.log_files += slice.log_files.len() as u64;
        looked_at.log_bytes += slice.log_files.iter().map(|log| log.size).sum::<u64>();
        if findings.faults.total + findings.notes.total > 0 {
            let suspect = self.suspects.entry(slice.partition).or_default();
            suspect.findings.extend(findings);
            suspect.groups.insert(slice.file_id, holder);
        }
    }

    fn suspect_folder(&mut self, path: &str, found: Findings) {
        if found.faults.total + found.notes.total > 0 {
            let suspect = self.suspects.entry(path.to_string()).or_default();
            suspect.findings.extend(found);
            suspect.folder = true;
        }
    }

    /// Looks again at what has findings, if anything has happened on the table meanwhile; the newest snapshot.
    async fn second_look(&mut self, first: &Arc<Snapshot>) -> Result<Arc<Snapshot>> {
        let context = Arc::clone(&self.context);
        let suspects = std::mem::take(&mut self.suspects);
        let now = context.table.timeline_as_it_is().await?;
        let is_same = first.is_as_of(&now);
        let mut latest = Arc::clone(first);
        // What is wrong with the timeline was told of the first snapshot.
        if !is_same && let Some(snapshot) = Snapshot::load(&context.table, &mut Findings::default()).await? {
            latest = Arc::new(snapshot);
        }
        for (path, suspect) in suspects {
            if is_same {
                self.findings.extend(suspect.findings);
                continue;
            }
            self.look_again(&latest, &path, &suspect).await?;
        }
        Ok(latest)
    }

    async fn look_again(&mut self, latest: &Arc<Snapshot>, path: &str, suspect: &Suspect) -> Result<()> {
        let context = Arc::clone(&self.context);
        let mut folder_findings = Findings::default();
        let folder = context.table.folder(path).await?;
        let slices = match folder.files.is_empty() {
            // A partition that is gone, or a table that has none.
            true => {
                if let Some(expected) = latest.expected.partitions.get(path) {
                    partition::check_gone(latest, path, expected, &mut folder_findings);
                }
                Vec::new()
            }
            false => partition::check(&context.table, latest, folder, &mut folder_findings).await?,
        };
        if suspect.folder {
            self.findings.extend(folder_findings);
        }
        self.void.extend(suspect.groups.values());
        for slice in slices.into_iter().filter(|slice| suspect.groups.contains_key(&slice.file_id)) {
            let done = self.begin(latest, slice).await?;
            let gone = |finding: &finding::Finding| finding.code == finding::Kind::FileMissing.code();
            // Listed a moment ago: a table on which files go as quickly as this one's is told of as such.
            match done.findings.faults.found.iter().any(gone) {
                true => {
                    let path = format!("{path}/{}", done.slice.file_id);
                    let why = "its files were replaced twice while they were read: not looked at";
                    self.findings.add(finding::Kind::Busy, path.trim_start_matches('/'), why);
                }
                false => self.findings.extend(done.findings),
            }
        }
        Ok(())
    }
}

fn bytes(slice: &FileSlice) -> u64 {
    slice.base_file.as_ref().map_or(0, |base| base.size) + slice.log_files.iter().map(|log| log.size).sum::<u64>()
}

/// All folders, or one.
fn folders<'a>(table: &'a Table, only: Option<&'a str>) -> BoxStream<'a, crate::table::Result<Folder>> {
    match only {
        None => table.folders().boxed(),
        Some(only) => futures::stream::once(table.folder(only)).boxed(),
    }
}

impl Context {
    /// Reads one slice, on a blocking thread.
    fn look(&self, task: Task) -> Result<Done> {
        let Task { snapshot, slice, expected, holder } = task;
        let mut findings = Findings::default();
        let mut feed = self.keys.as_ref().map(|keys| keys.feed(&slice.partition, holder));
        let has_logs = !slice.log_files.is_empty();
        let (mut rows, mut blocks) = (0, 0);
        if let Some(file) = &slice.base_file {
            let written = expected.as_ref().and_then(|group| group.base.as_ref());
            let question = base_file::Question {
                table: &self.table,
                snapshot: &snapshot,
                file,
                written,
                all_columns: self.all_columns,
            };
            // Keys of a slice with logs are those that merging leaves.
            let keys = feed.as_mut().filter(|_| !has_logs);
            rows = base_file::check(&question, keys, &mut findings)?;
        }
        if has_logs {
            blocks = logs::check(&self.table, &snapshot, &slice, expected.as_ref(), &mut findings)?;
            if let Some(feed) = &mut feed {
                rows = logs::feed(&self.table, &snapshot, &slice, feed, &mut findings)?;
            }
        }
        self.read.fetch_add(bytes(&slice), Ordering::Relaxed);
        Ok(Done { slice, findings, rows, blocks, holder })
    }
}
