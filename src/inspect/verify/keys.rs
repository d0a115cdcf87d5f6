//! Record keys that are there twice: in bounded memory, whatever their number.
//!
//! A key is 12 bytes of its hash and 4 bytes of who holds it. Hashes are shared out among parts by their first bits; when
//! there is no room for more, all parts go to one file, and each is read back alone in the end. Hashes of 96 bits may
//! deceive: who is told of a pair looks at the keys.

use super::super::{Error, Result};
use crate::index::KeyHasher;
use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const PARTS: usize = 1024;
/// Keys in memory before they go to the file. Vectors grow by doubling, so that they take 256 MiB at most.
const MOST: usize = 128 * 1024 * 1024 / size_of::<u128>();
/// Keys that one reader hands over at a time.
const BATCH: usize = 16 * 1024;
/// The bits that say who holds the key.
const HOLDER: u128 = u32::MAX as u128;

/// All keys that were met.
pub(super) struct Keys {
    hasher: KeyHasher,
    /// Whether keys of different partitions differ.
    by_partition: bool,
    folder: PathBuf,
    most: usize,
    met: Mutex<Met>,
}

#[derive(Default)]
struct Met {
    parts: Vec<Vec<u128>>,
    held: usize,
    spilled: Option<Spilled>,
}

/// By part, where its keys are in the file.
struct Spilled {
    file: File,
    size: u64,
    pieces: Vec<Vec<(u64, usize)>>,
}

/// A key that several rows have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Twice {
    /// As [`Keys::hash`] has it.
    pub hash: u128,
    /// Each once, some of them where there are many.
    pub holders: Vec<u32>,
}

/// The first keys that several rows have, and how many there are.
#[derive(Debug, Default)]
pub(super) struct Twices {
    pub found: Vec<Twice>,
    pub total: u64,
}

impl Keys {
    pub fn new(by_partition: bool, spill: Option<&Path>) -> Keys {
        Keys::with_room(by_partition, spill, MOST)
    }

    fn with_room(by_partition: bool, spill: Option<&Path>, most: usize) -> Keys {
        let folder = spill.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let met = Met { parts: vec![Vec::new(); PARTS], ..Met::default() };
        Keys { hasher: KeyHasher::default(), by_partition, folder, most, met: Mutex::new(met) }
    }

    /// Takes the keys of one holder in one partition.
    pub fn feed(&self, partition: &str, holder: u32) -> Feed<'_> {
        let partition = if self.by_partition { self.hasher.hash(partition) } else { 0 };
        Feed { keys: self, partition, holder, batch: Vec::new() }
    }

    fn take(&self, batch: &mut Vec<u128>) -> Result<()> {
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        met.held += batch.len();
        for entry in batch.drain(..) {
            met.parts[(entry >> 118) as usize].push(entry);
        }
        if met.held >= self.most {
            let failed = |cause| Error::Spill { path: self.folder.display().to_string(), cause };
            met.spill(&self.folder).map_err(failed)?;
        }
        Ok(())
    }

    /// What is there more than once, but for what the holders in `void` hold; at most `most` of it by name.
    pub fn twice(&self, void: &HashSet<u32>, most: usize) -> Result<Twices> {
        let failed = |cause| Error::Spill { path: self.folder.display().to_string(), cause };
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        let mut twices = Twices::default();
        for part in 0..PARTS {
            let mut entries = met.part(part).map_err(failed)?;
            if !void.is_empty() {
                entries.retain(|entry| !void.contains(&holder(*entry)));
            }
            entries.sort_unstable();
            for same in entries.chunk_by(|a, b| a & !HOLDER == b & !HOLDER).filter(|same| same.len() > 1) {
                twices.total += 1;
                if twices.found.len() < most {
                    let mut holders: Vec<u32> = same.iter().map(|entry| holder(*entry)).collect();
                    holders.dedup();
                    holders.truncate(4);
                    twices.found.push(Twice { hash: same[0] & !HOLDER, holders });
                }
            }
        }
        Ok(twices)
    }
}

fn holder(entry: u128) -> u32 {
    (entry & HOLDER) as u32
}

impl Met {
    /// The keys of a part, which are here no longer.
    fn part(&mut self, part: usize) -> std::io::Result<Vec<u128>> {
        let mut entries = std::mem::take(&mut self.parts[part]);
        if let Some(Spilled { file, pieces, .. }) = &mut self.spilled {
            for (at, count) in pieces[part].drain(..) {
                let mut bytes = vec![0; count * size_of::<u128>()];
                file.seek(SeekFrom::Start(at))?;
                file.read_exact(&mut bytes)?;
                let words = bytes.as_chunks::<{ size_of::<u128>() }>().0;
                entries.extend(words.iter().map(|word| u128::from_le_bytes(*word)));
            }
        }
        Ok(entries)
    }

