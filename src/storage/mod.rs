//! Files of one table or one input folder, on local disks and on object stores.
//!
//! Knows object_store and nothing of Hudi. Look at [`Storage`] first; a `backend` is what a kind of store must be able to
//! do, and there are two of them: `local` and `cloud`. Invariants, on all of them: every path given to a [`Storage`] is
//! relative to its root, is kept byte for byte (`a%2Fb` stays `a%2Fb`) and never leaves the root; [`Storage::create`] is
//! atomic and fails if the target exists, and only then; a reader never sees half of a [`Storage::put`] or of an
//! [`Upload`].
//!
//! What is being written may lie beside its target as `name#1`, `name#2`, … until it is complete. Listings leave such names
//! out, and [`Storage::delete`] of the target removes what a killed process left of them. Where others write, such a name is
//! as good as any: [`Storage::of_others`].

mod backend;
mod cloud;
#[cfg(test)]
mod contract;
mod error;
mod fault;
mod injected;
mod local;
mod location;
#[cfg(test)]
mod tests;
mod upload;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{FuturesUnordered, StreamExt};

use crate::config::StorageConfig;
use backend::{Backend, Outcome};
use error::Cause;
use injected::{Call, Fault, Faults};
use location::{Location, Place};

pub use error::{Error, Result};
pub use fault::fault_point;
pub use upload::{Draft, Upload};

/// Folders that one recursive listing reads at a time: enough to hide the latency of a store, few enough for a spinning
/// disk.
const LISTINGS_IN_FLIGHT: usize = 8;

/// A place where files are: a root on a store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Storage {
    backend: Arc<dyn Backend>,
    root: Arc<Location>,
    faults: Option<Arc<Faults>>,
    /// Whether listings leave out what is staged.
    hides_staged: bool,
}

/// What a listing says of a file. `path` is relative to the storage's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileInfo {
    pub path: String,
    pub size: u64,
    /// Epoch milliseconds.
    pub modified_ms: i64,
}

/// Which of the contents that a file has had: for [`Storage::replace_if`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version(object_store::UpdateVersion);

/// The entries of one folder: files, and names of folders (relative to the root).
#[derive(Debug, Clone, Default)]
pub struct Listing {
    pub files: Vec<FileInfo>,
    pub folders: Vec<String>,
}

impl Storage {
    /// [`Storage::open_with`] the defaults and what the environment says.
    pub fn open(uri: &str) -> Result<Storage> {
        Storage::open_with(uri, &StorageConfig::default())
    }

    /// `uri`: an absolute or relative local path, `file:…`, or a location on `s3`, `s3a`, `s3n`, `gs`, `abfs`, `abfss`,
    /// `wasb`, `wasbs`; other schemes are refused by name.
    ///
    /// Nothing is looked at or created: a root that is not there reads as an empty folder and comes to be with the
    /// first file written into it. As in Hadoop, `%` in a location has no special meaning.
    pub fn open_with(uri: &str, config: &StorageConfig) -> Result<Storage> {
        let root = Location::parse(uri)?;
        let backend: Arc<dyn Backend> = match &root.place {
            Place::Local(path) => Arc::new(local::Disk::new(path, config.fsync)),
            Place::Store(bucket) => Arc::new(
                cloud::Cloud::open(bucket, config).map_err(|why| Error::BadLocation { uri: root.display(""), why })?,
            ),
        };
        let faults = Faults::of_process().map_err(|why| Cause::Unsupported(why).at("open", root.display("")))?;
        Ok(Storage { backend, root: Arc::new(root), faults, hides_staged: true })
    }

    /// A place that this program does not write to, such as input: a file is not left out there for being called `export#7`.
    pub fn of_others(self) -> Storage {
        Storage { hides_staged: false, ..self }
    }

    /// An object store without a server.
    #[cfg(test)]
    pub(crate) fn in_memory() -> Storage {
        let store = Arc::new(object_store::memory::InMemory::new());
        Storage::over(cloud::Cloud::over(store, "table"), "s3a://bucket/table")
    }

