//! `AllowedOrigins`: the sites whose pages may read answers.

use std::time::Duration;

use advisor_core::Error;
use axum::http::uri::Uri;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use tower_http::cors::{AllowHeaders, CorsLayer};

use crate::refusal::X_SHOULD_RETRY;

/// The time for which a browser may remember that a request is allowed.
const REMEMBERED: Duration = Duration::from_secs(600);

/// The headers of answers that pages may read, beside those that every page may read.
const EXPOSED: [HeaderName; 6] = [
    HeaderName::from_static("x-conversation-id"),
    HeaderName::from_static("x-turn-id"),
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("request-id"),
    header::RETRY_AFTER,
    X_SHOULD_RETRY,
];

/// The origins of other sites whose pages may send requests and read the answers (CORS).
///
/// A page still needs a token if the server has tokens. Browsers send such a page's requests without cookies, so a session
/// of the application does not work from there.
///
/// # Example
/// ```
/// use advisor_server::AllowedOrigins;
///
/// assert!(AllowedOrigins::new(["https://chat.example.org", "http://localhost:5173"]).is_ok());
/// assert!(AllowedOrigins::new(["*"]).is_err());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedOrigins(Vec<HeaderValue>);

impl AllowedOrigins {
    /// Checks the origins: each has a scheme, a host and perhaps a port, as browsers send it.
    ///
    /// # Errors
    /// For a text that no browser sends as an origin, such as one with a path, a slash at its end, or `*`.
    pub fn new<'a>(origins: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        origins.into_iter().map(origin).collect::<Result<_, _>>().map(Self)
    }

    /// Checks whether a page of one of these origins sends the request.
    pub(crate) fn sent(&self, headers: &HeaderMap) -> bool {
        headers.get(header::ORIGIN).is_some_and(|origin| self.0.contains(origin))
    }

    /// Returns the layer that answers browsers, if there is an origin.
    pub(crate) fn layer(&self) -> Option<CorsLayer> {
        let layer = CorsLayer::new()
            .allow_origin(self.0.clone())
            .allow_methods([Method::GET, Method::POST, Method::DELETE])
            // The libraries of providers send headers of their own, which no list has.
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers(EXPOSED)
            .max_age(REMEMBERED);
        (!self.0.is_empty()).then_some(layer)
    }
}

fn origin(text: &str) -> Result<HeaderValue, Error> {
    let invalid = || {
        Error::configuration(format!(
            "`{text}` is not an origin: write a scheme, a host and perhaps a port in small letters, such as \
             `https://chat.example.org`"
        ))
    };
    let uri: Uri = text.parse().map_err(|_| invalid())?;
    let (Some(scheme @ ("http" | "https")), Some(host)) = (uri.scheme_str(), uri.authority()) else {
        return Err(invalid());
    };
    // A browser's text has nothing else. `Uri` adds a path.
    match text == format!("{scheme}://{host}") && text == text.to_ascii_lowercase() && !text.contains('@') {
        true => HeaderValue::from_str(text).map_err(|_| invalid()),
        false => Err(invalid()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_browsers_send_is_an_origin() {
        for good in ["https://chat.example.org", "http://localhost:5173", "http://[::1]:80"] {
            assert!(AllowedOrigins::new([good]).is_ok(), "{good}");
        }
        let bad = [
            "", "*", "null", "chat.example.org", "https://", "https://a.org/", "https://a.org/b",
            "ftp://a.org", "https://A.org", "https://me@a.org", "https://a.org?b", "https://a b.org",
            "HTTPS://a.org",
        ];
        for bad in bad {
            assert!(AllowedOrigins::new([bad]).is_err(), "{bad}");
        }
    }
}
