//! `Refusal`: an error status and its body.

use std::time::Duration;

use advisor_core::{DecisionProblem, Error, ErrorKind};
use advisor_sse::{ApiError, Failure};
use axum::body::Body;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chat_memory_advisor::StoreError;
use serde_json::json;

/// An answer with an error status.
///
/// Its body has the form that the clients of the route read, and names the request. The text of an internal error is
/// logged and not sent.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
    retry_after: Option<Duration>,
    /// Whether the same request, sent again without the id of its turn, begins a second turn with the same message. Clients
    /// of OpenAI and Anthropic would send it at once.
    begins_second_turn: bool,
}

/// The header that forbids clients of OpenAI and Anthropic to repeat a request by its status.
pub(crate) const X_SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

const BODY_TOO_LARGE: &str = "body_too_large";

impl Refusal {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), retry_after: None, begins_second_turn: false }
    }

    /// Of a request that the client may send again after a second.
    fn later(status: StatusCode, code: &'static str, message: &str) -> Self {
        Self { retry_after: Some(Duration::from_secs(1)), ..Self::new(status, code, message) }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    /// Of a value of the request that this error is about.
    #[allow(clippy::needless_pass_by_value, reason = "a function of `map_err`")]
    pub(crate) fn invalid(error: Error) -> Self {
        Self::bad_request(error.to_string())
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "sign in, or send a valid token: `Authorization: Bearer …`",
        )
    }

    pub(crate) fn forbidden(message: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub(crate) fn forbidden_decision() -> Self {
        let message = "this server takes no decisions about calls: the application decides (`ChatServer::with_approvals`)";
        Self::forbidden(message)
    }

    pub(crate) fn unknown_approval() -> Self {
        let message = "an answer names no call that waits: its id was changed, or is of an earlier request; send the \
                       ids as they were shown";
        let code = ErrorKind::Approval { problem: DecisionProblem::Missing }.as_str();
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, message)
    }

    /// Sets the text about a used id of a turn, for a client that has not chosen this id.
    pub(crate) fn with_used_turn(self, message: &str) -> Self {
        match self.code == ErrorKind::TurnIdReused.as_str() {
            true => Self { message: message.to_owned(), ..self },
            false => self,
        }
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(crate) fn model_not_found(listed: &str) -> Self {
        let message = format!("there is no such model; the one of this server is `{listed}`");
        Self::new(StatusCode::NOT_FOUND, "model_not_found", message)
    }

    /// As OpenAI answers it.
    pub(crate) fn previous_response_not_found() -> Self {
        let message =
            "`previous_response_id` names no response of this server: its conversation may be deleted";
        Self::new(StatusCode::BAD_REQUEST, "previous_response_not_found", message)
    }

    /// Of a list that has an answer, and no conversation to continue.
    pub(crate) fn history_without_name() -> Self {
        Self::bad_request(
            "name the conversation, such as in the header `x-conversation-id`: the server keeps the history, and takes \
             none from clients; a new conversation begins with the user's message alone",
        )
    }

    /// Of a list that has an answer, in a conversation that memory does not have.
    pub(crate) fn unknown_history() -> Self {
        let message = "the server has no conversation of this name, or none any more, and takes no history from clients: \
                       begin it with the user's message alone";
        Self::new(StatusCode::BAD_REQUEST, "history_not_found", message)
    }

    /// Of a list that has other messages than the conversation. `number` counts those of the user: 0 is what stands before
    /// the first one, or continues one that is not compared.
    pub(crate) fn other_history(number: usize) -> Self {
        let what = match number {
            0 => "a call or an answer of the list".to_owned(),
            number => format!("the user's message {number} of the list, or the answer to it,"),
        };
        let message = format!(
            "the conversation does not have this history: {what} is not in memory; send the new message alone, or begin \
             another conversation"
        );
        Self::new(StatusCode::BAD_REQUEST, "history_not_found", message)
    }

    pub(crate) fn instructions() -> Self {
        let message = "instructions are not accepted, at any place of the list: the chain has its own";
        Self::bad_request(message)
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "the route does not have this method")
    }

    pub(crate) fn slow_body() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "body_timeout",
            "the body of the request did not arrive in time",
        )
    }

    /// As with a body of too many bytes.
    pub(crate) fn too_many_values(most: usize) -> Self {
        let message = format!(
            "the JSON of the request has more than {most} values: leave out earlier messages, which the server has, and \
             send large data as one text"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, BODY_TOO_LARGE, message)
    }

    pub(crate) fn no_json() -> Self {
        let message = "the body of the request is JSON, with the header `content-type: application/json`";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request", message)
    }

    pub(crate) fn busy() -> Self {
        let message = "the server is busy with other large requests, try again later";
        Self::later(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
    }

    pub(crate) fn too_many_turns() -> Self {
        Self::later(StatusCode::TOO_MANY_REQUESTS, "too_many_turns", "the server is busy, try again later")
    }

    /// Not a status that clients retry, since each attempt would ask the model again.
    pub(crate) fn answer_too_large() -> Self {
        let message = "the answer is too large for one piece: ask for a stream";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "answer_too_large", message)
    }

    /// Of a request whose work panics, or whose runtime ends. The turn may have begun.
    pub(crate) fn internal() -> Self {
        // The hook of the program has written the text.
        tracing::error!("a request panicked or was cut off");
        let refusal = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "an internal error");
        Self { begins_second_turn: true, ..refusal }
    }

    pub(crate) fn no_store() -> Self {
        let message = "the store does not answer";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, ErrorKind::Store.as_str(), message)
    }

    pub(crate) fn no_relay() -> Self {
        let message = "turns of other processes cannot be reached, try again later";
        Self::later(StatusCode::SERVICE_UNAVAILABLE, "relay_unavailable", message)
    }

    pub(crate) fn stopping() -> Self {
        Self::later(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the server is stopping, try again later")
    }
}

