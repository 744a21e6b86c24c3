//! The body of a response, decoded by its kind.

use std::mem;

use bytes::{Buf, Bytes};

use super::values::Values;
use super::wire_format::Framing;
use crate::sse::{SseDecoder, SseLimits};

/// The most bytes kept of a web page, for the error.
const LONGEST_PAGE: usize = 64 << 10;
const BYTE_ORDER_MARK: [u8; 3] = *b"\xEF\xBB\xBF";
/// The beginnings of a stream of server-sent events. No JSON begins so. A word that only looks similar, such as `error`,
/// is the text of a server.
const EVENT_BEGINNINGS: [&[u8]; 5] = [b":", b"data:", b"event:", b"id:", b"retry:"];

/// A body by its kind.
pub(super) enum Body {
    /// Nothing so far that decides the kind.
    Unknown(Beginning),
    /// Server-sent events.
    Events {
        decoder: Box<SseDecoder>,
        /// The position of the decoder's first byte in the body.
        from: u64,
    },
    /// JSON values.
    Json {
        values: Box<Values>,
        /// The position of the first value's first byte in the body.
        from: u64,
    },
    /// A web page. It is read only for the error.
    Page(Vec<u8>),
    Over,
}

impl Default for Body {
    fn default() -> Self {
        Self::Unknown(Beginning::default())
    }
}

impl Body {
    /// Appends bytes. The first bytes that count determine the kind of the body.
    pub(super) fn push(&mut self, mut bytes: Bytes, framing: Framing, limits: SseLimits) {
        if let Self::Unknown(beginning) = self {
            let Some((body, from)) = beginning.push(bytes) else { return };
            let Some(known) = Self::new(&body, from, framing, limits) else {
                beginning.held = body;
                return;
            };
            *self = known;
            bytes = body;
        }
        self.append(&bytes, limits);
    }

    /// Ends the bytes. If they do not decide the kind of the body, they are no server-sent events.
    pub(super) fn end(&mut self, limits: SseLimits) {
        if let Self::Unknown(beginning) = self
            && let Some((body, from)) = beginning.push(Bytes::new())
        {
            *self = Self::Json { values: Box::new(Values::new(limits.event)), from };
            self.append(&body, limits);
        }
    }

    fn append(&mut self, bytes: &[u8], limits: SseLimits) {
        match self {
            Self::Events { decoder, .. } => decoder.push(bytes),
            Self::Json { values, .. } => values.push(bytes),
            Self::Page(page) => {
                let room = LONGEST_PAGE.min(limits.event).saturating_sub(page.len());
                page.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
            }
            Self::Unknown(_) | Self::Over => {}
        }
    }

    /// Returns the kind of a body that begins with these bytes at `from`; `None` if they do not decide it.
    fn new(bytes: &[u8], from: u64, framing: Framing, limits: SseLimits) -> Option<Self> {
        let begins_event = EVENT_BEGINNINGS.iter().any(|beginning| bytes.starts_with(beginning));
        let may_begin_event = EVENT_BEGINNINGS.iter().any(|beginning| beginning.starts_with(bytes));
        Some(match (framing, bytes.first()?) {
            (_, b'<') => Self::Page(Vec::new()),
            (Framing::Lines, _) if !begins_event && may_begin_event => return None,
            (Framing::Sse, b'{' | b'[') => Self::Json { values: Box::new(Values::new(limits.event)), from },
            (Framing::Lines, _) if !begins_event => {
                Self::Json { values: Box::new(Values::new(limits.event)), from }
            }
            _ => Self::Events { decoder: Box::new(SseDecoder::new(limits)), from },
        })
    }
}

/// The bytes before the kind of a body is known: a byte-order mark, white space, and first bytes that do not decide.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    /// The number of bytes skipped before the body's first byte.
    skipped: u64,
    /// The first bytes of the body, which do not decide its kind, or of a byte-order mark.
    held: Bytes,
}

impl Beginning {
    /// Checks whether any byte arrived.
    pub(super) fn has_begun(&self) -> bool {
        self.skipped > 0 || !self.held.is_empty()
    }

    /// Appends bytes. Returns the body so far and its position; `None` if its first byte has not arrived.
    fn push(&mut self, bytes: Bytes) -> Option<(Bytes, u64)> {
        let mut bytes =
            if self.held.is_empty() { bytes } else { [mem::take(&mut self.held), bytes].concat().into() };
        // The mark counts only at the very beginning.
        if self.skipped == 0 && BYTE_ORDER_MARK.starts_with(&bytes) && bytes.len() < BYTE_ORDER_MARK.len() {
            self.held = bytes;
            return None;
        }
        let mark =
            if self.skipped == 0 && bytes.starts_with(&BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        bytes.advance(mark);
        let blank = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        bytes.advance(blank);
        self.skipped += (mark + blank) as u64;
        (!bytes.is_empty()).then_some((bytes, self.skipped))
    }
}
