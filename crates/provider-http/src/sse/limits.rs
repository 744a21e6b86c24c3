//! What a stream may not do: outgrow its bounds, or be anything but UTF-8.

/// How much one stream may make the decoder hold, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseLimits {
    /// The longest line, without its line end. Default 8 MiB: a whole answer with an image in one `data` line fits.
    pub line: usize,
    /// The most data of one event, all its `data` lines together. Default 16 MiB.
    pub event: usize,
}

impl Default for SseLimits {
    fn default() -> Self {
        Self { line: 8 << 20, event: 16 << 20 }
    }
}

/// Why an event stream cannot be read on. Positions count bytes from the start of the body, a byte-order mark included.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// A line holds bytes that are not UTF-8.
    #[error("the event stream is not valid UTF-8 at byte {position}")]
    InvalidUtf8 {
        /// Where the first invalid byte is.
        position: u64,
    },
    /// A line or an event goes beyond its bound in [`SseLimits`].
    #[error(
        "the {part} of the event stream at byte {position} is longer than {limit} bytes; if that is expected, raise `SseLimits::{part}`"
    )]
    TooLarge {
        /// What is too large: `"line"` or `"event"`.
        part: &'static str,
        /// The bound that it crossed, in bytes.
        limit: usize,
        /// Where the line that crossed the bound starts.
        position: u64,
    },
}
