//! The messages of a body: the instruction, and contents in which adjacent tool results share one.

use advisor_core::{Message, MessageContent};
use bytes::Bytes;
use provider_http::exchange::BodyBuffer;

use super::body_writer::BodyWriter;

/// The kind of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The instruction beside the contents.
    System,
    User,
    Model,
    /// Results of tools. Adjacent ones share one content.
    Results,
}

impl Kind {
    pub(super) fn from_message(message: &Message) -> Self {
        match message.content() {
            MessageContent::System(_) => Self::System,
            MessageContent::Assistant(_) => Self::Model,
            MessageContent::Tool(_) => Self::Results,
            _ => Self::User,
        }
    }
}

/// The written form of a list of messages. Kept with the list.
#[derive(Debug, Clone, Default)]
pub(super) struct Contents {
    /// The instruction without its end.
    instruction: BodyBuffer,
    /// The body up to the last content, without its end.
    contents: BodyBuffer,
    /// The kind of the last content.
    last: Option<Kind>,
}

impl Contents {
    /// Appends the parts of a message, which have commas between them. A message without parts is left out, since no
    /// content may be empty.
    pub(super) fn push(&mut self, kind: Kind, parts: &Bytes) {
        if parts.is_empty() {
            return;
        }
        if kind == Kind::System {
            let before: &[u8] = if self.instruction.is_empty() { br#"{"parts":["# } else { b"," };
            return self.instruction.push(before, parts);
        }
        let before: &[u8] = match (self.last, kind) {
            (Some(Kind::Results), Kind::Results) => b",",
            (None, Kind::Model) => br#"{"contents":[{"role":"model","parts":["#,
            (None, _) => br#"{"contents":[{"role":"user","parts":["#,
            (_, Kind::Model) => br#"]},{"role":"model","parts":["#,
            _ => br#"]},{"role":"user","parts":["#,
        };
        self.contents.push(before, parts);
        self.last = Some(kind);
    }

    /// Returns a body up to the end of its contents.
    pub(super) fn into_body(self) -> BodyWriter {
        let end: &[u8] = if self.last.is_some() { b"]}]" } else { br#"{"contents":[]"# };
        BodyWriter::after(self.contents.into_pieces(), end)
    }

    /// Returns the pieces of the instruction; none if there is none.
    pub(super) fn instruction(&self) -> Vec<Bytes> {
        let mut pieces = self.instruction.clone().into_pieces();
        if !pieces.is_empty() {
            pieces.push(Bytes::from_static(b"]}"));
        }
        pieces
    }
}
