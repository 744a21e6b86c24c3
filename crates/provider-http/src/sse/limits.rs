//! Limits of an event stream, and the errors of one that exceeds them or is not UTF-8.

/// Maximum bytes that one stream may make the decoder buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseLimits {
    /// Maximum bytes of a line, without its line end. Default 8 MiB: a whole answer with an image in one `data`
    /// line fits.
    pub line: usize,
    /// Maximum bytes of the data of one event, all its `data` lines together. Default 16 MiB.
    pub event: usize,
}

impl Default for SseLimits {
    fn default() -> Self {
        Self { line: 8 << 20, event: 16 << 20 }
    }
}

/// The reason why an event stream cannot be decoded further. Positions count bytes from the start of the body,
/// including a byte-order mark.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// A line holds bytes that are not UTF-8.
    #[error("the event stream is not valid UTF-8 at byte {position}")]
    InvalidUtf8 {
        /// Position of the first invalid byte.
        position: u64,
    },
    /// A line or an event exceeds its limit in [`SseLimits`].
    #[error(
        "the {part} of the event stream at byte {position} is longer than {limit} bytes; if that is expected, raise `SseLimits::{part}`"
    )]
    TooLarge {
        /// The part that is too large: `"line"` or `"event"`.
        part: &'static str,
        /// The exceeded limit, in bytes.
        limit: usize,
        /// Position of the line that exceeded the limit.
        position: u64,
    },
}
