//! Which files make the next batch: a pure function from a listing (`DFSPathSelector.getNextFilePathsAndMaxModificationTime`, 0.15).

use super::pieces::is_gzip;
use crate::storage::FileInfo;

/// Prefixes of names that Hudi passes over.
const IGNORED: [char; 2] = ['.', '_'];
/// What a gzip file of JSON grows to, about: nobody knows before it is read.
const GZIP_GROWTH: u64 = 8;

/// The files of a batch, oldest first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Picked {
    pub files: Vec<FileInfo>,
    pub bytes: u64,
    /// Newer files that the limit leaves for the next batch.
    pub left: usize,
    /// Files not newer than the checkpoint.
    pub old: usize,
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether files below this folder count.
pub(super) fn enters(folder: &str) -> bool {
    !name(folder).starts_with(IGNORED)
}

/// Whether this file counts.
pub(super) fn counts(file: &FileInfo) -> bool {
    file.size > 0 && !name(&file.path).starts_with(IGNORED)
}

/// Files newer than `after`, by time and path, while they stay below `limit` bytes. Files of one time stay together, and the
/// first file is taken whatever its size (Hudi would stand still before it for ever).
pub(super) fn pick(files: Vec<FileInfo>, after: Option<i64>, limit: Option<u64>) -> Picked {
    let total = files.len();
    let mut newer: Vec<FileInfo> =
        files.into_iter().filter(|f| after.is_none_or(|after| f.modified_ms > after)).collect();
    let old = total - newer.len();
    newer.sort_by(|a, b| (a.modified_ms, &a.path).cmp(&(b.modified_ms, &b.path)));
    let limit = limit.unwrap_or(u64::MAX);
    let (mut bytes, mut count) = (0u64, 0);
    for file in &newer {
        let together = count > 0 && newer[count - 1].modified_ms == file.modified_ms;
        if count > 0 && !together && bytes.saturating_add(file.size) >= limit {
            break;
        }
        bytes = bytes.saturating_add(file.size);
        count += 1;
    }
    let left = newer.len() - count;
    newer.truncate(count);
    Picked { files: newer, bytes, left, old }
}

/// Bytes of text in a file, about.
pub(super) fn weight(file: &FileInfo) -> u64 {
    if is_gzip(&file.path) { file.size.saturating_mul(GZIP_GROWTH) } else { file.size }
}

/// How many of picked files weigh so many bytes together: files of one time, and at least the first ones.
pub(super) fn heavy(files: &[FileInfo], most: u64) -> usize {
    let (mut bytes, mut taken) = (0u64, 0);
    for together in files.chunk_by(|a, b| a.modified_ms == b.modified_ms) {
        bytes = together.iter().map(weight).fold(bytes, u64::saturating_add);
        if taken > 0 && bytes > most {
            break;
        }
        taken += together.len();
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, modified_ms: i64, size: u64) -> FileInfo {
        FileInfo { path: path.into(), size, modified_ms }
    }

    fn names(picked: &Picked) -> Vec<&str> {
        picked.files.iter().map(|f| f.path.as_str()).collect()
    }

    /// Case 12 of the collected user reports.
    #[test]
    fn files_of_one_time_stay_together() {
        let files = || {
            vec![
                file("d", 3000, 10),
                file("b", 2000, 10),
                file("sub/e", 2000, 10),
                file("a", 1000, 10),
                file("c", 2000, 10),
            ]
        };
        let first = pick(files(), None, Some(21));
        assert_eq!(names(&first), ["a", "b", "c", "sub/e"]);
        assert_eq!((first.left, first.bytes), (1, 40));
        assert_eq!(names(&pick(files(), Some(2000), Some(21))), ["d"]);
        assert_eq!(pick(files(), Some(3000), Some(21)), Picked { old: 5, ..Default::default() });
        assert_eq!(names(&pick(files(), Some(0), None)).len(), 5);
    }

    #[test]
    fn a_first_file_over_the_limit_is_taken() {
        assert_eq!(names(&pick(vec![file("big", 1, 100), file("next", 2, 1)], None, Some(10))), ["big"]);
        // Hudi compares with `<`: a batch never reaches the limit, but for its first file.
        assert_eq!(names(&pick(vec![file("a", 1, 5), file("b", 2, 5)], None, Some(10))), ["a"]);
        assert_eq!(names(&pick(vec![file("a", 1, 5), file("b", 2, 5)], None, Some(11))), ["a", "b"]);
    }

    #[test]
    fn a_batch_is_cut_by_weight_between_times() {
        let files = [file("a", 1, 10), file("b", 2, 10), file("c", 2, 10), file("d.gz", 3, 10), file("e", 4, 10)];
        for (most, want) in [(0, 1), (10, 1), (29, 1), (30, 3), (109, 3), (110, 4), (119, 4), (120, 5), (u64::MAX, 5)] {
            assert_eq!(heavy(&files, most), want, "{most} bytes");
        }
        assert_eq!(heavy(&[], 7), 0);
    }

    #[test]
    fn hidden_and_empty_files_do_not_count() {
        for (path, size, want) in [("x.json", 1, true), ("_part", 1, false), ("s/.tmp", 1, false), ("s/x", 0, false)] {
            assert_eq!(counts(&file(path, 1, size)), want, "{path}");
        }
        assert!(enters("a/b") && !enters("a/_b") && !enters(".a"));
    }
}
