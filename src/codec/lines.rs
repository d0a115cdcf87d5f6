//! Chunks of a text file to lines, wherever the chunks are cut.

/// A line of the input, without its end (`\n` or `\r\n`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// From 1; blank lines are skipped but counted.
    pub number: u64,
    /// Of the line's first byte, from 0 at the first byte pushed.
    pub offset: u64,
    /// Never blank.
    pub bytes: &'a [u8],
}

/// A line that will not end, most often a file that holds no lines at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {number} is longer than {limit} bytes: is this a file of JSON lines?")]
pub struct LineTooLong {
    /// From 1.
    pub number: u64,
    /// Of the line's first byte, from 0 at the first byte pushed.
    pub offset: u64,
    /// What the splitter was made with.
    pub limit: usize,
}

/// What some editors and Windows tools put before the text of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Splits what is pushed into lines; carries a line that is cut by the end of a chunk over to the next one.
#[derive(Debug)]
pub struct LineSplitter {
    /// The beginning of a line whose end has not been seen.
    carry: Vec<u8>,
    number: u64,
    offset: u64,
    limit: usize,
}

impl LineSplitter {
    /// Lines longer than `limit` bytes are an error; no more than that is ever carried over.
    pub fn new(limit: usize) -> LineSplitter {
        LineSplitter { carry: Vec::new(), number: 1, offset: 0, limit }
    }

    /// Hands every line that ends in `chunk` to `each`. After an error the rest of the chunk is lost: drop the splitter.
    pub fn push<E: From<LineTooLong>>(
        &mut self,
        chunk: &[u8],
        mut each: impl FnMut(Line<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = chunk;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, tail) = (&rest[..end], &rest[end + 1..]);
            if self.carry.is_empty() {
                self.line(line, &mut each)?;
            } else {
                self.check_length(line)?;
                self.carry.extend_from_slice(line);
                self.carried_line(&mut each)?;
            }
            rest = tail;
        }
        self.check_length(rest)?;
        self.carry.extend_from_slice(rest);
        Ok(())
    }

    /// The last line, when no line end follows it; the splitter starts anew.
    pub fn finish<E: From<LineTooLong>>(&mut self, mut each: impl FnMut(Line<'_>) -> Result<(), E>) -> Result<(), E> {
        if !self.carry.is_empty() {
            self.carried_line(&mut each)?;
        }
        (self.number, self.offset) = (1, 0);
        Ok(())
    }

    fn carried_line<E: From<LineTooLong>>(
        &mut self,
        each: &mut impl FnMut(Line<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut line = std::mem::take(&mut self.carry);
        let result = self.line(&line, each);
        line.clear();
        self.carry = line;
        result
    }

    /// `raw` is what stands before a line end.
    fn line<E: From<LineTooLong>>(
        &mut self,
        raw: &[u8],
        each: &mut impl FnMut(Line<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.check_length(raw)?;
        let (number, offset) = (self.number, self.offset);
        self.number += 1;
        self.offset += raw.len() as u64 + 1;
        let line = raw.strip_suffix(b"\r").unwrap_or(raw);
        let bytes = if offset == 0 { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line };
        if bytes.trim_ascii().is_empty() {
            return Ok(());
        }
        each(Line { number, offset: offset + (line.len() - bytes.len()) as u64, bytes })
    }

    /// The carried beginning of a line, with `more` of it.
    fn check_length(&self, more: &[u8]) -> Result<(), LineTooLong> {
        if self.carry.len() + more.len() > self.limit {
            return Err(LineTooLong { number: self.number, offset: self.offset, limit: self.limit });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of `text`, pushed in the pieces that `cuts` makes of it.
    fn split(text: &[u8], cuts: &[usize], limit: usize) -> Result<Vec<(u64, u64, Vec<u8>)>, LineTooLong> {
        let mut lines = Vec::new();
        let mut splitter = LineSplitter::new(limit);
        let mut from = 0;
        for to in cuts.iter().copied().chain([text.len()]) {
            splitter.push(&text[from..to], |line| {
                lines.push((line.number, line.offset, line.bytes.to_vec()));
                Ok::<_, LineTooLong>(())
            })?;
            from = to;
        }
        splitter.finish(|line| {
            lines.push((line.number, line.offset, line.bytes.to_vec()));
            Ok::<_, LineTooLong>(())
        })?;
        Ok(lines)
    }

    #[test]
    fn lines_are_the_same_wherever_the_chunks_are_cut() {
        type Case = (&'static str, &'static [u8], &'static [(u64, u64, &'static str)]);
        let cases: [Case; 8] = [
            ("nothing", b"", &[]),
            ("no line end", b"a", &[(1, 0, "a")]),
            ("two lines", b"a\nbc\n", &[(1, 0, "a"), (2, 2, "bc")]),
            ("windows", b"a\r\nb\r\n", &[(1, 0, "a"), (2, 3, "b")]),
            ("carriage return at the end", b"a\nb\r", &[(1, 0, "a"), (2, 2, "b")]),
            ("blank lines are counted", b"\n \t\r\na\n\n\nb", &[(3, 5, "a"), (6, 9, "b")]),
            ("byte order mark", b"\xEF\xBB\xBFa\nb", &[(1, 3, "a"), (2, 5, "b")]),
            ("byte order mark alone", b"\xEF\xBB\xBF\nb", &[(2, 4, "b")]),
        ];
        for (name, text, want) in cases {
            let want: Vec<_> = want.iter().map(|(n, at, line)| (*n, *at, line.as_bytes().to_vec())).collect();
            for first in 0..=text.len() {
                for second in first..=text.len() {
                    assert_eq!(split(text, &[first, second], 100).as_ref(), Ok(&want), "{name}: {first}, {second}");
                }
            }
        }
    }

    #[test]
    fn line_over_the_limit_is_refused_wherever_it_is_cut() {
        assert_eq!(split(b"abc\nabc", &[], 3).map(|lines| lines.len()), Ok(2));
        for cut in 0..=9 {
            let error = split(b"abc\nabcd\n", &[cut], 3).expect_err("4 bytes");
            assert_eq!(error, LineTooLong { number: 2, offset: 4, limit: 3 }, "cut at {cut}");
        }
    }

    #[test]
    fn error_of_the_caller_ends_the_push() {
        #[derive(Debug, PartialEq)]
        enum Stop {
            Here(u64),
            TooLong,
        }
        impl From<LineTooLong> for Stop {
            fn from(_: LineTooLong) -> Stop {
                Stop::TooLong
            }
        }
        let result = LineSplitter::new(10).push(b"a\nb\nc\n", |line| match line.bytes {
            b"b" => Err(Stop::Here(line.number)),
            _ => Ok(()),
        });
        assert_eq!(result, Err(Stop::Here(2)));
    }
}
