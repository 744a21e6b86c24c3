//! Errors of a stream of JSON values.

/// The reason why JSON values cannot be decoded further. Positions count bytes from the start of the stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// A value holds bytes that are not UTF-8.
    #[error("the JSON is not valid UTF-8 at byte {position}")]
    InvalidUtf8 {
        /// Position of the first invalid byte.
        position: u64,
    },
    /// A value exceeds its limit.
    #[error(
        "the JSON value at byte {position} is longer than {limit} bytes; if that is expected, raise `SseLimits::event`"
    )]
    TooLarge {
        /// The exceeded limit, in bytes.
        limit: usize,
        /// Position of the value.
        position: u64,
    },
    /// The body ended within a value whose beginning is no JSON.
    #[error("the JSON that begins at byte {position} is malformed at line {line}, column {column}")]
    Malformed {
        /// The line of the error in the value, from 1.
        line: usize,
        /// The column of the error in its line, from 1.
        column: usize,
        /// Position of the value.
        position: u64,
    },
    /// The body ended within a value.
    #[error("the body ended in the middle of its JSON")]
    Truncated,
}
