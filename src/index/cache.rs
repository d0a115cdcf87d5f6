//! What a job of many rounds remembers of base files, so that a round costs what its rows cost, whatever the size of the
//! table.
//!
//! Never the truth: which files are part of the table is asked of the table in every round, and a file that is not known
//! is read. A file is known by its path and size: what a completed write has made does not change.

use super::key_hashes::{KeyHasher, KeyHashes};
use crate::table::base_file::KeyFooter;
use crate::table::{BaseFile, FileSystemView};
use arrow::array::{Array, StringArray};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keys of base files, within a budget of bytes.
///
/// Files of the round at hand stay: a table that is larger than the budget, all of which is looked at in every round,
/// keeps what fits instead of pushing out each file just before it is wanted. Others go, those first that have not been
/// looked at for longest.
#[derive(Debug)]
pub struct KeyCache {
    pub(super) hasher: KeyHasher,
    budget: usize,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// By path.
    files: HashMap<String, Entry>,
    /// Of the entries, and of those in the making.
    bytes: usize,
    round: u64,
}

#[derive(Debug)]
struct Entry {
    partition: String,
    size: u64,
    what: Arc<KnownFile>,
    bytes: usize,
    /// The last round that looked at the file.
    round: u64,
    /// Whether it has been the latest of its group: what is written becomes so when its instant is completed, which for a
    /// compaction is rounds later, or never.
    was_latest: bool,
}

/// What is known of one base file.
#[derive(Debug)]
pub(super) enum KnownFile {
    /// It was not worth reading so far (BLOOM).
    Footer(KeyFooter),
    Keys(KeyHashes),
}

impl KeyCache {
    /// `budget` in bytes: about 17 a key.
    pub fn new(budget: usize) -> KeyCache {
        KeyCache { hasher: KeyHasher::default(), budget, known: Mutex::default() }
    }

    /// A round looks at `files` of `view`: these stay, and files that are not the latest of their group any more go.
    pub(super) fn begin(&self, view: &FileSystemView, files: &[BaseFile]) {
        let latest: HashSet<String> = view.latest_base_files().map(BaseFile::path).collect();
        let mut known = self.known();
        let Known { files: entries, bytes, round } = &mut *known;
        *round += 1;
        entries.retain(|path, entry| {
            let is_latest = latest.contains(path);
            let stays = is_latest || !entry.was_latest || !view.partitions.contains_key(&entry.partition);
            entry.was_latest |= is_latest;
            *bytes -= if stays { 0 } else { entry.bytes };
            stays
        });
        for file in files {
            if let Some(entry) = entries.get_mut(&file.path()) {
                entry.round = *round;
            }
        }
    }

    pub(super) fn get(&self, file: &BaseFile) -> Option<Arc<KnownFile>> {
        let known = self.known();
        known.files.get(&file.path()).filter(|entry| entry.size == file.size).map(|entry| entry.what.clone())
    }

    /// Keeps the footer of a file whose keys need not be read.
    pub(super) fn keep_footer(self: &Arc<Self>, file: &BaseFile, footer: KeyFooter) {
        let mut room = Room::none(self);
        if room.grow_to(footer.memory()) {
            room.fill(&file.partition, file.path(), file.size, KnownFile::Footer(footer), true);
        }
    }

    /// Keeps the keys of a file; costs nothing where there is no room for them.
    pub(super) fn keep_keys(self: &Arc<Self>, file: &BaseFile, keys: &[StringArray]) {
        let mut recorder = self.record();
        let count: usize = keys.iter().map(|chunk| chunk.len()).sum();
        recorder.expect(count);
        keys.iter().for_each(|chunk| recorder.add_all(chunk));
        recorder.fill(&file.partition, file.path(), file.size, true);
    }

    /// For the keys of a file that is being written.
    pub fn record(self: &Arc<Self>) -> KeyRecorder {
        KeyRecorder { room: Some(Room::none(self)), hashes: Vec::new() }
    }

    /// For the keys of a file that takes the place of `file` and has all its keys: only others are to be given. `None`: the
    /// keys of `file` are not known.
    pub fn inherit(self: &Arc<Self>, file: &BaseFile) -> Option<KeyRecorder> {
        let known = self.get(file);
        self.forget(&file.path());
        let KnownFile::Keys(keys) = &*known? else { return None };
        let mut recorder = self.record();
        recorder.expect(keys.len());
        if recorder.room.is_some() {
            recorder.hashes.extend_from_slice(keys.as_slice());
        }
        Some(recorder)
    }

