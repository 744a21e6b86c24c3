//! Lines from pushed bytes: LF, CRLF or CR ends, the byte-order mark, and a line split at any byte.

use std::mem;

use bytes::Bytes;
use memchr::memchr2;

use super::SseError;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The pushed bytes, and the first part of a line that is split over pushes.
///
/// A line within one push is a range of it. A split line is assembled in `carry`. So each byte is searched once
/// and copied at most once, and taking a line from the front moves nothing.
pub(super) struct Lines {
    chunk: Bytes,
    /// Offset of the first byte of `chunk` that belongs to no line yet.
    at: usize,
    /// Position of `chunk` in the stream.
    chunk_position: u64,
    carry: Vec<u8>,
    /// Position in the stream of the line in `carry`.
    carry_position: u64,
    /// Whether `carry` was returned as a line and may be overwritten.
    carry_taken: bool,
    /// Whether the last line ended with CR: a following LF belongs to it.
    after_cr: bool,
    /// Whether no line was returned yet: a byte-order mark may follow.
    at_start: bool,
    limit: usize,
}

/// The range of a line, without its end. Valid until the next call that changes the lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    start: usize,
    end: usize,
    in_carry: bool,
    /// Whether a blank line follows; it was consumed with this line.
    pub(super) ends_block: bool,
}

impl Line {
    #[inline]
    pub(super) fn len(self) -> usize {
        self.end - self.start
    }

    /// Returns the line without its first bytes.
    #[inline]
    pub(super) fn after(mut self, bytes: usize) -> Self {
        self.start += bytes;
        self
    }
}

