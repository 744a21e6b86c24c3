//! `ParserEvent`, `OpenedCall`, `CallEnd`; `Output`, which joins neighbouring pieces.

use advisor_core::Text;

use super::format::TextFormat;

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
    Closed(CallEnd),
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

impl OpenedCall {
    /// Creates the start of a call of the tool `name` in this syntax.
    pub fn new(format: TextFormat, name: impl Into<Text>) -> Self {
        Self { name: name.into(), id: None, format }
    }

    /// Sets the id that the model gave the call. An empty one counts as none.
    #[must_use]
    pub fn with_id(self, id: impl Into<Text>) -> Self {
        Self { id: Some(id.into()).filter(|id| !id.is_empty()), ..self }
    }
}

/// The end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallEnd {
    /// The model ended the call, and its arguments are complete.
    Complete,
    /// The answer ended within the call. It counts as complete by [`OnCut::Complete`](crate::OnCut::Complete).
    AssumedComplete,
    /// The answer ended within the call. Its arguments are cut off, and it must not run.
    Cut,
}

impl CallEnd {
    /// Checks whether the call may run.
    #[must_use]
    pub fn is_complete(self) -> bool {
        matches!(self, Self::Complete | Self::AssumedComplete)
    }
}

/// Appends events to a list and joins neighbouring pieces.
#[derive(Debug)]
pub(crate) struct Output<'a> {
    events: &'a mut Vec<ParserEvent>,
    /// How many more calls may open.
    calls_left: usize,
    /// The number of events before the first call beyond that.
    before_excess: Option<usize>,
}

impl<'a> Output<'a> {
    pub(crate) fn new(events: &'a mut Vec<ParserEvent>, calls_left: usize) -> Self {
        Self { events, calls_left, before_excess: None }
    }

    pub(crate) fn calls_left(&self) -> usize {
        self.calls_left
    }

    /// Drops the events from the first call beyond the bound on. Returns whether there was one.
    pub(crate) fn drop_excess(&mut self) -> bool {
        let Some(end) = self.before_excess else { return false };
        self.events.truncate(end);
        true
    }

    pub(crate) fn text(&mut self, piece: &str) {
        match self.events.last_mut() {
            Some(ParserEvent::Text(text)) => text.push_str(piece),
            _ => self.piece(piece, ParserEvent::Text),
        }
    }

    pub(crate) fn markup(&mut self, piece: &str) {
        match self.events.last_mut() {
            Some(ParserEvent::Markup(text)) => text.push_str(piece),
            _ => self.piece(piece, ParserEvent::Markup),
        }
    }

    pub(crate) fn body(&mut self, piece: &str) {
        match self.events.last_mut() {
            Some(ParserEvent::Body(text)) => text.push_str(piece),
            _ => self.piece(piece, ParserEvent::Body),
        }
    }

    pub(crate) fn arguments(&mut self, piece: &str) {
        match self.events.last_mut() {
            Some(ParserEvent::Arguments(text)) => text.push_str(piece),
            _ => self.piece(piece, ParserEvent::Arguments),
        }
    }

    pub(crate) fn opened(&mut self, call: OpenedCall) {
        match self.calls_left.checked_sub(1) {
            Some(left) => self.calls_left = left,
            None => {
                self.before_excess.get_or_insert(self.events.len());
            }
        }
        self.events.push(ParserEvent::Opened(call));
    }

    pub(crate) fn closed(&mut self, end: CallEnd) {
        self.events.push(ParserEvent::Closed(end));
    }

    fn piece(&mut self, piece: &str, event: fn(String) -> ParserEvent) {
        if !piece.is_empty() {
            self.events.push(event(piece.to_owned()));
        }
    }
}
