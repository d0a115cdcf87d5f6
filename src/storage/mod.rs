//! Files of one table or one input folder, on any object store.
//!
//! Knows object_store and nothing of Hudi. Invariants: every path given to a [`Storage`] is relative to its root, is
//! kept byte for byte (`a%2Fb` stays `a%2Fb` on disk) and never leaves the root; [`Storage::create`] is atomic and fails
//! if the target exists; a reader never sees half of a [`Storage::put`] or of an [`Upload`].

use bytes::Bytes;

/// A place where files are: a root on a store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Storage;

/// What a listing says of a file. `path` is relative to the storage's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileInfo {
    pub path: String,
    pub size: u64,
    /// Epoch milliseconds.
    pub modified_ms: i64,
}

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
}

impl Error {
    pub fn code(&self) -> &'static str {
        match self {
            Error::NotFound { .. } => "storage-not-found",
            Error::AlreadyExists { .. } => "storage-already-exists",
            Error::Io { .. } => "storage-io",
            Error::BadLocation { .. } => "storage-bad-location",
        }
    }
}

pub type Result<T> = std::result::Result<T, Error>;

impl Storage {
    /// `uri`: an absolute or relative local path, or `file://…`; other schemes are refused by name for now.
    pub fn open(_uri: &str) -> Result<Storage> {
        todo!()
    }
    /// Absolute location as Hudi writes it into plans: `file:/abs/…` for local disks.
    pub fn absolute(&self, _path: &str) -> String {
        todo!()
    }
    /// A short text for messages: the root as the user gave it, user info in URLs masked.
    pub fn display(&self, _path: &str) -> String {
        todo!()
    }
    pub async fn get(&self, _path: &str) -> Result<Bytes> {
        todo!()
    }
    pub async fn get_range(&self, _path: &str, _range: std::ops::Range<u64>) -> Result<Bytes> {
        todo!()
    }
    /// `None` when the file does not exist.
    pub async fn get_opt(&self, _path: &str) -> Result<Option<Bytes>> {
        todo!()
    }
    pub async fn size(&self, _path: &str) -> Result<Option<u64>> {
        todo!()
    }
    /// Writes or replaces, atomically for readers. On local disks also removes a stale Hadoop `.name.crc`.
    pub async fn put(&self, _path: &str, _bytes: Bytes) -> Result<()> {
        todo!()
    }
    /// Creates with all its content or not at all; `AlreadyExists` if the target is there.
    pub async fn create(&self, _path: &str, _bytes: Bytes) -> Result<()> {
        todo!()
    }
    /// Missing is fine.
    pub async fn delete(&self, _path: &str) -> Result<()> {
        todo!()
    }
    /// Removes a folder and all in it; missing is fine.
    pub async fn delete_folder(&self, _path: &str) -> Result<()> {
        todo!()
    }
    /// One level. A missing folder is an empty listing. `.crc` side files and staged uploads are left out.
    pub async fn list(&self, _folder: &str) -> Result<Listing> {
        todo!()
    }
    /// All files below `folder`, not entering folders for which `enter` (given the folder's relative path) says no.
    pub async fn list_recursive(&self, _folder: &str, _enter: &(dyn Fn(&str) -> bool + Sync)) -> Result<Vec<FileInfo>> {
        todo!()
    }
    /// Starts a streaming upload for use on a blocking thread inside a tokio runtime (`std::io::Write`, 8 MiB parts);
    /// nothing is visible until [`Upload::finish`]; dropped unfinished, it leaves nothing behind.
    pub fn upload(&self, _path: &str) -> Result<Upload> {
        todo!()
    }
    /// The store and the full path, for parquet's async reader.
    pub fn object(&self, _path: &str) -> (std::sync::Arc<dyn object_store::ObjectStore>, object_store::path::Path) {
        todo!()
    }
    /// A streaming read for a blocking thread inside a tokio runtime: bytes `range` of the file (whole if `None`).
    pub fn read_blocking(
        &self,
        _path: &str,
        _range: Option<std::ops::Range<u64>>,
    ) -> Result<Box<dyn std::io::Read + Send>> {
        todo!()
    }
}

/// A file being written. See [`Storage::upload`].
pub struct Upload;

impl std::io::Write for Upload {
    fn write(&mut self, _buf: &[u8]) -> std::io::Result<usize> {
        todo!()
    }
    fn flush(&mut self) -> std::io::Result<()> {
        todo!()
    }
}

impl Upload {
    /// Makes the file visible; returns its exact size.
    pub fn finish(self) -> Result<u64> {
        todo!()
    }
}

/// Named points at which a test may kill the process: `HUDI_STREAMER_FAULT=<name>` makes the process SIGKILL itself
/// when it passes the point of that name (`before-inflight`, `while-writing`, `before-complete`, `after-complete`).
pub fn fault_point(_name: &str) {}
