//! Files of one table or one input folder, on any object store.
//!
//! Knows object_store and nothing of Hudi. Look at [`Storage`] first. Invariants: every path given to a [`Storage`] is
//! relative to its root, is kept byte for byte (`a%2Fb` stays `a%2Fb` on disk) and never leaves the root;
//! [`Storage::create`] is atomic and fails if the target exists; a reader never sees half of a [`Storage::put`] or of an
//! [`Upload`].
//!
//! What is being written lies beside its target as `name#1`, `name#2`, … until it is complete (object_store's way on
//! local disks, and ours in [`Upload`]). Listings leave such names out, and [`Storage::delete`] of the target removes
//! what a killed process left of them. A file of somebody else that has such a name is therefore not seen.

mod fault;
mod list;
mod location;
mod read;
#[cfg(test)]
mod tests;
mod upload;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{FuturesUnordered, StreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions};

use crate::config::StorageConfig;
pub use fault::fault_point;
pub use upload::Upload;

/// Folders that one recursive listing reads at a time: enough to hide the latency of an object store, few enough for a
/// spinning disk.
const LISTINGS_IN_FLIGHT: usize = 8;

/// A place where files are: a root on a store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Storage {
    store: Arc<dyn ObjectStore>,
    root: Arc<location::Location>,
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

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{doing} {path}: not found")]
    NotFound { doing: &'static str, path: String },
    #[error("{doing} {path}: exists already")]
    AlreadyExists { doing: &'static str, path: String },
    #[error("{doing} {path}: {cause}")]
    Io { doing: &'static str, path: String, cause: String, retryable: bool },
    #[error("{uri}: {why}")]
    BadLocation { uri: String, why: String },
    /// Another writer has replaced what was to be replaced.
    #[error("{doing} {path}: it has changed meanwhile")]
    Conflict { doing: &'static str, path: String },
    #[error("{doing} {path}: {why}")]
    Unsupported { doing: &'static str, path: String, why: &'static str },
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Error::NotFound { .. } => "storage-not-found",
            Error::AlreadyExists { .. } => "storage-already-exists",
            Error::Io { .. } => "storage-io",
            Error::BadLocation { .. } => "storage-bad-location",
            Error::Conflict { .. } => "storage-conflict",
            Error::Unsupported { .. } => "storage-unsupported",
        }
    }
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Whether the same call may succeed a little later: the machine was busy or the network broke, not the request.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Io { retryable: true, .. })
    }

    pub(crate) fn of_io(doing: &'static str, path: String, error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => Error::NotFound { doing, path },
            std::io::ErrorKind::AlreadyExists => Error::AlreadyExists { doing, path },
            kind => Error::Io { doing, path, cause: error.to_string(), retryable: is_passing(kind) },
        }
    }

    fn of_store(doing: &'static str, path: String, error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { .. } => Error::NotFound { doing, path },
            object_store::Error::AlreadyExists { .. } => Error::AlreadyExists { doing, path },
            object_store::Error::Generic { source, .. } => {
                Error::Io { doing, path, cause: source.to_string(), retryable: retryable(source.as_ref()) }
            }
            other => Error::Io { doing, path, cause: other.to_string(), retryable: retryable(&other) },
        }
    }
}

/// Looks for an I/O error in the chain of causes.
fn retryable(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |e| e.source())
        .filter_map(|e| e.downcast_ref::<std::io::Error>())
        .any(|e| is_passing(e.kind()))
}

fn is_passing(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind::*;
    matches!(
        kind,
        Interrupted | TimedOut | WouldBlock | ResourceBusy | StaleNetworkFileHandle | ConnectionReset | BrokenPipe
    )
}

impl Storage {
    /// [`Storage::open_with`] the defaults and what the environment says.
    pub fn open(uri: &str) -> Result<Storage> {
        Storage::open_with(uri, &StorageConfig::default())
    }

    /// `uri`: an absolute or relative local path, or `file://…`; other schemes are refused by name for now.
    ///
    /// Nothing is looked at or created: a root that is not there reads as an empty folder and comes to be with the
    /// first file written into it. As in Hadoop, `%` in a `file:` URI has no special meaning.
    pub fn open_with(uri: &str, _config: &StorageConfig) -> Result<Storage> {
        let root = location::Location::parse(uri)?;
        Ok(Storage { store: Arc::new(LocalFileSystem::new()), root: Arc::new(root) })
    }

    /// Whether this is a folder of this machine, as far as programs can tell.
    pub fn is_local(&self) -> bool {
        true
    }

    /// Absolute location as Hudi writes it into plans: `file:/abs/…` for local disks.
    pub fn absolute(&self, path: &str) -> String {
        format!("file:{}", self.root.join(path))
    }

    /// A short text for messages: the root as the user gave it, user info in URLs masked.
    pub fn display(&self, path: &str) -> String {
        self.root.display(path)
    }

