//! What stands before a body: a byte-order mark, and white space.

use bytes::{Buf, Bytes};

const BYTE_ORDER_MARK: [u8; 3] = *b"\xEF\xBB\xBF";

/// How much of a body was skipped while nothing of it was seen.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    skipped: u64,
    /// How much of the byte-order mark came. It is one only at the very beginning.
    mark: usize,
}

impl Beginning {
    /// Whether any byte came.
    pub(super) fn has_begun(&self) -> bool {
        self.skipped > 0
    }

    /// Takes the next bytes and drops of them what stands before the body: the body's first byte, and where it is. `None` if it
    /// is not there yet.
    pub(super) fn skip(&mut self, bytes: &mut Bytes) -> Option<(u8, u64)> {
        while self.skipped == self.mark as u64
            && let Some(expected) = BYTE_ORDER_MARK.get(self.mark)
        {
            if bytes.first()? == expected {
                bytes.advance(1);
                self.mark += 1;
                self.skipped += 1;
            } else if let Some(held @ [first, ..]) = BYTE_ORDER_MARK.get(..self.mark) {
                // It was none after all, but the beginning of another character.
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
