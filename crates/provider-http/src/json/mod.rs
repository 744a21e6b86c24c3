//! JSON from servers and for them.
//!
//! [`Json`] reads the JSON of an event in one pass.
//! [`repair`] reads valid JSON that the usual parser refuses, and [`lenient`] fields of an unexpected form.
//! [`arguments`] converts the arguments of calls.
//! [`JsonDecoder`] decodes values that follow one another: one per line, or the elements of one array.
//!
//! [`JsonDecoder`] does no I/O: the caller pushes the bytes of a response body as they arrive and takes values
//! out. The values do not depend on how the bytes were split. A value is returned as soon as it is complete, and
//! its size is bounded. The decoder finds the ends of values and checks that they are UTF-8. It does not check
//! their grammar.

pub mod arguments;
mod error;
pub mod lenient;
mod reader;
pub mod repair;
mod scan;
#[cfg(test)]
mod tests;
mod unrepresentable;

use std::fmt;

use bytes::{Buf, BytesMut};
use serde::de::IgnoredAny;

pub use error::JsonError;
pub use reader::{Json, Key, Str, count, is_nothing, read, value};
use scan::{Scan, is_white_space};

/// The layout of the JSON values in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// One after another, with or without white space between them, such as one per line. A line that begins like
    /// no value, such as an error in plain words, is returned as one.
    Values,
    /// As the elements of one array. Nothing follows its closing bracket, without which the body is truncated.
    Array,
}

/// The progress through the array that holds the values, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArrayState {
    Expected,
    Open,
    /// Later bytes are ignored.
    Closed,
}

/// One value, borrowed from the decoder until the next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct JsonValue<'a> {
    /// The value as written, without the white space around it. Its grammar is not checked.
    pub json: &'a str,
    /// Position of its first byte, in bytes from the start of the stream.
    pub position: u64,
}

/// An incremental decoder: bytes in, JSON values out.
///
/// Every byte is searched once, for pieces of any size. After an error every further call returns the
/// same error.
///
/// ```
/// use provider_http::json::{JsonDecoder, JsonError, Layout};
///
/// # fn main() -> Result<(), JsonError> {
/// let mut decoder = JsonDecoder::new(Layout::Array, 1 << 20);
/// let mut values = Vec::new();
/// for piece in [r#"[{"text":"[He"#, r#"l"},"#, "\n", r#"{"text":"lo"}]"#] {
///     decoder.push(piece.as_bytes());
///     while let Some(value) = decoder.next_value()? {
///         values.push(value.json.to_owned());
///     }
/// }
/// assert_eq!(values, [r#"{"text":"[Hel"}"#, r#"{"text":"lo"}"#]);
/// # Ok(())
/// # }
/// ```
pub struct JsonDecoder {
    layout: Layout,
    limit: usize,
    /// The bytes from the current value on.
    buffer: BytesMut,
    /// Position of the buffer's first byte.
    position: u64,
    scan: Scan,
    /// Length of the value that was returned last, which the next call removes.
    returned: usize,
    array: ArrayState,
    ended: bool,
    failed: Option<JsonError>,
}

impl JsonDecoder {
    /// Creates a decoder at the start of a stream. `limit` is the maximum bytes of one value.
    #[must_use]
    pub fn new(layout: Layout, limit: usize) -> Self {
        Self {
            layout,
            limit,
            buffer: BytesMut::new(),
            position: 0,
            scan: Scan::default(),
            returned: 0,
            array: ArrayState::Expected,
            ended: false,
            failed: None,
        }
    }

    /// Returns the layout of the values.
    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// Adds the next bytes of the body. Bytes after [`finish`](Self::finish) or after an error are ignored.
    ///
    /// Call it when [`next_value`](Self::next_value) has returned `None`. Otherwise the remaining bytes are kept,
    /// without a limit.
    pub fn push(&mut self, bytes: &[u8]) {
        if !self.ended && !self.is_closed() && self.failed.is_none() {
            self.skip_returned();
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Marks the end of the body, so that [`next_value`](Self::next_value) returns a last number or word, or the
    /// reason why the last value is incomplete.
    pub fn finish(&mut self) {
        self.ended = true;
    }

    /// Returns the next value; `None` if more bytes are needed or, after [`finish`](Self::finish), if no value
    /// remains.
    ///
    /// # Errors
    ///
    /// [`JsonError`]. Values that were complete before the error are returned before it.
    pub fn next_value(&mut self) -> Result<Option<JsonValue<'_>>, JsonError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        match self.find() {
            Ok(None) => Ok(None),
            Ok(Some(length)) => {
                self.returned = length;
                let json = self.buffer.get(..length).and_then(|value| str::from_utf8(value).ok());
                Ok(Some(JsonValue { json: json.unwrap_or_default(), position: self.position }))
            }
            Err(error) => Err(self.failed.insert(error).clone()),
        }
    }

