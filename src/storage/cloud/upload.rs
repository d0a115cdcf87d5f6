//! Files of any size: in parts, which nobody sees before they are put together.

use std::io::{self, Write};
use std::sync::Arc;

use object_store::path::Path;
use object_store::{Attributes, MultipartUpload, ObjectStore, ObjectStoreExt, PutMultipartOptions};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::super::backend::{Draft, Outcome};
use super::super::error::Cause;
use super::buffer::Buffer;
use super::cause::failed;
use super::connect::Connection;
use super::once;

/// Bytes of a part: stores want 5 MiB at least, all parts of one size, and not more than 10 000 of them.
const PART: usize = 8 << 20;
/// Parts of the whole process that are on their way, each in memory.
static IN_FLIGHT: Semaphore = Semaphore::const_new(16);
/// Times that parts are put together, where the answer says nothing.
const TRIES: u32 = 3;

/// See [`Upload`](crate::storage::Upload). A file that is smaller than a part is put whole at the end.
///
/// What fails on the way is told at the end, which can say whether trying again helps; the bytes in between go nowhere.
pub(super) struct CloudDraft {
    connection: Arc<Connection>,
    /// Of the storage.
    prefix: String,
    /// Where the parts are put together.
    at: Path,
    runtime: Handle,
    buffer: Buffer,
    /// From the second part on.
    parts: Option<Parts>,
    failure: Option<Cause>,
    /// It lies at `at`, to be published.
    is_staged: bool,
    /// Nothing is to be cleared away.
    is_done: bool,
}

struct Parts {
    upload: Box<dyn MultipartUpload>,
    mark: Attributes,
    running: JoinSet<object_store::Result<()>>,
}

impl CloudDraft {
    pub fn new(connection: Arc<Connection>, prefix: String, at: Path) -> Outcome<CloudDraft> {
        let runtime = Handle::try_current().map_err(|e| io::Error::other(e.to_string()))?;
        let buffer = Buffer::default();
        let (parts, failure, is_staged, is_done) = (None, None, false, false);
        Ok(CloudDraft { connection, prefix, at, runtime, buffer, parts, failure, is_staged, is_done })
    }

    async fn send_part(&mut self) -> Outcome<()> {
        let parts = match &mut self.parts {
            Some(parts) => parts,
            None => {
                let mark = once::mark();
                let options = PutMultipartOptions { attributes: mark.clone(), ..PutMultipartOptions::default() };
                let upload = self.connection.store.put_multipart_opts(&self.at, options).await.map_err(failed)?;
                self.parts.insert(Parts { upload, mark, running: JoinSet::new() })
            }
        };
        while let Some(sent) = parts.running.try_join_next() {
            of_part(sent)?;
        }
        let permit = IN_FLIGHT.acquire().await.map_err(|e| io::Error::other(e.to_string()))?;
        let part = parts.upload.put_part(self.buffer.take()?.into());
        parts.running.spawn(async move {
            let _permit = permit;
            part.await
        });
        Ok(())
    }

    /// Puts the parts together, if there are any.
    async fn assemble(&mut self) -> Outcome<()> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if self.parts.is_some() && !self.buffer.is_empty() {
            self.send_part().await?;
        }
        let Some(parts) = &mut self.parts else { return Ok(()) };
        while let Some(sent) = parts.running.join_next().await {
            of_part(sent)?;
        }
        let mut tries = 1;
        loop {
            let Err(error) = parts.upload.complete().await else { return Ok(()) };
            let cause = failed(error);
            // The answer may have been lost: the repetition finds no parts any more, but the object.
            if let Ok(Some((true, _))) = once::look(&*self.connection.store, &self.at, &parts.mark).await {
                return Ok(());
            }
            if tries == TRIES || !matches!(cause, Cause::Other { retryable: true, .. }) {
                return Err(cause);
            }
            tries += 1;
        }
    }

    async fn copy_to(&self, target: &Path) -> Outcome<()> {
        let store = &*self.connection.store;
        let Err(error) = store.copy_if_not_exists(&self.at, target).await else { return Ok(()) };
        match failed(error) {
            Cause::Unsupported(why) => Err(Cause::Unsupported(why)),
            // A copy bears no mark: here the bytes must tell whose success it was.
            _ if is_same(store, &self.at, target).await.unwrap_or(false) => Ok(()),
            cause => Err(cause),
        }
    }
}

fn of_part(sent: Result<object_store::Result<()>, tokio::task::JoinError>) -> Outcome<()> {
    sent.map_err(io::Error::other)?.map_err(failed)
}

async fn is_same(store: &dyn ObjectStore, one: &Path, other: &Path) -> object_store::Result<bool> {
    let size = store.head(one).await?.size;
    if store.head(other).await?.size != size {
        return Ok(false);
    }
    for start in (0..size).step_by(PART) {
        let range = start..size.min(start + PART as u64);
        if store.get_range(one, range.clone()).await? != store.get_range(other, range).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Write for CloudDraft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failure.is_some() {
            return Ok(bytes.len());
        }
        let taken = &bytes[..bytes.len().min(PART - self.buffer.len())];
        self.buffer.extend(taken)?;
        if self.buffer.len() == PART {
            let runtime = self.runtime.clone();
            self.failure = runtime.block_on(self.send_part()).err();
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Draft for CloudDraft {
    fn finish(&mut self) -> Outcome<()> {
        let runtime = self.runtime.clone();
        runtime.block_on(async {
            self.assemble().await?;
            if self.parts.is_none() {
                let bytes = self.buffer.take()?;
                self.connection.store.put(&self.at, bytes.into()).await.map_err(failed)?;
            }
            self.is_done = true;
            Ok(())
        })
    }

    fn publish(&mut self, path: &str) -> Outcome<()> {
        let prefix = &self.prefix;
        let target = if prefix.is_empty() { path.to_owned() } else { format!("{prefix}/{path}") };
        let target = Path::parse(target).unwrap_or_default();
        let runtime = self.runtime.clone();
        runtime.block_on(async {
            if !self.is_staged {
                self.assemble().await?;
                self.is_staged = self.parts.is_some();
            }
            if !self.is_staged {
                self.connection.create(&target, self.buffer.copy()?).await?;
                self.is_done = true;
                return Ok(());
            }
            self.copy_to(&target).await?;
            self.is_done = true;
            // What stays behind here is seen by nobody, and goes with the target.
            let _ = self.connection.store.delete(&self.at).await;
            Ok(())
        })
    }

    fn leave_half(&mut self) {
        self.is_done = true;
    }
}

impl Drop for CloudDraft {
    fn drop(&mut self) {
        let Some(mut parts) = self.parts.take().filter(|_| !self.is_done) else { return };
        let (store, at, is_staged) = (Arc::clone(&self.connection.store), self.at.clone(), self.is_staged);
        self.runtime.spawn(async move {
            // Parts on their way are waited for: a store may keep one that comes in after the end.
            while parts.running.join_next().await.is_some() {}
            // If it does not come to this, a bucket's rule for parts that were never put together removes them.
            let _ = if is_staged { store.delete(&at).await } else { parts.upload.abort().await };
        });
    }
}
