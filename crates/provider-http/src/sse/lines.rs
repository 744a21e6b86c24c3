//! Lines out of pushed bytes: LF, CRLF or CR ends, the byte-order mark, and a line cut at any byte.

use std::mem;

use bytes::Bytes;
use memchr::memchr2;

use super::SseError;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The pushed bytes and what is left of a line that they cut.
///
/// A line that lies within one push is a range of it. A line that was cut is put together in `carry`, so each byte is searched
/// once and copied at most once, and nothing is moved when a line is taken from the front.
pub(super) struct Lines {
    chunk: Bytes,
    /// The first byte of `chunk` that belongs to no line yet.
    at: usize,
    /// Where `chunk` starts in the stream.
    chunk_position: u64,
    carry: Vec<u8>,
    /// Where the line in `carry` starts in the stream.
    carry_position: u64,
    /// `carry` was given out as a line: it is free to be overwritten.
    carry_taken: bool,
    /// The last line ended with CR: an LF that comes next belongs to it.
    after_cr: bool,
    /// No line was given out yet: a byte-order mark may come.
    at_start: bool,
    limit: usize,
}

/// Where a line lies, without its end. Valid until the next call that changes the lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    start: usize,
    end: usize,
    in_carry: bool,
    /// A blank line follows, and was taken with this one.
    pub(super) ends_block: bool,
}

impl Line {
    #[inline]
    pub(super) fn len(self) -> usize {
        self.end - self.start
    }

    /// The line without its first bytes.
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

    /// The next line that is complete; without one, what is left of the chunk is carried over to the next push.
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
            self.let_go();
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
            return Ok(Some(self.line_in_carry(ends_block)));
        }
        let line = Line { start, end, in_carry: false, ends_block };
        if length > self.limit {
            return Err(self.too_large(self.position(line)));
        }
        Ok(Some(self.without_byte_order_mark(line)))
    }

    /// The bytes from the next line on, if it begins in this chunk.
    #[inline]
    pub(super) fn upcoming(&self) -> Option<&[u8]> {
        (self.carry.is_empty() || self.carry_taken).then(|| self.rest())
    }

    /// How long a line may be.
    #[inline]
    pub(super) fn longest(&self) -> usize {
        self.limit
    }

    /// Goes on behind so many of the upcoming bytes, which are whole lines.
    #[inline]
    pub(super) fn skip(&mut self, length: usize) {
        if length > 0 {
            self.at += length;
            self.after_cr = false;
        }
    }

    /// The bytes after the last line end, as a line of its own. Only to be called when `next_line` has none.
    pub(super) fn take_unfinished(&mut self) -> Option<Line> {
        (!self.carry.is_empty()).then(|| self.line_in_carry(false))
    }

    #[inline]
    pub(super) fn bytes(&self, line: Line) -> &[u8] {
        let whole: &[u8] = if line.in_carry { &self.carry } else { &self.chunk };
        whole.get(line.start..line.end).unwrap_or_default()
    }

    /// Where the line starts in the stream.
    pub(super) fn position(&self, line: Line) -> u64 {
        let base = if line.in_carry { self.carry_position } else { self.chunk_position };
        base + line.start as u64
    }

    #[inline]
    fn rest(&self) -> &[u8] {
        self.chunk.get(self.at..).unwrap_or_default()
    }

    /// Goes on behind the line end whose first byte is at `end`, and behind a blank line that follows; true if one does.
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
        self.let_go();
        Ok(())
    }

    /// Lets go of the chunk, so that whoever reads the connection may use its memory again.
    fn let_go(&mut self) {
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

    fn line_in_carry(&mut self, ends_block: bool) -> Line {
        self.carry_taken = true;
        let line = Line { start: 0, end: self.carry.len(), in_carry: true, ends_block };
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

/// The line end that `bytes` start with, empty if they start with none, and what follows it.
fn split_line_end(bytes: &[u8]) -> (&[u8], &[u8]) {
    let length = match bytes {
        [b'\r', b'\n', ..] => 2,
        [b'\n' | b'\r', ..] => 1,
        _ => 0,
    };
    bytes.split_at_checked(length).unwrap_or_default()
}
