//! The syntax of `java.util.Properties`: ISO-8859-1, `\uXXXX`, backslash escapes, continuation lines.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Reads key and value pairs; a key that comes twice has its last value, as in Java. The error says which line is wrong.
pub(super) fn parse(bytes: &[u8]) -> Result<BTreeMap<String, String>, String> {
    let text: String = bytes.iter().map(|&b| char::from(b)).collect();
    let text = text.replace("\r\n", "\n");
    let mut pairs = BTreeMap::new();
    let mut lines = text.split(['\n', '\r']).enumerate();
    while let Some((number, line)) = lines.next() {
        let line = line.trim_start_matches(BLANK);
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = line.to_string();
        while ends_in_continuation(&logical) {
            logical.pop();
            let Some((_, more)) = lines.next() else { break };
            logical.push_str(more.trim_start_matches(BLANK));
        }
        let (key, value) = split(&logical);
        let unescaped = |text| unescape(text).map_err(|why| format!("line {}: {why}", number + 1));
        pairs.insert(unescaped(key)?, unescaped(value)?);
    }
    Ok(pairs)
}

/// White space of the format (and nothing else).
const BLANK: [char; 3] = [' ', '\t', '\u{c}'];

fn ends_in_continuation(line: &str) -> bool {
    line.bytes().rev().take_while(|&b| b == b'\\').count() % 2 == 1
}

/// The key ends at the first unescaped `=`, `:` or blank; blanks and one separator after it belong to neither.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|c| {
        let ends = !escaped && (c == '=' || c == ':' || BLANK.contains(&c));
        escaped = !escaped && c == '\\';
        ends
    });
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(BLANK);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, rest.trim_start_matches(BLANK))
}

fn unescape(text: &str) -> Result<String, String> {
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' => match chars.next() {
                Some('u') => {
                    let digits: String = chars.by_ref().take(4).collect();
                    let unit = (digits.len() == 4).then(|| u16::from_str_radix(&digits, 16).ok()).flatten();
                    units.push(unit.ok_or_else(|| format!("\\u{digits} is no character"))?);
                    continue;
                }
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\u{c}',
                Some(other) => other,
                None => break,
            },
            c => c,
        };
        units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
    }
    Ok(String::from_utf16_lossy(&units))
}

/// One line a pair, in the order of the keys.
pub(super) fn write(out: &mut String, pairs: &BTreeMap<String, String>) {
    for (key, value) in pairs {
        escape(out, key, true);
        out.push('=');
        escape(out, value, false);
        out.push('\n');
    }
}

/// Blanks are escaped throughout a key, but only at the start of a value (`Properties.saveConvert`).
fn escape(out: &mut String, text: &str, is_key: bool) {
    for (i, c) in text.chars().enumerate() {
        match c {
            ' ' if is_key || i == 0 => out.push_str("\\ "),
            '\\' | '=' | ':' | '#' | '!' => out.extend(['\\', c]),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04X}").expect("a String takes all text");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(of: &[(&str, &str)]) -> BTreeMap<String, String> {
        of.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
    }

    #[test]
    fn reads_what_java_reads() {
        for (name, text, want) in [
            ("plain", "a=b\nc=d\n", pairs(&[("a", "b"), ("c", "d")])),
            ("comments and blank lines", "#x=1\n!y=2\n\n  # z\n a=b", pairs(&[("a", "b")])),
            (
                "separators",
                "a:1\nb 2\nc = 3\nd\t:\t4\ne",
                pairs(&[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"), ("e", "")]),
            ),
            ("a value keeps its colons and trailing blanks", "u=s3://x:1=2 \n", pairs(&[("u", "s3://x:1=2 ")])),
            ("escaped separators in the key", "a\\=b\\:c\\ d=e", pairs(&[("a=b:c d", "e")])),
            ("continuation", "a=b,\\\n    c\\\\\nd=e", pairs(&[("a", "b,c\\"), ("d", "e")])),
            ("line ends of windows", "a=1,\\\r\n  2\r\nb=2\r\n", pairs(&[("a", "1,2"), ("b", "2")])),
            ("characters", "a=\\u00e4\\t\\z\\uD83D\\uDE00", pairs(&[("a", "ä\tz😀")])),
            ("last one counts", "a=1\na=2", pairs(&[("a", "2")])),
            ("empty value", "hoodie.database.name=\n", pairs(&[("hoodie.database.name", "")])),
            ("a schema", "s={\"type\"\\:\"record\"}", pairs(&[("s", "{\"type\":\"record\"}")])),
        ] {
            assert_eq!(parse(text.as_bytes()), Ok(want), "{name}");
        }
        assert_eq!(parse(b"a=\xe4"), Ok(pairs(&[("a", "ä")])), "bytes are ISO-8859-1");
        assert_eq!(parse(b"a=1\nb=\\u00g0"), Err("line 2: \\u00g0 is no character".to_string()));
    }

    #[test]
    fn writes_as_java_writes() {
        let mut out = String::new();
        write(&mut out, &pairs(&[("k e=y", "  a:b=#!\\ü\n"), ("z", "")]));
        assert_eq!(out, "k\\ e\\=y=\\  a\\:b\\=\\#\\!\\\\\\u00FC\\n\nz=\n");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(map in proptest::collection::btree_map(".{1,12}", ".{0,24}", 0..6)) {
            let mut out = String::new();
            write(&mut out, &map);
            prop_assert!(out.is_ascii());
            prop_assert_eq!(parse(out.as_bytes()), Ok(map));
        }
    }
}
