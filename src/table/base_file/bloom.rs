//! Hudi's bloom filter of record keys, SIMPLE or DYNAMIC_V0, to the byte (base-file.md §6).

use arrow::array::{Array, StringArray};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::BloomOptions;
use super::murmur::{LANES, Mixed, MixedLanes};

/// First field of every serialised filter since Hadoop gave them a hash type.
const VERSION: i32 = -1;
const HASH_MURMUR: u8 = 1;
/// Words in a cache line of x86-64, and of most others.
const LINE_WORDS: usize = 8;
/// More positions than any sane error rate asks for (1e-9: 30); beyond it the bytes are not a filter.
const MAX_HASHES: u32 = 1024;

/// Hudi's bloom filter (SIMPLE or DYNAMIC_V0), to the byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BloomFilter {
    shape: Shape,
    /// One plain filter each; SIMPLE has one. A key is in the filter if it is in any.
    rows: Vec<Row>,
    /// Of DYNAMIC_V0: keys for which a row is made, and keys added since the last row was begun.
    dynamic: Option<Counts>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    bits: u32,
    hashes: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    entries: u32,
    current: u32,
}

/// Bit i is bit i mod 64 of word i / 64, which as little-endian bytes is Hudi's order.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row(Vec<u64>);

impl Shape {
    /// `BloomFilterUtils.getBitSize` and `getNumHashes` (Hudi 0.15).
    fn new(entries: u32, fpp: f64) -> Self {
        let ln2 = std::f64::consts::LN_2;
        let entries = f64::from(entries.max(1));
        let bits = (entries * (-fpp.ln() / (ln2 * ln2))).ceil() as i32;
        let hashes = (ln2 * f64::from(bits) / entries).ceil() as i32;
        Shape { bits: bits.max(1) as u32, hashes: hashes.max(1) as u32 }
    }

    fn bytes(self) -> usize {
        self.bits.div_ceil(8) as usize
    }

    fn empty_row(self) -> Row {
        Row(vec![0; self.bits.div_ceil(64) as usize])
    }

    /// Java's remainder of the signed hash, without its sign.
    #[inline]
    fn position(self, hash: u32) -> usize {
        (hash as i32).unsigned_abs().wrapping_rem(self.bits) as usize
    }
}

impl Row {
    #[inline]
    fn set(&mut self, at: usize) {
        self.0[at >> 6] |= 1 << (at & 63);
    }

    #[inline]
    fn has(&self, at: usize) -> bool {
        self.0[at >> 6] & (1 << (at & 63)) != 0
    }

    /// Brings it near the processor from one end to the other: what is written between two calls displaces it, and its bits would
    /// come one by one (measured: keys of a bulk insert into ten files are added in a third less time).
    fn fetch(&self) {
        std::hint::black_box(self.0.iter().step_by(LINE_WORDS).fold(0, |all, word| all | word));
    }
}

impl BloomFilter {
    /// No false negatives: `false` means that the file does not have the key.
    pub fn might_contain(&self, key: &str) -> bool {
        let mut mixed = Mixed::default();
        mixed.set(key.as_bytes());
        let hashes = self.shape.hashes as usize;
        self.rows.iter().any(|row| mixed.chain().take(hashes).all(|h| row.has(self.shape.position(h))))
    }

    /// Bytes of memory its bits hold.
    pub(super) fn memory(&self) -> usize {
        self.rows.iter().map(|row| row.0.len() * size_of::<u64>()).sum()
    }

    /// Whether it is a DYNAMIC_V0; the footer says so beside the filter.
    pub(super) fn is_dynamic(&self) -> bool {
        self.dynamic.is_some()
    }

    /// The text of the footer.
    pub(super) fn serialize(&self) -> String {
        let mut out = Vec::with_capacity(self.rows.len() * (self.shape.bytes() + 13) + 25);
        if let Some(Counts { entries, current }) = self.dynamic {
            self.write_header(&mut out);
            for n in [entries, current, self.rows.len() as u32] {
                out.extend(n.to_be_bytes());
            }
        }
        for row in &self.rows {
            self.write_header(&mut out);
            let end = out.len() + self.shape.bytes();
            out.extend(row.0.iter().flat_map(|word| word.to_le_bytes()));
            out.truncate(end);
        }
        STANDARD.encode(out)
    }

    fn write_header(&self, out: &mut Vec<u8>) {
        out.extend(VERSION.to_be_bytes());
        out.extend(self.shape.hashes.to_be_bytes());
        out.push(HASH_MURMUR);
        out.extend(self.shape.bits.to_be_bytes());
    }

