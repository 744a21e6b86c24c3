//! `ParserEvent`, `OpenedCall`, the bounds of a parser, and `Output`, which joins neighbouring pieces.

use advisor_core::Text;

use crate::format::TextFormat;

/// A piece of an answer that contains tool calls as text.
///
/// The pieces of [`Text`](Self::Text), [`Markup`](Self::Markup) and [`Body`](Self::Body), joined in order, are the
/// parsed text. The pieces of one kind between two other events, joined, do not depend on how the text was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParserEvent {
    /// Text for the user.
    Text(String),
    /// Text that belongs to the syntax: tags, markers, fences around calls, white space between calls.
    Markup(String),
    /// The start of a call.
    Opened(OpenedCall),
    /// Text of the open call between its opening and its closing, as the model wrote it.
    Body(String),
    /// The next characters of the open call's arguments, as JSON.
    Arguments(String),
    /// The end of the open call.
    Closed {
        /// Whether the model ended the call. A call that the end of the answer cuts off must not run.
        complete: bool,
    },
}

/// Data of a call known at its start.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenedCall {
    /// The name of the tool.
    pub name: Text,
    /// The id that the model gave the call, if any. It may repeat.
    pub id: Option<Text>,
    /// The syntax of the call.
    pub format: TextFormat,
}

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
    /// The bytes of one call as the model wrote it, or of a list of calls in JSON. 8 MiB by default.
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
    /// The text was ended before, or an error has ended it.
    #[error("the text has ended; use a new parser, or reset the handler, for another one")]
    Ended,
}

/// Appends events to a list and joins neighbouring pieces.
pub(super) struct Output<'a> {
    pub(super) events: &'a mut Vec<ParserEvent>,
    /// The calls that the text may still have, and the bound of all.
    pub(super) calls_left: usize,
    pub(super) most_calls: usize,
}

impl Output<'_> {
    pub(super) fn text(&mut self, piece: &str) {
        self.push(ParserEvent::Text(piece.to_owned()));
    }

    pub(super) fn markup(&mut self, piece: &str) {
        self.push(ParserEvent::Markup(piece.to_owned()));
    }

    pub(super) fn body(&mut self, piece: &str) {
        self.push(ParserEvent::Body(piece.to_owned()));
    }

    pub(super) fn arguments(&mut self, piece: &str) {
        self.push(ParserEvent::Arguments(piece.to_owned()));
    }

    pub(super) fn opened(&mut self, call: OpenedCall) -> Result<(), ParserError> {
        let left = self.calls_left.checked_sub(1);
        self.calls_left = left.ok_or(ParserError::TooManyCalls { limit: self.most_calls })?;
        self.push(ParserEvent::Opened(call));
        Ok(())
    }

    pub(super) fn closed(&mut self, complete: bool) {
        self.push(ParserEvent::Closed { complete });
    }

    fn push(&mut self, event: ParserEvent) {
        use ParserEvent::{Arguments, Body, Markup, Text};
        match (self.events.last_mut(), &event) {
            (_, Text(piece) | Markup(piece) | Body(piece) | Arguments(piece)) if piece.is_empty() => {}
            (Some(Text(last)), Text(piece))
            | (Some(Markup(last)), Markup(piece))
            | (Some(Body(last)), Body(piece))
            | (Some(Arguments(last)), Arguments(piece)) => last.push_str(piece),
            _ => self.events.push(event),
        }
    }
}
