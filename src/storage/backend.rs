//! What a kind of store must be able to do. Paths have been checked and are relative to the root.

use std::io::Write;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;

use super::error::Cause;
use super::{FileInfo, Listing, Version};

pub(super) type Outcome<T> = std::result::Result<T, Cause>;

#[async_trait::async_trait]
pub(super) trait Backend: std::fmt::Debug + Send + Sync {
    async fn get(&self, path: &str) -> Outcome<Bytes>;

    async fn get_versioned(&self, path: &str) -> Outcome<(Bytes, Version)>;

    /// In the order asked for; one that ends behind the file may come short.
    async fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Outcome<Vec<Bytes>>;

    /// [`Cause::NotFound`] for a folder, too.
    async fn size(&self, path: &str) -> Outcome<u64>;

    /// Whole or not at all, replacing what was there.
    async fn put(&self, path: &str, bytes: Bytes) -> Outcome<()>;

    /// Whole or not at all, and only where nothing is; [`Cause::AlreadyExists`] only if it was not this very call that
    /// made the file.
    async fn create(&self, path: &str, bytes: Bytes) -> Outcome<()>;

    /// The same, but a power cut may undo it as long as nothing comes after it.
    async fn create_ahead(&self, path: &str, bytes: Bytes) -> Outcome<()> {
        self.create(path, bytes).await
    }

    /// As [`Backend::create`], and which content the file has now.
    async fn create_versioned(&self, path: &str, bytes: Bytes) -> Outcome<Version>;

    /// Whole or not at all, and only over this content; [`Cause::Conflict`] only if it was not this very call that
    /// replaced it.
    async fn replace_if(&self, path: &str, bytes: Bytes, version: &Version) -> Outcome<Version>;

    /// Missing is fine.
    async fn delete(&self, path: &str) -> Outcome<()>;

    /// What killed processes have left of uploads to `path`.
    async fn discard_uploads(&self, path: &str) -> Outcome<()>;

    /// The same of uploads to any path in the folder that are older than `age`.
    async fn discard_stale(&self, folder: &str, age: Duration) -> Outcome<()>;

    /// With all in it. Missing is fine.
    async fn delete_folder(&self, path: &str) -> Outcome<()>;

    async fn exists_folder(&self, path: &str) -> Outcome<bool>;

    /// One level, by name. Checksums are left out here and below, what is staged is not.
    async fn list(&self, folder: &str) -> Outcome<Listing>;

    /// Names of the files of one level, in no order.
    async fn names(&self, folder: &str) -> Outcome<Vec<String>>;

    /// Paths of the folders of one level, in no order.
    async fn folders(&self, folder: &str) -> Outcome<Vec<String>>;

    /// All files below, in one go, where the store can; `None`: to be listed folder by folder.
    async fn list_all(&self, _folder: &str) -> Outcome<Option<Vec<FileInfo>>> {
        Ok(None)
    }

    /// On a blocking thread, as all of [`Draft`]. `exclusive`: it ends with [`Draft::publish`], else with
    /// [`Draft::finish`].
    fn upload(&self, path: &str, exclusive: bool) -> Outcome<Box<dyn Draft>>;

    /// For tests of crashes: what is left of a put that died half way.
    async fn leave_half(&self, path: &str, bytes: &[u8]);
}

/// A file being written that nobody sees yet; dropped, it leaves nothing.
pub(super) trait Draft: Write + Send {
    /// Makes it visible under the path that it was begun with, replacing what was there.
    fn finish(&mut self) -> Outcome<()>;

    /// Makes it visible under any path, if nothing is there.
    fn publish(&mut self, path: &str) -> Outcome<()>;

    /// For tests of crashes: leaves what a process leaves that dies half way.
    fn leave_half(&mut self);
}
