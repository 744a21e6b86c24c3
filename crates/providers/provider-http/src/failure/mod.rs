//! Failures, in kinds that need no provider crate, and without secrets.
//!
//! Servers report the same failure in many words. The kind is therefore read from the status, from the error's
//! code and type, and last from phrases in its message.

mod classify;
mod provider_error;
mod report;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use advisor_core::{Error, ErrorKind, Text};
use http::{HeaderMap, StatusCode};

use crate::backoff::retry_after;
use crate::error::from_transport;
use crate::redaction::{Redaction, ServerWords};
use crate::transport::TransportError;
use classify::{kind_of, sentence};
pub use provider_error::ProviderError;
pub(crate) use provider_error::is_word;
pub use report::Report;
pub(crate) use report::{is_something, status};

/// The most bytes kept of a provider's message.
const LONGEST_TEXT: usize = 2 << 10;
/// The most bytes kept of a code or a type.
const LONGEST_WORD: usize = 64;
/// The most bytes kept of the text that a model had written.
const LONGEST_GENERATION: usize = 64 << 10;

/// Creates errors without secrets. Every message of a server or a transport becomes an error through this type.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failures {
    redaction: Redaction,
}

impl Failures {
    pub(crate) fn new(redaction: Redaction) -> Self {
        Self { redaction }
    }

    pub(crate) fn redaction(&self) -> &Redaction {
        &self.redaction
    }

    /// Replaces secrets, and text that looks like a secret, in a name that spans and logs show.
    pub(crate) fn hide_secrets(&self, name: &mut Option<Text>) {
        if let Some(name) = name {
            self.hide_secrets_in(name);
        }
    }

    /// Does the same for a name that is always there.
    pub(crate) fn hide_secrets_in(&self, name: &mut Text) {
        if let Cow::Owned(shown) = self.redaction.identifier(name) {
            *name = shown.into();
        }
    }

    /// Creates the error for a response whose status is no success. `body` is the beginning of the response body.
    pub(crate) fn response(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
        let body = String::from_utf8_lossy(body);
        let report = Report::in_body(&body)
            .unwrap_or_else(|| Report { message: body.trim().into(), ..Report::default() });
        let report = Report { request_id: report.request_id.or_else(|| request_id(headers)), ..report };
        let asked = retry_after(headers, SystemTime::now()).or(report.retry_after);
        self.error(report, Some(status.as_u16()), asked)
    }

    /// Creates the error for a report in an answer with status 200.
    pub(crate) fn in_answer(&self, report: Report) -> Error {
        let (status, asked) = (report.status, report.retry_after);
        self.error(report, status, asked)
    }

    fn error(&self, report: Report, status: Option<u16>, asked: Option<Duration>) -> Error {
        let kind = kind_of(&report, status, asked);
        let word = |word: Option<ServerWords>| {
            word.map(|word| self.redaction.show(&word, LONGEST_WORD)).filter(|word| !word.is_empty())
        };
        let provider = ProviderError {
            status,
            message: self.redaction.show(&report.message, LONGEST_TEXT),
            code: word(report.code),
            kind: word(report.kind),
            param: word(report.param),
            request_id: word(report.request_id),
            failed_generation: report
                .failed_generation
                .map(|text| self.redaction.show(&text, LONGEST_GENERATION)),
        };
        let error = Error::new(kind, sentence(kind, asked, &provider)).with_source(provider);
        asked.into_iter().fold(error, Error::with_retry_after)
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

    /// Creates the error for JSON at this byte that is no answer.
    pub(crate) fn no_answer(&self, position: u64, json: &ServerWords) -> Error {
        let message = "the provider answered with JSON that is no answer of its API; check the base URL";
        self.protocol(Some(position), message, json)
    }

    /// Creates the error for a web page.
    pub(crate) fn web_page(&self, page: &ServerWords) -> Error {
        let message =
            "the provider answered with a web page; check the base URL, and whether a proxy is in the way";
        self.protocol(None, message, page)
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

impl Report {
    /// Creates the error for this report, for a client that reads answers by itself. Its kind follows from the
    /// status, the code and the message; its text and its source have none of the secrets.
    ///
    /// # Example
    /// ```
    /// use advisor_core::ErrorKind;
    /// use provider_http::failure::Report;
    /// use provider_http::redaction::Redaction;
    /// use serde_json::json;
    ///
    /// let said = json!({"message": "Slow down.", "type": "tokens", "code": "rate_limit_exceeded"});
    /// let mut report = Report::read(&said);
    /// report.status = Some(429);
    /// let error = report.into_error(&Redaction::default());
    /// assert_eq!(error.kind(), ErrorKind::RateLimited { retry_after: None });
    /// ```
    #[must_use]
    pub fn into_error(self, redaction: &Redaction) -> Error {
        Failures::new(redaction.clone()).in_answer(self)
    }
}

/// Returns the server's id of the request, in the header of Anthropic or OpenAI.
fn request_id(headers: &HeaderMap) -> Option<ServerWords> {
    let id = ["request-id", "x-request-id"].iter().find_map(|name| headers.get(*name));
    id.and_then(|id| id.to_str().ok()).map(ServerWords::from)
}
