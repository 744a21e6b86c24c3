//! The bytes before a body: a byte-order mark and white space.

use bytes::{Buf, Bytes};

const BYTE_ORDER_MARK: [u8; 3] = *b"\xEF\xBB\xBF";

/// The number of bytes skipped before the body's first byte.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    skipped: u64,
    /// The number of bytes of the byte-order mark seen. The mark counts only at the very beginning.
    mark: usize,
}

impl Beginning {
    /// Checks whether any byte arrived.
    pub(super) fn has_begun(&self) -> bool {
        self.skipped > 0
    }

    /// Removes the bytes before the body from `bytes`. Returns the body's first byte and its position; `None`
    /// if it has not arrived.
    pub(super) fn skip(&mut self, bytes: &mut Bytes) -> Option<(u8, u64)> {
        while self.skipped == self.mark as u64
            && let Some(expected) = BYTE_ORDER_MARK.get(self.mark)
        {
            if bytes.first()? == expected {
                bytes.advance(1);
                self.mark += 1;
                self.skipped += 1;
            } else if let Some(held @ [first, ..]) = BYTE_ORDER_MARK.get(..self.mark) {
                // The bytes are no byte-order mark but begin another character.
                *bytes = [held, bytes].concat().into();
                return Some((*first, 0));
            } else {
                break;
            }
        }
        let blank = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        bytes.advance(blank);
        self.skipped += blank as u64;
        bytes.first().map(|first| (*first, self.skipped))
    }
}