    fn spill(&mut self, folder: &Path) -> std::io::Result<()> {
        if self.spilled.is_none() {
            self.spilled = Some(Spilled { file: nameless(folder)?, size: 0, pieces: vec![Vec::new(); PARTS] });
        }
        let Some(Spilled { file, size, pieces }) = &mut self.spilled else { return Ok(()) };
        file.seek(SeekFrom::Start(*size))?;
        let mut bytes = Vec::new();
        for (entries, pieces) in self.parts.iter_mut().zip(pieces) {
            bytes.clear();
            bytes.extend(entries.iter().flat_map(|entry| entry.to_le_bytes()));
            file.write_all(&bytes)?;
            pieces.push((*size, entries.len()));
            *size += bytes.len() as u64;
            entries.clear();
        }
        self.held = 0;
        Ok(())
    }
}

/// A file that is gone when this process is, however it ends.
fn nameless(folder: &Path) -> std::io::Result<File> {
    let name = format!("hudi-streamer-keys-{}", uuid::Uuid::new_v4());
    let path = folder.join(name);
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

/// See [`Keys::feed`].
pub(super) struct Feed<'a> {
    keys: &'a Keys,
    partition: u128,
    holder: u32,
    batch: Vec<u128>,
}

impl Feed<'_> {
    /// What [`Twice::hash`] is of a key.
    pub fn hash(&self, key: &str) -> u128 {
        (self.keys.hasher.hash(key) ^ self.partition) & !HOLDER
    }

    pub fn add(&mut self, key: &str) -> Result<()> {
        self.batch.push(self.hash(key) | u128::from(self.holder));
        if self.batch.len() >= BATCH { self.finish() } else { Ok(()) }
    }

    /// Hands over what is left.
    pub fn finish(&mut self) -> Result<()> {
        self.keys.take(&mut self.batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Which keys are there twice, by an obvious twin.
    fn twin(rows: &[(u32, &str, String)], by_partition: bool) -> u64 {
        let mut counts: HashMap<(&str, &str), u64> = HashMap::new();
        for (_, partition, key) in rows {
            *counts.entry((if by_partition { partition } else { "" }, key)).or_default() += 1;
        }
        counts.values().filter(|count| **count > 1).count() as u64
    }

    #[test]
    fn keys_that_are_there_twice_are_found_in_memory_and_out_of_it() {
        let partitions = ["a", "b"];
        let rows: Vec<(u32, &str, String)> =
            (0..9_000u32).map(|n| (n % 7, partitions[(n % 2) as usize], format!("k{}", n * 31 % 8_500))).collect();
        let folder = tempfile::tempdir().expect("a folder");
        for by_partition in [true, false] {
            for most in [usize::MAX, 500] {
                let keys = Keys::with_room(by_partition, Some(folder.path()), most);
                for (holder, partition, key) in &rows {
                    let mut feed = keys.feed(partition, *holder);
                    feed.add(key).and_then(|()| feed.finish()).expect("taken");
                }
                let name = format!("by partition {by_partition}, room for {most}");
                let spilled = keys.met.lock().expect("whole").spilled.is_some();
                assert_eq!(spilled, most == 500, "{name}");
                let twices = keys.twice(&HashSet::new(), 10).expect("read");
                assert_eq!((twices.total, twices.found.len()), (twin(&rows, by_partition), 10), "{name}");
                for twice in twices.found {
                    let same =
                        |(_, partition, key): &&(u32, &str, String)| keys.feed(partition, 0).hash(key) == twice.hash;
                    let mut holders: Vec<u32> = rows.iter().filter(same).map(|(holder, ..)| *holder).collect();
                    holders.sort_unstable();
                    holders.dedup();
                    assert_eq!(twice.holders, holders, "{name}");
                }
            }
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0, "nothing is left behind");
    }

    #[test]
    fn what_void_holders_hold_does_not_count() {
        let keys = Keys::new(true, None);
        for holder in 0..3 {
            let mut feed = keys.feed("p", holder);
            feed.add("k").and_then(|()| feed.finish()).expect("taken");
        }
        assert_eq!(keys.twice(&HashSet::from([0, 1]), 10).expect("read").total, 0);
    }

    #[test]
    fn a_folder_without_room_is_named() {
        let keys = Keys::with_room(true, Some(Path::new("/no/such/folder")), 1);
        let mut feed = keys.feed("p", 0);
        let error = feed.add("k").and_then(|()| feed.finish()).expect_err("no folder");
        assert!(error.to_string().contains("/no/such/folder") && error.code() == "inspect-spill", "{error}");
    }
}
