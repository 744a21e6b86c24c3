//! Reads the headers that several routes share.

use axum::http::{HeaderMap, HeaderValue};

use crate::refusal::Refusal;
use crate::turns::on_disconnect::OnDisconnect;

/// Returns a header as text, if the request has it.
///
/// # Errors
/// If it has other characters than visible ASCII ones.
pub(in crate::routes) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refusal> {
    let text = headers.get(name).map(HeaderValue::to_str).transpose();
    text.map_err(|_| {
        Refusal::bad_request(format!("the header `{name}` has other characters than ASCII ones"))
    })
}

/// Checks whether a client wants to see the tools that the server runs.
///
/// # Errors
/// For another value than `shown` or `hidden`.
pub(in crate::routes) fn server_tools(headers: &HeaderMap) -> Result<bool, Refusal> {
    match headers.get("x-server-tools").map(HeaderValue::as_bytes) {
        None | Some(b"hidden") => Ok(false),
        Some(b"shown") => Ok(true),
        Some(_) => Err(Refusal::bad_request("`x-server-tools` is `shown` or `hidden`")),
    }
}

/// Returns the policy that a client of a route with resumption wants. By default, its turn continues.
///
/// # Errors
/// For another value than `stop` or `continue`.
pub(in crate::routes) fn on_disconnect(headers: &HeaderMap) -> Result<OnDisconnect, Refusal> {
    match headers.get("x-on-disconnect").map(HeaderValue::as_bytes) {
        None | Some(b"continue") => Ok(OnDisconnect::Continue),
        Some(b"stop") => Ok(OnDisconnect::StopOnRequest),
        Some(_) => Err(Refusal::bad_request("`x-on-disconnect` is `stop` or `continue`")),
    }
}
