//! `JsonDFSSource`: JSON lines in the files of a folder, picked as Hudi's `DFSPathSelector` picks them.
//!
//! A fetch lists and picks (`pick.rs`), cuts what it picked into pieces (`pieces.rs`), and leaves the reading (`read.rs`) to
//! whoever polls a piece. Invariant: pieces in order give the lines of the files in order of (modification time, path).

mod infer;
mod pick;
mod pieces;
mod read;

use super::{Batches, Error, Fetch, FetchRequest, FetchStats, Origin, Raw, Rejects, Result, Source};
use crate::config::{BadRecordsConfig, SourceConfig, StorageConfig};
use crate::storage::{FileInfo, Storage};
use pieces::JsonPiece;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

/// Checkpoint of a first run that found no file (`Long.MIN_VALUE`, `DFSPathSelector` 0.15).
const NO_FILES_YET: &str = "-9223372036854775808";

/// Files as a source of JSON lines.
#[derive(Debug)]
pub struct JsonDfsSource {
    input: Arc<Input>,
    root: String,
    bad_records: BadRecordsConfig,
    workers: usize,
    memory: Mutex<Memory>,
}

/// What reading needs to know: where the files are.
#[derive(Debug)]
struct Input {
    storage: Storage,
}

/// What an open source remembers between fetches.
#[derive(Debug, Default)]
struct Memory {
    /// Files of the last fetch, by the number in a position.
    files: Arc<Vec<FileInfo>>,
    /// Every path seen so far; `None` before the first listing.
    seen: Option<HashSet<String>>,
}

