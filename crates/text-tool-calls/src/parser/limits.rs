//! `ParserLimits`, the bounds of a parser, and `ParserError`, which it fails with beyond them.

/// Bounds of a [`TextCallParser`](crate::TextCallParser).
///
/// Text that is undecided beyond its bound is text for the user. A call beyond its bound is an error, and so is one
/// call too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParserLimits {
    /// The bytes that may be held back while it is undecided whether they begin a call, and the bytes of a tag.
    /// 8 KiB by default.
    pub undecided: usize,
    /// The bytes of one call as the model wrote it, or of a list of calls. 8 MiB by default.
    pub call: usize,
    /// The calls in one text, or in all texts of an answer that the advisor or a handler of segments reads.
    /// 256 by default, as with calls of a provider's interface.
    pub calls: usize,
}

impl Default for ParserLimits {
    fn default() -> Self {
        Self { undecided: 8 * 1024, call: 8 * 1024 * 1024, calls: 256 }
    }
}

/// The reason why a text cannot be parsed further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParserError {
    /// A call in the text is longer than its bound.
    #[error(
        "a tool call in the text is longer than {limit} bytes; raise `ParserLimits::call` or ask for less"
    )]
    CallTooLong {
        /// The bound.
        limit: usize,
    },
    /// The text has more calls than its bound. Those within it were read.
    #[error("the text has more than {limit} tool calls; raise `ParserLimits::calls` or ask for less")]
    TooManyCalls {
        /// The bound.
        limit: usize,
    },
    /// The parser was used after its end or after an error.
    #[error("the parser has ended; use a new one for another text")]
    Ended,
}