    /// Reads the text of a footer. The error says what is wrong with it.
    pub(super) fn parse(text: &str, dynamic: bool) -> Result<Self, String> {
        let bytes = STANDARD.decode(text.trim()).map_err(|e| format!("not base64: {e}"))?;
        let mut bytes = bytes.as_slice();
        if !dynamic {
            let shape = read_header(&mut bytes)?;
            let rows = vec![read_row(&mut bytes, shape)?];
            return at_end(bytes, BloomFilter { shape, rows, dynamic: None });
        }
        let shape = read_header(&mut bytes)?;
        let entries = read_u32(&mut bytes)?;
        let current = read_u32(&mut bytes)?;
        let count = read_u32(&mut bytes)? as usize;
        if count == 0 {
            return Err("it has no rows".into());
        }
        if count.saturating_mul(shape.bytes()) > bytes.len() {
            return Err(format!("{count} rows do not fit into {} bytes", bytes.len()));
        }
        let mut rows = Vec::with_capacity(count);
        for _ in 0..count {
            if read_header(&mut bytes)? != shape {
                return Err("its rows differ in size".into());
            }
            rows.push(read_row(&mut bytes, shape)?);
        }
        at_end(bytes, BloomFilter { shape, rows, dynamic: Some(Counts { entries, current }) })
    }
}

fn at_end(rest: &[u8], filter: BloomFilter) -> Result<BloomFilter, String> {
    if rest.is_empty() { Ok(filter) } else { Err(format!("{} bytes too many", rest.len())) }
}

fn read_header(bytes: &mut &[u8]) -> Result<Shape, String> {
    let version = read_u32(bytes)? as i32;
    if version > 0 {
        return Err("a filter in the form without a hash type (Jenkins hash) is not supported".into());
    }
    if version != VERSION {
        return Err(format!("unknown version {version}"));
    }
    let hashes = read_u32(bytes)?;
    let hash_type = *bytes.split_off_first().ok_or("it ends too early")?;
    let bits = read_u32(bytes)?;
    if hash_type != HASH_MURMUR {
        return Err(format!("hash type {hash_type} is not supported, only Murmur (1)"));
    }
    if bits == 0 || bits > i32::MAX as u32 || hashes == 0 || hashes > MAX_HASHES {
        return Err(format!("{bits} bits with {hashes} hashes a key are no filter"));
    }
    Ok(Shape { bits, hashes })
}

fn read_row(bytes: &mut &[u8], shape: Shape) -> Result<Row, String> {
    let bits = bytes.split_off(..shape.bytes()).ok_or("it ends too early")?;
    let mut row = shape.empty_row();
    for (word, bytes) in row.0.iter_mut().zip(bits.chunks(8)) {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(padded);
    }
    Ok(row)
}

fn read_u32(bytes: &mut &[u8]) -> Result<u32, String> {
    let bytes = bytes.split_off(..4).and_then(|b| b.try_into().ok()).ok_or("it ends too early")?;
    Ok(u32::from_be_bytes(bytes))
}

/// Fills a filter, row by row as Hudi's `InternalDynamicBloomFilter` does (base-file.md §6.5).
pub struct BloomBuilder {
    filter: BloomFilter,
    /// Of DYNAMIC_V0: no row is begun once there are rows for that many keys.
    max_entries: u64,
    /// All rows are begun and have their share: how many keys came since. They go to the rows in turn, save that the
    /// first does not count: it and the second both go to the first row.
    full: Option<usize>,
    one: Mixed,
    lanes: MixedLanes,
}

impl BloomBuilder {
    pub fn new(options: &BloomOptions) -> Self {
        let shape = Shape::new(options.num_entries, options.fpp);
        let counts = Counts { entries: options.num_entries.max(1), current: 0 };
        BloomBuilder {
            filter: BloomFilter { shape, rows: vec![shape.empty_row()], dynamic: options.dynamic.then_some(counts) },
            max_entries: u64::from(options.dynamic_max_entries),
            full: None,
            one: Mixed::default(),
            lanes: MixedLanes::default(),
        }
    }

    /// Goes on with a filter where it was left: what is added next makes the bits that it would have made before the
    /// filter was written down. `None`: it is of another shape than `options` ask for.
    pub fn resume(filter: BloomFilter, options: &BloomOptions) -> Option<Self> {
        let fresh = BloomBuilder::new(options);
        let entries = |filter: &BloomFilter| filter.dynamic.map(|counts| counts.entries);
        if filter.shape != fresh.filter.shape || entries(&filter) != entries(&fresh.filter) {
            return None;
        }
        // Keys beyond a row's share are counted only once no row may be begun any more.
        let full =
            filter.dynamic.and_then(|counts| counts.current.checked_sub(counts.entries)).filter(|since| *since > 0);
        Some(BloomBuilder { full: full.map(|since| since as usize), filter, ..fresh })
    }