impl Lines {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            chunk: Bytes::new(),
            at: 0,
            chunk_position: 0,
            carry: Vec::new(),
            carry_position: 0,
            carry_taken: false,
            after_cr: false,
            at_start: true,
            limit,
        }
    }

    pub(super) fn push(&mut self, bytes: Bytes) {
        let rest = self.rest();
        let joined = if rest.is_empty() { bytes } else { [rest, &bytes].concat().into() };
        self.chunk_position += self.at as u64;
        self.chunk = joined;
        self.at = 0;
    }

    /// Returns the next complete line. Without one, the rest of the chunk is kept for the next push.
    #[inline]
    pub(super) fn next_line(&mut self) -> Result<Option<Line>, SseError> {
        if mem::take(&mut self.carry_taken) {
            self.carry.clear();
        }
        if self.after_cr && !self.rest().is_empty() {
            self.after_cr = false;
            self.at += usize::from(self.rest().first() == Some(&b'\n'));
        }
        if self.rest().is_empty() {
            self.release_chunk();
            return Ok(None);
        }
        let start = self.at;
        let Some(length) = memchr2(b'\n', b'\r', self.rest()) else {
            return self.carry_rest().map(|()| None);
        };
        let end = start + length;
        let ends_block = self.skip_line_end(end);
        if !self.carry.is_empty() {
            self.carry_chunk(start, end)?;
            return Ok(Some(Line { ends_block, ..self.line_in_carry() }));
        }
        let line = Line { start, end, in_carry: false, ends_block };
        if length > self.limit {
            return Err(self.too_large(self.position(line)));
        }
        Ok(Some(self.without_byte_order_mark(line)))
    }

    /// Returns the bytes from the next line on, if it begins in this chunk.
    #[inline]
    pub(super) fn upcoming(&self) -> Option<&[u8]> {
        (self.carry.is_empty() || self.carry_taken).then(|| self.rest())
    }

    /// Returns the maximum length of a line.
    #[inline]
    pub(super) fn longest(&self) -> usize {
        self.limit
    }

    /// Skips `length` of the upcoming bytes, which are whole lines.
    #[inline]
    pub(super) fn skip(&mut self, length: usize) {
        if length > 0 {
            self.at += length;
            self.after_cr = false;
        }
    }

    /// Returns the bytes after the last line end as a line. Only to be called when `next_line` has none.
    pub(super) fn take_unfinished(&mut self) -> Option<Line> {
        (!self.carry.is_empty()).then(|| self.line_in_carry())
    }

    #[inline]
    pub(super) fn bytes(&self, line: Line) -> &[u8] {
        let whole: &[u8] = if line.in_carry { &self.carry } else { &self.chunk };
        whole.get(line.start..line.end).unwrap_or_default()
    }

    /// Returns the text of a line.
    ///
    /// # Errors
    /// [`SseError::InvalidUtf8`] with the position of the first invalid byte.
    #[inline]
    pub(super) fn text(&self, line: Line) -> Result<&str, SseError> {
        let bytes = self.bytes(line);
        simdutf8::basic::from_utf8(bytes).map_err(|_| {
            let valid = str::from_utf8(bytes).err().map_or(0, |error| error.valid_up_to());
            SseError::InvalidUtf8 { position: self.position(line) + valid as u64 }
        })
    }

    /// Returns the position of the line in the stream.
    pub(super) fn position(&self, line: Line) -> u64 {
        let base = if line.in_carry { self.carry_position } else { self.chunk_position };
        base + line.start as u64
    }

    #[inline]
    fn rest(&self) -> &[u8] {
        self.chunk.get(self.at..).unwrap_or_default()
    }

    /// Skips the line end at `end` and a blank line that follows. Returns whether one does.
    #[inline]
    fn skip_line_end(&mut self, end: usize) -> bool {
        let after = self.chunk.get(end..).unwrap_or_default();
        if let [b'\n', b'\n', ..] = after {
            self.at = end + 2;
            return true;
        }
        let (line_end, after) = split_line_end(after);
        let (blank, _) = split_line_end(after);
        self.at = end + line_end.len() + blank.len();
        self.after_cr = matches!((line_end, blank), (_, b"\r") | (b"\r", b""));
        !blank.is_empty()
    }

    fn carry_rest(&mut self) -> Result<(), SseError> {
        self.carry_chunk(self.at, self.chunk.len())?;
        self.release_chunk();
        Ok(())
    }

    /// Releases the chunk, so that the reader of the connection can reuse its memory.
    fn release_chunk(&mut self) {
        self.chunk_position += self.chunk.len() as u64;
        self.chunk = Bytes::new();
        self.at = 0;
    }

    /// Appends a part of the chunk to the carried line. Its capacity doubles, but never beyond the limit.
    fn carry_chunk(&mut self, start: usize, end: usize) -> Result<(), SseError> {
        if self.carry.is_empty() {
            self.carry_position = self.chunk_position + start as u64;
        }
        let part = self.chunk.get(start..end).unwrap_or_default();
        let length = self.carry.len() + part.len();
        if length > self.limit {
            return Err(self.too_large(self.carry_position));
        }
        if length > self.carry.capacity() {
            let capacity = length.max(self.carry.capacity() * 2).min(self.limit);
            self.carry.reserve_exact(capacity - self.carry.len());
        }
        self.carry.extend_from_slice(part);
        Ok(())
    }

    /// Returns the carried line, as one without a blank line after it.
    fn line_in_carry(&mut self) -> Line {
        self.carry_taken = true;
        let line = Line { start: 0, end: self.carry.len(), in_carry: true, ends_block: false };
        self.without_byte_order_mark(line)
    }

    #[inline]
    fn without_byte_order_mark(&mut self, line: Line) -> Line {
        if mem::take(&mut self.at_start) && self.bytes(line).starts_with(BYTE_ORDER_MARK) {
            line.after(BYTE_ORDER_MARK.len())
        } else {
            line
        }
    }

    #[cold]
    fn too_large(&self, position: u64) -> SseError {
        SseError::TooLarge { part: "line", limit: self.limit, position }
    }
}

/// Splits off the line end that `bytes` start with, which may be empty.
fn split_line_end(bytes: &[u8]) -> (&[u8], &[u8]) {
    let length = match bytes {
        [b'\r', b'\n', ..] => 2,
        [b'\n' | b'\r', ..] => 1,
        _ => 0,
    };
    bytes.split_at_checked(length).unwrap_or_default()
}
