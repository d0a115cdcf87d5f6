//! A folder of this machine.
//!
//! A file is written beside its target, as `name#1`, `name#2`, …, and gets its name when it is complete: by `rename(2)`
//! where it replaces, by `link(2)` where it must not. With `fsync` a power cut undoes no file that a call has finished but
//! data that nothing speaks of yet, and nothing that came before it (`durable.rs`).

mod durable;
mod list;
#[cfg(test)]
mod tests;
mod upload;

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::backend::{Backend, Draft, Outcome};
use super::error::Cause;
use super::{Listing, Version};
use durable::{Durability, Kind};
use upload::Staged;

/// Times that a file is staged which others delete before it has its name: more than live writers ever do, so that a file system
/// of odd ways ends in an error.
const TRIES: u32 = 100;

const NO_VERSIONS: Cause = Cause::Unsupported("local disks do not keep versions of a new file: use an object store");
const NO_LOCKS: Cause = Cause::Unsupported("this file system cannot lock a folder");

#[derive(Debug)]
pub(super) struct Disk {
    /// Absolute and normal.
    root: PathBuf,
    durability: Arc<Durability>,
}

impl Disk {
    pub fn new(root: &str, fsync: bool) -> Disk {
        Disk { root: PathBuf::from(root), durability: Arc::new(Durability::new(fsync)) }
    }

    /// `Path::join` would take an absolute path for a new root, but paths have been checked.
    fn at(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.root.clone() } else { self.root.join(path) }
    }

    async fn with<R: Send + 'static>(
        &self,
        path: &str,
        work: impl FnOnce(&Path) -> io::Result<R> + Send + 'static,
    ) -> Outcome<R> {
        let path = self.at(path);
        let worked = tokio::task::spawn_blocking(move || work(&path)).await;
        Ok(worked.unwrap_or_else(|e| Err(io::Error::other(e)))?)
    }

    async fn write(
        &self,
        path: &str,
        bytes: Bytes,
        kind: Kind,
        name: fn(&mut Staged, &Path) -> io::Result<()>,
    ) -> Outcome<()> {
        let durability = Arc::clone(&self.durability);
        self.with(path, move |path| {
            let mut left = TRIES;
            loop {
                let mut staged = Staged::begin(path, kind, Arc::clone(&durability))?;
                staged.write_all(&bytes)?;
                left -= 1;
                match name(&mut staged, path) {
                    Err(e) if e.kind() == ErrorKind::NotFound && staged.is_lost() && left > 0 => {}
                    named => return named,
                }
            }
        })
        .await
    }
}

#[async_trait::async_trait]
impl Backend for Disk {
    async fn get(&self, path: &str) -> Outcome<Bytes> {
        self.with(path, |path| Ok(fs::read(path)?.into())).await
    }

    async fn get_versioned(&self, path: &str) -> Outcome<(Bytes, Version)> {
        self.with(path, |path| {
            let mut file = File::open(path)?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok((bytes.into(), version(&file.metadata()?)))
        })
        .await
    }

    async fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Outcome<Vec<Bytes>> {
        let ranges = ranges.to_vec();
        self.with(path, move |path| {
            let file = File::open(path)?;
            let size = file.metadata()?.len();
            ranges.into_iter().map(|range| read(&file, range.start..range.end.min(size))).collect()
        })
        .await
    }