    pub async fn get(&self, path: &str) -> Result<Bytes> {
        let doing = "read";
        let result = self.store.get(&self.file(path)?).await.map_err(|e| self.failed(doing, path, e))?;
        result.bytes().await.map_err(|e| self.failed(doing, path, e))
    }

    /// The whole range, or an error: a file that ends before it is not what the caller takes it for.
    pub async fn get_range(&self, path: &str, range: Range<u64>) -> Result<Bytes> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let doing = "read a range of";
        let file = self.file(path)?;
        let bytes = self.store.get_range(&file, range.clone()).await.map_err(|e| self.failed(doing, path, e))?;
        self.check_whole(doing, path, &range, &bytes)?;
        Ok(bytes)
    }

    /// Several ranges in as few requests as is quick, each whole.
    pub async fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let doing = "read ranges of";
        let parts = self.store.get_ranges(&self.file(path)?, ranges).await.map_err(|e| self.failed(doing, path, e))?;
        for (part, range) in parts.iter().zip(ranges) {
            self.check_whole(doing, path, range, part)?;
        }
        Ok(parts)
    }

    fn check_whole(&self, doing: &'static str, path: &str, range: &Range<u64>, bytes: &Bytes) -> Result<()> {
        let end = range.start + bytes.len() as u64;
        if end >= range.end {
            return Ok(());
        }
        let cause = format!("the file ends at byte {end}, before byte {}", range.end);
        Err(Error::Io { doing, path: self.display(path), cause, retryable: false })
    }

    /// `None` when the file does not exist.
    pub async fn get_opt(&self, path: &str) -> Result<Option<Bytes>> {
        match self.get(path).await {
            Err(Error::NotFound { .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    /// `None` when the file does not exist.
    pub async fn size(&self, path: &str) -> Result<Option<u64>> {
        match self.store.head(&self.file(path)?).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(e) => Err(self.failed("look up", path, e)),
        }
    }

    /// Writes or replaces, atomically for readers. On local disks also removes a stale Hadoop `.name.crc`.
    pub async fn put(&self, path: &str, bytes: Bytes) -> Result<()> {
        self.put_mode("write", path, bytes, PutMode::Overwrite).await
    }

    /// Creates with all its content or not at all; `AlreadyExists` if the target is there.
    ///
    /// Local disks need hard links for this (all usual Linux file systems have them; exFAT and some FUSE mounts don't).
    pub async fn create(&self, path: &str, bytes: Bytes) -> Result<()> {
        self.put_mode("create", path, bytes, PutMode::Create).await
    }

    async fn put_mode(&self, doing: &'static str, path: &str, bytes: Bytes, mode: PutMode) -> Result<()> {
        let file = self.file(path)?;
        if mode == PutMode::Overwrite {
            remove_checksum(self.local(path)).await;
        }
        let options = PutOptions { mode, ..PutOptions::default() };
        self.store.put_opts(&file, bytes.into(), options).await.map_err(|e| self.failed(doing, path, e))?;
        Ok(())
    }

    /// A file's content and which one it is. `None` when the file does not exist. On object stores alone.
    pub async fn get_versioned(&self, path: &str) -> Result<Option<(Bytes, Version)>> {
        Err(self.only_in_stores("read", path))
    }

    /// [`Storage::create`], and which content the file has now. On object stores alone.
    pub async fn create_versioned(&self, path: &str, _bytes: Bytes) -> Result<Version> {
        Err(self.only_in_stores("create", path))
    }

    /// Replaces a file's content if it is still `version`, atomically; [`Error::Conflict`] if it is another by now, or gone.
    /// An answer that got lost does not turn a success into a conflict. On object stores alone: local disks do not know a
    /// conditional replacement, and [`Error::Unsupported`] says so.
    pub async fn replace_if(&self, path: &str, _bytes: Bytes, _version: &Version) -> Result<Version> {
        Err(self.only_in_stores("replace", path))
    }

    fn only_in_stores(&self, doing: &'static str, path: &str) -> Error {
        let why = "local disks do not keep versions of a file: use an object store";
        Error::Unsupported { doing, path: self.display(path), why }
    }

    /// Missing is fine. Also removes what a killed process left of an upload to `path`.
    pub async fn delete(&self, path: &str) -> Result<()> {
        let file = self.file(path)?;
        let local = self.local(path);
        upload::remove_staged(local.clone()).await;
        remove_checksum(local).await;
        match self.store.delete(&file).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(self.failed("delete", path, e)),
        }
    }

    /// Removes what a killed process left of an upload to `path`, and leaves the file, if there is one.
    pub async fn discard_uploads(&self, path: &str) -> Result<()> {
        self.file(path)?;
        upload::remove_staged(self.local(path)).await;
        Ok(())
    }

    /// Removes a folder and all in it; missing is fine.
    pub async fn delete_folder(&self, path: &str) -> Result<()> {
        self.folder(path)?;
        match tokio::fs::remove_dir_all(self.local(path)).await {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::of_io("delete folder", self.display(path), &e))
            }
            _ => Ok(()),
        }
    }

    /// Whether there is such a folder; `""` asks for the root itself.
    pub async fn exists_folder(&self, path: &str) -> Result<bool> {
        self.folder(path)?;
        match tokio::fs::metadata(self.local(path)).await {
            Ok(meta) => Ok(meta.is_dir()),
            Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => Ok(false),
            Err(e) => Err(Error::of_io("look up folder", self.display(path), &e)),
        }
    }

    /// One level, by name. A missing folder is an empty listing. `.crc` side files and staged uploads are left out.
    /// Links are followed, as Hadoop does.
    pub async fn list(&self, folder: &str) -> Result<Listing> {
        let prefix = folder.to_owned();
        self.look_into(folder, move |local| list::list(local, &prefix)).await
    }

    /// Names of the files of one level, in no order: [`Storage::list`] without sizes and times, and several times as quick.
    pub async fn names(&self, folder: &str) -> Result<Vec<String>> {
        self.look_into(folder, list::names).await
    }

    /// The same of the folders of one level, relative to the root.
    pub async fn folders(&self, folder: &str) -> Result<Vec<String>> {
        let prefix = folder.to_owned();
        self.look_into(folder, move |local| list::folders(local, &prefix)).await
    }

    async fn look_into<R: Send + 'static>(
        &self,
        folder: &str,
        look: impl FnOnce(&std::path::Path) -> std::io::Result<R> + Send + 'static,
    ) -> Result<R> {
        self.folder(folder)?;
        let local = self.local(folder);
        let looked = tokio::task::spawn_blocking(move || look(&local)).await;
        let failed = |e: std::io::Error| Error::of_io("list", self.display(folder), &e);
        looked.unwrap_or_else(|e| Err(std::io::Error::other(e))).map_err(failed)
    }

    /// All files below `folder`, by path, not entering folders for which `enter` (given the folder's relative path) says
    /// no.
    pub async fn list_recursive(&self, folder: &str, enter: &(dyn Fn(&str) -> bool + Sync)) -> Result<Vec<FileInfo>> {
        let mut files = Vec::new();
        let mut waiting = vec![folder.to_owned()];
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < LISTINGS_IN_FLIGHT
                && let Some(folder) = waiting.pop()
            {
                running.push(async move { self.list(&folder).await });
            }
            let Some(listing) = running.next().await.transpose()? else { break };
            files.extend(listing.files);
            waiting.extend(listing.folders.into_iter().filter(|f| enter(f)));
        }
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    /// Starts a streaming upload for use on a blocking thread inside a tokio runtime; nothing is visible until
    /// [`Upload::finish`]; dropped unfinished, it leaves nothing behind.
    pub fn upload(&self, path: &str) -> Result<Upload> {
        self.file(path)?;
        Upload::start(self.local(path), self.display(path))
    }

    /// Makes what an upload has so far visible as `path`, which need not be the upload's own; `AlreadyExists` if there is
    /// such a file, and another name can be tried. Drop the upload then. Returns the exact size.
    pub fn publish(&self, upload: &Upload, path: &str) -> Result<u64> {
        self.file(path)?;
        upload.link(&self.local(path), self.display(path))
    }

    /// The store and the full path, for parquet's async reader. A path that leaves the root names no object.
    pub fn object(&self, path: &str) -> (Arc<dyn ObjectStore>, Path) {
        (Arc::clone(&self.store), self.file(path).unwrap_or_default())
    }

    /// A streaming read for a blocking thread inside a tokio runtime: bytes `range` of the file (whole if `None`).
    pub fn read_blocking(&self, path: &str, range: Option<Range<u64>>) -> Result<Box<dyn std::io::Read + Send>> {
        read::open(&*self.store, &self.file(path)?, range).map_err(|e| self.failed("read", path, e))
    }

    fn failed(&self, doing: &'static str, path: &str, error: object_store::Error) -> Error {
        Error::of_store(doing, self.display(path), error)
    }

    /// The object of a file's path.
    fn file(&self, path: &str) -> Result<Path> {
        if path.is_empty() {
            return Err(Error::BadLocation { uri: self.display(path), why: "is a folder, not a file".into() });
        }
        self.folder(path)
    }

    /// The object, or prefix, of a path; `""` is the root.
    fn folder(&self, path: &str) -> Result<Path> {
        self.root.object(path)
    }

    /// Where a checked path is on the local disk.
    fn local(&self, path: &str) -> PathBuf {
        PathBuf::from(self.root.join(path))
    }
}

/// Hadoop's local file system keeps a checksum beside each file that it writes, and refuses a file that does not match.
/// It must go before the file changes; where there is none (almost always), that is no error.
async fn remove_checksum(path: PathBuf) {
    if let Some(checksum) = checksum_of(&path) {
        let _ = tokio::fs::remove_file(checksum).await;
    }
}

fn checksum_of(path: &std::path::Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    Some(path.with_file_name(format!(".{name}.crc")))
}

fn is_checksum(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with('.') && name.ends_with(".crc")
}
