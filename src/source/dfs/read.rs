//! Reading: chunks of a file to lines, lines to batches. Asynchronous where it waits, synchronous where it computes.

use super::super::{Error, Reason, Rejected, Rejects, Result};
use super::Input;
use super::pieces::{Part, is_gzip, pack};
use crate::codec::json::{JsonDecoder, JsonError};
use crate::codec::lines::{Line, LineSplitter, LineTooLong};
use crate::storage::{self, FileInfo};
use arrow::array::RecordBatch;
use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use std::collections::{BTreeSet, VecDeque};
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::JoinHandle;

/// One read of a plain file. Large enough that calls do not count, small enough that two workers hold little.
const CHUNK: u64 = 4 << 20;
/// One read of a gzip file, which may grow a hundredfold.
const GZIP_CHUNK: u64 = 256 << 10;
/// One read behind the end of a part, where only the rest of its last line is wanted.
const TAIL_CHUNK: u64 = 64 << 10;
/// Lines longer than this are no lines.
const LONGEST_LINE: usize = 256 << 20;
const BATCH_ROWS: usize = 8192;
const BYTE_ORDER_MARK_END: u64 = 4;

/// Reads the lines of one part, chunk by chunk.
pub(super) struct PartReader {
    input: Arc<Input>,
    file: FileInfo,
    end: u64,
    /// Next byte to read.
    next: u64,
    /// The chunk there, on its way while the one before is decoded: from an object store. A local disk answers at once, and
    /// to hold twice as much cost 50 MB and 2 % of the CPU (measured: 2 M trips by two workers).
    ahead: Option<JoinHandle<storage::Result<Bytes>>>,
    gzip: Option<MultiGzDecoder<Vec<u8>>>,
    lines: LineSplitter,
    /// Offset of the splitter's first byte; `None` while the rest of the line before the part is passed over.
    base: Option<u64>,
    finished: bool,
}

/// Why a step of reading ends early.
pub(super) enum Stop<E> {
    TooLong(LineTooLong),
    Each(E),
}

impl<E> From<LineTooLong> for Stop<E> {
    fn from(e: LineTooLong) -> Self {
        Stop::TooLong(e)
    }
}

impl PartReader {
    pub fn new(input: &Arc<Input>, file: &FileInfo, part: &Part) -> PartReader {
        let gzip = is_gzip(&file.path);
        PartReader {
            input: input.clone(),
            file: file.clone(),
            end: if gzip { u64::MAX } else { part.end },
            // A part begins with the first line that begins in it: the byte before tells whether that is at once.
            next: part.start.saturating_sub(1),
            ahead: None,
            gzip: gzip.then(|| MultiGzDecoder::new(Vec::new())),
            lines: LineSplitter::new(LONGEST_LINE),
            base: (part.start == 0).then_some(0),
            finished: false,
        }
    }

    fn unreadable(&self, why: impl std::fmt::Display) -> Error {
        Error::Unreadable { file: self.input.storage.display(&self.file.path), why: why.to_string() }
    }

    async fn chunk(&mut self, bytes_read: &AtomicU64) -> Result<Option<Bytes>> {
        let Some(range) = self.range() else { return Ok(None) };
        let bytes = match self.ahead.take() {
            Some(ahead) => ahead.await.map_err(|e| self.unreadable(e))?,
            None => self.input.storage.get_range(&self.file.path, range.clone()).await,
        }?;
        self.next = range.end;
        // Behind the end the next line ends soon, if there is one at all.
        let wants_more = self.next < self.end || self.next == self.end && self.base.is_some();
        if wants_more && !self.input.storage.is_local() {
            self.ahead = self.range().map(|range| {
                let (input, path) = (self.input.clone(), self.file.path.clone());
                tokio::spawn(async move { input.storage.get_range(&path, range).await })
            });
        }
        if bytes.len() as u64 != range.end - range.start {
            return Err(self.unreadable("the file became shorter while it was read"));
        }
        bytes_read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(Some(bytes))
    }