    /// Adds keys, none of them null, in order.
    pub fn add_all(&mut self, keys: &StringArray) {
        let mut from = 0;
        while from < keys.len() {
            let count = self.room().min(keys.len() - from);
            match self.full {
                None => {
                    let last = self.filter.rows.len() - 1;
                    self.set_bits(keys, from..from + count, |_| last);
                }
                Some(since) => {
                    let rows = self.filter.rows.len();
                    self.set_bits(keys, from..from + count, |i| (since + i - from).saturating_sub(1) % rows);
                    self.full = Some(since + count);
                }
            }
            if let Some(counts) = &mut self.filter.dynamic {
                counts.current = counts.current.saturating_add(count as u32);
            }
            from += count;
        }
    }

    /// How many keys go where the next one goes, beginning a row if it is time to.
    fn room(&mut self) -> usize {
        let Some(counts) = &mut self.filter.dynamic else { return usize::MAX };
        if self.full.is_some() {
            return usize::MAX;
        }
        if counts.current < counts.entries {
            return (counts.entries - counts.current) as usize;
        }
        if self.filter.rows.len() as u64 * u64::from(counts.entries) < self.max_entries {
            self.filter.rows.push(self.filter.shape.empty_row());
            counts.current = 0;
            return counts.entries as usize;
        }
        self.full = Some(0);
        usize::MAX
    }

    fn set_bits(&mut self, keys: &StringArray, range: std::ops::Range<usize>, row_of: impl Fn(usize) -> usize) {
        let BloomFilter { shape, rows, .. } = &mut self.filter;
        let mut at = range.start;
        if range.len() * shape.hashes as usize > rows[row_of(at)].0.len() {
            rows[row_of(at)].fetch();
        }
        while at < range.end {
            let len = keys.value_length(at);
            if at + LANES <= range.end && (1..LANES).all(|l| keys.value_length(at + l) == len) {
                self.lanes.set(&std::array::from_fn(|l| keys.value(at + l).as_bytes()));
                let mut hashes = [0; LANES];
                for _ in 0..shape.hashes {
                    hashes = self.lanes.hash(hashes);
                    for (lane, hash) in hashes.into_iter().enumerate() {
                        rows[row_of(at + lane)].set(shape.position(hash));
                    }
                }
                at += LANES;
            } else {
                self.one.set(keys.value(at).as_bytes());
                let row = &mut rows[row_of(at)];
                for hash in self.one.chain().take(shape.hashes as usize) {
                    row.set(shape.position(hash));
                }
                at += 1;
            }
        }
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.filter.rows.iter().map(|row| row.0.len() * 8).sum()
    }

