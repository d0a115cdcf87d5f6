//! An object store, by `object_store`.
//!
//! Objects appear whole or not at all, under their names; there are no folders but the beginnings of names. What this
//! adds: a put that must not replace knows its own object again when the answer to it was lost (`once.rs`), files of any
//! size in parts with bounded memory (`upload.rs`), and errors in a line (`cause.rs`).

mod again;
mod buffer;
mod cause;
mod connect;
mod once;
#[cfg(test)]
mod tests;
mod upload;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, UpdateVersion};

use super::backend::{Backend, Draft, Outcome};
use super::location::Bucket;
use super::{FileInfo, Listing, Version, is_checksum, is_staged};
use crate::config::StorageConfig;
use again::again;
use cause::failed;
use connect::Connection;

/// What some of Hadoop's file systems leave where a folder is to seem to exist.
const FOLDER_MARKER: &str = "_$folder$";

/// A bucket, or container, from some prefix on.
#[derive(Debug)]
pub(super) struct Cloud {
    connection: Arc<Connection>,
    /// Without slashes at its ends; empty: all of the bucket.
    prefix: String,
}

impl Cloud {
    /// Sends no request. Connections are kept for the life of the process: a job opens its table again and again.
    pub fn open(bucket: &Bucket, config: &StorageConfig) -> std::result::Result<Cloud, String> {
        Ok(Cloud { connection: connect::connect(bucket, config)?, prefix: bucket.prefix.clone() })
    }

    #[cfg(test)]
    pub fn over(store: Arc<dyn ObjectStore>, prefix: &str) -> Cloud {
        Cloud { connection: Arc::new(Connection::new(store, true)), prefix: prefix.to_owned() }
    }

    fn store(&self) -> &dyn ObjectStore {
        &*self.connection.store
    }

    fn key(&self, path: &str) -> String {
        match (self.prefix.is_empty(), path.is_empty()) {
            (true, _) => path.to_owned(),
            (false, true) => self.prefix.clone(),
            (false, false) => format!("{}/{path}", self.prefix),
        }
    }

    /// `Path::from` would percent-encode; `Path::parse` keeps bytes. It has accepted this path before.
    fn object(&self, path: &str) -> Path {
        Path::parse(self.key(path)).unwrap_or_default()
    }

    /// The path, relative to the root, of an object below `folder`; `None` for what only marks a folder.
    fn file(&self, folder: &str, meta: &ObjectMeta) -> Option<FileInfo> {
        let key = meta.location.as_ref();
        let path = match self.prefix.as_str() {
            "" => key,
            prefix => key.strip_prefix(prefix)?.strip_prefix('/')?,
        };
        let below = if folder.is_empty() { path } else { path.strip_prefix(folder)?.strip_prefix('/')? };
        let name = path.rsplit('/').next().unwrap_or(path);
        if below.is_empty() || is_checksum(name) || name.ends_with(FOLDER_MARKER) {
            return None;
        }
        let modified_ms = meta.last_modified.timestamp_millis();
        Some(FileInfo { path: path.to_owned(), size: meta.size, modified_ms })
    }

    /// What a file that is being published is called until it has its name. Digits, as [`is_staged`] wants them.
    fn staged(&self, path: &str) -> Path {
        let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
        // As on local disks, without a leading dot.
        let name = name.strip_prefix('.').unwrap_or(name);
        let number = uuid::Uuid::new_v4().as_u128();
        let name = format!("{name}#{number}");
        self.object(&if folder.is_empty() { name } else { format!("{folder}/{name}") })
    }
}

#[async_trait::async_trait]
impl Backend for Cloud {
    async fn get(&self, path: &str) -> Outcome<Bytes> {
        let (store, object) = (self.store(), &self.object(path));
        again(|| async move { store.get(object).await?.bytes().await }).await
    }

    async fn get_versioned(&self, path: &str) -> Outcome<(Bytes, Version)> {
        let (store, object) = (self.store(), &self.object(path));
        again(|| async move {
            let found = store.get(object).await?;
            let version = UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
            Ok((found.bytes().await?, Version(version)))
        })
        .await
    }

    async fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Outcome<Vec<Bytes>> {
        let (store, object) = (self.store(), &self.object(path));
        again(|| store.get_ranges(object, ranges)).await
    }

