//! `Refusal`: an error as a status with a JSON body, in place of a stream.

use std::time::Duration;

use advisor_chain::{Error, ErrorKind};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// An answer with a status in place of a stream.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    error: &'static str,
    /// The action that the client can take, if there is one.
    message: Option<String>,
    /// After how many seconds it may ask again.
    retry_after: Option<u64>,
}

impl Refusal {
    fn new(status: StatusCode, error: &'static str) -> Self {
        Self { status, error, message: None, retry_after: None }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..Self::new(StatusCode::BAD_REQUEST, "bad_request") }
    }

    /// Of an id that the client has sent, and that is none.
    pub(super) fn bad_id(error: &Error) -> Self {
        Self::bad_request(error.to_string())
    }

    pub(super) fn unknown_user() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unknown_user")
    }

    pub(super) fn stopping() -> Self {
        Self { retry_after: Some(1), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping") }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let whole_seconds = |delay: Duration| delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
        let retry_after = error.retry_after().map(whole_seconds);
        // The kind alone: the text is for the operator of the service.
        Self { retry_after, ..Self::new(status_of(error.kind()), error.kind().as_str()) }
    }
}

fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        // An idempotency key that was used for another message.
        ErrorKind::TurnIdReused => StatusCode::UNPROCESSABLE_ENTITY,
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
        let body = json!({"error": self.error, "message": self.message});
        let mut response = (self.status, Json(body)).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