    async fn size(&self, path: &str) -> Outcome<u64> {
        match self.with(path, |path| fs::metadata(path)).await {
            Ok(meta) if meta.is_dir() => Err(Cause::NotFound),
            other => Ok(other?.len()),
        }
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Outcome<()> {
        self.write(path, bytes, Kind::Record, Staged::rename).await
    }

    /// Needs hard links (all usual Linux file systems have them; exFAT and some FUSE mounts don't).
    async fn create(&self, path: &str, bytes: Bytes) -> Outcome<()> {
        self.write(path, bytes, Kind::Record, Staged::link).await
    }

    async fn create_ahead(&self, path: &str, bytes: Bytes) -> Outcome<()> {
        self.write(path, bytes, Kind::Ahead, Staged::link).await
    }

    async fn create_versioned(&self, _: &str, _: Bytes) -> Outcome<Version> {
        Err(NO_VERSIONS)
    }

    async fn replace_if(&self, path: &str, bytes: Bytes, expected: &Version) -> Outcome<Version> {
        let (durability, expected) = (Arc::clone(&self.durability), expected.clone());
        let replaced = self.with(path, move |path| {
            let mut staged = Staged::begin(path, Kind::Record, durability)?;
            staged.write_all(&bytes)?;
            // Those who replace take turns; the kernel ends the turn of one that dies.
            let folder = File::open(path.parent().unwrap_or(path))?;
            if folder.lock().is_err() {
                return Ok(Err(NO_LOCKS));
            }
            match fs::symlink_metadata(path) {
                Ok(now) if version(&now) == expected => {}
                Err(e) if !is_missing(&e) => return Err(e),
                _ => return Ok(Err(Cause::Conflict)),
            }
            staged.rename(path)?;
            Ok(Ok(version(&fs::symlink_metadata(path)?)))
        });
        replaced.await?
    }

    async fn delete(&self, path: &str) -> Outcome<()> {
        let durability = Arc::clone(&self.durability);
        self.with(path, move |path| {
            upload::remove_staged(path);
            remove_checksum(path);
            match fs::remove_file(path) {
                Err(e) if is_missing(&e) => Ok(()),
                removed => removed.map(|()| durability.changed_beside(path)),
            }
        })
        .await
    }

    async fn discard_uploads(&self, path: &str) -> Outcome<()> {
        self.with(path, |path| {
            upload::remove_staged(path);
            Ok(())
        })
        .await
    }

    async fn discard_stale(&self, folder: &str, age: Duration) -> Outcome<()> {
        self.with(folder, move |path| upload::remove_stale(path, age)).await
    }

    async fn delete_folder(&self, path: &str) -> Outcome<()> {
        let durability = Arc::clone(&self.durability);
        self.with(path, move |path| match fs::remove_dir_all(path) {
            Err(e) if is_missing(&e) => Ok(()),
            removed => removed.map(|()| durability.changed_beside(path)),
        })
        .await
    }

    async fn exists_folder(&self, path: &str) -> Outcome<bool> {
        self.with(path, |path| match fs::metadata(path) {
            Err(e) if is_missing(&e) => Ok(false),
            meta => Ok(meta?.is_dir()),
        })
        .await
    }

    async fn list(&self, folder: &str) -> Outcome<Listing> {
        let prefix = folder.to_owned();
        self.with(folder, move |path| list::list(path, &prefix)).await
    }

    async fn names(&self, folder: &str) -> Outcome<Vec<String>> {
        self.with(folder, list::names).await
    }

    async fn folders(&self, folder: &str) -> Outcome<Vec<String>> {
        let prefix = folder.to_owned();
        self.with(folder, move |path| list::folders(path, &prefix)).await
    }

    fn upload(&self, path: &str, _exclusive: bool) -> Outcome<Box<dyn Draft>> {
        let target = self.at(path);
        let staged = Staged::begin(&target, Kind::Data, Arc::clone(&self.durability))?;
        Ok(Box::new(upload::LocalDraft { staged, target, root: self.root.clone() }))
    }

    async fn leave_half(&self, path: &str, bytes: &[u8]) {
        let (durability, bytes) = (Arc::clone(&self.durability), bytes.to_vec());
        let left = self.with(path, move |path| {
            let mut staged = Staged::begin(path, Kind::Record, durability)?;
            staged.write_all(&bytes[..bytes.len() / 2])?;
            staged.abandon();
            Ok(())
        });
        let _ = left.await;
    }
}

/// What is really there of a range.
fn read(file: &File, range: Range<u64>) -> io::Result<Bytes> {
    let length = range.end.saturating_sub(range.start);
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(bytes.into())
}

/// A file that was replaced is another one, or was written later.
fn version(meta: &fs::Metadata) -> Version {
    let tag = format!("{:x}-{:x}-{:x}-{:x}", meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len());
    Version(object_store::UpdateVersion { e_tag: Some(tag), version: None })
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Hadoop's local file system keeps a checksum beside each file that it writes, and refuses a file that does not match.
/// It must go before the file changes; where there is none (almost always), that is no error.
fn remove_checksum(path: &Path) {
    if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
        let _ = fs::remove_file(path.with_file_name(format!(".{name}.crc")));
    }
}
