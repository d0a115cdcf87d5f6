//! Hadoop's 32-bit MurmurHash 2 and Hudi's chain of it (base-file.md §6.2, §6.3).
//!
//! A key's bit positions come from a *chain*: each hash is seeded with the one before, so that one key's hashes cannot
//! overlap. What does not depend on the seed is mixed once a key, and many keys of one length are hashed in step.

const M: u32 = 0x5bd1_e995;

/// Keys hashed in step: enough independent multiplications to fill the machine's vector units, few enough for registers.
pub(super) const LANES: usize = 16;

/// One key's seed-free part: its words after mixing, and what its last one to three bytes add.
#[derive(Default)]
pub(super) struct Mixed {
    len: u32,
    words: Vec<u32>,
    tail: Option<u32>,
}

impl Mixed {
    /// Takes the place of the key before, so that its memory is used again.
    pub fn set(&mut self, key: &[u8]) {
        let (words, rest) = key.as_chunks::<4>();
        self.words.clear();
        self.words.extend(words.iter().map(|w| mix(*w)));
        self.len = key.len() as u32;
        self.tail = tail(rest);
    }

    pub fn hash(&self, seed: u32) -> u32 {
        let mut h = seed ^ self.len;
        for word in &self.words {
            h = h.wrapping_mul(M) ^ word;
        }
        if let Some(tail) = self.tail {
            h = (h ^ tail).wrapping_mul(M);
        }
        finish(h)
    }

    /// The endless chain that starts from seed 0.
    pub fn chain(&self) -> impl Iterator<Item = u32> {
        let mut h = 0;
        std::iter::repeat_with(move || {
            h = self.hash(h);
            h
        })
    }
}

/// [`Mixed`] of [`LANES`] keys of one length.
#[derive(Default)]
pub(super) struct MixedLanes {
    len: u32,
    words: Vec<[u32; LANES]>,
    tail: Option<[u32; LANES]>,
}

impl MixedLanes {
    /// The keys must have one length.
    pub fn set(&mut self, keys: &[&[u8]; LANES]) {
        let len = keys[0].len();
        debug_assert!(keys.iter().all(|k| k.len() == len));
        let split = keys.map(|k| k.as_chunks::<4>());
        self.words.clear();
        self.words.extend((0..len / 4).map(|i| split.map(|(words, _)| mix(words[i]))));
        self.len = len as u32;
        self.tail = (!len.is_multiple_of(4)).then(|| split.map(|(_, rest)| tail(rest).unwrap_or_default()));
    }

    pub fn hash(&self, seeds: [u32; LANES]) -> [u32; LANES] {
        let mut h = seeds.map(|seed| seed ^ self.len);
        for word in &self.words {
            for (h, word) in h.iter_mut().zip(word) {
                *h = h.wrapping_mul(M) ^ word;
            }
        }
        if let Some(tail) = &self.tail {
            for (h, tail) in h.iter_mut().zip(tail) {
                *h = (*h ^ tail).wrapping_mul(M);
            }
        }
        h.map(finish)
    }
}

#[inline]
fn mix(word: [u8; 4]) -> u32 {
    let k = u32::from_le_bytes(word).wrapping_mul(M);
    (k ^ (k >> 24)).wrapping_mul(M)
}

/// Unlike in the usual MurmurHash, the last byte is the lowest, and bytes keep their sign.
#[inline]
fn tail(rest: &[u8]) -> Option<u32> {
    let signed = |byte: u8| i32::from(byte as i8) as u32;
    match *rest {
        [] => None,
        [a] => Some(signed(a)),
        [a, b] => Some(signed(a) << 8 ^ signed(b)),
        [a, b, c, ..] => Some(signed(a) << 16 ^ signed(b) << 8 ^ signed(c)),
    }
}

#[inline]
fn finish(mut h: u32) -> u32 {
    h ^= h >> 13;
    h = h.wrapping_mul(M);
    h ^ (h >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn hashes_are_hudis() {
        let vectors: Value = serde_json::from_str(include_str!("../../../tests/vectors/murmur.json")).unwrap();
        for case in vectors["cases"].as_array().unwrap() {
            let key = case["key"].as_str().unwrap();
            let mut mixed = Mixed::default();
            mixed.set(key.as_bytes());
            let first = mixed.hash(0);
            let got = [first, mixed.hash(first), mixed.hash(u32::MAX)].map(|h| i64::from(h as i32));
            let want = ["seed0", "seed_prev", "seed_minus1"].map(|name| case[name].as_i64().unwrap());
            assert_eq!(got, want, "{key}");
        }
    }

    proptest! {
        #[test]
        fn keys_in_step_hash_as_keys_alone(
            keys in (0usize..40).prop_flat_map(|len| prop::array::uniform16(prop::collection::vec(any::<u8>(), len))),
            seed: u32,
        ) {
            let mut lanes = MixedLanes::default();
            lanes.set(&std::array::from_fn(|l| keys[l].as_slice()));
            let got = lanes.hash([seed; LANES]);
            let mut mixed = Mixed::default();
            for (lane, key) in keys.iter().enumerate() {
                mixed.set(key);
                prop_assert_eq!(got[lane], mixed.hash(seed));
            }
        }
    }
}
