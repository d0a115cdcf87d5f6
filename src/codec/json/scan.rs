//! A cursor over one record's text: strict JSON (RFC 8259), no tokens, no tree.

use super::decimal::Decimal;
use super::fail::{Fail, Fallible, Why};
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write;

/// Levels of objects and arrays, ignored ones included: a record must not be able to overflow the stack.
pub(crate) const MAX_DEPTH: usize = 128;

#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// Some byte of the record is below 0x20, so strings must be searched for what JSON wants escaped.
    controls: bool,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str, at: usize) -> Cursor<'a> {
        // A fold and not `any`: this way the compiler makes it a few vector instructions.
        let controls = text.bytes().fold(false, |found, b| found | (b < b' '));
        Cursor { text, at, depth: 0, controls }
    }

    /// Where the cursor stands.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Goes back to where the cursor was at this depth.
    pub(crate) fn back_to(&mut self, at: usize) {
        self.at = at;
    }

    /// The next byte as it stands, white space or not.
    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next byte that is no white space.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.byte() {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                other => return other,
            }
        }
    }

    /// Steps over `want` if it comes next.
    #[inline]
    pub(crate) fn eat(&mut self, want: u8) -> bool {
        let hit = self.byte() == Some(want) || self.peek() == Some(want);
        self.at += hit as usize;
        hit
    }

    /// Steps over `bytes` if exactly they come next, white space before them allowed; they must be whole characters.
    #[inline]
    pub(crate) fn eat_all(&mut self, bytes: &[u8]) -> bool {
        if self.byte() == Some(b' ') {
            self.peek();
        }
        let hit = self.text.as_bytes()[self.at..].starts_with(bytes);
        self.at += if hit { bytes.len() } else { 0 };
        hit
    }

    /// The next thing is not `what`.
    #[cold]
    pub(crate) fn expected(&mut self, what: &str) -> Box<Fail> {
        self.peek();
        let why = match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(found) => format!("expected {what}, found {found:?}"),
            None => format!("expected {what}, but the text ends"),
        };
        Box::new(Fail::Malformed { why: Why::Owned(why), at: self.at })
    }

    #[cold]
    fn malformed(&self, why: &'static str, at: usize) -> Box<Fail> {
        Box::new(Fail::Malformed { why: Why::Borrowed(why), at })
    }

    /// Nothing but white space is left.
    pub(crate) fn end(&mut self) -> Fallible {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("nothing after the object")),
        }
    }

    /// Opens the object or array that starts here; `false`: it is empty, and already closed.
    #[inline]
    pub(crate) fn open(&mut self, open: u8, close: u8) -> Fallible<bool> {
        if !self.eat(open) {
            return Err(self.expected(if open == b'{' { "an object" } else { "an array" }));
        }
        if self.eat(close) {
            return Ok(false);
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.malformed("more than 128 levels of nesting", self.at - 1));
        }
        Ok(true)
    }

    /// After an entry: `true` when another follows, `false` when the object or array is closed.
    #[inline]
    pub(crate) fn more(&mut self, close: u8) -> Fallible<bool> {
        if self.eat(b',') {
            return Ok(true);
        }
        if self.eat(close) {
            self.depth -= 1;
            return Ok(false);
        }
        Err(self.expected(if close == b'}' { "',' or '}'" } else { "',' or ']'" }))
    }

    /// A name and the colon after it.
    pub(crate) fn name(&mut self) -> Fallible<Cow<'a, str>> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a name in quotes"));
        }
        let name = self.string()?;
        if !self.eat(b':') {
            return Err(self.expected("':'"));
        }
        Ok(name)
    }

    pub(crate) fn literal(&mut self, word: &str) -> Fallible {
        if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(());
        }
        Err(self.expected("a value"))
    }

    /// The string that starts here (the caller has seen its quote).
    #[inline]
    pub(crate) fn string(&mut self) -> Fallible<Cow<'a, str>> {
        if let Some(plain) = self.plain_string()? {
            return Ok(Cow::Borrowed(plain));
        }
        let mut out = String::new();
        self.escaped_string(&mut out)?;
        Ok(Cow::Owned(out))
    }

    /// Appends the string that starts here to `out`; after an error `out` may hold a part of it.
    #[inline]
    pub(crate) fn string_into(&mut self, out: &mut String) -> Fallible {
        match self.plain_string()? {
            Some(plain) => out.push_str(plain),
            None => self.escaped_string(out)?,
        }
        Ok(())
    }

    /// The string that starts here if it holds no escape; else `None`, and the cursor stays.
    #[inline]
    fn plain_string(&mut self) -> Fallible<Option<&'a str>> {
        let start = self.at + 1;
        let Some(len) = memchr::memchr2(b'"', b'\\', &self.text.as_bytes()[start..]) else {
            return Err(self.malformed("a string without an end", self.at));
        };
        let end = start + len;
        if self.text.as_bytes()[end] == b'\\' {
            return Ok(None);
        }
        let plain = &self.text[start..end];
        if self.controls {
            self.refuse_controls(plain, start)?;
        }
        self.at = end + 1;
        Ok(Some(plain))
    }

    fn refuse_controls(&self, part: &str, start: usize) -> Fallible {
        match part.bytes().position(|b| b < b' ') {
            Some(i) => Err(self.malformed("a control character in a string", start + i)),
            None => Ok(()),
        }
    }

    #[cold]
    fn escaped_string(&mut self, out: &mut String) -> Fallible {
        let bytes = self.text.as_bytes();
        let open = self.at;
        self.at += 1;
        loop {
            let Some(len) = memchr::memchr2(b'"', b'\\', &bytes[self.at..]) else {
                return Err(self.malformed("a string without an end", open));
            };
            let part = &self.text[self.at..self.at + len];
            self.refuse_controls(part, self.at)?;
            out.push_str(part);
            self.at += len + 1;
            if bytes[self.at - 1] == b'"' {
                return Ok(());
            }
            out.push(self.escape()?);
        }
    }

    /// The character that the escape after a backslash stands for.
    fn escape(&mut self) -> Fallible<char> {
        let at = self.at - 1;
        let kind = self.byte();
        self.at += 1;
        Ok(match kind {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let unit = self.hex(at)?;
                let code = match unit {
                    0xD800..=0xDBFF if self.text.as_bytes()[self.at..].starts_with(b"\\u") => {
                        self.at += 2;
                        let low = self.hex(at)?;
                        match low {
                            0xDC00..=0xDFFF => 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00),
                            _ => unit,
                        }
                    }
                    _ => unit,
                };
                // Half of a surrogate pair is the only code that is no character.
                char::from_u32(code).ok_or_else(|| self.malformed("half of a surrogate pair", at))?
            }
            _ => return Err(self.malformed("an unknown escape", at)),
        })
    }

    fn hex(&mut self, escape: usize) -> Fallible<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).unwrap_or_default();
        let mut code = 0;
        for digit in digits {
            match char::from(*digit).to_digit(16) {
                Some(d) => code = code * 16 + d,
                None => return Err(self.malformed("an unknown escape", escape)),
            }
        }
        if digits.len() < 4 {
            return Err(self.malformed("an unknown escape", escape));
        }
        self.at += 4;
        Ok(code)
    }

    /// A run of digits; `None`: there is none.
    #[inline]
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    /// The text of the number that starts here.
    pub(crate) fn number(&mut self) -> Fallible<&'a str> {
        let start = self.at;
        self.at += (self.byte() == Some(b'-')) as usize;
        match self.byte() {
            Some(b'0') => self.at += 1,
            _ => self.digits().ok_or_else(|| self.malformed("a number without digits", start))?,
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits().ok_or_else(|| self.malformed("a number that ends in a point", start))?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += matches!(self.byte(), Some(b'+' | b'-')) as usize;
            self.digits().ok_or_else(|| self.malformed("a number without digits in its exponent", start))?;
        }
        Ok(&self.text[start..self.at])
    }

    /// The whole number that starts here, if it is one of at most 18 digits and has no fraction or exponent;
    /// else `None`, and the cursor stays.
    #[inline]
    pub(crate) fn short_integer(&mut self) -> Option<i64> {
        let bytes = self.text.as_bytes();
        let negative = self.byte() == Some(b'-');
        let start = self.at + negative as usize;
        let mut at = start;
        let mut value = 0i64;
        while let Some(digit @ b'0'..=b'9') = bytes.get(at)
            && at - start < 19
        {
            value = value.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
            at += 1;
        }
        let plain = match at - start {
            1..=18 => bytes[start] != b'0' || at - start == 1,
            _ => false,
        };
        if !plain || matches!(bytes.get(at), Some(b'.' | b'e' | b'E')) {
            return None;
        }
        self.at = at;
        Some(if negative { -value } else { value })
    }

    /// The double that starts here: the nearest one. `None`: no JSON number, or too large, and the cursor stays.
    ///
    /// The end and the value are found in one go; `fast-float2` takes more than JSON does, which is looked at after.
    #[inline]
    pub(crate) fn float<F: fast_float2::FastFloat + Into<f64> + Copy>(&mut self) -> Option<F> {
        let rest = &self.text.as_bytes()[self.at..];
        let (value, len) = fast_float2::parse_partial::<F, _>(rest).ok()?;
        let token = &rest[..len];
        let unsigned = token.strip_prefix(b"-").unwrap_or(token);
        let whole = unsigned.iter().take_while(|b| b.is_ascii_digit()).count();
        let strict = match whole {
            0 => false,
            1 => true,
            _ => unsigned[0] != b'0',
        };
        let fraction = unsigned.get(whole) != Some(&b'.') || unsigned.get(whole + 1).is_some_and(u8::is_ascii_digit);
        if !strict || !fraction || !value.into().is_finite() {
            return None;
        }
        self.at += len;
        Some(value)
    }

    /// Steps over any value, which must be well formed all the same.
    pub(crate) fn skip(&mut self) -> Fallible {
        match self.peek() {
            Some(b'"') => _ = self.string()?,
            Some(b'{') => {
                let mut more = self.open(b'{', b'}')?;
                while more {
                    self.name()?;
                    self.skip()?;
                    more = self.more(b'}')?;
                }
            }
            Some(b'[') => {
                let mut more = self.open(b'[', b']')?;
                while more {
                    self.skip()?;
                    more = self.more(b']')?;
                }
            }
            Some(b'-' | b'0'..=b'9') => _ = self.number()?,
            Some(b't') => self.literal("true")?,
            Some(b'f') => self.literal("false")?,
            Some(b'n') => self.literal("null")?,
            _ => return Err(self.expected("a value")),
        }
        Ok(())
    }

    /// The text of the value that starts here; when it is malformed, the rest of the record.
    pub(crate) fn value_text(mut self) -> &'a str {
        let from = self.at;
        match self.skip() {
            Ok(()) => &self.text[from..self.at],
            Err(_) => &self.text[from..],
        }
    }

    /// Appends any value as the text that Hudi 1.0.2 puts into a string field: JSON without blanks, fractions as
    /// `BigDecimal.toString` has them, of a name that comes twice the last value in the first one's place.
    /// After an error `out` may hold a part of it.
    pub(crate) fn compact(&mut self, out: &mut String) -> Fallible {
        match self.peek() {
            Some(b'"') => quote(&self.string()?, out),
            Some(b'{') => {
                let mut entries: Vec<(Cow<'a, str>, String)> = Vec::new();
                let mut places: HashMap<Cow<'a, str>, usize> = HashMap::new();
                let mut more = self.open(b'{', b'}')?;
                while more {
                    let name = self.name()?;
                    let mut value = String::new();
                    self.compact(&mut value)?;
                    match places.entry(name.clone()) {
                        Entry::Occupied(place) => entries[*place.get()].1 = value,
                        Entry::Vacant(place) => {
                            place.insert(entries.len());
                            entries.push((name, value));
                        }
                    }
                    more = self.more(b'}')?;
                }
                out.push('{');
                for (i, (name, value)) in entries.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { "," });
                    quote(name, out);
                    out.push(':');
                    out.push_str(value);
                }
                out.push('}');
            }
            Some(b'[') => {
                out.push('[');
                let mut more = self.open(b'[', b']')?;
                while more {
                    self.compact(out)?;
                    more = self.more(b']')?;
                    out.push_str(if more { "," } else { "" });
                }
                out.push(']');
            }
            Some(b'-' | b'0'..=b'9') => {
                let start = self.at;
                let text = self.number()?;
                let number = Decimal::parse(text).and_then(|number| number.java_text(out));
                number.ok_or_else(|| self.malformed("a number whose exponent has too many digits", start))?;
            }
            Some(b't' | b'f' | b'n') => {
                let start = self.at;
                self.skip()?;
                out.push_str(&self.text[start..self.at]);
            }
            _ => return Err(self.expected("a value")),
        }
        Ok(())
    }
}

/// `text` as a JSON string, escaped as Jackson does it: only what must be, control characters in upper-case hex.
fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => _ = write!(out, "\\u{:04X}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
}
