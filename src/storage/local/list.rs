//! Listing a folder of a local disk.
//!
//! object_store's own listing looks at each entry three times and takes its path through a URL. A timeline of a thousand
//! commits has three thousand files, and is listed in every round.

use std::fs::{self, DirEntry};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::storage::{FileInfo, Listing, is_checksum};

/// `prefix`: the folder's path relative to the root, which the paths of its entries begin with.
pub(super) fn list(folder: &Path, prefix: &str) -> io::Result<Listing> {
    let mut listing = Listing::default();
    for entry in entries(folder)? {
        match entry? {
            Entry { name, is_folder: true, .. } => listing.folders.push(below(prefix, &name)),
            Entry { name, entry, .. } => {
                // Gone since, or a link to nothing: no file.
                let Some(meta) = found(fs::metadata(entry.path()))? else { continue };
                let since = meta.modified()?.duration_since(UNIX_EPOCH);
                let modified_ms = since.map_or_else(|e| -(e.duration().as_millis() as i64), |d| d.as_millis() as i64);
                listing.files.push(FileInfo { path: below(prefix, &name), size: meta.len(), modified_ms });
            }
        }
    }
    listing.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    listing.folders.sort_unstable();
    Ok(listing)
}

/// Names of the files alone, in no order: the disk is not asked about each of them.
pub(super) fn names(folder: &Path) -> io::Result<Vec<String>> {
    let files = entries(folder)?.filter(|entry| !entry.as_ref().is_ok_and(|entry| entry.is_folder));
    files.map(|entry| Ok(entry?.name)).collect()
}

/// The folders alone, in no order.
pub(super) fn folders(folder: &Path, prefix: &str) -> io::Result<Vec<String>> {
    let folders = entries(folder)?.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.is_folder) || entry.is_err());
    folders.map(|entry| Ok(below(prefix, &entry?.name))).collect()
}

fn below(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") }
}

struct Entry {
    name: String,
    entry: DirEntry,
    is_folder: bool,
}

/// Without checksums. A folder that is missing is empty.
fn entries(folder: &Path) -> io::Result<impl Iterator<Item = io::Result<Entry>>> {
    let read = match fs::read_dir(folder) {
        Err(e) if e.kind() == ErrorKind::NotADirectory => None,
        read => found(read)?,
    };
    let entries = read.into_iter().flatten().map(|entry| {
        let entry = entry?;
        let kind = entry.file_type()?;
        let kind = if kind.is_symlink() {
            found(fs::metadata(entry.path()))?.map(|meta| meta.file_type())
        } else {
            Some(kind)
        };
        let Some(kind) = kind else { return Ok(None) };
        let not_text = |name: std::ffi::OsString| io::Error::other(format!("{} is no UTF-8", name.display()));
        let name = entry.file_name().into_string().map_err(not_text)?;
        let is_folder = kind.is_dir();
        let hidden = !is_folder && is_checksum(&name);
        Ok((!hidden).then_some(Entry { name, entry, is_folder }))
    });
    Ok(entries.filter_map(Result::transpose))
}

fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::is_staged;
    use object_store::local::LocalFileSystem;
    use object_store::{ObjectStore, path};
    use std::os::unix::fs::symlink;

    #[tokio::test]
    async fn a_listing_is_object_stores_and_what_is_staged() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("p");
        fs::create_dir_all(folder.join("sub#1/below")).expect("a folder");
        for name in ["a", "b#1", "b#1x", "c#", "#2", "d#1#2", "a%2Fb", "ü d", ".e.crc", "e.crc", ".hidden"] {
            fs::write(folder.join(name), name).expect("a file");
        }
        symlink("a", folder.join("link")).expect("a link");
        symlink("sub#1", folder.join("folder link")).expect("a link");
        symlink("nothing", folder.join("broken")).expect("a link");
        let root = path::Path::from_absolute_path(&folder).expect("a path");
        let theirs = LocalFileSystem::new().list_with_delimiter(Some(&root)).await.expect("listed");
        let name = |path: &path::Path| format!("p/{}", path.filename().expect("a name"));
        let mut want: Vec<_> = theirs.objects.iter().map(|o| (name(&o.location), o.size)).collect();
        want.retain(|(path, _)| path != "p/.e.crc");
        want.sort();
        let mut want_folders: Vec<_> = theirs.common_prefixes.iter().map(name).collect();
        want_folders.sort();

        let mut ours = list(&folder, "p").expect("listed");
        let mut only_names = names(&folder).expect("listed");
        only_names.sort();
        assert_eq!(only_names, ours.files.iter().map(|file| file.path[2..].to_owned()).collect::<Vec<_>>());
        ours.files.retain(|file| !is_staged(&file.path));
        assert_eq!(ours.files.iter().map(|f| (f.path.clone(), f.size)).collect::<Vec<_>>(), want);
        assert_eq!(ours.folders, want_folders);
        let mut only_folders = folders(&folder, "p").expect("listed");
        only_folders.sort();
        assert_eq!(only_folders, want_folders);
        for missing in ["q", "p/a"] {
            assert!(names(&dir.path().join(missing)).expect("nothing is there").is_empty());
        }
    }
}
