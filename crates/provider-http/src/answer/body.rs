//! The body of a response, decoded by its kind.

use advisor_core::Result;
use bytes::Bytes;

use super::beginning::Beginning;
use super::end::End;
use super::progress::{Progress, ReadAs};
use super::wire_format::WireFormat;
use crate::error::{from_json, malformed_json};
use crate::fast_path::Framing;
use crate::json::{JsonDecoder, JsonError, Layout};
use crate::sse::{SseDecoder, SseLimits};

/// The most bytes kept of a web page, for the error.
const LONGEST_PAGE: usize = 64 << 10;

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
        decoder: Box<JsonDecoder>,
        /// The position of the decoder's first byte in the body.
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
            let Some(known) = Self::new(&body, from, framing, limits) else { return beginning.hold(body) };
            *self = known;
            bytes = body;
        }
        self.append(bytes, limits);
    }

    /// Ends the bytes. If they do not decide the kind of the body, they are no server-sent events.
    pub(super) fn end(&mut self, limits: SseLimits) {
        if let Self::Unknown(beginning) = self
            && let Some((body, from)) = beginning.push(Bytes::new())
        {
            *self = Self::json(Layout::Values, from, limits);
            self.append(body, limits);
        }
    }

    fn append(&mut self, bytes: Bytes, limits: SseLimits) {
        match self {
            Self::Events { decoder, .. } => decoder.push(bytes),
            Self::Json { decoder, .. } => decoder.push(&bytes),
            Self::Page(page) => {
                let room = LONGEST_PAGE.min(limits.event).saturating_sub(page.len());
                page.extend_from_slice(bytes.get(..room).unwrap_or(&bytes));
            }
            Self::Unknown(_) | Self::Over => {}
        }
    }

    /// Checks whether the body is one array of JSON values.
    pub(super) fn is_array(&self) -> bool {
        matches!(self, Self::Json { decoder, .. } if decoder.layout() == Layout::Array)
    }

    /// Returns the kind of a body that begins with these bytes at `from`; `None` if they do not decide it.
    fn new(bytes: &[u8], from: u64, framing: Framing, limits: SseLimits) -> Option<Self> {
        let first = bytes.first()?;
        Some(match (framing, first) {
            (_, b'<') => Self::Page(Vec::new()),
            (Framing::Array | Framing::Sse, b'[') => Self::json(Layout::Array, from, limits),
            (Framing::Sse, b'{') => Self::json(Layout::Values, from, limits),
            (Framing::Lines | Framing::Array, _) if may_begin_event(bytes) => return None,
            (Framing::Lines | Framing::Array, _) if !begins_event(bytes) => {
                Self::json(Layout::Values, from, limits)
            }
            _ => Self::Events { decoder: Box::new(SseDecoder::new(limits)), from },
        })
    }

    fn json(layout: Layout, from: u64, limits: SseLimits) -> Self {
        Self::Json { decoder: Box::new(JsonDecoder::new(layout, limits.event)), from }
    }
}

/// The beginnings of a stream of server-sent events. No JSON begins so. A word that only looks similar, such as `error`,
/// is the text of a server.
const EVENT_BEGINNINGS: [&[u8]; 5] = [b":", b"data:", b"event:", b"id:", b"retry:"];

/// Checks whether a body that begins with these bytes is a stream of server-sent events.
fn begins_event(bytes: &[u8]) -> bool {
    EVENT_BEGINNINGS.iter().any(|beginning| bytes.starts_with(beginning))
}

/// Checks whether more bytes are needed to know that.
fn may_begin_event(bytes: &[u8]) -> bool {
    EVENT_BEGINNINGS.iter().any(|beginning| beginning.len() > bytes.len() && beginning.starts_with(bytes))
}

/// Reads the next JSON value of a body whose decoder began at `from`. Returns false if none is complete.
///
/// After the end of an answer only usage counts. An error then ends the body and is ignored by its caller.
pub(super) fn read_value<W: WireFormat>(
    decoder: &mut JsonDecoder,
    from: u64,
    progress: &mut Progress<W>,
) -> Result<bool> {
    let is_over = progress.end == End::Done;
    let value = match decoder.next_value() {
        Ok(Some(value)) => value,
        Ok(None) => return Ok(false),
        // The answer is complete, so a value that the end of the body cuts is ignored.
        Err(JsonError::Truncated) if progress.end != End::Open => return Ok(false),
        Err(error) => return Err(from_json(&error, from)),
    };
    let position = from + value.position;
    match progress.read_value(value.json) {
        Ok(ReadAs::Whole) => progress.mark_done(),
        Ok(ReadAs::Piece) => {}
        Err(error) => return Err(malformed_json(&error, position)),
        Ok(ReadAs::Unknown) if is_over => {}
        // In a stream, an unknown value may belong to a later version. Alone it shows that the address is wrong.
        Ok(ReadAs::Unknown) if W::FRAMING != Framing::Sse || progress.arrival.has_answer() => {}
        Ok(ReadAs::Unknown) => {
            let error = progress.failures.no_answer(position, &value.json.into());
            // A later element of an array may be an answer.
            if !progress.is_array {
                return Err(error);
            }
            progress.arrival.note_no_answer(error);
        }
    }
    Ok(true)
}