    #[cfg(test)]
    fn over(cloud: cloud::Cloud, uri: &str) -> Storage {
        let root = Location::parse(uri).expect("a location");
        Storage { backend: Arc::new(cloud), root: Arc::new(root), faults: None, hides_staged: true }
    }

    /// Whether this is a folder of this machine, as far as programs can tell.
    pub fn is_local(&self) -> bool {
        matches!(self.root.place, Place::Local(_))
    }

    /// Absolute location as Hudi writes it into plans: `file:/abs/…` for local disks, else as it was given.
    pub fn absolute(&self, path: &str) -> String {
        self.root.absolute(path)
    }

    /// A short text for messages: the root as the user gave it.
    pub fn display(&self, path: &str) -> String {
        self.root.display(path)
    }

    pub async fn get(&self, path: &str) -> Result<Bytes> {
        self.of_file("read", path)?;
        self.call(Call::Read, "read", path, self.backend.get(path)).await
    }

    /// The whole range, or an error: a file that ends before it is not what the caller takes it for.
    pub async fn get_range(&self, path: &str, range: Range<u64>) -> Result<Bytes> {
        let parts = self.get_ranges(path, std::slice::from_ref(&range)).await?;
        Ok(parts.into_iter().next().unwrap_or_default())
    }

    /// Several ranges in as few requests as is quick, each whole.
    pub async fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        const DOING: &str = "read a range of";
        self.of_file(DOING, path)?;
        // Stores refuse a range without bytes.
        let filled: Vec<_> = ranges.iter().filter(|range| !range.is_empty()).cloned().collect();
        let parts = match filled.is_empty() {
            true => Vec::new(),
            false => self.call(Call::Read, DOING, path, self.backend.get_ranges(path, &filled)).await?,
        };
        let mut parts = parts.into_iter();
        let whole = |range: &Range<u64>| {
            if range.is_empty() {
                return Ok(Bytes::new());
            }
            let part = parts.next().unwrap_or_default();
            let end = range.start + part.len() as u64;
            match end >= range.end {
                true => Ok(part),
                false => Err(Cause::cut_off(end, range.end).at(DOING, self.display(path))),
            }
        };
        ranges.iter().map(whole).collect()
    }

    /// `None` when the file does not exist.
    pub async fn get_opt(&self, path: &str) -> Result<Option<Bytes>> {
        found(self.get(path).await)
    }

    /// `None` when the file does not exist.
    pub async fn size(&self, path: &str) -> Result<Option<u64>> {
        self.of_file("look up", path)?;
        found(self.call(Call::Read, "look up", path, self.backend.size(path)).await)
    }

    /// Writes or replaces, atomically for readers. On local disks also removes a stale Hadoop `.name.crc`.
    pub async fn put(&self, path: &str, bytes: Bytes) -> Result<()> {
        self.write("write", path, &bytes, self.backend.put(path, bytes.clone())).await
    }

    /// Creates with all its content or not at all; `AlreadyExists` if the target is there. An answer that got lost does not
    /// turn a success into that.
    ///
    /// Local disks need hard links for this (all usual Linux file systems have them; exFAT and some FUSE mounts don't),
    /// object stores need conditional puts.
    pub async fn create(&self, path: &str, bytes: Bytes) -> Result<()> {
        self.write("create", path, &bytes, self.backend.create(path, bytes.clone())).await
    }

    /// The same for what only has to be there before something else is: a power cut may undo it as long as nothing with
    /// bytes comes after it.
    pub async fn create_ahead(&self, path: &str, bytes: Bytes) -> Result<()> {
        self.write("create", path, &bytes, self.backend.create_ahead(path, bytes.clone())).await
    }

    /// A file's content and which one it is. `None` when the file does not exist.
    pub async fn get_versioned(&self, path: &str) -> Result<Option<(Bytes, Version)>> {
        self.of_file("read", path)?;
        found(self.call(Call::Read, "read", path, self.backend.get_versioned(path)).await)
    }

    /// [`Storage::create`], and which content the file has now. On object stores alone.
    pub async fn create_versioned(&self, path: &str, bytes: Bytes) -> Result<Version> {
        self.write("create", path, &bytes, self.backend.create_versioned(path, bytes.clone())).await
    }

    /// Replaces a file's content if it is still `version`, atomically; [`Error::Conflict`] if it is another by now, or gone.
    /// An answer that got lost does not turn a success into a conflict. Local disks know no conditional replacement: there
    /// those who use this exclude each other, but not [`Storage::put`] (`flock(2)` of the folder; [`Error::Unsupported`] where
    /// that cannot be had).
    pub async fn replace_if(&self, path: &str, bytes: Bytes, version: &Version) -> Result<Version> {
        self.write("replace", path, &bytes, self.backend.replace_if(path, bytes.clone(), version)).await
    }

    /// Missing is fine. On local disks also removes what a killed process left of an upload to `path`.
    pub async fn delete(&self, path: &str) -> Result<()> {
        self.of_file("delete", path)?;
        self.call(Call::Delete, "delete", path, self.backend.delete(path)).await
    }

    /// Removes what a killed process left of an upload to `path`, and leaves the file, if there is one.
    pub async fn discard_uploads(&self, path: &str) -> Result<()> {
        const DOING: &str = "discard uploads to";
        self.of_file(DOING, path)?;
        self.call(Call::Delete, DOING, path, self.backend.discard_uploads(path)).await
    }

    /// Removes what processes that died while they wrote have left in a folder: uploads that are older than `age`, so that
    /// none is another process's that still writes. Object stores keep no such things where they can be seen.
    pub async fn discard_stale(&self, folder: &str, age: Duration) -> Result<()> {
        self.root.check(folder)?;
        let doing = "discard stale uploads in";
        self.call(Call::Delete, doing, folder, self.backend.discard_stale(folder, age)).await
    }

    /// Removes a folder and all in it; missing is fine.
    pub async fn delete_folder(&self, path: &str) -> Result<()> {
        self.root.check(path)?;
        self.call(Call::Delete, "delete folder", path, self.backend.delete_folder(path)).await
    }

    /// Whether there is such a folder; `""` asks for the root itself. In an object store: whether it has a file.
    pub async fn exists_folder(&self, path: &str) -> Result<bool> {
        self.root.check(path)?;
        self.call(Call::List, "look up folder", path, self.backend.exists_folder(path)).await
    }

    /// One level, by name. A missing folder is an empty listing. `.crc` side files and staged uploads are left out.
    /// Links are followed, as Hadoop does.
    pub async fn list(&self, folder: &str) -> Result<Listing> {
        self.root.check(folder)?;
        let mut listing = self.call(Call::List, "list", folder, self.backend.list(folder)).await?;
        listing.files.retain(|file| self.shows(&file.path));
        Ok(listing)
    }

    /// Names of the files of one level, in no order: on local disks several times as quick as [`Storage::list`].
    pub async fn names(&self, folder: &str) -> Result<Vec<String>> {
        self.root.check(folder)?;
        let mut names = self.call(Call::List, "list", folder, self.backend.names(folder)).await?;
        names.retain(|name| self.shows(name));
        Ok(names)
    }

    /// The same of the folders of one level, relative to the root.
    pub async fn folders(&self, folder: &str) -> Result<Vec<String>> {
        self.root.check(folder)?;
        self.call(Call::List, "list", folder, self.backend.folders(folder)).await
    }

    /// All files below `folder`, by path, not entering folders for which `enter` (given the folder's relative path) says
    /// no.
    pub async fn list_recursive(&self, folder: &str, enter: &(dyn Fn(&str) -> bool + Sync)) -> Result<Vec<FileInfo>> {
        self.root.check(folder)?;
        let mut files = match self.call(Call::List, "list", folder, self.backend.list_all(folder)).await? {
            Some(files) => entered(files, folder, enter),
            None => self.list_folders(folder, enter).await?,
        };
        files.retain(|file| self.shows(&file.path));
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    fn shows(&self, path: &str) -> bool {
        !self.hides_staged || !is_staged(path.rsplit('/').next().unwrap_or(path))
    }

    async fn list_folders(&self, folder: &str, enter: &(dyn Fn(&str) -> bool + Sync)) -> Result<Vec<FileInfo>> {
        let mut files = Vec::new();
        let mut waiting = vec![folder.to_owned()];
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < LISTINGS_IN_FLIGHT
                && let Some(folder) = waiting.pop()
            {
                running.push(async move { self.list(&folder).await });
            }
            let Some(listing) = running.next().await.transpose()? else { return Ok(files) };
            files.extend(listing.files);
            waiting.extend(listing.folders.into_iter().filter(|f| enter(f)));
        }
    }

    /// Every call but those of uploads comes through here.
    async fn call<T>(
        &self,
        call: Call,
        doing: &'static str,
        path: &str,
        work: impl Future<Output = Outcome<T>>,
    ) -> Result<T> {
        let answer = self.pass(call, doing, path, &[]).await?;
        let done = work.await.map_err(|cause| cause.at(doing, self.display(path)))?;
        answer.map(|()| done)
    }

    async fn write<T>(
        &self,
        doing: &'static str,
        path: &str,
        bytes: &[u8],
        work: impl Future<Output = Outcome<T>>,
    ) -> Result<T> {
        self.of_file(doing, path)?;
        let answer = self.pass(Call::Put, doing, path, bytes).await?;
        let done = work.await.map_err(|cause| cause.at(doing, self.display(path)))?;
        answer.map(|()| done)
    }

    /// The place where a test's fault strikes; `bytes` are those that were to be written. What the caller is told once the
    /// call is done; an error: it is not to be done.
    async fn pass(&self, call: Call, doing: &'static str, path: &str, bytes: &[u8]) -> Result<Result<()>> {
        let Some(fault) = self.struck(call, doing, path) else { return Ok(Ok(())) };
        match fault {
            Fault::Delay => {
                injected::delay().await;
                return Ok(Ok(()));
            }
            Fault::Lose => return Ok(Err(self.injected(doing, path))),
            Fault::Fail => {}
            Fault::Tear | Fault::Kill if call == Call::Put => self.backend.leave_half(path, bytes).await,
            Fault::Tear | Fault::Kill => {}
        }
        if fault == Fault::Kill {
            injected::die();
        }
        Err(self.injected(doing, path))
    }

    fn struck(&self, call: Call, doing: &'static str, path: &str) -> Option<Fault> {
        let fault = self.faults.as_ref()?.strike(call)?;
        tracing::warn!(?fault, ?call, doing, path = self.display(path), "storage fault injected");
        Some(fault)
    }

    fn injected(&self, doing: &'static str, path: &str) -> Error {
        let text = "a fault was injected here".to_owned();
        Cause::Other { text, retryable: false }.at(doing, self.display(path))
    }

    fn of_file(&self, doing: &'static str, path: &str) -> Result<()> {
        if path.is_empty() {
            let why = format!("cannot {doing} it: it is a folder, not a file");
            return Err(Error::BadLocation { uri: self.display(path), why });
        }
        self.root.check(path)
    }
}

fn found<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(Error::NotFound { .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// Those files below `folder` that lie in no folder which `enter` refuses. They come folder by folder, so that the last
/// answer is mostly the next one's too.
fn entered(mut files: Vec<FileInfo>, folder: &str, enter: &(dyn Fn(&str) -> bool + Sync)) -> Vec<FileInfo> {
    let mut last: Option<(String, bool)> = None;
    files.retain(|file| {
        let parent = file.path.rsplit_once('/').map_or("", |(parent, _)| parent);
        if let Some((known, is_entered)) = &last
            && known == parent
        {
            return *is_entered;
        }
        let below = parent.get(folder.len()..).unwrap_or_default();
        let ends = below.char_indices().filter(|(at, c)| *c == '/' && *at > 0).map(|(at, _)| folder.len() + at);
        let is_entered = parent.len() <= folder.len() || ends.chain([parent.len()]).all(|end| enter(&parent[..end]));
        last = Some((parent.to_owned(), is_entered));
        is_entered
    });
    files
}

/// Hadoop's, of the file beside it.
fn is_checksum(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".crc")
}

/// What is being written on a local disk, as object_store tells it too.
fn is_staged(name: &str) -> bool {
    let number = name.split_once('#').map_or("", |(_, number)| number);
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}
