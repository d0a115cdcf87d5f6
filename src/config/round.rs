//! Where rounds are cut, and the memory that rows may take.

use std::time::Duration;

/// Bounds of a round besides `--source-limit`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoundConfig {
    /// `hoodie.streamer.round.max.bytes` (ours), where it is given: bytes of input.
    pub input: Option<u64>,
    /// Bytes of rows that a round may hold; `None` where it holds none, or where it is to be one whatever it holds.
    pub held: Option<u64>,
    /// `hoodie.streamer.round.max.seconds` (ours), of a continuous job.
    pub time: Option<Duration>,
}

/// The shares of `hoodie.streamer.memory.max.bytes`. Rounds, sorts and transformers take turns, but for compactions beside
/// the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Rows of a round, which are held beside the input that they are decoded from and the files that they go to (measured:
    /// 2,000,000 trips upserted into a new table peak at 450 MB with 128 MiB of it, at 670 with 256).
    pub round: usize,
    /// Rows of all sorts of a bulk insert, or of a transformer's sorts, joins and groups.
    pub rows: usize,
    /// Row groups of the files that a bulk insert has open, one a partition and worker (measured: half of the budget makes it no
    /// faster and its files 1 % smaller, and takes 80 MB more).
    pub open_files: usize,
    /// Rows of log files, for one file group that is compacted.
    pub merge: usize,
}

impl MemoryConfig {
    pub fn of(bytes: usize) -> MemoryConfig {
        MemoryConfig { round: bytes / 4, rows: bytes / 2, open_files: bytes / 4, merge: bytes / 4 }
    }
}
