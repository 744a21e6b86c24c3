//! Errors of bodies that are not what the protocol says. They tell where, and nothing of what stands there.

use advisor_core::{Error, ErrorKind};

use crate::sse::SseError;

pub(super) fn of_sse(error: &SseError, from: u64) -> Error {
    match error {
        SseError::InvalidUtf8 { position } => not_utf8(from + position),
        SseError::TooLarge { .. } => Error::new(ErrorKind::TooLarge, error.to_string()),
    }
}

pub(super) fn not_utf8(position: u64) -> Error {
    let kind = ErrorKind::Protocol { position: Some(position) };
    Error::new(kind, format!("the answer is not valid UTF-8 at byte {position}"))
}

/// The parser's own words may quote the answer, so only the place is told.
pub(super) fn malformed(error: &serde_json::Error, position: u64) -> Error {
    let kind = ErrorKind::Protocol { position: Some(position) };
    let (line, column) = (error.line(), error.column());
    let place = format!("line {line}, column {column} of the JSON that begins at byte {position}");
    Error::new(kind, format!("the provider sent malformed JSON: {place}"))
}
