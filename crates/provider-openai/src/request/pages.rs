//! The list of messages of a body, in pieces that do not change when it grows.

use bytes::{Bytes, BytesMut};

/// What is as long as this, in bytes, is a piece of its own: so a message is not copied if it is long, and what goes to the
/// network in one write is not cut into many pieces if messages are short.
const PAGE: usize = 64 << 10;

/// A list of messages without its end. Clones share their bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct Pages(Vec<Bytes>);

impl Pages {
    /// Adds a message at the end.
    pub(super) fn push(&mut self, message: &Bytes) {
        let separator: &[u8] = if self.0.is_empty() { b"{\"messages\":[" } else { b"," };
        let mut page = self.open_page();
        page.extend_from_slice(separator);
        if message.len() < PAGE {
            page.extend_from_slice(message);
        }
        self.0.push(page.freeze());
        if message.len() >= PAGE {
            self.0.push(message.clone());
        }
    }

    /// The pieces of a body up to the end of its messages.
    pub(super) fn pieces(mut self) -> Vec<Bytes> {
        if self.0.is_empty() {
            self.0.push(Bytes::from_static(b"{\"messages\":["));
        }
        self.0
    }

    /// The last page if there is room in it. Its bytes are copied if a request still holds them.
    fn open_page(&mut self) -> BytesMut {
        match self.0.pop() {
            Some(last) if last.len() < PAGE => {
                last.try_into_mut().unwrap_or_else(|last| BytesMut::from(&last[..]))
            }
            full => {
                self.0.extend(full);
                BytesMut::new()
            }
        }
    }
}