    /// Of the next chunk.
    fn range(&self) -> Option<Range<u64>> {
        let most = match (&self.gzip, self.next < self.end) {
            (Some(_), _) => GZIP_CHUNK,
            (None, true) => CHUNK.min(self.end - self.next),
            (None, false) => TAIL_CHUNK,
        };
        (self.next < self.file.size).then(|| self.next..self.file.size.min(self.next + most))
    }

    fn inflate(&mut self, chunk: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        let Some(gzip) = &mut self.gzip else { return Ok(None) };
        let done = match chunk {
            Some(chunk) => gzip.write_all(chunk),
            None => gzip.try_finish(),
        };
        let text = std::mem::take(gzip.get_mut());
        done.map_err(|e| self.unreadable(format!("not a whole gzip file: {e}")))?;
        Ok(Some(text))
    }

    /// One chunk's lines, with their offset in the file's text; false when the part has no more.
    pub async fn step<E>(
        &mut self,
        bytes_read: &AtomicU64,
        mut each: impl FnMut(Line<'_>) -> std::result::Result<(), E>,
    ) -> Result<std::result::Result<bool, E>> {
        if self.finished {
            return Ok(Ok(false));
        }
        let chunk = self.chunk(bytes_read).await?;
        self.finished = chunk.is_none();
        let inflated = self.inflate(chunk.as_deref())?;
        let mut text: &[u8] = inflated.as_deref().or(chunk.as_deref()).unwrap_or_default();
        if self.base.is_none() {
            let Some(end) = memchr::memchr(b'\n', text) else {
                // The line that covers the end of the part began before the part: none begins in it.
                self.finished |= self.next >= self.end;
                return Ok(Ok(!self.finished));
            };
            self.base = Some(self.next - text.len() as u64 + end as u64 + 1);
            text = &text[end + 1..];
        }
        let (base, end, mut beyond) = (self.base.unwrap_or_default(), self.end, base_is_beyond(self.base, self.end));
        let mut in_part = |line: Line<'_>| {
            let line = Line { offset: base + line.offset, ..line };
            beyond |= line.offset >= end;
            if beyond { Ok(()) } else { each(line).map_err(Stop::Each) }
        };
        let pushed = self.lines.push(text, &mut in_part);
        let pushed = match (pushed, self.finished) {
            (Ok(()), true) => self.lines.finish(&mut in_part),
            (pushed, _) => pushed,
        };
        self.finished |= beyond;
        match pushed {
            Ok(()) => Ok(Ok(!self.finished)),
            Err(Stop::Each(e)) => Ok(Err(e)),
            Err(Stop::TooLong(cause)) => {
                let name = self.input.storage.display(&self.file.path);
                // Lines are counted from where this part begins.
                let file = if base == 0 { name } else { format!("{name}, from byte {base} on") };
                Err(Error::LineTooLong { file, cause })
            }
        }
    }
}

fn base_is_beyond(base: Option<u64>, end: u64) -> bool {
    base.is_some_and(|base| base >= end)
}

/// `file:line` of the line that begins at `offset` of the file's text; reads the file up to there.
pub(super) async fn place(input: &Arc<Input>, file: &FileInfo, offset: u64) -> String {
    let whole = Part { file: 0, start: 0, end: u64::MAX };
    let mut reader = PartReader::new(input, file, &whole);
    let mut found = None;
    let none = AtomicU64::new(0);
    loop {
        let step = reader.step(&none, |line| if line.offset >= offset { Err(line.number) } else { Ok(()) });
        match step.await {
            Ok(Ok(true)) => {}
            Ok(Err(number)) => {
                found = Some(number);
                break;
            }
            Ok(Ok(false)) | Err(_) => break,
        }
    }
    let name = input.storage.display(&file.path);
    match found {
        Some(number) => format!("{name}:{number}"),
        None => format!("{name}, byte {offset}"),
    }
}