    pub fn finish(self) -> BloomFilter {
        self.filter
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn options(num_entries: u32, fpp: f64, dynamic_max_entries: Option<u32>) -> BloomOptions {
        BloomOptions {
            num_entries,
            fpp,
            dynamic: dynamic_max_entries.is_some(),
            dynamic_max_entries: dynamic_max_entries.unwrap_or(0),
        }
    }

    fn hex(text: &str) -> String {
        STANDARD.decode(text).unwrap().iter().map(|b| format!("{b:02x}")).collect()
    }

    fn serialized(builder: &BloomBuilder) -> String {
        builder.filter.serialize()
    }

    #[test]
    fn positions_are_hudis() {
        let text = include_str!("../../../tests/vectors/bloom_hash_positions.json");
        let vectors: Value = serde_json::from_str(text).unwrap();
        for case in vectors["cases"].as_array().unwrap() {
            let number = |name: &str| case[name].as_u64().unwrap() as u32;
            let shape = Shape { bits: number("vectorSize"), hashes: number("nbHash") };
            let mut mixed = Mixed::default();
            mixed.set(case["key"].as_str().unwrap().as_bytes());
            let got: Vec<_> = mixed.chain().take(shape.hashes as usize).map(|h| shape.position(h) as u64).collect();
            let want: Vec<_> = case["bits"].as_array().unwrap().iter().map(|b| b.as_u64().unwrap()).collect();
            assert_eq!(got, want, "{case}");
        }
    }

    #[test]
    fn filters_are_hudis_after_every_key() {
        let vectors: Value = serde_json::from_str(include_str!("../../../tests/vectors/bloom.json")).unwrap();
        for case in vectors["filters"].as_array().unwrap() {
            let max = case["dynamicMaxEntries"].as_u64().map(|n| n as u32);
            let options = options(case["numEntries"].as_u64().unwrap() as u32, case["fpp"].as_f64().unwrap(), max);
            let keys: Vec<_> = case["added"].as_array().unwrap().iter().map(|k| k.as_str().unwrap()).collect();
            let mut bulk = BloomBuilder::new(&options);
            bulk.add_all(&StringArray::from(keys.clone()));
            let Some(want) = case["serialized"].as_str() else {
                check_large(&bulk.finish(), case);
                continue;
            };
            assert_eq!(serialized(&bulk), want, "{case}");

            let mut stepwise = BloomBuilder::new(&options);
            for (i, key) in keys.iter().enumerate() {
                stepwise.add_all(&StringArray::from(vec![*key]));
                if let Some(step) = case["steps"].get(i) {
                    assert_eq!(hex(&serialized(&stepwise)), step["raw_hex"].as_str().unwrap(), "after {key}");
                }
            }
            let filter = BloomFilter::parse(want, max.is_some()).unwrap();
            assert_eq!(filter, stepwise.finish());
            assert!(keys.iter().all(|key| filter.might_contain(key)));
        }
    }

    /// Of a filter of the default size the vectors have the header, the length and the bits.
    fn check_large(filter: &BloomFilter, case: &Value) {
        let text = filter.serialize();
        let header = case["raw_header_hex"].as_str().unwrap();
        assert_eq!(hex(&text)[..header.len()], *header);
        assert_eq!(text.len() as u64, case["serialized_length"].as_u64().unwrap());
        let bits: Vec<_> = (0..filter.shape.bits as usize).filter(|&at| filter.rows[0].has(at)).collect();
        let want: Vec<_> =
            case["set_bits_of_row0"].as_array().unwrap().iter().map(|b| b.as_u64().unwrap() as usize).collect();
        assert_eq!(bits, want);
    }

    #[test]
    fn the_defaults_have_hudis_size() {
        assert_eq!(Shape::new(60_000, 1e-9), Shape { bits: 2_587_966, hashes: 30 });
        assert_eq!(serialized(&BloomBuilder::new(&options(60_000, 1e-9, Some(100_000)))).len(), 431_380);
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        let good = serialized(&BloomBuilder::new(&options(10, 0.01, None)));
        let bytes = STANDARD.decode(&good).unwrap();
        let changed = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            STANDARD.encode(bytes)
        };
        for (text, part) in [
            ("%".to_owned(), "base64"),
            (String::new(), "too early"),
            (STANDARD.encode(&bytes[..bytes.len() - 1]), "too early"),
            (STANDARD.encode([&bytes[..], &[0]].concat()), "1 bytes too many"),
            (changed(0, 0), "Jenkins"),
            (changed(3, 0xfe), "unknown version -2"),
            (changed(8, 0), "hash type 0"),
            (changed(4, 0x70), "no filter"),
            (changed(9, 0x80), "no filter"),
        ] {
            let error = BloomFilter::parse(&text, false).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(BloomFilter::parse(&good, true).is_err());
    }

    #[test]
    fn only_a_filter_of_the_same_shape_is_resumed() {
        let written = options(20, 0.01, Some(60));
        let filter = || BloomBuilder::new(&written).finish();
        assert!(BloomBuilder::resume(filter(), &written).is_some());
        for other in [options(20, 0.01, None), options(21, 0.01, Some(60)), options(20, 0.001, Some(60))] {
            assert!(BloomBuilder::resume(filter(), &other).is_none(), "{other:?}");
        }
    }

    proptest! {
        /// A filter that is written down and resumed before each batch is the one that is filled at once.
        #[test]
        fn resumed_is_filled_at_once(
            batches in prop::collection::vec(prop::collection::vec("[a-z]{1,3}", 0..50), 1..6),
            entries in 1u32..40,
            max in prop::option::of(0u32..120),
        ) {
            let options = options(entries, 0.001, max);
            let mut whole = BloomBuilder::new(&options);
            let mut text = serialized(&whole);
            for keys in &batches {
                whole.add_all(&StringArray::from_iter_values(keys));
                let filter = BloomFilter::parse(&text, max.is_some()).unwrap();
                let mut resumed = BloomBuilder::resume(filter, &options).expect("its own shape");
                resumed.add_all(&StringArray::from_iter_values(keys));
                text = serialized(&resumed);
                prop_assert_eq!(&text, &serialized(&whole));
            }
        }

        /// Any cut into batches gives the bytes that adding key by key gives, through growth and beyond it.
        #[test]
        fn bulk_is_one_by_one(
            batches in prop::collection::vec(prop::collection::vec("k[0-9]{1,2}|[a-z]{9}|[a-zü]{1,12}", 0..80), 1..4),
            entries in 1u32..40,
            max in prop::option::of(0u32..120),
        ) {
            let options = options(entries, 0.001, max);
            let (mut bulk, mut single) = (BloomBuilder::new(&options), BloomBuilder::new(&options));
            for keys in &batches {
                bulk.add_all(&StringArray::from_iter_values(keys));
                keys.iter().for_each(|key| single.add_all(&StringArray::from_iter_values([key])));
            }
            let text = serialized(&bulk);
            prop_assert_eq!(&text, &serialized(&single));
            let filter = BloomFilter::parse(&text, max.is_some()).unwrap();
            prop_assert!(batches.iter().flatten().all(|key| filter.might_contain(key)));
        }
    }
}
