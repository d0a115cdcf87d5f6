//! Where rounds are cut, and the one budget of memory.

use super::*;

/// What decides whether rounds may be cut. A round that streams its rows, or must not be cut, is not cut for the memory's sake.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cuts {
    /// Rows go to their files as they come: nothing is held.
    pub streams: bool,
    /// No position is kept, behind which the next round would go on.
    pub forgets: bool,
}

impl Loader<'_> {
    pub(super) fn memory(&mut self) -> MemoryConfig {
        MemoryConfig::of(self.positive(&keys::MEMORY, "a number of bytes"))
    }

    pub(super) fn rounds(&mut self, cuts: Cuts, memory: MemoryConfig, limited: bool) -> RoundConfig {
        let only_looks = self.raw.has("--dry-run") || self.raw.has("--explain");
        let continuous = self.raw.has("--continuous") && !only_looks;
        let seconds: u64 = self.number(&keys::ROUND_SECONDS, "a number of seconds");
        let time = (continuous && seconds > 0).then_some(Duration::from_secs(seconds));
        let given = self.given(&keys::ROUND_BYTES).is_some();
        let bytes: u64 = if given { self.number(&keys::ROUND_BYTES, "a number of bytes") } else { 0 };
        // Who says how much a one-shot job takes gets it in one commit, as from Hudi.
        let whole = !continuous && (limited || cuts.forgets || only_looks);
        RoundConfig {
            input: (bytes > 0 && !(only_looks || cuts.forgets)).then_some(bytes),
            held: (!given && !cuts.streams && !whole).then_some(memory.round as u64),
            time,
        }
    }
}