/// Logs the text that no client gets.
///
/// The causes of a failed store are logged, too. Other causes may be sentences of a provider, which quote conversations.
pub(crate) fn log_failure(error: &Error) {
    let kind = error.kind().as_str();
    match error.kind() {
        ErrorKind::Store | ErrorKind::NotPersisted => {
            tracing::warn!(kind, error = %advisor_core::text_with_sources(error), "a request failed");
        }
        _ => tracing::warn!(kind, error = %error, "a request failed"),
    }
}

impl From<&Error> for Refusal {
    fn from(error: &Error) -> Self {
        let failure = Failure::from(error);
        let status = StatusCode::from_u16(failure.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // The texts about decisions have no content, and name the call.
        if status.is_server_error() || matches!(error.kind(), ErrorKind::Approval { .. }) {
            log_failure(error);
        }
        let message = match error.kind() {
            // It has the reason and the id, which is the client's own, and no content.
            ErrorKind::TurnIdReused => error.to_string(),
            _ => failure.message.to_owned(),
        };
        let refusal = Self::new(status, failure.code, message);
        match may_begin_again(error.kind()) && !error.emitted() {
            true => Self { retry_after: failure.retry_after(), ..refusal },
            false => Self { begins_second_turn: true, ..refusal },
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::from(&error.into())
    }
}

impl From<JsonRejection> for Refusal {
    fn from(rejection: JsonRejection) -> Self {
        let status = rejection.status();
        match (&rejection, status) {
            (JsonRejection::BytesRejection(_), StatusCode::PAYLOAD_TOO_LARGE) => {
                let message = "the body of the request is too large: leave out pictures and files of earlier messages, \
                               which the server has";
                Self::new(status, BODY_TOO_LARGE, message)
            }
            // The cause is one of the connection.
            (JsonRejection::BytesRejection(_), _) => {
                Self::new(status, "body_truncated", "the body of the request broke off")
            }
            // The text names fields and positions of the client's own body. It has no other status than a text that is
            // no JSON, as with OpenAI and Anthropic.
            (JsonRejection::JsonDataError(_), _) => Self::bad_request(plain_words(&rejection.body_text())),
            _ => Self::new(status, "invalid_request", rejection.body_text()),
        }
    }
}

impl From<PathRejection> for Refusal {
    fn from(rejection: PathRejection) -> Self {
        Self::new(rejection.status(), "invalid_request", rejection.body_text())
    }
}

impl From<QueryRejection> for Refusal {
    fn from(rejection: QueryRejection) -> Self {
        Self::new(rejection.status(), "invalid_request", rejection.body_text())
    }
}

/// Checks whether a turn that has failed so may begin again under its id: it was refused at its start, or its model is
/// busy. Memory continues it, so no tool runs again.
///
/// Any other failure is an answer. Without the id, a repeated request begins a second turn with the same message. So the
/// status invites it only if nothing was shown and no tool has run.
pub(crate) fn may_begin_again(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConversationBusy
            | ErrorKind::StoreConflict { .. }
            | ErrorKind::Fenced
            | ErrorKind::Store
            | ErrorKind::RateLimited { .. }
    )
}

impl Refusal {
    /// Returns the body, which names the request.
    pub(crate) fn body(&self, form: ErrorForm, request_id: &str) -> Body {
        let ApiError { kind, code, message, .. } = form.error(self.status, self.code, &self.message);
        let body = match form {
            ErrorForm::Own | ErrorForm::OpenAi => json!({
                "error": {"message": message, "type": kind, "code": code, "param": null, "request_id": request_id},
            }),
            ErrorForm::Anthropic => json!({
                "type": "error",
                "error": {"type": kind, "message": message, "code": code},
                "request_id": request_id,
            }),
        };
        Body::from(body.to_string())
    }
}

/// The response carries the refusal, and the layer that knows the id of the request writes its body.
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/json")]).into_response();
        let headers = response.headers_mut();
        if let Some(delay) = self.retry_after {
            let seconds = delay.as_secs().saturating_add(u64::from(delay.subsec_nanos() > 0));
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.begins_second_turn {
            headers.insert(X_SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.status == StatusCode::REQUEST_TIMEOUT {
            // What arrives later is the rest of this body, and no request.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// The form of the body of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    /// That of the server's own routes: OpenAI's form with the server's own codes.
    Own,
    /// That of OpenAI's clients, with the codes that they look for.
    OpenAi,
    /// That of Anthropic's clients.
    Anthropic,
}

impl ErrorForm {
    /// Returns the form for the clients of a path. Routes below `/v1/messages` are Anthropic's, too.
    pub(crate) fn for_path(path: &str) -> Self {
        match path.strip_prefix("/v1/messages") {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => Self::Anthropic,
            _ if path.starts_with("/v1/") => Self::OpenAi,
            _ => Self::Own,
        }
    }

    /// Returns an error with this status in the terms of the form.
    pub(crate) fn error<'a>(self, status: StatusCode, code: &'a str, message: &'a str) -> ApiError<'a> {
        let status = status.as_u16();
        let mut error = match self {
            Self::Anthropic => ApiError::anthropic(status, code, message),
            Self::Own | Self::OpenAi => ApiError::openai(status, code, message),
        };
        if self == Self::Own {
            (error.code, error.message) = (code, message);
        }
        error
    }
}

/// Returns the problem of a body that is JSON of another form. It names the place, and shows no value.
pub(super) fn plain_words(text: &str) -> String {
    let text = text.split_once("into the target type: ").map_or(text, |(_, problem)| problem);
    let (text, position) = match text.rsplit_once(" at line ") {
        Some((problem, position)) => (problem, format!(" at line {position}")),
        None => (text, String::new()),
    };
    let is_place = |(place, _): &(&str, &str)| !place.contains(' ') && !place.contains('`');
    let (place, problem) = text.split_once(": ").filter(is_place).unwrap_or(("", text));
    let place = if place == "." { "" } else { place };
    if let Some(field) = problem.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        let dot = if place.is_empty() { "" } else { "." };
        return format!("`{place}{dot}{field}` is missing");
    }
    let kinds = problem.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "));
    match kinds {
        Some((found, expected)) => {
            let expected = expected_word(expected);
            let named = match place {
                "" if expected == "an object" => "the body".to_owned(),
                // One that several routes have, whose name is lost.
                "" => "a setting".to_owned(),
                place => format!("`{place}`"),
            };
            format!("{named} is {}, and not {expected}", found_word(found))
        }
        None if place.is_empty() => format!("{problem}{position}"),
        None => format!("`{place}`: {problem}{position}"),
    }
}

fn found_word(found: &str) -> &str {
    match found.split(' ').next().unwrap_or_default() {
        "sequence" => "a list",
        "map" => "an object",
        "string" => "a text",
        "integer" | "floating" => "a number",
        "boolean" => "true or false",
        _ => found,
    }
}

fn expected_word(expected: &str) -> &str {
    match expected {
        "a sequence" => "a list",
        "a map" => "an object",
        "a string" => "a text",
        "a boolean" => "true or false",
        _ if expected.starts_with("struct ") => "an object",
        _ => expected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(work: impl FnOnce()) -> String {
        let (reader, writer) = std::io::pipe().unwrap();
        let log = tracing_subscriber::fmt().with_writer(move || writer.try_clone().unwrap()).finish();
        tracing::subscriber::with_default(log, work);
        std::io::read_to_string(reader).unwrap()
    }

    #[test]
    fn longest_wait_is_a_header() {
        let refusal = Refusal { retry_after: Some(Duration::MAX), ..Refusal::busy() };
        assert_eq!(refusal.into_response().headers()[header::RETRY_AFTER], u64::MAX.to_string());
    }

    /// Also that of a task, which the layer around all handlers does not see.
    #[test]
    fn panic_of_a_request_is_logged() {
        assert!(logged(|| drop(Refusal::internal())).contains("a request panicked"));
    }

    #[test]
    fn only_causes_of_the_store_are_logged() {
        for (kind, has_cause) in [
            (ErrorKind::Store, true),
            (ErrorKind::NotPersisted, true),
            (ErrorKind::Provider { status: Some(500) }, false),
            (ErrorKind::InvalidHistory, false),
        ] {
            let error = Error::new(kind, "the call failed").with_source("the cause");
            let text = logged(|| log_failure(&error));
            assert!(text.contains("the call failed") && text.contains(kind.as_str()), "{text}");
            assert_eq!(text.contains("the cause"), has_cause, "{text}");
        }
    }
}
