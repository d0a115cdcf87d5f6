//! New log files: never over another file, never visible in parts.

use std::io::Write;

use bytes::Bytes;

use super::block::{encode_head, encode_tail};
use super::{BlockHeader, BlockKind, Error, Result};
use crate::storage::{self, Draft, Storage};
use crate::table::{LogFileName, in_folder};

/// Names that are tried. Each one taken is a log file that another writer has just made, or that a failed one has left
/// since the listing.
const TRIES: u32 = 100;

/// Creates a log file of whole blocks: `first` if it is free, else the next version that is. `before` hears of each name
/// before it is tried (the place for a marker).
pub async fn create_log_file<E: From<Error>>(
    storage: &Storage,
    partition: &str,
    first: LogFileName,
    blocks: Vec<Bytes>,
    mut before: impl AsyncFnMut(&LogFileName) -> std::result::Result<(), E>,
) -> std::result::Result<(LogFileName, u64), E> {
    let bytes = match <[Bytes; 1]>::try_from(blocks) {
        Ok([block]) => block,
        Err(blocks) => blocks.concat().into(),
    };
    let (mut name, last) = (first.clone(), first.version.saturating_add(TRIES));
    loop {
        before(&name).await?;
        match storage.create(&path(partition, &name), bytes.clone()).await {
            Ok(()) => return Ok((name, bytes.len() as u64)),
            Err(storage::Error::AlreadyExists { .. }) if name.version < last => name.version += 1,
            Err(e) => return Err(Error::from(e).into()),
        }
    }
}

fn path(partition: &str, name: &LogFileName) -> String {
    in_folder(partition, &name.to_string())
}

/// A log file of any size, block by block, on a blocking thread; visible only after [`LogWriter::finish`]. Dropped before,
/// it leaves nothing.
#[derive(Debug)]
pub struct LogWriter {
    storage: Storage,
    draft: Draft,
    partition: String,
    name: LogFileName,
    size: u64,
}

impl LogWriter {
    /// `before` hears of the name before anything is made.
    pub fn create<E: From<Error>>(
        storage: &Storage,
        partition: &str,
        first: LogFileName,
        before: impl FnOnce(&LogFileName) -> std::result::Result<(), E>,
    ) -> std::result::Result<LogWriter, E> {
        before(&first)?;
        let draft = storage.draft(&path(partition, &first)).map_err(Error::from)?;
        let partition = partition.to_owned();
        Ok(LogWriter { storage: storage.clone(), draft, partition, name: first, size: 0 })
    }

    /// Appends a block. After an error the file is of no use: drop it.
    pub fn append(&mut self, kind: BlockKind, header: &BlockHeader, content: &[u8]) -> Result<()> {
        let path = || self.storage.display(&path(&self.partition, &self.name));
        let head = encode_head(kind, header, content.len()).map_err(|error| Error::LogWrite { path: path(), error })?;
        let tail = encode_tail(head.len() + content.len());
        for part in [&head[..], content, &tail] {
            self.draft.write_all(part).map_err(|e| storage::Error::of_io("write", path(), &e))?;
            self.size += part.len() as u64;
        }
        Ok(())
    }

    /// Bytes so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Makes the file visible, under the next version that is free if its own is taken by now: `before` hears of each such
    /// name before it is tried. Returns the name and the size.
    pub fn finish<E: From<Error>>(
        mut self,
        mut before: impl FnMut(&LogFileName) -> std::result::Result<(), E>,
    ) -> std::result::Result<(LogFileName, u64), E> {
        let (mut name, last) = (self.name.clone(), self.name.version.saturating_add(TRIES));
        loop {
            match self.draft.publish(&path(&self.partition, &name)) {
                Ok(size) => return Ok((name, size)),
                Err(storage::Error::AlreadyExists { .. }) if name.version < last => name.version += 1,
                Err(e) => return Err(Error::from(e).into()),
            }
            before(&name)?;
        }
    }
}
