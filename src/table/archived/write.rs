//! Writing on at the end of the archived timeline.

use std::collections::HashSet;

use bytes::Bytes;

use super::entry::{ArchiveEntry, schema_text};
use super::read::read_blocks;
use super::{ArchiveFile, PREFIX, TOKEN};
use crate::storage::{self, Version};
use crate::table::log_file::{AvroContent, BlockHeader, BlockKind, LogReader, encode_block};
use crate::table::sweep::STALE;
use crate::table::{Error, Instant, Result, Table, in_folder};

/// Names that are tried: each one taken is another archiver's file.
const TRIES: u32 = 100;
/// A last file that is larger is not looked into for what a run that died has left there: a state that is archived twice
/// does no harm.
const LOOKED_INTO: u64 = 16 << 20;

/// Records that are to be archived, as blocks.
#[derive(Debug)]
pub struct ArchiveRecords {
    /// Records of a block.
    batch: usize,
    blocks: Vec<u8>,
    open: AvroContent,
}

impl ArchiveRecords {
    pub fn new(batch: usize) -> ArchiveRecords {
        ArchiveRecords { batch: batch.max(1), blocks: Vec::new(), open: AvroContent::new() }
    }

    /// Adds a file of the active timeline. CPU work.
    pub fn push(&mut self, table: &Table, entry: &ArchiveEntry) -> Result<()> {
        let place = || table.storage.display(&entry.instant.path());
        let datum = entry.to_datum().map_err(|why| Error::TimelineFile { path: place(), why })?;
        let length = u32::try_from(datum.len())
            .map_err(|_| Error::TimelineFile { path: place(), why: "it is too large to be archived".into() })?;
        self.open.buffer().extend_from_slice(&length.to_be_bytes());
        self.open.buffer().extend_from_slice(&datum);
        self.open.add(1);
        if self.open.count() as usize >= self.batch { self.close(table) } else { Ok(()) }
    }

    fn close(&mut self, table: &Table) -> Result<()> {
        if !self.open.is_empty() {
            let header = BlockHeader::of_schema(schema_text());
            let block = encode_block(BlockKind::AvroData, &header, self.open.content());
            let path = || table.storage.display(&table.archive_folder());
            self.blocks.extend_from_slice(&block.map_err(|error| Error::LogWrite { path: path(), error })?);
            self.open.clear();
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.open.is_empty()
    }
}

/// The newest file of the archived timeline, where the next records go to if it is small.
#[derive(Debug)]
pub struct ArchiveTail {
    table: Table,
    /// 0: there is no file yet.
    version: u32,
    last: Option<Last>,
    /// Bytes up to which the file grows.
    file_bytes: u64,
}

/// A file that may grow.
#[derive(Debug)]
struct Last {
    path: String,
    bytes: Bytes,
    version: Version,
}

impl Table {
    /// Looks for the end of the archived timeline, and removes what archivers have left there that died. The newest
    /// file is written on while it has fewer than `file_bytes`.
    pub async fn archive_tail(&self, file_bytes: u64) -> Result<ArchiveTail> {
        self.storage.discard_stale(&self.archive_folder(), STALE).await?;
        let newest = self.archive_files().await?.pop();
        let version = newest.as_ref().map_or(0, |file| file.version);
        let mut tail = ArchiveTail { table: self.clone(), version, last: None, file_bytes };
        if let Some(ArchiveFile { path, .. }) = newest.filter(|file| file.size <= LOOKED_INTO.max(file_bytes)) {
            let read = self.storage.get_versioned(&path).await?;
            tail.last = read.map(|(bytes, version)| Last { path, bytes, version });
        }
        Ok(tail)
    }
}

impl ArchiveTail {
    /// States that the newest file holds already: left by a run that died before it had deleted them. CPU work.
    pub fn archived(&self) -> Result<HashSet<Instant>> {
        let mut archived = HashSet::new();
        if let Some(Last { path, bytes, .. }) = &self.last {
            let blocks = LogReader::over(&self.table.storage, path, bytes.clone());
            read_blocks(blocks, &mut |found| {
                archived.insert(found.instant);
            })?;
        }
        Ok(archived)
    }

    /// Leaves the newest file as it is: the next records begin another.
    pub fn leave(&mut self) {
        self.last = None;
    }

    /// Makes the records part of the archived timeline; the name of their file. They are there for good once this is done,
    /// and not at all where it fails.
    pub async fn append(&mut self, mut records: ArchiveRecords) -> Result<String> {
        records.close(&self.table)?;
        let new = records.blocks;
        let storage = &self.table.storage;
        let grows = |last: &Last| (last.bytes.len() + new.len()) as u64 <= self.file_bytes;
        if let Some(last) = self.last.take_if(|last| grows(last)) {
            let bytes = Bytes::from([&last.bytes[..], &new].concat());
            match storage.replace_if(&last.path, bytes.clone(), &last.version).await {
                Ok(version) => {
                    let path = last.path;
                    self.last = Some(Last { path: path.clone(), bytes, version });
                    return Ok(path);
                }
                // Another archiver has written on there, or nobody can tell.
                Err(storage::Error::Conflict { .. } | storage::Error::Unsupported { .. }) => {}
                Err(e) => return Err(e.into()),
            }
        }
        let (folder, bytes) = (self.table.archive_folder(), Bytes::from(new));
        let most = self.version.saturating_add(TRIES);
        loop {
            self.version = self.version.saturating_add(1);
            let path = in_folder(&folder, &format!("{PREFIX}{}_{TOKEN}", self.version));
            match storage.create(&path, bytes.clone()).await {
                Ok(()) => {
                    self.last = None;
                    return Ok(path);
                }
                Err(storage::Error::AlreadyExists { .. }) if self.version < most => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}
