//! A body while it is written, field by field.

use bytes::Bytes;
use serde_json::Value;

/// The size from which a message is a piece of its own, in bytes, so that it is not copied.
const LONG: usize = 64 << 10;

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

/// A message on the wire: its parts, with commas between them.
#[derive(Debug, Clone)]
pub(super) struct Form {
    pub(super) kind: Kind,
    pub(super) parts: Bytes,
}

/// A body while it is written.
#[derive(Debug, Default)]
pub(super) struct BodyWriter {
    pieces: Vec<Bytes>,
    last: Vec<u8>,
    has_fields: bool,
}

impl BodyWriter {
    /// Begins a field. Its value follows.
    pub(super) fn field(&mut self, name: &str) {
        self.extend(if self.has_fields { b"," } else { b"{" });
        self.has_fields = true;
        self.extend(Value::from(name).to_string().as_bytes());
        self.extend(b":");
    }

    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.last.extend_from_slice(bytes);
    }

    /// Writes the contents. A message without parts is left out, since no content may be empty.
    pub(super) fn contents(&mut self, forms: &[Form]) {
        self.field("contents");
        self.extend(b"[");
        let mut open = None;
        for Form { kind, parts } in forms.iter().filter(|form| !form.parts.is_empty()) {
            if open == Some(Kind::Results) && *kind == Kind::Results {
                self.extend(b",");
            } else {
                let role = if *kind == Kind::Model { "model" } else { "user" };
                self.extend(if open.is_some() { b"]}," } else { b"" });
                self.extend(format!("{{\"role\":\"{role}\",\"parts\":[").as_bytes());
            }
            open = Some(*kind);
            self.push(parts);
        }
        self.extend(if open.is_some() { b"]}]" } else { b"]" });
    }

    /// Writes the instruction.
    pub(super) fn instruction(&mut self, forms: &[Form]) {
        self.field("systemInstruction");
        self.extend(b"{\"parts\":[");
        for (at, form) in forms.iter().enumerate() {
            self.extend(if at > 0 { b"," } else { b"" });
            self.push(&form.parts);
        }
        self.extend(b"]}");
    }

    /// Returns the pieces of the body.
    pub(super) fn finish(mut self) -> Vec<Bytes> {
        self.extend(if self.has_fields { b"}" } else { b"{}" });
        self.pieces.push(self.last.into());
        self.pieces
    }

    fn push(&mut self, bytes: &Bytes) {
        if bytes.len() < LONG {
            return self.extend(bytes);
        }
        self.pieces.extend([std::mem::take(&mut self.last).into(), bytes.clone()]);
    }
}