impl JsonDfsSource {
    /// Opens the folder that `hoodie.streamer.source.dfs.root` names.
    pub fn open(config: &SourceConfig, storage: &StorageConfig, workers: usize) -> Result<JsonDfsSource> {
        let root = config.dfs_root.clone().unwrap_or_default();
        let storage = Storage::open_with(&root, storage)?.of_others();
        Ok(JsonDfsSource {
            input: Arc::new(Input { storage }),
            root,
            bad_records: config.bad_records.clone(),
            workers,
            memory: Mutex::default(),
        })
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// New names whose time is not newer than the checkpoint: Hudi, and we, never read them.
    fn late_files(&self, files: &[FileInfo], after: Option<i64>) -> Vec<String> {
        let mut memory = self.memory();
        let seen = memory.seen.take();
        let late = match (&seen, after) {
            (Some(seen), Some(after)) => {
                let late = files.iter().filter(|f| f.modified_ms <= after && !seen.contains(&f.path));
                late.map(|f| self.input.storage.display(&f.path)).collect()
            }
            _ => Vec::new(),
        };
        memory.seen = Some(files.iter().map(|f| f.path.clone()).collect());
        late
    }
}

fn position(checkpoint: Option<&str>) -> Result<Option<i64>> {
    let parse = |text: &str| {
        text.trim().parse::<i64>().map_err(|_| Error::ForeignCheckpoint {
            checkpoint: text.to_string(),
            hint: if text.contains(',') && text.contains(':') { ", and this looks like one of Kafka" } else { "" },
        })
    };
    checkpoint.map(parse).transpose()
}

#[async_trait::async_trait]
impl Source for JsonDfsSource {
    async fn fetch(&self, request: FetchRequest) -> Result<Fetch> {
        let after = position(request.from.as_deref())?;
        let storage = &self.input.storage;
        if !storage.exists_folder("").await? {
            return Err(Error::MissingRoot { root: self.root.clone() });
        }
        let listed = storage.list_recursive("", &pick::enters).await?;
        let listed: Vec<FileInfo> = listed.into_iter().filter(pick::counts).collect();
        let late = self.late_files(&listed, after);
        let until = position(request.until.as_deref())?.unwrap_or(i64::MAX);
        let listed = listed.into_iter().filter(|f| f.modified_ms <= until).collect();
        let picked = pick::pick(listed, after, request.limit);
        let taken = pick::heavy(&picked.files, request.bytes.unwrap_or(u64::MAX));
        tracing::info!(
            picked = taken,
            bytes = picked.files[..taken].iter().map(|f| f.size).sum::<u64>(),
            left_for_later = picked.left + picked.files.len() - taken,
            not_newer_than_checkpoint = picked.old,
            "files listed"
        );
        let mut stats = FetchStats {
            files: taken as u64,
            bytes: picked.files[..taken].iter().map(|f| f.size).sum(),
            weight: Some(picked.files[..taken].iter().map(pick::weight).sum()),
            ..Default::default()
        };
        if !late.is_empty() {
            stats.warnings.push(format!(
                "{} new files are not newer than the checkpoint and will never be read: {}",
                late.len(),
                late.iter().take(5).cloned().collect::<Vec<_>>().join(", ")
            ));
        }
        let Some(last) = picked.files[..taken].last() else {
            let checkpoint = request.from.or_else(|| Some(NO_FILES_YET.to_string()));
            return Ok(Fetch { batches: None, checkpoint, rest: None, stats });
        };
        let checkpoint = Some(last.modified_ms.to_string());
        let rest = picked.files[taken..].last().map(|last| last.modified_ms.to_string());
        let files = Arc::new(picked.files);
        self.memory().files = files.clone();
        pieces::check_names(&self.input.storage, &files)?;
        let parts = pieces::cut(&files[..taken]);
        let rejects = Arc::new(Rejects::new(&self.bad_records));
        let schema = match request.schema {
            Some(schema) => schema.arrow,
            None => {
                // Over all that waits: a field that only comes later would be left out for good.
                let all = pieces::cut(&files);
                let inferred = match infer::infer(&self.input, &files, &all, &rejects, self.workers).await {
                    Err(Error::EnoughBadRecords) => None,
                    inferred => Some(inferred?),
                };
                rejects.verdict(self, 0).await?;
                let inferred = inferred.ok_or(Error::EnoughBadRecords)?;
                stats.warnings.push(format!(
                    "no schema provider: the schema was inferred from this batch and stays: {}",
                    inferred
                        .schema
                        .fields()
                        .iter()
                        .map(|f| format!("{} {}", f.name(), f.data_type()))
                        .collect::<Vec<_>>()
                        .join(", ")
                ));
                if !inferred.left_out.is_empty() {
                    let names = inferred.left_out.join(", ");
                    stats.warnings.push(format!("fields without a value in this batch are left out for good: {names}"));
                }
                inferred.schema
            }
        };
        let bytes_read = Arc::new(AtomicU64::new(0));
        let partitions = parts.into_iter().map(|parts| {
            let piece = JsonPiece::new(&self.input, &files, parts, &schema, request.positions)?;
            Ok(Arc::new(piece.sharing(&rejects, &bytes_read)) as Arc<_>)
        });
        let partitions = partitions.collect::<Result<Vec<_>>>()?;
        let schema = pieces::schema_with_position(&schema, request.positions);
        Ok(Fetch {
            batches: Some(Batches { schema, partitions, rejects, bytes_read, times: Arc::default() }),
            checkpoint,
            rest,
            stats,
        })
    }

    async fn describe(&self, position: u64) -> String {
        let (file, offset) = pieces::unpack(position);
        let files = self.memory().files.clone();
        match files.get(file) {
            Some(file) => read::place(&self.input, file, offset).await,
            None => format!("position {position}"),
        }
    }

    fn origin(&self, position: u64) -> Origin {
        let (file, offset) = pieces::unpack(position);
        let path = self.memory().files.get(file).map(|file| self.input.storage.display(&file.path));
        Origin { source: path.unwrap_or_default(), partition: None, offset: offset as i64 }
    }

    async fn raw(&self, positions: &[u64]) -> Result<Vec<Option<Raw>>> {
        let files = self.memory().files.clone();
        let mut found: HashMap<u64, Raw> = HashMap::new();
        for (number, file) in files.iter().enumerate() {
            let in_file = positions.iter().map(|p| pieces::unpack(*p)).filter(|(file, _)| *file == number);
            let offsets: BTreeSet<u64> = in_file.map(|(_, offset)| offset).collect();
            for (offset, value) in read::lines_at(&self.input, file, offsets).await? {
                found.insert(pieces::pack(number, offset), Raw { value: Some(value), ..Raw::default() });
            }
        }
        Ok(positions.iter().map(|position| found.get(position).cloned()).collect())
    }

    async fn on_commit(&self, _checkpoint: &str) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
