//! The folders of a table, one after the other: for those who must not hold the names of all files at once.

use super::{LogFileName, META_FOLDER, PARTITION_METAFILE, Result, Table, name_of, parse_base_file};
use crate::storage::{FileInfo, Listing};
use futures::stream::{FuturesUnordered, Stream, StreamExt, TryStreamExt};

/// Folders listed at a time.
const CONCURRENCY: usize = 32;

/// A folder that is a partition, or that has data files as if it were one.
#[derive(Debug, Clone)]
pub struct Folder {
    /// Relative to the table's base path.
    pub path: String,
    pub files: Vec<FileInfo>,
    /// It has a partition metafile. Hudi does not see the files of a folder without one.
    pub is_partition: bool,
}

impl Table {
    /// Partitions, and folders that lack nothing but the partition metafile, in no order. Nothing is looked for below a
    /// partition: it has no partitions below it.
    pub fn folders(&self) -> impl Stream<Item = Result<Folder>> + Send + '_ {
        let walk = Walk { waiting: vec![String::new()], running: FuturesUnordered::new() };
        futures::stream::try_unfold(walk, move |mut walk| async move {
            loop {
                while walk.running.len() < CONCURRENCY
                    && let Some(folder) = walk.waiting.pop()
                {
                    walk.running.push(async move {
                        let listing = self.storage.list(&folder).await;
                        listing.map(|listing| (folder, listing))
                    });
                }
                let Some((path, Listing { files, folders })) = walk.running.next().await.transpose()? else {
                    return Ok(None);
                };
                let is_partition = files.iter().any(|file| is_metafile(name_of(&file.path)));
                if !is_partition {
                    walk.waiting.extend(folders.into_iter().filter(|folder| name_of(folder) != META_FOLDER));
                }
                if is_partition || files.iter().any(|file| is_data_file(name_of(&file.path))) {
                    return Ok(Some((Folder { path, files, is_partition }, walk)));
                }
            }
        })
    }

    /// One folder, whether or not it is a partition.
    pub async fn folder(&self, path: &str) -> Result<Folder> {
        let files = self.storage.list(path).await?.files;
        let is_partition = files.iter().any(|file| is_metafile(name_of(&file.path)));
        Ok(Folder { path: path.to_string(), files, is_partition })
    }

    /// All partitions, in order. A partition is a folder with a partition metafile.
    pub async fn partitions(&self) -> Result<Vec<String>> {
        let partitions = self.folders().try_filter(|folder| std::future::ready(folder.is_partition));
        let mut paths: Vec<String> = partitions.map_ok(|folder| folder.path).try_collect().await?;
        paths.sort_unstable();
        Ok(paths)
    }
}

struct Walk<F> {
    waiting: Vec<String>,
    running: FuturesUnordered<F>,
}

/// In text, or in the format of the base files.
fn is_metafile(name: &str) -> bool {
    let rest = name.strip_prefix(PARTITION_METAFILE);
    matches!(rest, Some("" | ".parquet" | ".orc"))
}

/// The name of a base file or a log file.
fn is_data_file(name: &str) -> bool {
    parse_base_file(name).is_some() || LogFileName::parse(name).is_some()
}
