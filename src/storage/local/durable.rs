//! What a power cut must not undo.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Whether files are synced, and what waits for it.
#[derive(Debug)]
pub(super) struct Durability {
    fsync: bool,
    /// Folders out of which something was removed.
    removed_from: Mutex<BTreeSet<PathBuf>>,
}

impl Durability {
    pub fn new(fsync: bool) -> Durability {
        Durability { fsync, removed_from: Mutex::default() }
    }

    /// Makes `folder` and its parents, where they are missing.
    pub fn make_folder(&self, folder: &Path) -> io::Result<()> {
        let mut made = fs::create_dir(folder);
        if let Some(parent) = folder.parent()
            && made.as_ref().is_err_and(|e| e.kind() == ErrorKind::NotFound)
        {
            self.make_folder(parent)?;
            made = fs::create_dir(folder);
        }
        match made {
            Ok(()) => folder.parent().map_or(Ok(()), |parent| self.sync_folder(parent)),
            Err(e) if e.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// A file's bytes, and all that was removed before: to be called before it gets its name.
    pub fn before_name(&self, file: &File, is_empty: bool) -> io::Result<()> {
        if !self.fsync {
            return Ok(());
        }
        // An empty file is all in its folder's entry.
        if !is_empty {
            file.sync_all()?;
        }
        // Held meanwhile, so that nobody overtakes a removal that another syncs.
        let mut folders = self.removed_from.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(folder) = folders.pop_first() {
            match self.sync_folder(&folder) {
                Err(e) if e.kind() != ErrorKind::NotFound => {
                    folders.insert(folder);
                    return Err(e);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The name itself.
    pub fn after_name(&self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), |folder| self.sync_folder(folder))
    }

    pub fn removed(&self, path: &Path) {
        if let Some(folder) = path.parent().filter(|_| self.fsync) {
            self.removed_from.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned());
        }
    }

    /// Some file systems do not sync folders, and say so: there is nothing more to be done then.
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        if !self.fsync {
            return Ok(());
        }
        match File::open(folder)?.sync_all() {
            Err(e) if matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
            synced => synced,
        }
    }
}
