//! Errors of the client, in kinds and without secrets.

use std::time::SystemTime;

use advisor_core::{BoxError, Error, ErrorKind, text_with_sources};
use genai::resolver::AuthData;
use genai::webc::StreamTimeout;
use genai::{Client, Error as GenaiError, ModelSpec, webc};
use provider_http::backoff::retry_after;
use provider_http::failure::Report;
use provider_http::redaction::Redaction;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;

/// The most bytes kept of the text of an error.
const LONGEST_TEXT: usize = 2 << 10;

/// Creates errors without the secrets of a client.
#[derive(Clone)]
pub(crate) struct Failures {
    client: Client,
    spec: ModelSpec,
}

impl Failures {
    pub(crate) fn new(client: Client, spec: ModelSpec) -> Self {
        Self { client, spec }
    }

    pub(crate) async fn of(&self, error: GenaiError) -> Error {
        Shown { redaction: self.redaction().await }.of(error)
    }

    /// Returns the redaction of the key, which only the client's resolvers know.
    async fn redaction(&self) -> Redaction {
        let target = self.client.resolve_service_target(self.spec.clone()).await;
        let secrets: Vec<String> = match target.map(|target| target.auth) {
            Ok(AuthData::RequestOverride { url, headers }) => {
                let values = headers.iter().map(|(_, value)| value.trim_start_matches("Bearer ").to_owned());
                values.chain([url]).collect()
            }
            Ok(AuthData::MultiKeys(keys)) => keys.into_values().collect(),
            Ok(auth) => auth.single_key_value().into_iter().collect(),
            Err(_) => Vec::new(),
        };
        Redaction::new(secrets.into_iter().map(Into::into))
    }
}

struct Shown {
    redaction: Redaction,
}

impl Shown {
    fn of(&self, error: GenaiError) -> Error {
        match error {
            GenaiError::HttpError { status, body, headers, .. } => self.refused(status, &headers, &body),
            GenaiError::WebModelCall { webc_error, .. } | GenaiError::WebAdapterCall { webc_error, .. } => {
                self.of_web(webc_error)
            }
            GenaiError::WebStream { error, .. } => self.of_stream(error),
            GenaiError::ChatResponse { body, .. } => Report::read(&body).into_error(&self.redaction),
            // A failed answer of Responses: an error of the parser has a line.
            GenaiError::StreamParse { serde_error, .. } if serde_error.line() == 0 => {
                Report::read(&serde_error.to_string().into()).into_error(&self.redaction)
            }
            GenaiError::StreamParse { serde_error, .. } => malformed(&serde_error),
            GenaiError::JsonValueExt(_) | GenaiError::InvalidJsonResponseElement { .. } => {
                let kind = ErrorKind::Protocol { position: None };
                Error::new(kind, "the provider sent JSON that is no answer of its API; check the endpoint")
            }
            GenaiError::RequiresApiKey { .. }
            | GenaiError::NoAuthResolver { .. }
            | GenaiError::NoAuthData { .. }
            | GenaiError::Resolver { .. } => {
                let what =
                    "genai has no key for the model; check its variable, or the resolvers of the client";
                self.with_text(ErrorKind::Authentication, what, &error.to_string())
            }
            // Its text has the request.
            GenaiError::ChatResponseGeneration { .. } => {
                Error::new(ErrorKind::Protocol { position: None }, "genai cannot read the answer")
            }
            other => {
                let what = "genai refuses the request; check the model, the messages and the options";
                self.with_text(ErrorKind::Configuration, what, &other.to_string())
            }
        }
    }

    fn refused(&self, status: StatusCode, headers: &HeaderMap, body: &str) -> Error {
        let json: Option<Value> = serde_json::from_str(body).ok();
        let mut report = json.as_ref().and_then(Report::find).unwrap_or_default();
        if json.is_none() {
            report.message = body.trim().into();
        }
        report.status = Some(status.as_u16());
        report.retry_after = retry_after(headers, SystemTime::now()).or(report.retry_after);
        report.into_error(&self.redaction)
    }

    fn of_web(&self, error: webc::Error) -> Error {
        match error {
            webc::Error::ResponseFailedStatus { status, body, headers } => {
                self.refused(status, &headers, &body)
            }
            webc::Error::Reqwest(error) => self.of_exchange(error),
            _ => {
                let kind = ErrorKind::Protocol { position: None };
                Error::new(kind, "the provider answered with something that is no JSON; check the endpoint")
            }
        }
    }

    fn of_stream(&self, error: BoxError) -> Error {
        let error = match error.downcast::<GenaiError>() {
            Ok(error) => return self.of(*error),
            Err(error) => error,
        };
        let error = match error.downcast::<reqwest::Error>() {
            Ok(error) => return self.of_exchange(*error),
            Err(error) => error,
        };
        if error.is::<StreamTimeout>() {
            return self.with_text(ErrorKind::Timeout, TOO_LONG, &error.to_string());
        }
        let kind = ErrorKind::Protocol { position: None };
        self.with_text(kind, "the provider's answer is no valid event stream", &text_with_sources(&*error))
    }

    fn of_exchange(&self, error: reqwest::Error) -> Error {
        let (kind, what) = if error.is_timeout() {
            (ErrorKind::Timeout, TOO_LONG)
        } else if error.is_builder() {
            (ErrorKind::Configuration, "the request could not be sent; check the endpoint and the headers")
        } else if error.is_connect() {
            let what = "could not connect to the provider; check the endpoint, and that the server runs";
            (ErrorKind::Connection, what)
        } else {
            (ErrorKind::Connection, "the connection to the provider broke before the answer was complete")
        };
        self.with_text(kind, what, &text_with_sources(&error.without_url()))
    }

    fn with_text(&self, kind: ErrorKind, what: &'static str, text: &str) -> Error {
        let shown = self.redaction.show(&text.into(), LONGEST_TEXT);
        Error::new(kind, what).with_source(shown.to_string())
    }
}

const TOO_LONG: &str = "the provider took too long; raise the timeouts of the client if it needs more";

/// The parser's message may quote the answer, so only the place is told.
fn malformed(error: &serde_json::Error) -> Error {
    let place = format!("line {}, column {} of an event", error.line(), error.column());
    let kind = ErrorKind::Protocol { position: None };
    Error::new(kind, format!("the provider sent malformed JSON: {place}"))
}
