//! The address of a request, and its headers.

use advisor_core::{Error, Result};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret, SecretString};

use crate::profile::{Authorization, Endpoint};
use provider_http::redaction::Redaction;

/// The characters that are escaped: all but letters, digits and `-._~`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the full address of a request.
///
/// # Errors
/// Of kind configuration. The message does not show the base URL, which may hold a key.
pub(super) fn of(base_url: &str, model: &str, endpoint: &Endpoint) -> Result<Uri> {
    let invalid = |what: &'static str| Error::configuration(what);
    let base: Uri = base_url
        .trim()
        .parse()
        .map_err(|_| invalid("the base URL is no URL; it looks like `https://api.openai.com/v1`"))?;
    if !matches!(base.scheme_str(), Some("http" | "https")) {
        return Err(invalid("the base URL must begin with `https://` or `http://`"));
    }
    if base.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(invalid(
            "the base URL holds a user name or password; give the key with `with_api_key`, or a header with `with_header`",
        ));
    }
    let path = match endpoint {
        Endpoint::AzureDeployment { .. } => {
            format!(
                "{}/openai/deployments/{}/chat/completions",
                base.path().trim_end_matches('/'),
                escaped(model)
            )
        }
        _ => with_suffix(base.path(), "/chat/completions"),
    };
    let version = match endpoint {
        Endpoint::AzureDeployment { api_version } => Some(format!("api-version={}", escaped(api_version))),
        _ => None,
    };
    let query: Vec<&str> =
        base.query().into_iter().chain(version.as_deref()).filter(|query| !query.is_empty()).collect();
    let path_and_query = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
    let mut parts = base.into_parts();
    parts.path_and_query = Some(
        PathAndQuery::try_from(path_and_query)
            .map_err(|_| invalid("the base URL's path or query is invalid"))?,
    );
    Uri::from_parts(parts).map_err(|_| invalid("the base URL is incomplete"))
}

/// Returns the host and port of the base URL. Any other part of it may hold a key.
pub(super) fn host(base_url: &str) -> String {
    let uri = base_url.trim().parse::<Uri>().ok();
    let host = uri.as_ref().and_then(|uri| Some((uri.host()?, uri.port_u16())));
    match host {
        Some((host, Some(port))) => format!("{host}:{port}"),
        Some((host, None)) => host.to_owned(),
        None => String::from("invalid"),
    }
}

/// Returns the headers of every request. The key and the caller's values are marked as sensitive.
pub(super) fn headers(
    own: &[(String, SecretString)],
    key: Option<&SecretString>,
    authorization: Authorization,
) -> Result<HeaderMap> {
    let mut headers = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (ACCEPT, HeaderValue::from_static("text/event-stream, application/json")),
    ]);
    if let Some(key) = key.map(ExposeSecret::expose_secret) {
        let (name, value) = match authorization {
            Authorization::ApiKeyHeader => (HeaderName::from_static("api-key"), key.to_owned()),
            _ => (AUTHORIZATION, format!("Bearer {key}")),
        };
        headers.insert(name, secret(&value, "the key")?);
    }
    for (name, value) in own {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
            // The name and the value may have been swapped.
            let name = Redaction::default().show(&name.as_str().into(), 64);
            Error::configuration(format!("`{name}` is no name for a header"))
        })?;
        headers.insert(name, secret(value.expose_secret(), "a header's value")?);
    }
    Ok(headers)
}

fn secret(value: &str, what: &str) -> Result<HeaderValue> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        Error::configuration(format!("{what} holds characters that no header can hold, such as a line break"))
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Appends `suffix` to a path that does not end with it.
fn with_suffix(path: &str, suffix: &str) -> String {
    let path = path.trim_end_matches('/');
    if path.ends_with(suffix) { path.to_owned() } else { format!("{path}{suffix}") }
}

/// Escapes a path segment or a query value.
fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

#[cfg(test)]
mod tests;
