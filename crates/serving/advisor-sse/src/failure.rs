//! `Failure`: the kind, the status and the text of an error that a client gets. `ApiError`: the same in the terms of OpenAI
//! and Anthropic.

use std::time::Duration;

use advisor_core::{DecisionProblem, Error, ErrorKind, Text};
use serde_json::{Value, json};

/// The kind of an [`Error`] and a fixed text, for a client.
///
/// It has nothing of the error's text and causes, which may name servers and settings. An operator finds them in the
/// log by the request id.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The kind of the failure as one word, such as `rate_limited`.
    pub code: &'static str,
    /// The text for the user. It has nothing of the error's own text.
    pub message: &'static str,
    /// The id of the request, for a user who reports the failure.
    pub request_id: Option<Text>,
}

impl Failure {
    /// Returns the HTTP status of the failure, for a server that has not begun to answer.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self.kind {
            ErrorKind::TurnIdReused | ErrorKind::NoClientSideCall | ErrorKind::Approval { .. } => 422,
            ErrorKind::ConversationBusy
            | ErrorKind::StoreConflict { .. }
            | ErrorKind::Fenced
            | ErrorKind::CallAlreadyStarted => 409,
            // As OpenAI and Anthropic answer it.
            ErrorKind::ContextOverflow
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidRequest
            | ErrorKind::InvalidHistory => 400,
            // A stop is wanted, so it is none of the statuses that clients retry.
            ErrorKind::Cancelled => 422,
            ErrorKind::TooLarge => 413,
            ErrorKind::RateLimited { .. } => 429,
            ErrorKind::NotPersisted | ErrorKind::Store => 503,
            ErrorKind::Timeout => 504,
            ErrorKind::Authentication
            | ErrorKind::NotFound
            | ErrorKind::Provider { .. }
            | ErrorKind::Connection
            | ErrorKind::Truncated
            | ErrorKind::Protocol { .. } => 502,
            _ => 500,
        }
    }

    /// Returns the failure in the terms of OpenAI.
    pub(crate) fn for_openai(&self) -> ApiError<'static> {
        ApiError::openai(self.status(), self.code, self.message)
    }

    /// Adds the id of the request to an error of a protocol, if the failure has one.
    pub(crate) fn identify(&self, mut error: Value) -> Value {
        if let (Some(id), Some(fields)) = (self.request_id.as_deref(), error.as_object_mut()) {
            fields.insert("request_id".into(), id.into());
        }
        error
    }

    /// Returns the delay after which a rate-limited client may try again, if it is known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.kind {
            ErrorKind::RateLimited { retry_after } => retry_after,
            _ => None,
        }
    }
}

impl From<ErrorKind> for Failure {
    fn from(kind: ErrorKind) -> Self {
        Self { kind, code: kind.as_str(), message: message(kind), request_id: None }
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        match error.kind() {
            // The answer has begun.
            kind @ (ErrorKind::Connection | ErrorKind::Provider { .. }) if error.partial().is_some() => {
                Self { message: message(ErrorKind::Truncated), ..kind.into() }
            }
            // A part was shown, or a tool has run: the same request would do it twice.
            kind @ ErrorKind::RateLimited { .. } if error.emitted() => {
                Self { message: "the model is busy, and the answer is not complete", ..kind.into() }
            }
            kind => kind.into(),
        }
    }
}

/// Returns the text of a kind.
fn message(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::RateLimited { .. } => "the model is busy, try again later",
        ErrorKind::ContextOverflow => "the conversation is too long for the model",
        ErrorKind::InvalidInput => {
            "the model cannot take the content of the message, such as its image: send it without that"
        }
        ErrorKind::InvalidRequest | ErrorKind::InvalidHistory => "the model refused the request",
        ErrorKind::NotFound => "the model does not exist",
        ErrorKind::Connection | ErrorKind::Provider { .. } => "the model cannot be reached",
        ErrorKind::Timeout => "the request took too long",
        ErrorKind::Truncated | ErrorKind::Protocol { .. } | ErrorKind::Unfinished => "the answer broke off",
        ErrorKind::TooLarge => "the request or the answer is too large",
        ErrorKind::Tool => "a tool failed",
        ErrorKind::InvalidOutput => "the answer does not have the requested form",
        ErrorKind::ConversationBusy => "another request of this conversation is running",
        ErrorKind::TurnIdReused => {
            "the id of the turn was used before, for another input or for a turn that cannot go on: send a new id"
        }
        ErrorKind::CallAlreadyStarted => "a tool was started before and must not run again",
        ErrorKind::NoClientSideCall => "the conversation does not wait for this call",
        ErrorKind::Approval { problem } => message_about(problem),
        ErrorKind::Fenced | ErrorKind::StoreConflict { .. } => {
            "the conversation was changed by another request"
        }
        ErrorKind::NotPersisted | ErrorKind::Store => "the conversation cannot be read or stored",
        ErrorKind::Cancelled => "the request was cancelled",
        _ => "an internal error",
    }
}

