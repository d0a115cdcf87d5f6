//! What a power cut must not undo.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whether files are synced, and what waits for it.
///
/// A file with bytes is synced before it gets its name, and its folder after that. What is all in its folder's entry
/// (removals, new folders, empty files) waits for the next file with bytes: it is synced before that gets its name. So
/// nothing that can be seen after a power cut stands for something earlier that cannot, and a round that makes a hundred
/// markers does not sync their folders one by one. The names of [`Kind::Data`] wait too, until something gets a name that
/// speaks of them.
#[derive(Debug)]
pub(super) struct Durability {
    fsync: bool,
    changed: Mutex<Changed>,
    /// Held by who syncs what has changed, so that nobody overtakes him.
    turn: Mutex<()>,
    #[cfg(test)]
    pub done: Mutex<Vec<String>>,
}

/// Folders whose entries have changed.
#[derive(Debug, Default)]
struct Changed {
    /// By the names of data alone, which wait for each other not.
    of_data: BTreeSet<PathBuf>,
    other: BTreeSet<PathBuf>,
}

/// What a file is to those that come after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Stands for all that was there before it, and is there for good when its call returns.
    Record,
    /// The same, but for good only with what comes next.
    Ahead,
    /// Counts when a record says so.
    Data,
}

/// Folders that are synced at a time: a disk does in one go what it is asked for at once (measured on ext4: 20 files one by
/// one 80 ms, at once 3).
const AT_ONCE: usize = 8;

impl Durability {
    pub fn new(fsync: bool) -> Durability {
        Durability {
            fsync,
            changed: Mutex::default(),
            turn: Mutex::default(),
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
            self.changed().other.insert(folder.to_owned());
        }
    }

    /// To be called before a file gets its name.
    pub fn before_name(&self, file: &File, kind: Kind, is_empty: bool) -> io::Result<()> {
        if !self.fsync || is_empty {
            return Ok(());
        }
        self.note("sync", "the file");
        file.sync_all()?;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut folders = std::mem::take(&mut self.changed().other);
        if kind != Kind::Data {
            folders.append(&mut self.changed().of_data);
        }
        let synced = self.sync_folders(folders.iter().map(PathBuf::as_path).collect());
        if synced.is_err() {
            self.changed().other.append(&mut folders);
        }
        synced
    }

    /// To be called once it has it.
    pub fn after_name(&self, path: &Path, kind: Kind, is_empty: bool) -> io::Result<()> {
        self.note("name", path.file_name().unwrap_or_default());
        match (path.parent(), kind) {
            (Some(folder), Kind::Record) if self.fsync && !is_empty => return self.sync_folder(folder),
            (Some(folder), Kind::Data) if self.fsync => {
                self.changed().of_data.insert(folder.to_owned());
            }
            _ => self.changed_beside(path),
        }
        Ok(())
    }

    fn changed(&self) -> MutexGuard<'_, Changed> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that are gone by now need no syncing.
    fn sync_folders(&self, folders: Vec<&Path>) -> io::Result<()> {
        let sync = |folders: &[&Path]| {
            folders.iter().try_for_each(|folder| match self.sync_folder(folder) {
                Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
                _ => Ok(()),
            })
        };
        let mut parts = folders.chunks(folders.len().div_ceil(AT_ONCE).max(1));
        let Some(first) = parts.next() else { return Ok(()) };
        std::thread::scope(|scope| {
            let others: Vec<_> = parts.map(|part| scope.spawn(move || sync(part))).collect();
            let own = sync(first);
            others.into_iter().map(|other| other.join().unwrap_or_else(|_| Err(panicked()))).fold(own, Result::and)
        })
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

fn panicked() -> io::Error {
    io::Error::other("syncing a folder panicked")
}
