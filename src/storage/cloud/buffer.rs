//! The part of a file that is not on its way yet.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// Bytes that the buffers of all files together may hold in memory: a job that writes to thousands of partitions at a time
/// has as many files open. What is more goes to the folder for temporary files.
const IN_MEMORY: usize = 256 << 20;
/// A smaller buffer stays where it is: moving it would not help.
const WORTH_MOVING: usize = 256 << 10;

static HELD: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug, Default)]
pub(super) struct Buffer {
    memory: Vec<u8>,
    /// All of it, once there is one.
    disk: Option<File>,
    len: usize,
}

impl Buffer {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn extend(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend_within(bytes, IN_MEMORY)
    }

    fn extend_within(&mut self, bytes: &[u8], in_memory: usize) -> io::Result<()> {
        self.len += bytes.len();
        if let Some(file) = &mut self.disk {
            return file.write_all(bytes);
        }
        self.memory.extend_from_slice(bytes);
        let held = HELD.fetch_add(bytes.len(), Ordering::Relaxed) + bytes.len();
        if held > in_memory && self.len >= WORTH_MOVING {
            let mut file = nameless_file()?;
            file.write_all(&self.memory)?;
            self.disk = Some(file);
            self.let_go();
        }
        Ok(())
    }

    /// All of it, leaving nothing.
    pub fn take(&mut self) -> io::Result<Bytes> {
        let on_disk = self.disk.is_some().then(|| self.copy()).transpose()?;
        (self.disk, self.len) = (None, 0);
        let memory = self.let_go();
        Ok(on_disk.unwrap_or_else(|| memory.into()))
    }

    pub fn copy(&mut self) -> io::Result<Bytes> {
        let Some(file) = &mut self.disk else { return Ok(Bytes::copy_from_slice(&self.memory)) };
        let mut bytes = Vec::with_capacity(self.len);
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }

    fn let_go(&mut self) -> Vec<u8> {
        HELD.fetch_sub(self.memory.len(), Ordering::Relaxed);
        std::mem::take(&mut self.memory)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// Its name goes at once, and the file with the process, however that ends.
fn nameless_file() -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("hudi-streamer-{}", uuid::Uuid::new_v4()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_memory_and_from_disk() {
        for in_memory in [usize::MAX, 0] {
            let mut buffer = Buffer::default();
            let piece: Vec<u8> = (0..100_000_u32).map(|n| n as u8).collect();
            for _ in 0..4 {
                buffer.extend_within(&piece, in_memory).expect("extended");
            }
            assert_eq!((buffer.len(), buffer.disk.is_some()), (400_000, in_memory == 0));
            assert_eq!(buffer.copy().expect("copied"), piece.repeat(4));
            assert_eq!(buffer.take().expect("taken"), piece.repeat(4));
            assert!(buffer.is_empty() && buffer.take().expect("taken").is_empty());
            buffer.extend_within(b"again", usize::MAX).expect("extended");
            assert_eq!(buffer.take().expect("taken"), "again");
        }
    }
}
