//! Writing a file of any size on a blocking thread.

use std::io::{self, Write};

use super::backend::{self, Outcome};
use super::injected::{self, Call, Fault};
use super::{Result, Storage};

/// A file being written, that takes the place of its path when it is finished; see [`Storage::upload`]. Dropped
/// unfinished, it leaves nothing behind. On local disks its bytes are on the disk by then, its name before the next file
/// that [`Storage::create`] or [`Storage::put`] makes.
pub struct Upload(Unseen);

/// A file being written, that may only come to be where nothing is; see [`Storage::draft`]. Dropped unpublished, it leaves
/// nothing behind.
pub struct Draft(Unseen);

struct Unseen {
    storage: Storage,
    draft: Box<dyn backend::Draft>,
    path: String,
    size: u64,
}

impl Storage {
    /// Starts a streaming upload for use on a blocking thread inside a tokio runtime; nothing is visible until
    /// [`Upload::finish`].
    ///
    /// Holds no memory on local disks and not more than a part in object stores, so that a writer may have hundreds of
    /// files open. Callers write in large pieces.
    pub fn upload(&self, path: &str) -> Result<Upload> {
        Ok(Upload(self.unseen(path, false)?))
    }

    /// The same, to be ended by [`Draft::publish`]. `path`: where it is likely to be published.
    pub fn draft(&self, path: &str) -> Result<Draft> {
        Ok(Draft(self.unseen(path, true)?))
    }

    fn unseen(&self, path: &str, exclusive: bool) -> Result<Unseen> {
        const DOING: &str = "start writing";
        self.of_file(DOING, path)?;
        match self.struck(Call::Put, DOING, path) {
            None => {}
            Some(Fault::Delay) => injected::delay_blocking(),
            // Nobody sees that it has begun, so an answer that is lost is a failure.
            Some(fault) => {
                if fault == Fault::Kill {
                    injected::die();
                }
                return Err(self.injected(DOING, path));
            }
        }
        let draft = self.backend.upload(path, exclusive).map_err(|cause| cause.at(DOING, self.display(path)))?;
        Ok(Unseen { storage: self.clone(), draft, path: path.to_owned(), size: 0 })
    }
}

impl Upload {
    /// Makes the file visible, replacing what was there; returns its exact size.
    pub fn finish(mut self) -> Result<u64> {
        let path = self.0.path.clone();
        self.0.name("finish writing", &path, |draft| draft.finish())
    }
}

impl Draft {
    /// Makes the file visible as `path`, which need not be the one that it was begun with; `AlreadyExists` if there is such
    /// a file, and another name can be tried. Once published it is done with. Returns the exact size.
    pub fn publish(&mut self, path: &str) -> Result<u64> {
        self.0.storage.of_file("create", path)?;
        self.0.name("create", path, |draft| draft.publish(path))
    }
}

impl Unseen {
    fn name(
        &mut self,
        doing: &'static str,
        path: &str,
        name: impl FnOnce(&mut dyn backend::Draft) -> Outcome<()>,
    ) -> Result<u64> {
        let mut answer = Ok(());
        match self.storage.struck(Call::Rename, doing, path) {
            None => {}
            Some(Fault::Delay) => injected::delay_blocking(),
            Some(Fault::Lose) => answer = Err(self.storage.injected(doing, path)),
            Some(fault) => {
                if fault != Fault::Fail {
                    self.draft.leave_half();
                }
                if fault == Fault::Kill {
                    injected::die();
                }
                return Err(self.storage.injected(doing, path));
            }
        }
        name(&mut *self.draft).map_err(|cause| cause.at(doing, self.storage.display(path)))?;
        answer.map(|()| self.size)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.draft.write(bytes)?;
        self.size += n as u64;
        Ok(n)
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.draft.flush()
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.draft.flush()
    }
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upload").field("path", &self.0.path).field("size", &self.0.size).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Draft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Draft").field("path", &self.0.path).field("size", &self.0.size).finish_non_exhaustive()
    }
}
