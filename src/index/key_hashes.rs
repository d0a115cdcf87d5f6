//! Record keys as hashes of 128 bits, in order: small, and quick to intersect.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

/// Hashes between two entries of the directory, about: two cache lines.
const BUCKET: usize = 8;

/// Makes the hashes; those of different makers have nothing to do with each other.
///
/// SipHash under a secret of this process, asked twice with different prefixes. A pair of different keys of the same hash
/// would send a new row to a file that does not hold it; 10 billion stored keys and as many incoming ones have one with a
/// probability of 3 in 10¹⁹, and nobody who does not know the secret can look for one.
#[derive(Debug, Default)]
pub(crate) struct KeyHasher(RandomState);

impl KeyHasher {
    pub(crate) fn hash(&self, key: &str) -> u128 {
        let half = |prefix: u8| u128::from(self.0.hash_one((prefix, key.as_bytes())));
        half(0) << 64 | half(1)
    }
}

/// The keys of a file, or of a round. 16.5 to 17 bytes a key.
#[derive(Debug)]
pub(super) struct KeyHashes {
    sorted: Vec<u128>,
    /// Where the hashes with each value of the leading bits begin, and the end.
    starts: Vec<u32>,
    /// Bits of a hash that are not leading ones.
    shift: u32,
}

impl KeyHashes {
    /// The most keys there may be.
    pub(super) const MOST: usize = u32::MAX as usize;

    pub(super) fn new(mut hashes: Vec<u128>) -> KeyHashes {
        hashes.sort_unstable();
        let bits = directory_bits(hashes.len());
        let shift = u128::BITS - bits;
        let mut starts = Vec::with_capacity((1 << bits) + 1);
        for (at, hash) in hashes.iter().enumerate() {
            starts.resize(starts.len().max((hash >> shift) as usize + 1), at as u32);
        }
        starts.resize((1 << bits) + 1, hashes.len() as u32);
        KeyHashes { sorted: hashes, starts, shift }
    }

    pub(super) fn as_slice(&self) -> &[u128] {
        &self.sorted
    }

    /// Bytes that so many keys take.
    pub(super) fn memory_of(keys: usize) -> usize {
        keys * size_of::<u128>() + ((1 << directory_bits(keys)) + 1) * size_of::<u32>()
    }

    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Where the hash stands in the order, as often as the key was given.
    pub(super) fn find(&self, hash: u128) -> Range<usize> {
        let bucket = (hash >> self.shift) as usize;
        let (from, to) = (self.starts[bucket] as usize, self.starts[bucket + 1] as usize);
        let bucket = &self.sorted[from..to];
        let first = bucket.partition_point(|other| *other < hash);
        let count = bucket[first..].iter().take_while(|other| **other == hash).count();
        from + first..from + first + count
    }

    /// The hashes that are in both, in order, each once.
    pub(super) fn common<'a>(&'a self, other: &'a KeyHashes) -> impl Iterator<Item = u128> + 'a {
        let (few, many) = if self.len() <= other.len() { (self, other) } else { (other, self) };
        let each_once = few.sorted.chunk_by(|a, b| a == b).map(|same| same[0]);
        each_once.filter(|hash| !many.find(*hash).is_empty())
    }
}

/// At least one: a hash is never shifted by all its bits.
fn directory_bits(keys: usize) -> u32 {
    (keys / BUCKET).max(2).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Few values, all over the range and close together, so that they meet.
    fn hashes() -> impl Strategy<Value = Vec<u128>> {
        let hash = (0..8u128, 0..40u128).prop_map(|(high, low)| high << 125 | low);
        prop::collection::vec(hash, 0..200)
    }

    proptest! {
        #[test]
        fn common_hashes_are_those_of_the_sets(a in hashes(), b in hashes()) {
            let set = |of: &[u128]| of.iter().copied().collect::<BTreeSet<_>>();
            let want: Vec<u128> = set(&a).intersection(&set(&b)).copied().collect();
            let (a, b) = (KeyHashes::new(a), KeyHashes::new(b));
            prop_assert_eq!(a.common(&b).collect::<Vec<_>>(), want.clone());
            prop_assert_eq!(b.common(&a).collect::<Vec<_>>(), want);
        }

        #[test]
        fn a_hash_stands_where_it_is_found(hashes in hashes(), other in 0..u128::MAX) {
            let known = KeyHashes::new(hashes.clone());
            let mut sorted = hashes;
            sorted.sort();
            for hash in sorted.iter().copied().chain([other, 0, u128::MAX]) {
                let want = sorted.partition_point(|h| *h < hash)..sorted.partition_point(|h| *h <= hash);
                prop_assert_eq!(known.find(hash), want);
            }
        }
    }

    #[test]
    fn both_halves_of_a_hash_tell_keys_apart() {
        let (hasher, other) = (KeyHasher::default(), KeyHasher::default());
        let halves = |hash: u128| [(hash >> 64) as u64, hash as u64];
        let [high, low] = halves(hasher.hash("a"));
        assert_ne!(high, low);
        for different in [hasher.hash("b"), hasher.hash("a\0"), hasher.hash(""), other.hash("a")] {
            let [h, l] = halves(different);
            assert!(h != high && l != low);
        }
        assert_eq!(hasher.hash("a"), hasher.hash("a"));
    }
}
