//! A provider's words about a failure, without secrets.

use std::fmt;

use advisor_core::Error;

use crate::redaction::ServerText;

/// A provider's report of a failure: the [source](std::error::Error::source) of the [`Error`] about it.
///
/// The message is the provider's, at most 2 KiB, without line breaks and other control characters. It may quote
/// the request.
///
/// These secrets are redacted: the key, the values of the caller's headers and of the base URL's query, also as they stand in
/// a URL or in JSON, and anything that looks like a key.
///
/// ```
/// use advisor_core::{Error, ErrorKind};
/// use provider_http::failure::ProviderError;
/// use std::error::Error as _;
///
/// fn code(error: &Error) -> Option<&str> {
///     error.source()?.downcast_ref::<ProviderError>()?.code()
/// }
/// # assert_eq!(code(&Error::new(ErrorKind::Timeout, "too late")), None);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProviderError {
    pub(super) status: Option<u16>,
    pub(super) message: ServerText,
    pub(super) code: Option<ServerText>,
    pub(super) kind: Option<ServerText>,
    pub(super) param: Option<ServerText>,
    pub(super) request_id: Option<ServerText>,
    pub(super) failed_generation: Option<ServerText>,
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

    /// Returns the server's id of the request, for questions to the provider.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_ref().map(ServerText::as_str)
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
    pub(crate) fn from_error(error: &'a Error) -> Self {
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
            .field("request_id", &self.request_id)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for ProviderError {}