/// The lines that begin at `offsets` of the file's text. A plain file is read there only, a compressed one up to the last.
pub(super) async fn lines_at(
    input: &Arc<Input>,
    file: &FileInfo,
    mut offsets: BTreeSet<u64>,
) -> Result<Vec<(u64, Bytes)>> {
    let none = AtomicU64::new(0);
    let mut found = Vec::new();
    while let Some(first) = offsets.first().copied() {
        // The first line begins behind a byte order mark, if there is one, but its part begins before.
        let start = if first < BYTE_ORDER_MARK_END { 0 } else { first };
        let part = match is_gzip(&file.path) {
            true => Part { file: 0, start: 0, end: u64::MAX },
            false => Part { file: 0, start, end: first + 1 },
        };
        let mut reader = PartReader::new(input, file, &part);
        let mut more = true;
        while more && !offsets.is_empty() {
            more = reader
                .step(&none, |line| {
                    if offsets.remove(&line.offset) {
                        found.push((line.offset, Bytes::copy_from_slice(line.bytes)));
                    }
                    Ok::<(), Error>(())
                })
                .await??;
        }
        offsets.remove(&first);
        if is_gzip(&file.path) {
            break;
        }
    }
    Ok(found)
}

/// Reads the parts of a piece into batches.
pub(super) struct PieceReader {
    input: Arc<Input>,
    files: Arc<Vec<FileInfo>>,
    parts: VecDeque<Part>,
    current: Option<(usize, PartReader)>,
    decoder: JsonDecoder,
    ready: VecDeque<RecordBatch>,
    rejects: Arc<Rejects>,
    bytes_read: Arc<AtomicU64>,
}

impl PieceReader {
    pub fn new(
        input: &Arc<Input>,
        files: &Arc<Vec<FileInfo>>,
        parts: &[Part],
        decoder: JsonDecoder,
        rejects: &Arc<Rejects>,
        bytes_read: &Arc<AtomicU64>,
    ) -> PieceReader {
        PieceReader {
            input: input.clone(),
            files: files.clone(),
            parts: parts.iter().cloned().collect(),
            current: None,
            decoder,
            ready: VecDeque::new(),
            rejects: rejects.clone(),
            bytes_read: bytes_read.clone(),
        }
    }

    /// The next rows, at most [`BATCH_ROWS`].
    pub async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if !self.step().await? {
                let last = (!self.decoder.rows.is_empty()).then(|| self.decoder.rows.flush());
                return Ok(last);
            }
        }
    }

    /// Decodes one chunk; false when there is none left.
    async fn step(&mut self) -> Result<bool> {
        if self.current.is_none() {
            let Some(part) = self.parts.pop_front() else { return Ok(false) };
            self.current = Some((part.file, PartReader::new(&self.input, &self.files[part.file], &part)));
        }
        let Some((file, reader)) = &mut self.current else { return Ok(false) };
        let (decoder, ready, rejects) = (&mut self.decoder, &mut self.ready, &self.rejects);
        let each = |line: Line<'_>| {
            let position = pack(*file, line.offset);
            if let Err(cause) = decoder.decode(line.bytes, position) {
                rejects.refuse(undecoded(position, line.bytes, &cause))?;
            }
            if decoder.rows.len() >= BATCH_ROWS {
                ready.push_back(decoder.rows.flush());
            }
            Ok::<(), Error>(())
        };
        if !reader.step(&self.bytes_read, each).await?? {
            self.current = None;
        }
        Ok(true)
    }
}

/// A line that is no record of the schema.
pub(super) fn undecoded(position: u64, line: &[u8], cause: &JsonError) -> Rejected {
    Rejected {
        position: Some(position),
        reason: Reason::JsonDeserialization,
        code: cause.code(),
        why: cause.to_string(),
        value: Some(line.to_vec()),
        key: None,
        timestamp_ms: None,
    }
}