/// Returns the text of decisions that cannot be applied.
fn message_about(problem: DecisionProblem) -> &'static str {
    match problem {
        DecisionProblem::Missing => "a call waits without a decision: decide about all calls that wait",
        DecisionProblem::Duplicate => "a call has two decisions: send one",
        DecisionProblem::WithResult => "a call has a decision and a result: send one of them",
        DecisionProblem::OtherCall => {
            "a decision was made for another tool or other arguments: show the call again"
        }
        DecisionProblem::Expired => "a decision has expired: ask again",
        DecisionProblem::SameTurn => "the turn that continues needs another id than the one that asked",
        DecisionProblem::UnknownTool => "an approved tool does not exist any more: deny the call",
        DecisionProblem::ClientSide => "an approved tool runs at the client: send its result",
        DecisionProblem::Incomplete => "an approved call is incomplete: deny it",
        DecisionProblem::Arguments => {
            "the arguments of an approved call do not fit its tool: change them, or deny the call"
        }
        DecisionProblem::Policy => "the changed arguments are denied: change them again, or deny the call",
        _ => "the decisions cannot be applied: decide about all calls that wait, as they are shown",
    }
}

/// The type, code and text of an error, as the clients of one API look for them.
///
/// Clients tell errors apart by these terms, such as a conversation that is too long: the code
/// `context_length_exceeded`, or the words `prompt is too long`. What an API has no term for keeps the code and the text
/// of the server.
///
/// | failure | OpenAI: type, code | Anthropic: type |
/// | --- | --- | --- |
/// | the conversation is too long | `invalid_request_error`, `context_length_exceeded` | `invalid_request_error` |
/// | the model is busy | `rate_limit_error`, `rate_limit_exceeded` | `rate_limit_error` |
/// | the model, its key or its connection failed, or the answer broke off | `server_error`, the kind of the error | `api_error`, `timeout_error` or `overloaded_error` |
/// | the request cannot succeed as it is | `invalid_request_error`, the kind of the error | `invalid_request_error`, `conflict_error` or `request_too_large` |
///
/// OpenAI's list of codes of a failed response is closed: `response.failed` has `server_error`, `rate_limit_exceeded` or
/// `invalid_prompt`, and beside the list `context_length_exceeded`. The `error` event before it has the code of the table.
///
/// # Example
/// ```
/// use advisor_core::ErrorKind;
/// use advisor_sse::{ApiError, Failure};
///
/// let failure = Failure::from(ErrorKind::ContextOverflow);
/// assert_eq!(ApiError::openai(failure.status(), failure.code, failure.message).code, "context_length_exceeded");
/// let error = ApiError::anthropic(failure.status(), failure.code, failure.message);
/// assert!(error.message.starts_with("prompt is too long: "));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiError<'a> {
    /// The type of the error, such as `invalid_request_error`.
    pub kind: &'static str,
    /// The code of the error, such as `rate_limit_exceeded`.
    pub code: &'a str,
    /// The text for people. Some clients look for its words.
    pub message: &'a str,
}

impl<'a> ApiError<'a> {
    /// Returns the error in the terms of OpenAI. The arguments are its HTTP status, and the server's own code and text.
    #[must_use]
    pub fn openai(status: u16, code: &'a str, message: &'a str) -> Self {
        let kind = match status {
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        let (code, message) = match (status, code) {
            (_, TOO_LONG) => ("context_length_exceeded", TOO_LONG_TEXT),
            (401, _) => ("invalid_api_key", message),
            (429, _) => ("rate_limit_exceeded", message),
            other => (other.1, message),
        };
        Self { kind, code, message }
    }

    /// Returns the error in the terms of Anthropic. The arguments are its HTTP status, and the server's own code and text.
    #[must_use]
    pub fn anthropic(status: u16, code: &'a str, message: &'a str) -> Self {
        let kind = match status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            408 | 504 => "timeout_error",
            409 => "conflict_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            503 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        };
        let message = match code {
            TOO_LONG => TOO_LONG_TEXT,
            _ => message,
        };
        Self { kind, code, message }
    }

    /// Returns the object of the error in OpenAI's form.
    pub(crate) fn openai_object(&self) -> Value {
        json!({"message": self.message, "type": self.kind, "code": self.code, "param": null})
    }

    /// Returns the code of a failed response. OpenAI's list of them is closed; beside it, its API sends
    /// `context_length_exceeded`, for which clients look.
    pub(crate) fn response_code(&self) -> &'a str {
        match self.code {
            code @ ("context_length_exceeded" | "rate_limit_exceeded") => code,
            _ if self.kind == "server_error" => "server_error",
            _ => "invalid_prompt",
        }
    }
}

/// The server's own code of a conversation that is too long for the model.
const TOO_LONG: &str = "context_overflow";

/// Clients that do not read the code look for `prompt is too long`, `exceeds the context window` (LangChain, in a
/// stream), or `this model's maximum context length is` (litellm).
const TOO_LONG_TEXT: &str = "prompt is too long: it exceeds the context window (this model's maximum context length is \
                             reached); shorten the message, or begin a new conversation";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn law_r3_failure_has_nothing_of_the_error() {
        let error = Error::new(ErrorKind::Store, "canary in the text").with_source("canary in a cause");
        let shown = format!("{:?}", Failure::from(&error));
        assert!(!shown.contains("canary"), "{shown}");
    }
}