    /// A file that will not be asked for again, so that what takes its place has room.
    pub fn forget(&self, path: &str) {
        let mut known = self.known();
        if let Some(gone) = known.files.remove(path) {
            known.bytes -= gone.bytes;
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Takes `more` bytes, if files that this round does not look at leave enough of `budget` for them.
    fn take(&mut self, more: usize, budget: usize) -> bool {
        let excess = (self.bytes.saturating_add(more)).saturating_sub(budget);
        if excess > 0 && !self.push_out(excess) {
            return false;
        }
        self.bytes += more;
        true
    }

    fn push_out(&mut self, bytes: usize) -> bool {
        let old = self.files.iter().filter(|(_, entry)| entry.round < self.round);
        let mut old: Vec<(u64, usize, String)> =
            old.map(|(path, entry)| (entry.round, entry.bytes, path.clone())).collect();
        if old.iter().map(|(_, bytes, _)| bytes).sum::<usize>() < bytes {
            return false;
        }
        old.sort_unstable();
        let mut freed = 0;
        for (_, bytes_of_file, path) in old {
            if freed >= bytes {
                break;
            }
            freed += bytes_of_file;
            self.files.remove(&path);
        }
        self.bytes -= freed;
        true
    }
}

/// Bytes of the budget that are taken, until they are filled or given back.
#[derive(Debug)]
struct Room {
    cache: Arc<KeyCache>,
    bytes: usize,
}

impl Room {
    fn none(cache: &Arc<KeyCache>) -> Room {
        Room { cache: cache.clone(), bytes: 0 }
    }

    /// Whether there are so many bytes in all.
    fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        if !self.cache.known().take(more, self.cache.budget) {
            return false;
        }
        self.bytes += more;
        true
    }

    fn fill(mut self, partition: &str, path: String, size: u64, what: KnownFile, was_latest: bool) {
        let cache = self.cache.clone();
        let mut known = cache.known();
        let bytes = std::mem::take(&mut self.bytes);
        let round = known.round;
        let entry = Entry { partition: partition.to_string(), size, what: Arc::new(what), bytes, round, was_latest };
        if let Some(before) = known.files.insert(path, entry) {
            known.bytes -= before.bytes;
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.cache.known().bytes -= self.bytes;
        }
    }
}

/// Gathers the keys of one base file. Where they do not fit, it gives up and takes no more memory.
#[derive(Debug)]
pub struct KeyRecorder {
    /// `None` once it has given up.
    room: Option<Room>,
    hashes: Vec<u128>,
}

impl KeyRecorder {
    /// Says how many keys there will be, so that those of a file that does not fit are not even begun with.
    fn expect(&mut self, keys: usize) {
        if self.make_room(keys) {
            self.hashes.reserve_exact(keys);
        }
    }

    /// The record keys of the next rows; nulls are passed over, no key is looked up as null.
    pub fn add_all(&mut self, keys: &StringArray) {
        if !self.make_room(self.hashes.len() + keys.len()) {
            return;
        }
        if let Some(room) = &self.room {
            self.hashes.extend(keys.iter().flatten().map(|key| room.cache.hasher.hash(key)));
        }
    }

    fn make_room(&mut self, keys: usize) -> bool {
        let Some(room) = &mut self.room else { return false };
        let fits = keys <= KeyHashes::MOST && room.grow_to(KeyHashes::memory_of(keys));
        if !fits {
            *self = KeyRecorder { room: None, hashes: Vec::new() };
        }
        fits
    }

    /// The file at `path` is written. It is known from now on if the key of each of its `rows` has been given: a key that is
    /// missing here would be taken for new, and written twice.
    pub fn finish(self, partition: &str, path: String, size: u64, rows: u64) {
        if self.hashes.len() as u64 == rows {
            self.fill(partition, path, size, false);
        }
    }

    fn fill(mut self, partition: &str, path: String, size: u64, was_latest: bool) {
        self.hashes.shrink_to_fit();
        if let Some(room) = self.room {
            room.fill(partition, path, size, KnownFile::Keys(KeyHashes::new(self.hashes)), was_latest);
        }
    }
}

#[cfg(test)]
mod tests;
