//! Writing a file of any size on a blocking thread.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::{Error, Result, checksum_of};

/// A file being written. See [`Storage::upload`](super::Storage::upload).
///
/// On local disks the bytes go straight to the staged file: an upload holds no memory, so that a writer with hundreds of
/// files open does not either. Callers write in large pieces.
pub struct Upload {
    file: File,
    staged: Staged,
    target: PathBuf,
    display: String,
    size: u64,
}

/// The staged file's name; removes it unless the upload came to its end.
struct Staged {
    path: PathBuf,
    visible: bool,
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.visible {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upload").field("path", &self.display).field("size", &self.size).finish_non_exhaustive()
    }
}

impl Upload {
    pub(super) fn start(target: PathBuf, display: String) -> Result<Upload> {
        let (file, path) = stage(&target).map_err(|e| Error::of_io("start writing", display.clone(), &e))?;
        Ok(Upload { file, staged: Staged { path, visible: false }, target, display, size: 0 })
    }

    /// Makes the file visible, replacing what was there; returns its exact size.
    pub fn finish(mut self) -> Result<u64> {
        if let Some(checksum) = checksum_of(&self.target) {
            let _ = fs::remove_file(checksum);
        }
        fs::rename(&self.staged.path, &self.target)
            .map_err(|e| Error::of_io("finish writing", self.display.clone(), &e))?;
        self.staged.visible = true;
        Ok(self.size)
    }

    /// Gives the staged file another name, in one step, unless there is a file of that name.
    pub(super) fn link(&self, target: &Path, display: String) -> Result<u64> {
        fs::hard_link(&self.staged.path, target).map_err(|e| Error::of_io("create", display, &e))?;
        Ok(self.size)
    }
}

impl Write for Upload {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.file.write(buf)?;
        self.size += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens the first free staged name, creating folders as needed.
fn stage(target: &Path) -> io::Result<(File, PathBuf)> {
    let mut n = 1;
    let mut folders_made = false;
    loop {
        let path = staged_name(target, n);
        match File::create_new(&path) {
            Ok(file) => return Ok((file, path)),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => n += 1,
            Err(e) if e.kind() == ErrorKind::NotFound && !folders_made => {
                folders_made = true;
                path.parent().map(fs::create_dir_all).transpose()?;
            }
            Err(e) => return Err(e),
        }
    }
}

/// `name#n`, as object_store's local file system names its own, so that both are seen as staged by both. A leading dot is
/// left out: Hudi takes every `.<…>.log.<number><…>` for a log file (`FSUtils.LOG_FILE_PATTERN`, which has no end).
fn staged_name(target: &Path, n: u32) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!("{}#{n}", name.strip_prefix('.').unwrap_or(&name)))
}

/// Removes what killed processes left of uploads to `target`. They stage under the first free number, so the first gap
/// ends the search.
pub(super) async fn remove_staged(target: PathBuf) {
    let mut n = 1;
    while tokio::fs::remove_file(staged_name(&target, n)).await.is_ok() {
        n += 1;
    }
}
