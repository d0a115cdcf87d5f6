//! Smallest and largest record key of a file, in Java's order.

use std::cmp::Ordering;

use arrow::array::{Array, StringArray};

/// Nothing until the first key.
#[derive(Debug, Default)]
pub struct KeyRange(Option<(String, String)>);

impl KeyRange {
    pub fn of(min: String, max: String) -> KeyRange {
        KeyRange(Some((min, max)))
    }

    /// Widens the range by keys, none of them null.
    pub fn add_all(&mut self, keys: &StringArray) {
        let values = || (0..keys.len()).map(|i| keys.value(i));
        let by_java = |a: &&str, b: &&str| java_order(a, b);
        let (Some(min), Some(max)) = (values().min_by(by_java), values().max_by(by_java)) else { return };
        match &mut self.0 {
            None => self.0 = Some((min.to_owned(), max.to_owned())),
            Some((low, high)) => {
                if java_order(min, low).is_lt() {
                    min.clone_into(low);
                }
                if java_order(max, high).is_gt() {
                    max.clone_into(high);
                }
            }
        }
    }

    pub fn into_inner(self) -> Option<(String, String)> {
        self.0
    }
}

/// `String.compareTo`: by UTF-16 code units. It differs from the order of UTF-8 bytes where a character outside the BMP
/// (first byte from 0xF0; a surrogate in UTF-16) meets one of U+E000–U+FFFF (0xEE, 0xEF).
fn java_order(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    match a.iter().zip(b).find(|(x, y)| x != y) {
        None => a.len().cmp(&b.len()),
        Some((&x, &y)) if x >= 0xee && y >= 0xee => (x < 0xf0, x).cmp(&(y < 0xf0, y)),
        Some((x, y)) => x.cmp(y),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_range_widens() {
        let mut range = KeyRange::default();
        range.add_all(&StringArray::from(Vec::<&str>::new()));
        assert!(range.0.is_none());
        for keys in [vec!["m", "k9", "k10"], vec!["k2"], vec!["\u{ffff}", "z"], vec!["\u{10000}", "a"]] {
            range.add_all(&StringArray::from(keys));
        }
        assert_eq!(range.into_inner(), Some(("a".to_owned(), "\u{ffff}".to_owned())));

        let mut range = KeyRange::of("k2".to_owned(), "m".to_owned());
        range.add_all(&StringArray::from(vec!["k3", "n"]));
        assert_eq!(range.into_inner(), Some(("k2".to_owned(), "n".to_owned())));
    }

    proptest! {
        #[test]
        fn order_is_that_of_utf16(a in "[a\u{e000}\u{ffff}\u{10000}é]{0,4}", b in "[a\u{e000}\u{ffff}\u{10000}é]{0,4}") {
            prop_assert_eq!(java_order(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
        }
    }
}
