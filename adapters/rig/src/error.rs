//! Errors of models, in kinds and without secrets.

use std::error::Error as StdError;
use std::time::SystemTime;

use advisor_core::{Error, ErrorKind, text_with_sources};
use provider_http::backoff::retry_after;
use provider_http::failure::Report;
use provider_http::redaction::Redaction;
use rig_core::ProviderResponseError;
use rig_core::error::ProviderError;
use rig_core::http_client;
use serde_json::Value;

/// The most bytes kept of the text of an error.
const LONGEST_TEXT: usize = 2 << 10;

/// Creates errors without the secrets that the caller has named.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failures {
    redaction: Redaction,
}

impl Failures {
    pub(crate) fn new(redaction: Redaction) -> Self {
        Self { redaction }
    }

    pub(crate) fn of(&self, error: &ProviderError) -> Error {
        match error {
            ProviderError::ProviderResponse(said) | ProviderError::InvalidAuthentication(said) => {
                self.refused(said)
            }
            ProviderError::Provider(said) => self.reported(said),
            ProviderError::Http(error) => self.of_exchange(error),
            ProviderError::Truncated => {
                Error::new(ErrorKind::Truncated, "the answer ended before the provider ended it")
            }
            // The texts of a parser may quote the answer.
            ProviderError::Json(_) | ProviderError::Response(_) => {
                let what = "the provider sent something that is no answer of its API; check the address";
                Error::new(ErrorKind::Protocol { position: None }, what)
            }
            ProviderError::CacheExpired { .. } => {
                let what = "content that the provider had cached is gone; ask without it";
                Error::new(ErrorKind::NotFound, what)
            }
            other => {
                let what = "rig refuses the request; check the model, the messages and the options";
                self.with_text(ErrorKind::Configuration, what, &text_with_sources(other))
            }
        }
    }

    fn refused(&self, said: &ProviderResponseError) -> Error {
        let mut report = report_in(&said.body);
        report.code = report.code.or_else(|| said.code.as_deref().map(Into::into));
        // A failure inside an answer has the status of the answer.
        let status = said.status.filter(|status| !status.is_success());
        report.status = status.map(|status| status.as_u16()).or(report.status);
        let asked = said.headers.as_ref().and_then(|headers| retry_after(headers, SystemTime::now()));
        report.retry_after = asked.or(report.retry_after);
        report.into_error(&self.redaction)
    }

    fn reported(&self, said: &str) -> Error {
        report_in(said).into_error(&self.redaction)
    }

    fn of_exchange(&self, error: &http_client::Error) -> Error {
        let (kind, what) = match error {
            http_client::Error::Protocol(_) | http_client::Error::InvalidHeaderValue(_) => {
                (ErrorKind::Configuration, "the request could not be sent; check the address and the headers")
            }
            http_client::Error::InvalidContentType(_) | http_client::Error::NoHeaders => {
                let what = "the provider's answer is no event stream; check the address";
                (ErrorKind::Protocol { position: None }, what)
            }
            http_client::Error::Instance(error) => kind_of_exchange(&**error),
            _ => (ErrorKind::Connection, BROKEN),
        };
        self.with_text(kind, what, &shown(error))
    }

    fn with_text(&self, kind: ErrorKind, what: &'static str, text: &str) -> Error {
        let shown = self.redaction.show(&text.into(), LONGEST_TEXT);
        Error::new(kind, what).with_source(shown.to_string())
    }
}

const BROKEN: &str = "the connection to the provider broke before the answer was complete";

fn kind_of_exchange(error: &(dyn StdError + 'static)) -> (ErrorKind, &'static str) {
    match in_chain::<reqwest::Error>(error) {
        Some(error) if error.is_timeout() => {
            let what = "the provider took too long; raise the timeouts of the client if it needs more";
            (ErrorKind::Timeout, what)
        }
        Some(error) if error.is_builder() => {
            (ErrorKind::Configuration, "the request could not be sent; check the address and the headers")
        }
        Some(error) if error.is_connect() => {
            let what = "could not connect to the provider; check the address, and that the server runs";
            (ErrorKind::Connection, what)
        }
        _ => (ErrorKind::Connection, BROKEN),
    }
}

fn in_chain<'a, E: StdError + 'static>(mut error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    loop {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        error = error.source()?;
    }
}

/// Returns the text of a failed exchange. That of reqwest's outermost error has the address.
fn shown(error: &http_client::Error) -> String {
    match error {
        http_client::Error::Instance(error) => {
            let inner = in_chain::<reqwest::Error>(&**error).and_then(StdError::source);
            inner.map(text_with_sources).unwrap_or_default()
        }
        error => error.to_string(),
    }
}

/// Returns the report in a body, or the body as a message.
fn report_in(body: &str) -> Report {
    let json: Option<Value> = serde_json::from_str(body).ok();
    let mut report = json.as_ref().and_then(Report::find).unwrap_or_default();
    if json.is_none() {
        report.message = body.trim().into();
    }
    report
}
