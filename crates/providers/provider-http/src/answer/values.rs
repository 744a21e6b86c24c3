//! `Values`: the JSON values of a body that is no event stream. One or more stand on each line, or the first one takes
//! several lines.

use std::fmt;

use advisor_core::{Error, ErrorKind, Result};
use bytes::{Buf, BytesMut};
use memchr::memchr;
use serde::de::IgnoredAny;

use crate::error::not_utf8;
use crate::json::first_value;

/// Bytes in, values out. Every byte is searched once for the end of its line.
pub(super) struct Values {
    limit: usize,
    /// The bytes from the next value on.
    buffer: BytesMut,
    /// Position of the buffer's first byte.
    position: u64,
    /// The number of bytes that hold no line end, or the length of the line, with its end.
    searched: usize,
    is_line: bool,
    /// Length of the value that was returned last, which the next call removes.
    returned: usize,
    /// Whether the first value does not end on its line. Then all values are read at the end of the body.
    is_spread: bool,
    ended: bool,
}

/// One value, borrowed until the next call.
pub(super) struct JsonValue<'a> {
    /// The value as written. Without a value, the rest of the line is one, for its reader to judge.
    pub(super) json: &'a str,
    /// Position of its first byte, in bytes from the start of the values.
    pub(super) position: u64,
}

impl Values {
    /// Creates a decoder. `limit` is the maximum bytes of a line, or of values that take several.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: BytesMut::new(),
            position: 0,
            searched: 0,
            is_line: false,
            returned: 0,
            is_spread: false,
            ended: false,
        }
    }

    /// Adds the next bytes of the body.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.advance(self.returned);
        self.buffer.extend_from_slice(bytes);
    }

    /// Marks the end of the body, which also ends a line.
    pub(super) fn finish(&mut self) {
        self.ended = true;
    }

    /// Returns the next value; `None` if more bytes are needed, or if no value remains. The first byte is at `from` in the body.
    pub(super) fn next_value(&mut self, from: u64) -> Result<Option<JsonValue<'_>>> {
        self.advance(self.returned);
        loop {
            let blank = self.buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.advance(blank);
            let Some(line) = self.line() else {
                if self.buffer.len() > self.limit {
                    return Err(self.too_large(from));
                }
                return Ok(None);
            };
            if line > self.limit {
                return Err(self.too_large(from));
            }
            let bytes = self.buffer.get(..line).unwrap_or_default();
            let value = first_value(bytes);
            if value.is_none() && ends_early(bytes) {
                if self.ended {
                    return Err(Error::new(
                        ErrorKind::Truncated,
                        "the answer's body ended in the middle of its JSON",
                    ));
                }
                if self.position == 0 {
                    self.is_spread = true;
                    continue;
                }
            }
            self.returned = value.map_or(line, <[u8]>::len);
            let position = self.position;
            let json = self.buffer.get(..self.returned).unwrap_or_default();
            return match str::from_utf8(json) {
                Ok(json) => Ok(Some(JsonValue { json: json.trim_end(), position })),
                Err(error) => Err(not_utf8(from + position + error.valid_up_to() as u64)),
            };
        }
    }

    /// Returns the length of the next line, or of all lines of a spread value, if it is complete and not blank.
    fn line(&mut self) -> Option<usize> {
        if !self.is_line && !self.is_spread {
            let rest = self.buffer.get(self.searched..).unwrap_or_default();
            let end = memchr(b'\n', rest);
            self.is_line = end.is_some();
            self.searched += end.map_or(rest.len(), |end| end + 1);
        }
        let is_complete = self.is_line && !self.is_spread;
        let length = if is_complete { self.searched } else { self.buffer.len() };
        (is_complete || (self.ended && length > 0)).then_some(length)
    }

    fn advance(&mut self, length: usize) {
        self.returned = 0;
        self.buffer.advance(length.min(self.buffer.len()));
        self.position += length as u64;
        if self.searched > length {
            self.searched -= length;
        } else {
            (self.searched, self.is_line) = (0, false);
        }
    }

    fn too_large(&self, from: u64) -> Error {
        let (limit, position) = (self.limit, from + self.position);
        let message = format!(
            "the JSON at byte {position} is longer than {limit} bytes; if that is expected, raise `SseLimits::event`"
        );
        Error::new(ErrorKind::TooLarge, message)
    }
}

/// Checks whether JSON, or a character at its end, is cut.
fn ends_early(bytes: &[u8]) -> bool {
    match str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str::<IgnoredAny>(text).is_err_and(|error| error.is_eof()),
        Err(error) => error.error_len().is_none(),
    }
}

/// Shows no content.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Values").field("position", &self.position).finish_non_exhaustive()
    }
}
