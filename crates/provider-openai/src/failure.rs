//! Failures, in kinds that need no provider crate, and without secrets.
//!
//! Servers report the same failure under many words, so the kind is read from the status, from the error's code and type, and
//! last from phrases in its message: see [`classify`](classify::kind_of).

mod classify;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use advisor_core::{Error, ErrorKind};
use http::{HeaderMap, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::backoff::retry_after;
use crate::transport::TransportError;
use crate::wire::ErrorObject;
use classify::{kind_of, sentence};

/// The most that is kept of a provider's words, in bytes.
const LONGEST_TEXT: usize = 2 << 10;
/// The most that is kept of a code or a type.
const LONGEST_WORD: usize = 64;
/// The shortest secret that is blanked out, in bytes.
const SHORTEST_SECRET: usize = 6;

/// What a provider said when it failed: the [source](std::error::Error::source) of the [`Error`] that reports it.
///
/// Its words are the provider's: at most 2 KiB, without line breaks and other control characters, and with the key and the
/// values of the caller's own headers blanked out. They may quote the request.
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
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderError {
    status: Option<u16>,
    message: String,
    code: Option<String>,
    kind: Option<String>,
    failed_generation: Option<String>,
}

impl ProviderError {
    /// The HTTP status of the response, or the one that an error inside a stream names.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// The provider's words; the beginning of the body where it was no error that can be read.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The provider's code, such as `context_length_exceeded`.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// The provider's type of error, such as `invalid_request_error`.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// What the model had written when the provider refused it as a tool call (Groq). It is no part of `Debug` or `Display`.
    #[must_use]
    pub fn failed_generation(&self) -> Option<&str> {
        self.failed_generation.as_deref()
    }
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
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for ProviderError {}

/// An error, and how long the server wants to be left alone before the next attempt.
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

/// Makes errors that hold none of these secrets.
#[derive(Clone, Default)]
pub(crate) struct Failures {
    secrets: Arc<[SecretString]>,
}

impl Failures {
    /// Of the secrets, those that are so short that they occur by chance are not looked for.
    pub(crate) fn new(secrets: impl Iterator<Item = SecretString>) -> Self {
        Self { secrets: secrets.filter(|secret| secret.expose_secret().len() >= SHORTEST_SECRET).collect() }
    }

    /// What a response means whose status is no success. `body` is its beginning.
    pub(crate) fn response(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failed {
        let said = serde_json::from_slice(body).ok().and_then(|body: Value| ErrorObject::find(&body));
        let said = said.unwrap_or_else(|| ErrorObject {
            message: String::from_utf8_lossy(body).trim().to_owned(),
            ..ErrorObject::default()
        });
        let asked = retry_after(headers, SystemTime::now());
        Failed { error: self.said(said, Some(status.as_u16()), asked), asked }
    }

    /// What an error inside an answer with status 200 means.
    pub(crate) fn in_answer(&self, said: ErrorObject) -> Error {
        let status = said.status;
        self.said(said, status, None)
    }

    fn said(&self, said: ErrorObject, status: Option<u16>, asked: Option<Duration>) -> Error {
        let kind = kind_of(&said, status, asked);
        let word = |word: Option<String>| {
            word.map(|word| self.clean(&word, LONGEST_WORD)).filter(|word| !word.is_empty())
        };
        let provider = ProviderError {
            status,
            message: self.clean(&said.message, LONGEST_TEXT),
            code: word(said.code),
            kind: word(said.kind),
            failed_generation: said.failed_generation.map(|text| self.clean(&text, usize::MAX)),
        };
        Error::new(kind, sentence(kind, &provider)).with_source(provider)
    }

    /// What came is not what the protocol says. `body` is what there is of it.
    pub(crate) fn protocol(&self, position: Option<u64>, message: String, body: &str) -> Error {
        let error = Error::new(ErrorKind::Protocol { position }, message);
        let message = self.clean(body, LONGEST_TEXT);
        if message.is_empty() {
            return error;
        }
        let none = None::<String>;
        error.with_source(ProviderError {
            status: None,
            message,
            code: none.clone(),
            kind: none.clone(),
            failed_generation: none,
        })
    }

    /// The words without secrets and control characters, cut to `longest` bytes.
    fn clean(&self, words: &str, longest: usize) -> String {
        let mut words = words.to_owned();
        for secret in self.secrets.iter().map(ExposeSecret::expose_secret).filter(|secret| !secret.is_empty())
        {
            if words.contains(secret) {
                words = words.replace(secret, "[secret]");
            }
        }
        let mut words: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        words.truncate(words.floor_char_boundary(longest));
        words
    }
}

impl fmt::Debug for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failures").finish_non_exhaustive()
    }
}

/// What a failed exchange means.
pub(crate) fn of_transport(error: TransportError) -> Error {
    let (kind, message) = match &error {
        TransportError::Connect { .. } => (
            ErrorKind::Connection,
            "could not connect to the provider; check the base URL and that the server runs",
        ),
        TransportError::TimedOut(_) => (
            ErrorKind::Timeout,
            "the provider took too long; raise the clock in `Timeouts` if it needs more time",
        ),
        TransportError::Broken { .. } => {
            (ErrorKind::Connection, "the connection to the provider broke before the answer was complete")
        }
        _ => {
            (ErrorKind::Configuration, "the request could not be sent; check the base URL and the transport")
        }
    };
    Error::new(kind, message).with_source(error)
}
