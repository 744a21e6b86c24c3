//! `RequestId`: the id of a request, in its span and its answer. `caught`: a request that panics is an error.

use advisor_core::{Text, TurnId, catch_panics};
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::{Instrument, field};

use crate::refusal::{ErrorForm, Refusal};

/// The header of a request id.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The header from which Anthropic's clients read the id.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// The most characters of an id that a client sends.
const LONGEST: usize = 64;

/// The id of a request. The response, its errors and the spans of the request have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestId(Text);

impl RequestId {
    /// Returns the id that the client sent if it is a short word, else a new one.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        let sent = headers.get(X_REQUEST_ID).and_then(|id| id.to_str().ok());
        Self(sent.filter(|id| is_word(id)).unwrap_or(TurnId::random().as_str()).into())
    }

    pub(crate) fn as_text(&self) -> &Text {
        &self.0
    }
}

/// Logs contain the id, so it has no character with a meaning in a log.
fn is_word(id: &str) -> bool {
    let in_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=LONGEST).contains(&id.len()) && id.bytes().all(in_word)
}

/// Gives a request its id and its span, and names the id in the response and in the body of a refusal.
pub(crate) async fn identified(mut request: Request, next: Next) -> Response {
    let id = RequestId::from_headers(request.headers());
    request.extensions_mut().insert(id.clone());
    let form = ErrorForm::for_path(request.uri().path());
    let span = tracing::info_span!(
        "http_request",
        request.id = %id.0,
        http.request.method = %request.method(),
        http.route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str),
        http.response.status_code = field::Empty,
    );
    let mut response = next.run(request).instrument(span.clone()).await;
    span.record("http.response.status_code", response.status().as_u16());
    if let Some(refusal) = response.extensions_mut().remove::<Refusal>() {
        *response.body_mut() = refusal.body(form, &id.0);
    }
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        if form == ErrorForm::Anthropic {
            response.headers_mut().insert(REQUEST_ID, value.clone());
        }
        response.headers_mut().insert(X_REQUEST_ID, value);
    }
    response
}

/// Answers a request whose handler panics, such as in a store, with an internal error. The connection stays usable.
pub(crate) async fn caught(request: Request, next: Next) -> Response {
    let response = catch_panics(next.run(request)).await;
    response.unwrap_or_else(|_| Refusal::internal().into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_words_are_taken_over() {
        let id = |sent: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(X_REQUEST_ID, HeaderValue::from_bytes(sent.as_bytes()).unwrap());
            RequestId::from_headers(&headers).0.to_string()
        };
        for word in ["r-1", "0af7651916cd43dd8448eb211c80319c", "a.b_c", &"x".repeat(64)] {
            assert_eq!(id(word), word);
        }
        for other in ["", "two words", "a\tb", "a\"b", "ä", "<script>", "a/b", &"x".repeat(65)] {
            let made = id(other);
            assert!(made.len() == 36 && is_word(&made), "{other:?} gives {made:?}");
        }
        assert_ne!(id(""), id(""), "two requests have two ids");
    }
}
