//! Errors of the client, in kinds and without secrets.

use advisor_core::{Error, ErrorKind, text_with_sources};
use async_openai::config::Config;
use async_openai::error::{ApiErrorResponse, OpenAIError, StreamError};
use provider_http::failure::Report;
use provider_http::redaction::{Redaction, ServerWords};
use serde_json::Value;

/// The most bytes kept of the text of an error.
const LONGEST_TEXT: usize = 2 << 10;
/// The beginning of the client's text about a broken body.
const BROKEN: &str = "Transport error";

/// Creates errors without the secrets of a client.
#[derive(Debug, Clone)]
pub(crate) struct Failures {
    redaction: Redaction,
}

impl Failures {
    pub(crate) fn new(config: &impl Config) -> Self {
        let headers = config.headers();
        let own = headers.iter().filter(|(name, _)| !name.as_str().starts_with("openai-"));
        let values = own.filter_map(|(_, value)| value.to_str().ok());
        let secrets = values.map(|value| value.strip_prefix("Bearer ").unwrap_or(value).to_owned().into());
        let secrets: Vec<_> = secrets.chain([config.api_key().clone()]).collect();
        Self { redaction: Redaction::new(secrets.into_iter()) }
    }

    /// Creates the error for a request without an answer.
    pub(crate) fn of_request(&self, error: OpenAIError) -> Error {
        match error {
            // The client keeps the body of a refusal that it cannot read, and loses the status.
            OpenAIError::JSONDeserialize(_, body) => {
                let error = self.reported(report_in(&body), None);
                match error.kind() {
                    ErrorKind::Provider { status: None } => self.refused(&body),
                    _ => error,
                }
            }
            error => self.of(error),
        }
    }

    /// Returns the event that the client could not read, or the error that ends the answer.
    pub(crate) fn event_of(&self, error: OpenAIError) -> Result<Value, Error> {
        match error {
            OpenAIError::JSONDeserialize(error, event) => serde_json::from_str(&event).map_err(|_| {
                let place = format!("line {}, column {} of an event", error.line(), error.column());
                let kind = ErrorKind::Protocol { position: None };
                Error::new(kind, format!("the provider sent malformed JSON: {place}"))
            }),
            error => Err(self.of(error)),
        }
    }

    /// Creates the error for a report of the server.
    pub(crate) fn reported(&self, mut report: Report, status: Option<u16>) -> Error {
        report.status = status.or(report.status);
        report.into_error(&self.redaction)
    }

    fn of(&self, error: OpenAIError) -> Error {
        match error {
            OpenAIError::ApiError(error) => self.answered(error),
            OpenAIError::Reqwest(error) => {
                let (kind, text) =
                    kind_of_exchange(error.is_timeout(), error.is_connect(), error.is_builder());
                self.with_text(kind, text, &text_with_sources(&error.without_url()))
            }
            OpenAIError::StreamError(error) => self.broken(&error),
            OpenAIError::InvalidArgument(text) => {
                let what = "async-openai refuses the request; check the options";
                self.with_text(ErrorKind::Configuration, what, &text)
            }
            error => {
                let what = "the client failed, or a middleware of it";
                self.with_text(ErrorKind::Connection, what, &text_with_sources(&error))
            }
        }
    }

    fn answered(&self, error: ApiErrorResponse) -> Error {
        let (status, said) = (error.status_code.as_u16(), error.api_error);
        // The body of a status above 499 is not read by the client.
        let mut report = if said.r#type.is_none() { report_in(&said.message) } else { Report::default() };
        if report.message == ServerWords::default() {
            report.message = said.message.into();
        }
        report.kind = said.r#type.map(Into::into).or(report.kind);
        report.code = said.code.map(Into::into).or(report.code);
        report.param = said.param.map(Into::into).or(report.param);
        self.reported(report, Some(status))
    }

    fn broken(&self, error: &StreamError) -> Error {
        match error {
            StreamError::EventStream(text) if text.starts_with(BROKEN) => {
                let what = "the connection to the provider broke before the answer was complete";
                self.with_text(ErrorKind::Connection, what, text)
            }
            _ => {
                let what = "the provider's answer is no valid event stream";
                Error::new(ErrorKind::Protocol { position: None }, what)
            }
        }
    }

    fn refused(&self, body: &str) -> Error {
        let what = "the provider refuses the request, with a status that async-openai does not tell";
        self.with_text(ErrorKind::InvalidRequest, what, body)
    }

    fn with_text(&self, kind: ErrorKind, what: &'static str, text: &str) -> Error {
        let shown = self.redaction.show(&text.into(), LONGEST_TEXT);
        Error::new(kind, what).with_source(shown.to_string())
    }
}

fn kind_of_exchange(is_timeout: bool, is_connect: bool, is_builder: bool) -> (ErrorKind, &'static str) {
    if is_timeout {
        (ErrorKind::Timeout, "the provider took too long; raise the timeouts of the client if it needs more")
    } else if is_builder {
        (
            ErrorKind::Configuration,
            "the request could not be sent; check the address and headers of the client",
        )
    } else if is_connect {
        (
            ErrorKind::Connection,
            "could not connect to the provider; check the address, and that the server runs",
        )
    } else {
        (ErrorKind::Connection, "the connection to the provider broke before the answer began")
    }
}

/// Returns the report in a body; an empty one if there is none.
fn report_in(body: &str) -> Report {
    let json: Option<Value> = serde_json::from_str(body).ok();
    json.and_then(|json| Report::find(&json)).unwrap_or_default()
}
