//! The messages of a body, in pieces that do not change when the list grows.

use bytes::{Bytes, BytesMut};

/// The size from which a piece is full and a message is a separate piece, in bytes. So long messages are not
/// copied, and short ones do not split a network write into many pieces.
const PIECE: usize = 64 << 10;

/// The body up to the end of its last message. Clones share their bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct BodyBuffer(Vec<Bytes>);

impl BodyBuffer {
    /// Appends a message.
    pub(super) fn push(&mut self, message: &Bytes) {
        let separator: &[u8] = if self.0.is_empty() { b"{\"messages\":[" } else { b"," };
        let mut piece = self.open_piece();
        piece.extend_from_slice(separator);
        if message.len() < PIECE {
            piece.extend_from_slice(message);
        }
        self.0.push(piece.freeze());
        if message.len() >= PIECE {
            self.0.push(message.clone());
        }
    }

    /// Returns the pieces of a body up to the end of its messages.
    pub(super) fn pieces(mut self) -> Vec<Bytes> {
        if self.0.is_empty() {
            self.0.push(Bytes::from_static(b"{\"messages\":["));
        }
        self.0
    }

    /// Removes the last piece and returns it if it has space, otherwise an empty one. The bytes are copied if a
    /// request still holds them.
    fn open_piece(&mut self) -> BytesMut {
        match self.0.pop() {
            Some(last) if last.len() < PIECE => {
                last.try_into_mut().unwrap_or_else(|last| BytesMut::from(&last[..]))
            }
            full => {
                self.0.extend(full);
                BytesMut::new()
            }
        }
    }
}
