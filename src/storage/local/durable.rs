//! What a power cut must not undo.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Whether files are synced, and what waits for it.
///
/// A file with bytes is synced before it gets its name, and its folder after that. What is all in its folder's entry
/// (removals, new folders, empty files) waits for the next file with bytes: it is synced before that gets its name. So
/// nothing that can be seen after a power cut stands for something earlier that cannot, and a round that makes a hundred
/// markers does not sync their folders one by one.
#[derive(Debug)]
pub(super) struct Durability {
    fsync: bool,
    /// Folders whose entries have changed.
    changed: Mutex<BTreeSet<PathBuf>>,
    #[cfg(test)]
    pub done: Mutex<Vec<String>>,
}

impl Durability {
    pub fn new(fsync: bool) -> Durability {
        Durability {
            fsync,
            changed: Mutex::default(),
            #[cfg(test)]
            done: Mutex::default(),
        }
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
            Ok(()) => {
                self.changed_beside(folder);
                Ok(())
            }
            Err(e) if e.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// The entry at `path` has come, or gone.
    pub fn changed_beside(&self, path: &Path) {
        if let Some(folder) = path.parent().filter(|_| self.fsync) {
            self.changed.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned());
        }
    }

    /// To be called before a file gets its name.
    pub fn before_name(&self, file: &File, is_empty: bool) -> io::Result<()> {
        if !self.fsync || is_empty {
            return Ok(());
        }
        self.note("sync", "the file");
        file.sync_all()?;
        // Held meanwhile, so that nobody overtakes what another syncs.
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(folder) = changed.pop_first() {
            match self.sync_folder(&folder) {
                Err(e) if e.kind() != ErrorKind::NotFound => {
                    changed.insert(folder);
                    return Err(e);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// To be called once it has it.
    pub fn after_name(&self, path: &Path, is_empty: bool) -> io::Result<()> {
        self.note("name", path.file_name().unwrap_or_default());
        match path.parent() {
            Some(folder) if self.fsync && !is_empty => self.sync_folder(folder),
            _ => {
                self.changed_beside(path);
                Ok(())
            }
        }
    }

    /// Some file systems do not sync folders, and say so: there is nothing more to be done then.
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.note("sync", folder.file_name().unwrap_or_default());
        match File::open(folder)?.sync_all() {
            Err(e) if matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
            synced => synced,
        }
    }

    /// For tests: a power cut cannot be had.
    fn note(&self, _doing: &str, _what: impl AsRef<std::ffi::OsStr>) {
        #[cfg(test)]
        {
            let text = format!("{_doing} {}", _what.as_ref().display());
            self.done.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        }
    }
}