    async fn size(&self, path: &str) -> Outcome<u64> {
        Ok(self.store().head(&self.object(path)).await.map_err(failed)?.size)
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Outcome<()> {
        self.store().put(&self.object(path), bytes.into()).await.map_err(failed)?;
        Ok(())
    }

    async fn create(&self, path: &str, bytes: Bytes) -> Outcome<()> {
        self.create_versioned(path, bytes).await?;
        Ok(())
    }

    async fn create_versioned(&self, path: &str, bytes: Bytes) -> Outcome<Version> {
        Ok(Version(self.connection.create(&self.object(path), bytes).await?))
    }

    async fn replace_if(&self, path: &str, bytes: Bytes, version: &Version) -> Outcome<Version> {
        let mode = PutMode::Update(version.0.clone());
        Ok(Version(once::put(self.store(), &self.object(path), bytes, mode).await?))
    }

    async fn delete(&self, path: &str) -> Outcome<()> {
        let (store, object) = (self.store(), &self.object(path));
        again(|| async move {
            match store.delete(object).await {
                Err(object_store::Error::NotFound { .. }) => Ok(()),
                deleted => deleted,
            }
        })
        .await
    }

    /// Parts that were never put together are seen by nobody; a bucket's lifecycle rule removes them. But what was to be
    /// published may lie beside its target.
    async fn discard_uploads(&self, path: &str) -> Outcome<()> {
        let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
        let begin = format!("{}#", name.strip_prefix('.').unwrap_or(name));
        let (store, prefix) = (self.store(), &self.object(folder));
        let listed = again(|| store.list_with_delimiter(Some(prefix))).await?;
        for meta in &listed.objects {
            let name = meta.location.filename().unwrap_or_default();
            if name.starts_with(&begin) && is_staged(name) {
                again(|| store.delete(&meta.location)).await?;
            }
        }
        Ok(())
    }

    /// What lies beside a target is a draft's, which are discarded by path; all else is put in one go.
    async fn discard_stale(&self, _: &str, _: Duration) -> Outcome<()> {
        Ok(())
    }

    async fn delete_folder(&self, path: &str) -> Outcome<()> {
        let (store, prefix) = (self.store(), &self.object(path));
        again(|| async move {
            let locations = store.list(Some(prefix)).map_ok(|meta| meta.location).boxed();
            let mut deleted = store.delete_stream(locations);
            while let Some(result) = deleted.next().await {
                match result {
                    Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(e) => return Err(e),
                }
            }
            Ok(())
        })
        .await
    }

    async fn exists_folder(&self, path: &str) -> Outcome<bool> {
        let (store, prefix) = (self.store(), &self.object(path));
        again(|| async move { Ok(store.list(Some(prefix)).try_next().await?.is_some()) }).await
    }

    async fn list(&self, folder: &str) -> Outcome<Listing> {
        let (store, prefix) = (self.store(), &self.object(folder));
        let listed = again(|| store.list_with_delimiter(Some(prefix))).await?;
        let mut files: Vec<_> = listed.objects.iter().filter_map(|meta| self.file(folder, meta)).collect();
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let within = if self.prefix.is_empty() { 0 } else { self.prefix.len() + 1 };
        let folders = listed.common_prefixes.iter().filter_map(|path| path.as_ref().get(within..));
        let mut folders: Vec<String> = folders.map(str::to_owned).collect();
        folders.sort_unstable();
        Ok(Listing { files, folders })
    }

    async fn names(&self, folder: &str) -> Outcome<Vec<String>> {
        let name = |file: FileInfo| file.path.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(self.list(folder).await?.files.into_iter().map(name).collect())
    }

    async fn folders(&self, folder: &str) -> Outcome<Vec<String>> {
        Ok(self.list(folder).await?.folders)
    }

    /// A thousand files a request, however deep they lie.
    async fn list_all(&self, folder: &str) -> Outcome<Option<Vec<FileInfo>>> {
        let (store, prefix) = (self.store(), &self.object(folder));
        let metas: Vec<_> = again(|| store.list(Some(prefix)).try_collect()).await?;
        Ok(Some(metas.iter().filter_map(|meta| self.file(folder, meta)).collect()))
    }

    fn upload(&self, path: &str, exclusive: bool) -> Outcome<Box<dyn Draft>> {
        let at = if exclusive { self.staged(path) } else { self.object(path) };
        Ok(Box::new(upload::CloudDraft::new(Arc::clone(&self.connection), self.prefix.clone(), at)?))
    }

    /// An object is whole or not there.
    async fn leave_half(&self, _: &str, _: &[u8]) {}
}
