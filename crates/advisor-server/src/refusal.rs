use std::time::Duration;

use advisor_core::{Error, ErrorKind};
use advisor_sse::Failure;
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// An answer with an error status.
///
/// Its body has the form that OpenAI's clients read. The text of an internal error is logged and not sent.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
    retry_after: Option<Duration>,
}

impl Refusal {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), retry_after: None }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "send a valid token: `Authorization: Bearer …`")
    }

    pub(crate) fn forbidden_host() -> Self {
        let message = "this server has no tokens and serves its own machine only, under `localhost`";
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(crate) fn too_many_turns() -> Self {
        let refusal =
            Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_turns", "the server is busy, try again later");
        Self { retry_after: Some(Duration::from_secs(1)), ..refusal }
    }

    pub(crate) fn stopping() -> Self {
        let refusal =
            Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the server is stopping, try again later");
        Self { retry_after: Some(Duration::from_secs(1)), ..refusal }
    }
}

impl From<&Error> for Refusal {
    fn from(error: &Error) -> Self {
        let failure = Failure::from(error);
        let status = status_of(error.kind());
        if status.is_server_error() {
            tracing::warn!(error = %advisor_core::text_with_sources(error), "a turn failed");
        }
        let refusal = Self::new(status, failure.code(), failure.message());
        Self { retry_after: failure.retry_after(), ..refusal }
    }
}

impl From<JsonRejection> for Refusal {
    fn from(rejection: JsonRejection) -> Self {
        // The text of a rejection names fields and positions of the client's own body.
        Self::new(rejection.status(), "invalid_request", rejection.body_text())
    }
}

impl From<PathRejection> for Refusal {
    fn from(rejection: PathRejection) -> Self {
        Self::new(rejection.status(), "invalid_request", rejection.body_text())
    }
}

fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::TurnIdReused | ErrorKind::NoClientSideCall => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::ConversationBusy | ErrorKind::StoreConflict { .. } | ErrorKind::Fenced => {
            StatusCode::CONFLICT
        }
        ErrorKind::ContextOverflow | ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::RateLimited { .. } => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::NotPersisted | ErrorKind::Store | ErrorKind::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::Authentication
        | ErrorKind::InvalidHistory
        | ErrorKind::NotFound
        | ErrorKind::InvalidRequest
        | ErrorKind::Provider { .. }
        | ErrorKind::Connection
        | ErrorKind::Truncated
        | ErrorKind::Protocol { .. } => StatusCode::BAD_GATEWAY,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let kind = if self.status.is_server_error() { "server_error" } else { "invalid_request_error" };
        let error = json!({"message": self.message, "type": kind, "code": self.code, "param": null});
        let mut response = (self.status, Json(json!({"error": error}))).into_response();
        if let Some(delay) = self.retry_after {
            let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
