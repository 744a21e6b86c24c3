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
    /// What the client can do about it, if it can.
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

    pub(super) fn unknown_user() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unknown_user")
    }

    pub(super) fn stopping() -> Self {
        Self { retry_after: Some(1), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping") }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = status_of(error.kind());
        // What went wrong behind the service is for its traces, not for its clients.
        let is_theirs = matches!(status, StatusCode::BAD_REQUEST | StatusCode::CONFLICT);
        let message = is_theirs.then(|| error.to_string());
        let whole_seconds = |delay: Duration| delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
        let retry_after = error.retry_after().map(whole_seconds);
        Self { status, error: error.kind().as_str(), message, retry_after }
    }
}

fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        // An id that is none, or a key that was used for another message.
        ErrorKind::Configuration => StatusCode::BAD_REQUEST,
        ErrorKind::ConversationBusy | ErrorKind::StoreConflict { .. } | ErrorKind::Fenced => {
            StatusCode::CONFLICT
        }
        ErrorKind::ContextOverflow | ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::RateLimited { .. } => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::NotPersisted | ErrorKind::Store | ErrorKind::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::Authentication
        | ErrorKind::InvalidHistory
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
