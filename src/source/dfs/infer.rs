//! The schema of a whole batch, found by reading it once more, on all workers.

use super::super::decode::infer::{Inferred, SchemaInference};
use super::super::decode::json::JsonError;
use super::super::{Error, Result};
use super::Input;
use super::pieces::Part;
use super::read::{PartReader, place};
use crate::storage::FileInfo;
use futures::{StreamExt, TryStreamExt};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Reads every piece; what they have seen is put together in order, so that columns stand as first seen.
pub(super) async fn infer(
    input: &Arc<Input>,
    files: &Arc<Vec<FileInfo>>,
    pieces: &[Vec<Part>],
    skip_invalid: bool,
    workers: usize,
) -> Result<Inferred> {
    let seen = futures::stream::iter(pieces.to_vec()).map(|parts| {
        let (input, files) = (input.clone(), files.clone());
        let handle = tokio::runtime::Handle::current();
        async move {
            let work = move || handle.block_on(observe(&input, &files, &parts, skip_invalid));
            let done = tokio::task::spawn_blocking(work).await;
            done.map_err(|e| Error::Worker { what: "infer the schema", why: e.to_string() })?
        }
    });
    let all = seen.buffered(workers.max(1)).try_fold(SchemaInference::new(), |mut all, next| async move {
        all.merge(next);
        Ok(all)
    });
    Ok(all.await?.finish()?)
}

async fn observe(
    input: &Arc<Input>,
    files: &[FileInfo],
    parts: &[Part],
    skip_invalid: bool,
) -> Result<SchemaInference> {
    let mut inference = SchemaInference::new();
    let uncounted = AtomicU64::new(0);
    for part in parts {
        let mut reader = PartReader::new(input, &files[part.file], part);
        loop {
            let step = reader.step(&uncounted, |line| match inference.observe(line.bytes) {
                // Counted and warned of when the rows are read.
                Err(_) if skip_invalid => Ok(()),
                Err(cause) => {
                    let text: String = String::from_utf8_lossy(line.bytes).chars().take(200).collect();
                    Err((line.offset, cause, text))
                }
                Ok(()) => Ok(()),
            });
            match step.await? {
                Ok(true) => {}
                Ok(false) => break,
                Err((offset, cause, text)) => return Err(bad(input, &files[part.file], offset, cause, text).await),
            }
        }
    }
    Ok(inference)
}

async fn bad(input: &Arc<Input>, file: &FileInfo, offset: u64, cause: JsonError, text: String) -> Error {
    Error::BadRecord { place: place(input, file, offset).await, cause: Box::new(cause), text }
}
