//! Failures, in kinds that need no provider crate, and without secrets.
//!
//! Servers report the same failure in many words. The kind is therefore read from the status, from the error's
//! code and type, and last from phrases in its message: see [`classify`](classify::kind_of).

mod classify;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, SystemTime};

use advisor_core::{Error, ErrorKind};
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::wire::{ErrorObject, read};
use classify::{kind_of, sentence};
use provider_http::backoff::retry_after;
use provider_http::error::from_transport;
use provider_http::redaction::{Redaction, ServerText, ServerWords};
use provider_http::transport::TransportError;

/// The most bytes kept of a provider's message.
const LONGEST_TEXT: usize = 2 << 10;
/// The most bytes kept of a code or a type.
const LONGEST_WORD: usize = 64;
/// The most bytes kept of the text that a model had written.
const LONGEST_GENERATION: usize = 64 << 10;

/// A provider's report of a failure: the [source](std::error::Error::source) of the [`Error`] about it.
///
/// The message is the provider's, at most 2 KiB, without line breaks and other control characters. It may quote
/// the request.
///
/// These secrets are redacted: the key, the values of the caller's headers and of the base URL's query, and
/// anything that looks like a key. They are redacted in whole or in pieces, in any encoding. Parts of such a
/// header or of the base URL's path count from 12 bytes on, unless they are usual words. Plain words without
/// digits count from 20 bytes on.
///
/// ```
/// use advisor_core::{Error, ErrorKind};
/// use provider_openai::ProviderError;
/// use std::error::Error as _;
///
/// fn code(error: &Error) -> Option<&str> {
///     error.source()?.downcast_ref::<ProviderError>()?.code()
/// }
/// # assert_eq!(code(&Error::new(ErrorKind::Timeout, "too late")), None);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProviderError {
    status: Option<u16>,
    message: ServerText,
    code: Option<ServerText>,
    kind: Option<ServerText>,
    param: Option<ServerText>,
    failed_generation: Option<ServerText>,
}

impl ProviderError {
    /// Returns the HTTP status of the response, or the one that an error inside a stream names.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// Returns the provider's message, or the beginning of the body if no error could be read from it.
    #[must_use]
    pub fn message(&self) -> &str {
        self.message.as_str()
    }

    /// Returns the provider's code, such as `context_length_exceeded`.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.code.as_ref().map(ServerText::as_str)
    }

    /// Returns the provider's type of error, such as `invalid_request_error`.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        self.kind.as_ref().map(ServerText::as_str)
    }

    /// Returns the field of the request that the provider rejects, such as `messages[3].content`.
    #[must_use]
    pub fn param(&self) -> Option<&str> {
        self.param.as_ref().map(ServerText::as_str)
    }

    /// Returns the text that the model had written when the provider refused it as a tool call (Groq). `Debug`
    /// and `Display` omit it.
    #[must_use]
    pub fn failed_generation(&self) -> Option<&str> {
        self.failed_generation.as_ref().map(ServerText::as_str)
    }
}

/// The part of a failure that may be logged: the provider's codes. Its sentences may quote the conversation,
/// and only the caller sees them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Logged<'a> {
    pub(crate) status: Option<u16>,
    pub(crate) code: Option<&'a str>,
    pub(crate) kind: Option<&'a str>,
    pub(crate) param: Option<&'a str>,
}

impl<'a> Logged<'a> {
    pub(crate) fn of(error: &'a Error) -> Self {
        let source =
            std::error::Error::source(error).and_then(|source| source.downcast_ref::<ProviderError>());
        let Some(said) = source else { return Self::default() };
        fn word(text: &Option<ServerText>) -> Option<&str> {
            text.as_ref().filter(|text| text.is_word()).map(ServerText::as_str)
        }
        Self { status: said.status, code: word(&said.code), kind: word(&said.kind), param: word(&said.param) }
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message() {
            "" => f.write_str("the provider gave no reason"),
            message => write!(f, "the provider said: {message}"),
        }
    }
}

impl fmt::Debug for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderError")
            .field("status", &self.status)
            .field("code", &self.code)
            .field("kind", &self.kind)
            .field("param", &self.param)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for ProviderError {}

/// An error, and the delay that the server asks for before the next attempt.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: Error,
    pub(crate) asked: Option<Duration>,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self { asked: error.retry_after(), error }
    }
}

/// Creates errors without secrets. Every message of a server or a transport becomes an error through this type.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failures {
    redaction: Redaction,
}

impl Failures {
    pub(crate) fn new(redaction: Redaction) -> Self {
        Self { redaction }
    }

    /// Returns the redaction of the server's messages.
    pub(crate) fn redaction(&self) -> &Redaction {
        &self.redaction
    }

    /// Creates the error for a response whose status is no success. `body` is the beginning of the response
    /// body.
    pub(crate) fn response(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failed {
        let body = String::from_utf8_lossy(body);
        let said = read(&body).and_then(|body: Value| ErrorObject::find(&body));
        let said =
            said.unwrap_or_else(|| ErrorObject { message: body.trim().into(), ..ErrorObject::default() });
        let asked = retry_after(headers, SystemTime::now());
        Failed { error: self.said(said, Some(status.as_u16()), asked), asked }
    }

    /// Creates the error for an error object in an answer with status 200.
    pub(crate) fn in_answer(&self, said: ErrorObject) -> Error {
        let status = said.status;
        self.said(said, status, None)
    }

    fn said(&self, said: ErrorObject, status: Option<u16>, asked: Option<Duration>) -> Error {
        let kind = kind_of(&said, status, asked);
        let word = |word: Option<ServerWords>| {
            word.map(|word| self.redaction.show(&word, LONGEST_WORD)).filter(|word| !word.is_empty())
        };
        let provider = ProviderError {
            status,
            message: self.redaction.show(&said.message, LONGEST_TEXT),
            code: word(said.code),
            kind: word(said.kind),
            param: word(said.param),
            failed_generation: said
                .failed_generation
                .map(|text| self.redaction.show(&text, LONGEST_GENERATION)),
        };
        Error::new(kind, sentence(kind, &provider)).with_source(provider)
    }

    /// Creates the error for a violation of the protocol. `body` is the part of the body that arrived.
    pub(crate) fn protocol(
        &self,
        position: Option<u64>,
        message: impl Into<Cow<'static, str>>,
        body: &ServerWords,
    ) -> Error {
        let error = Error::new(ErrorKind::Protocol { position }, message);
        if body.is_empty() {
            return error;
        }
        let message = self.redaction.show(body, LONGEST_TEXT);
        error.with_source(ProviderError { message, ..ProviderError::default() })
    }

    /// Creates the error for a content type that no answer has.
    pub(crate) fn other_type(&self, content_type: &ServerWords) -> Error {
        let content_type = self.redaction.show(content_type, LONGEST_WORD);
        let message = format!(
            "the provider answered with `{content_type}` and nothing that could be read; check the base URL"
        );
        self.protocol(None, message, &ServerWords::default())
    }

    /// Creates the error for a failed exchange.
    pub(crate) fn transport(&self, error: TransportError) -> Error {
        from_transport(error, &self.redaction)
    }
}
