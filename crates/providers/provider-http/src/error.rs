//! Conversion of transport and decoding failures into the error that crosses crates.

use advisor_core::{Error, ErrorKind};

use crate::redaction::Redaction;
use crate::sse::SseError;
use crate::transport::TransportError;

/// Maximum bytes shown of the message of an error's sources.
const LONGEST_SOURCE: usize = 2048;

/// Converts a transport error into the error for the caller, without secrets.
pub(crate) fn from_transport(error: TransportError, redaction: &Redaction) -> Error {
    let (kind, message) = match &error {
        TransportError::Connect { .. } => (
            ErrorKind::Connection,
            "could not connect to the provider; check the base URL and that the server runs",
        ),
        TransportError::TimedOut(_) => (
            ErrorKind::Timeout,
            "the provider took too long; raise the timeout in `Timeouts` if it needs more time",
        ),
        TransportError::Broken { .. } => {
            (ErrorKind::Connection, "the connection to the provider broke before the answer was complete")
        }
        _ => {
            (ErrorKind::Configuration, "the request could not be sent; check the base URL and the transport")
        }
    };
    Error::new(kind, message).with_source(without_secrets(error, redaction))
}

/// Returns the error of a body that is no valid event stream. `from` is the position in the body of the decoder's
/// first byte.
pub(crate) fn from_sse(error: &SseError, from: u64) -> Error {
    match error {
        SseError::InvalidUtf8 { position } => not_utf8(from + position),
        SseError::TooLarge { .. } => Error::new(ErrorKind::TooLarge, error.to_string()),
    }
}

/// Returns the error of an answer of which a wire format would have to keep more bytes than this.
pub(crate) fn too_large(limit: usize) -> Error {
    Error::new(
        ErrorKind::TooLarge,
        format!("a part of the answer that arrives in pieces is longer than {limit} bytes"),
    )
}

/// Returns the error of a body that is not UTF-8 at this byte.
pub(crate) fn not_utf8(position: u64) -> Error {
    let kind = ErrorKind::Protocol { position: Some(position) };
    Error::new(kind, format!("the answer is not valid UTF-8 at byte {position}"))
}

/// Returns the error of malformed JSON that begins at this byte of the body. The parser's message may quote the
/// answer, so only the position is reported.
pub(crate) fn malformed_json(error: &serde_json::Error, position: u64) -> Error {
    let kind = ErrorKind::Protocol { position: Some(position) };
    let (line, column) = (error.line(), error.column());
    let place = format!("line {line}, column {column} of the JSON that begins at byte {position}");
    Error::new(kind, format!("the provider sent malformed JSON: {place}"))
}

/// Returns the error unchanged, or, if a source contains anything to hide, with the redacted text of its sources.
fn without_secrets(error: TransportError, redaction: &Redaction) -> TransportError {
    let mut all = format!("{error:?}");
    let mut texts = Vec::new();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        all.push_str(&format!(" {cause:?} {cause}"));
        texts.push(cause.to_string());
        source = cause.source();
    }
    if !redaction.would_redact(&all) {
        return error;
    }
    let text = redaction.show(&texts.join(": ").into(), LONGEST_SOURCE);
    match error {
        TransportError::Connect { .. } => TransportError::Connect { source: text.into() },
        TransportError::Broken { .. } => TransportError::Broken { source: text.into() },
        TransportError::Other { .. } => TransportError::Other { source: text.into() },
        timed_out @ TransportError::TimedOut(_) => timed_out,
    }
}
