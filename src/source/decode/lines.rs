//! Chunks of a text file to lines, wherever the chunks are cut.

/// A line of the input, without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// From 1; blank lines are skipped but counted.
    pub number: u64,
    /// Of the line's first byte, from 0 at the first byte pushed.
    pub offset: u64,
    pub bytes: &'a [u8],
}

/// The line that starts at `offset` is longer than `limit` bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {number} is longer than {limit} bytes: is this a file of JSON lines?")]
pub struct LineTooLong {
    pub number: u64,
    pub offset: u64,
    pub limit: usize,
}

/// Splits what is pushed into lines; carries a line that is cut by the end of a chunk over to the next one.
#[derive(Debug)]
pub struct LineSplitter;

impl LineSplitter {
    /// Lines longer than `limit` bytes are an error.
    pub fn new(_limit: usize) -> LineSplitter {
        todo!()
    }
    pub fn push<E: From<LineTooLong>>(
        &mut self,
        _chunk: &[u8],
        _each: impl FnMut(Line<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        todo!()
    }
    /// The last line, when no line end follows it; the splitter starts anew.
    pub fn finish<E: From<LineTooLong>>(&mut self, _each: impl FnMut(Line<'_>) -> Result<(), E>) -> Result<(), E> {
        todo!()
    }
}
