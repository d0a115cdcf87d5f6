//! The schema of a whole batch, found by reading it once more, on all workers.

use super::super::{Error, Rejects, Result};
use super::Input;
use super::pieces::{Part, pack};
use super::read::{PartReader, undecoded};
use crate::codec::infer::{Inferred, SchemaInference};
use crate::config::BadRecordPolicy;
use crate::storage::FileInfo;
use futures::{StreamExt, TryStreamExt};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Reads every piece; what they have seen is put together in order, so that columns stand as first seen.
pub(super) async fn infer(
    input: &Arc<Input>,
    files: &Arc<Vec<FileInfo>>,
    pieces: &[Vec<Part>],
    rejects: &Arc<Rejects>,
    workers: usize,
) -> Result<Inferred> {
    let seen = futures::stream::iter(pieces.to_vec()).map(|parts| {
        let (input, files, rejects) = (input.clone(), files.clone(), rejects.clone());
        let handle = tokio::runtime::Handle::current();
        async move {
            let work = move || handle.block_on(observe(&input, &files, &parts, &rejects));
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

async fn observe(input: &Arc<Input>, files: &[FileInfo], parts: &[Part], rejects: &Rejects) -> Result<SchemaInference> {
    let mut inference = SchemaInference::new();
    let uncounted = AtomicU64::new(0);
    for part in parts {
        let mut reader = PartReader::new(input, &files[part.file], part);
        loop {
            let step = reader.step(&uncounted, |line| match inference.observe(line.bytes) {
                Err(cause) if rejects.policy() == BadRecordPolicy::Fail => {
                    rejects.refuse(undecoded(pack(part.file, line.offset), line.bytes, &cause))
                }
                // Those of a round that goes on are counted when the rows are read.
                _ => Ok(()),
            });
            if !step.await?? {
                break;
            }
        }
    }
    Ok(inference)
}
