//! A body while it is written, field by field.

use bytes::Bytes;
use serde_json::Value;

/// The size from which bytes are a separate piece, so that they are not copied.
const LONG: usize = 64 << 10;

/// A body while it is written.
#[derive(Debug, Default)]
pub(super) struct BodyWriter {
    pieces: Vec<Bytes>,
    last: Vec<u8>,
}

impl BodyWriter {
    /// Continues a body after these pieces and the end of their field.
    pub(super) fn after(pieces: Vec<Bytes>, end: &[u8]) -> Self {
        Self { pieces, last: end.to_vec() }
    }

    /// Begins a field. Its value follows.
    pub(super) fn field(&mut self, name: &str) {
        self.last.push(if self.is_empty() { b'{' } else { b',' });
        self.last.extend_from_slice(Value::from(name).to_string().as_bytes());
        self.last.push(b':');
    }

    pub(super) fn push(&mut self, bytes: &Bytes) {
        if bytes.len() < LONG {
            return self.last.extend_from_slice(bytes);
        }
        self.pieces.extend([std::mem::take(&mut self.last).into(), bytes.clone()]);
    }

    /// Returns the pieces of the body.
    pub(super) fn finish(mut self) -> Vec<Bytes> {
        self.last.extend_from_slice(if self.is_empty() { b"{}" } else { b"}" });
        self.pieces.push(self.last.into());
        self.pieces
    }

    fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.last.is_empty()
    }
}
