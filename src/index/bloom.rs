//! BLOOM: which files are worth reading, by the key range and the filter in the footer (semantics.md §5).

use super::key_table::KeyTable;
use crate::table::base_file::KeyFooter;
use std::cmp::Ordering;

/// Whether the file can hold one of the keys. One key is enough: the file's key column is then read and all keys are
/// probed, so a filter never decides that a key *is* stored. A file without range or filter (Hudi fails on the
/// latter) is read.
pub(super) fn may_hold_any(footer: &KeyFooter, keys: &KeyTable) -> bool {
    keys.positions().map(|position| keys.key(position)).any(|key| may_hold(footer, key))
}

fn may_hold(footer: &KeyFooter, key: &str) -> bool {
    if footer.min_key.as_ref().is_some_and(|min| java_order(key, min).is_lt()) {
        return false;
    }
    if footer.max_key.as_ref().is_some_and(|max| java_order(key, max).is_gt()) {
        return false;
    }
    footer.bloom.as_ref().is_none_or(|bloom| bloom.might_contain(key))
}

/// Java's `String.compareTo`, by UTF-16 code units, in which Hudi keeps the key range: differs from the order of the
/// bytes only for characters outside the BMP (first byte 0xF0 and up, surrogates in Java) against U+E000 – U+FFFF
/// (first byte 0xEE and 0xEF).
fn java_order(a: &str, b: &str) -> Ordering {
    match a.bytes().zip(b.bytes()).find(|(x, y)| x != y) {
        None => a.len().cmp(&b.len()),
        Some((x, y)) if x.min(y) >= 0xEE && (x >= 0xF0) != (y >= 0xF0) => y.cmp(&x),
        Some((x, y)) => x.cmp(&y),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn order_is_that_of_utf16_units(a in "[a\u{7ff}\u{800}\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}]{0,4}",
                                        b in "[a\u{7ff}\u{800}\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}]{0,4}") {
            prop_assert_eq!(java_order(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
        }
    }

    #[test]
    fn a_key_outside_the_range_is_pruned() {
        let range = |min: Option<&str>, max: Option<&str>| KeyFooter {
            bloom: None,
            min_key: min.map(String::from),
            max_key: max.map(String::from),
        };
        for (name, footer, key, want) in [
            ("inside", range(Some("b"), Some("d")), "c", true),
            ("lower bound", range(Some("b"), Some("d")), "b", true),
            ("upper bound", range(Some("b"), Some("d")), "d", true),
            ("below", range(Some("b"), Some("d")), "a", false),
            ("above", range(Some("b"), Some("d")), "da", false),
            ("no range", range(None, None), "a", true),
            ("a smiley is below U+FFFD in Java", range(Some("\u{fffd}"), None), "\u{1f600}", false),
        ] {
            assert_eq!(may_hold(&footer, key), want, "{name}");
        }
    }
}