    /// Checks whether the bracket that closes the array was found. Call it when [`next_value`](Self::next_value) has
    /// returned `None`.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.array == ArrayState::Closed
    }

    /// Returns the bytes from the next value on; `None` if a part of it was searched already.
    ///
    /// [`consume`](Self::consume) skips values that were read there.
    pub(crate) fn peek(&mut self) -> Option<&[u8]> {
        self.skip_returned();
        self.skip_separators();
        (self.layout == Layout::Values && self.failed.is_none() && self.scan.is_at_start())
            .then_some(&*self.buffer)
    }

    /// Returns the maximum bytes of a value.
    pub(crate) fn max_value_bytes(&self) -> usize {
        self.limit
    }

    /// Skips `length` of the bytes that [`peek`](Self::peek) returned, which are whole values.
    pub(crate) fn consume(&mut self, length: usize) {
        self.advance(length);
    }

    /// Returns the length of the next value, which begins the buffer.
    fn find(&mut self) -> Result<Option<usize>, JsonError> {
        self.skip_returned();
        if self.scan.is_at_start() {
            self.skip_separators();
        }
        if self.is_closed() {
            return Ok(None);
        }
        let found = self.scan.find_end(&self.buffer);
        let length = found.unwrap_or(self.buffer.len());
        if length > self.limit {
            return Err(JsonError::TooLarge { limit: self.limit, position: self.position });
        }
        if found.is_none() && !self.ended {
            return Ok(None);
        }
        if length == 0 {
            return if self.layout == Layout::Array { Err(JsonError::Truncated) } else { Ok(None) };
        }
        let value = self.buffer.get(..length).unwrap_or_default();
        match str::from_utf8(value) {
            Ok(_) if found.is_some() || self.scan.is_in_word() => Ok(Some(length)),
            Ok(text) => Err(self.unfinished(text)),
            Err(error) if error.error_len().is_none() && found.is_none() => Err(JsonError::Truncated),
            Err(error) => {
                let valid = value.get(..error.valid_up_to()).unwrap_or_default();
                match self.unfinished(str::from_utf8(valid).unwrap_or_default()) {
                    JsonError::Truncated => {
                        Err(JsonError::InvalidUtf8 { position: self.position + valid.len() as u64 })
                    }
                    malformed => Err(malformed),
                }
            }
        }
    }

    /// Returns the reason why the text is no value: it is malformed, or its end is missing.
    fn unfinished(&self, text: &str) -> JsonError {
        match serde_json::from_str::<IgnoredAny>(text) {
            Err(error) if !error.is_eof() => {
                JsonError::Malformed { line: error.line(), column: error.column(), position: self.position }
            }
            _ => JsonError::Truncated,
        }
    }

    fn skip_returned(&mut self) {
        let returned = std::mem::take(&mut self.returned);
        if returned > 0 {
            self.advance(returned);
            self.scan = Scan::default();
        }
    }

    /// Skips white space and, around the elements of an array, its brackets and commas.
    fn skip_separators(&mut self) {
        let is_array = self.layout == Layout::Array;
        while self.scan.is_at_start()
            && let Some(first) = self.buffer.first()
        {
            match (self.array, first) {
                (_, blank) if is_white_space(*blank) => {
                    let length = self.buffer.iter().take_while(|byte| is_white_space(**byte)).count();
                    self.advance(length);
                }
                (ArrayState::Open, b',') if is_array => self.advance(1),
                (ArrayState::Expected, b'[') if is_array => {
                    self.array = ArrayState::Open;
                    self.advance(1);
                }
                (ArrayState::Open, b']') if is_array => {
                    self.array = ArrayState::Closed;
                    self.advance(self.buffer.len());
                }
                _ => return,
            }
        }
    }

    fn advance(&mut self, length: usize) {
        self.buffer.advance(length.min(self.buffer.len()));
        self.position += length as u64;
    }
}

/// Shows the progress of the decoder, not its content.
impl fmt::Debug for JsonDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonDecoder")
            .field("layout", &self.layout)
            .field("position", &self.position)
            .field("ended", &self.ended)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}
