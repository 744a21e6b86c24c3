//! A list in a body, in pieces that do not change when the list grows.

use bytes::{Bytes, BytesMut};

/// The size from which a piece is full and an entry is a separate piece, in bytes. So long entries are not copied,
/// and short ones do not split a network write into many pieces.
const PIECE: usize = 64 << 10;

/// The beginning of a body up to the end of its last message. Clones share their bytes, so that the written form of
/// a list of messages can be kept and grow with the list.
///
/// ```
/// use provider_http::exchange::BodyBuffer;
///
/// let mut body = BodyBuffer::default();
/// body.push(b"{\"messages\":[", &"1".into());
/// let mut longer = body.clone();
/// longer.push(b",", &"2".into());
/// assert_eq!(longer.into_pieces().concat(), b"{\"messages\":[1,2");
/// assert_eq!(body.into_pieces().concat(), b"{\"messages\":[1");
/// ```
#[derive(Debug, Clone, Default)]
pub struct BodyBuffer(Vec<Bytes>);

impl BodyBuffer {
    /// Appends a separator and an entry.
    pub fn push(&mut self, separator: &[u8], entry: &Bytes) {
        let mut piece = self.open_piece();
        piece.extend_from_slice(separator);
        if entry.len() < PIECE {
            piece.extend_from_slice(entry);
        }
        self.0.push(piece.freeze());
        if entry.len() >= PIECE {
            self.0.push(entry.clone());
        }
    }

    /// Checks whether nothing was appended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the pieces of the body so far.
    #[must_use]
    pub fn into_pieces(self) -> Vec<Bytes> {
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

/// The pieces of a body that was written in another way.
impl From<Vec<Bytes>> for BodyBuffer {
    fn from(pieces: Vec<Bytes>) -> Self {
        Self(pieces)
    }
}
