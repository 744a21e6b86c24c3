//! A provider's words about a failure, without secrets.

use std::fmt;

/// A provider's report of a failure: the [source](std::error::Error::source) of the [`Error`](advisor_core::Error) about it.
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
///     error.source()?.downcast_ref::<ProviderError>()?.code.as_deref()
/// }
/// # assert_eq!(code(&Error::new(ErrorKind::Timeout, "too late")), None);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderError {
    /// The HTTP status of the response, or the one that an error inside a stream names.
    pub status: Option<u16>,
    /// The provider's message, or the beginning of the body if no error could be read from it.
    pub message: String,
    /// The provider's code, such as `context_length_exceeded`.
    pub code: Option<String>,
    /// The provider's type of error, such as `invalid_request_error`.
    pub kind: Option<String>,
    /// The field of the request that the provider rejects, such as `messages[3].content`.
    pub param: Option<String>,
    /// The server's id of the request, for questions to the provider.
    pub request_id: Option<String>,
    /// The text that the model had written when the provider refused it as a tool call (Groq). `Debug` and `Display` omit
    /// it.
    pub failed_generation: Option<String>,
}

/// Checks whether a text is a word for programs, such as `rate_limit_exceeded` or `messages[3].content`. Such a word is no
/// content of a conversation.
pub(crate) fn is_word(text: &str) -> bool {
    let in_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/[]".contains(&byte);
    !text.is_empty() && text.bytes().all(in_word)
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.as_str() {
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
