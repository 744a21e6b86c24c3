//! The bytes before a body: a byte-order mark and white space; and its first bytes, while its kind is unknown.

use std::mem;

use bytes::{Buf, Bytes};

const BYTE_ORDER_MARK: [u8; 3] = *b"\xEF\xBB\xBF";

/// The bytes before the kind of a body is known.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    /// The number of bytes skipped before the body's first byte.
    skipped: u64,
    /// The number of bytes of the byte-order mark seen. The mark counts only at the very beginning.
    mark: usize,
    /// The first bytes of the body, which do not decide its kind.
    held: Bytes,
}

impl Beginning {
    /// Checks whether any byte arrived.
    pub(super) fn has_begun(&self) -> bool {
        self.skipped > 0 || !self.held.is_empty()
    }

    /// Appends bytes. Returns the body so far and its position; `None` if its first byte has not arrived.
    pub(super) fn push(&mut self, bytes: Bytes) -> Option<(Bytes, u64)> {
        let mut bytes =
            if self.held.is_empty() { bytes } else { [mem::take(&mut self.held), bytes].concat().into() };
        let from = self.skip(&mut bytes)?;
        Some((bytes, from))
    }

    /// Holds the body so far until more of it arrives.
    pub(super) fn hold(&mut self, bytes: Bytes) {
        self.held = bytes;
    }

    /// Removes the bytes before the body from `bytes`. Returns the position of the body's first byte; `None` if it has
    /// not arrived.
    fn skip(&mut self, bytes: &mut Bytes) -> Option<u64> {
        while self.skipped == self.mark as u64
            && let Some(expected) = BYTE_ORDER_MARK.get(self.mark)
        {
            if bytes.first()? == expected {
                bytes.advance(1);
                self.mark += 1;
                self.skipped += 1;
            } else if let Some(held @ [_, ..]) = BYTE_ORDER_MARK.get(..self.mark) {
                // The bytes are no byte-order mark but begin another character.
                *bytes = [held, bytes].concat().into();
                return Some(0);
            } else {
                break;
            }
        }
        let blank = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        bytes.advance(blank);
        self.skipped += blank as u64;
        bytes.first().map(|_| self.skipped)
    }
}
