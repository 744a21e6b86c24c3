//! The address of a call, and its headers.

use std::borrow::Cow;

use advisor_core::{Error, Result};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use crate::path_segment::path_segment;
use crate::redaction::Redaction;

/// The header that carries the key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Authorization {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// A header with the key alone, such as `x-api-key: KEY`.
    Header(HeaderName),
}

impl Authorization {
    /// Returns the header for this key, marked as sensitive.
    pub(super) fn header(&self, key: &SecretString) -> Result<(HeaderName, HeaderValue)> {
        let key = key.expose_secret();
        let (name, value) = match self {
            Self::Bearer => (AUTHORIZATION, Cow::Owned(format!("Bearer {key}"))),
            Self::Header(name) => (name.clone(), Cow::Borrowed(key)),
        };
        Ok((name, secret(&value, "the key")?))
    }
}

/// Returns the full address of a path below the base URL.
///
/// # Errors
/// Of kind configuration. The message does not show the base URL, which may hold a key.
pub(super) fn join(base_url: &str, path: &str, query: &[(&str, &str)]) -> Result<Uri> {
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
    let pairs = query.iter().map(|(name, value)| format!("{}={}", path_segment(name), path_segment(value)));
    let query: Vec<String> =
        base.query().map(str::to_owned).into_iter().chain(pairs).filter(|pair| !pair.is_empty()).collect();
    let path = joined(base.path(), path);
    let path_and_query = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
    let mut parts = base.into_parts();
    parts.path_and_query = Some(
        PathAndQuery::try_from(path_and_query)
            .map_err(|_| invalid("the base URL's path or query is invalid"))?,
    );
    Uri::from_parts(parts).map_err(|_| invalid("the base URL is incomplete"))
}

/// Appends a path to that of the base URL, unless it ends with the path.
///
/// A version at the beginning of the path is left out if the base URL ends with it, since some users write it there.
fn joined(base: &str, path: &str) -> String {
    let base = base.trim_end_matches('/');
    if base.ends_with(path) {
        return base.to_owned();
    }
    let version = path.get(1..).and_then(|path| path.split('/').next()).filter(|first| is_version(first));
    let has_version = version.is_some() && base.rsplit('/').next() == version;
    let base = if has_version { base.rsplit_once('/').map_or("", |(before, _)| before) } else { base };
    format!("{base}{path}")
}

/// Checks whether a path segment is a version, such as `v1` or `v1beta`.
fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
}

/// Returns the host and port of the base URL. Any other part of it may hold a key.
pub(super) fn host(base_url: &str) -> String {
    let uri = base_url.trim().parse::<Uri>().ok();
    uri.as_ref().and_then(authority).unwrap_or_else(|| "invalid".to_owned())
}

/// Returns the host and port of an address; `None` if it has no host.
pub(super) fn authority(uri: &Uri) -> Option<String> {
    let host = uri.host()?;
    Some(uri.port_u16().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// Returns the headers of every request, apart from the caller's. The key must be marked as sensitive.
pub(super) fn headers(of_api: &HeaderMap, key: Option<(HeaderName, HeaderValue)>) -> HeaderMap {
    let mut headers = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (ACCEPT, HeaderValue::from_static("text/event-stream, application/json")),
    ]);
    headers.extend(of_api.clone());
    if let Some((name, value)) = key {
        headers.insert(name, value);
    }
    headers
}

/// Adds the caller's headers, in place of others with their names. Their values are marked as sensitive.
pub(super) fn add_own(headers: &mut HeaderMap, own: &[(String, SecretString)]) -> Result<()> {
    for (name, value) in own {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
            // The name and the value may have been swapped.
            let name = Redaction::default().show(&name.as_str().into(), 64);
            Error::configuration(format!("`{name}` is no name for a header"))
        })?;
        headers.insert(name, secret(value.expose_secret(), "a header's value")?);
    }
    Ok(())
}

fn secret(value: &str, what: &str) -> Result<HeaderValue> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        Error::configuration(format!("{what} holds characters that no header can hold, such as a line break"))
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
