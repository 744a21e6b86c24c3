//! The framing of events in a body.

use advisor_core::Text;

use super::template::{Frame, Template};

/// The framing of events in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Framing {
    /// Server-sent events: an optional line with the event's name, one `data` line, and a blank line.
    Sse,
    /// JSON values, one per line.
    Lines,
    /// The elements of one JSON array, whose closing bracket ends the answer. They are decoded one at a time, with
    /// [`decode_data`](super::FastPath::decode_data).
    Array,
}

/// Returns the text of a framed event that matches the template, the bytes after its JSON, and those after the event.
#[inline(always)]
pub(super) fn read_framed<'a>(
    template: &Template,
    bytes: &'a [u8],
    framing: Framing,
    unescaped: &mut String,
) -> Option<(Text, &'a [u8], &'a [u8])> {
    let (text, rest) = template.read(bytes, Frame::There, unescaped)?;
    let behind = match framing {
        // Google ends lines with CRLF.
        Framing::Sse => rest.strip_prefix(b"\n\n").or_else(|| rest.strip_prefix(b"\r\n\r\n"))?,
        Framing::Lines | Framing::Array => rest.strip_prefix(b"\n")?,
    };
    Some((text, rest, behind))
}
