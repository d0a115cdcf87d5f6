//! Files that nobody sees yet.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::durable::{Durability, Kind};
use super::{is_missing, remove_checksum};
use crate::storage::backend::{Draft, Outcome};
use crate::storage::is_staged;

/// A file under a name of its own beside its target; it goes when it is dropped before it has got its target's.
///
/// The bytes go straight to it: it holds no memory, so that a writer with hundreds of files open does not either. Callers
/// write in large pieces.
pub(super) struct Staged {
    file: File,
    path: PathBuf,
    size: u64,
    kind: Kind,
    durability: Arc<Durability>,
    /// There is nothing to be removed.
    gone: bool,
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.gone {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Staged {
    /// Takes the first free name, and makes folders as needed.
    pub fn begin(target: &Path, kind: Kind, durability: Arc<Durability>) -> io::Result<Staged> {
        let mut n = 1;
        let mut folders_made = false;
        loop {
            let path = staged_name(target, n);
            match File::create_new(&path) {
                Ok(file) => return Ok(Staged { file, path, size: 0, kind, durability, gone: false }),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => n += 1,
                Err(e) if e.kind() == ErrorKind::NotFound && !folders_made => {
                    folders_made = true;
                    path.parent().map_or(Ok(()), |folder| durability.make_folder(folder))?;
                }
                Err(e) => return Err(e),
            }
        }
    }

    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.size += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    /// Replaces what is at `target`.
    pub fn rename(&mut self, target: &Path) -> io::Result<()> {
        self.durability.before_name(&self.file, self.kind, self.size == 0)?;
        remove_checksum(target);
        fs::rename(&self.path, target)?;
        // From now on its old name may be another's.
        self.gone = true;
        self.durability.after_name(target, self.kind, self.size == 0)
    }

    /// Fails if there is something at `target`; another can be tried then.
    pub fn link(&mut self, target: &Path) -> io::Result<()> {
        self.durability.before_name(&self.file, self.kind, self.size == 0)?;
        match fs::hard_link(&self.path, target) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists && self.is_at(target) => {}
            linked => linked?,
        }
        // From now on its old name is another's, or is removed.
        self.gone = true;
        // Who deletes a target also deletes what is staged beside it, so that what was linked may be one staged later.
        if !self.is_at(target) && !self.is_at(&self.path) {
            return Err(ErrorKind::NotFound.into());
        }
        let _ = fs::remove_file(&self.path);
        self.durability.after_name(target, self.kind, self.size == 0)
    }

    /// Whether somebody else has deleted it while it was written.
    pub fn is_lost(&self) -> bool {
        !self.is_at(&self.path) && self.path.parent().is_some_and(Path::is_dir)
    }

    /// Whether that is this very file. NFS may do what it is asked, lose the answer, and refuse to do it again.
    fn is_at(&self, target: &Path) -> bool {
        let id = |meta: fs::Metadata| (meta.dev(), meta.ino());
        let (ours, theirs) = (self.file.metadata().map(id), fs::symlink_metadata(target).map(id));
        matches!((ours, theirs), (Ok(ours), Ok(theirs)) if ours == theirs)
    }

    /// Leaves it where it is.
    pub fn abandon(mut self) {
        self.gone = true;
    }
}

/// See [`Upload`](crate::storage::Upload).
pub(super) struct LocalDraft {
    pub staged: Staged,
    pub target: PathBuf,
    pub root: PathBuf,
}

impl Write for LocalDraft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.staged.file.write(bytes)?;
        self.staged.size += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Draft for LocalDraft {
    fn finish(&mut self) -> Outcome<()> {
        Ok(self.staged.rename(&self.target)?)
    }

    fn publish(&mut self, path: &str) -> Outcome<()> {
        Ok(self.staged.link(&self.root.join(path))?)
    }

    fn leave_half(&mut self) {
        let _ = self.staged.file.set_len(self.staged.size / 2);
        self.staged.gone = true;
    }
}

/// `name#n`, as object_store's local file system names its own. A leading dot is left out: Hudi takes every
/// `.<…>.log.<number><…>` for a log file (`FSUtils.LOG_FILE_PATTERN`, which has no end).
fn staged_name(target: &Path, n: u32) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!("{}#{n}", name.strip_prefix('.').unwrap_or(&name)))
}

/// Removes what killed processes left of uploads to `target`. They stage under the first free number, so the first gap
/// ends the search.
pub(super) fn remove_staged(target: &Path) {
    let mut n = 1;
    while fs::remove_file(staged_name(target, n)).is_ok() {
        n += 1;
    }
}

/// The same of all targets in a folder, where it is older than `age`.
pub(super) fn remove_stale(folder: &Path, age: Duration) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(e) if is_missing(&e) => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if !is_staged(&entry.file_name().to_string_lossy()) {
            continue;
        }
        // One that is gone by now has got its name, or was somebody else's to remove.
        let is_stale =
            |meta: fs::Metadata| meta.is_file() && meta.modified().is_ok_and(|m| m.elapsed().is_ok_and(|e| e > age));
        if entry.metadata().is_ok_and(is_stale) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}
