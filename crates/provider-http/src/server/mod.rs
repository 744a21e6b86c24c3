//! The server behind a model: its address, its key, its headers, and the client that calls it.
//!
//! A model of any provider has a field `server: `[`Server`]. The macro
//! [`server_setters!`](crate::server_setters) gives it the setters that all models have, and [`Variables`] reads its
//! settings from the environment.

mod address;
mod setters;
#[cfg(test)]
mod tests;
mod variables;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

#[doc(no_inline)]
pub use advisor_core::{AggregatorLimits, Error, Result, Text};
use advisor_core::{AggregatorSettings, ChunkStream, MessageAggregator};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use percent_encoding::percent_decode_str;
use secrecy::ExposeSecret;
#[doc(no_inline)]
pub use secrecy::SecretString;
use serde::de::DeserializeOwned;

use crate::answer::WireFormat;
use crate::backoff::Backoff;
use crate::exchange::{Call, HttpClient};
use crate::local::is_local;
pub use crate::path_segment::path_segment;
use crate::redaction::Redaction;
use crate::sse::SseLimits;
use crate::timeouts::Timeouts;
use crate::transport::Transport;
pub use address::Authorization;
pub use variables::{EnvSettings, Variables};

/// The words before a secret in a header.
const SCHEMES: [&str; 4] = ["bearer", "basic", "token", "key"];

/// A server: base URL, key, headers, and the client that calls it. Cheap to clone; clones share their connections.
///
/// The key, the values of the caller's headers and those in the query of the base URL are secrets. They appear in no
/// `Debug`, log or error, nor does any other part of the base URL beside its host.
///
/// # Ordering
/// Chunks come as the server sends them. The body is read to its end before `Completed`, so that the next request
/// reuses the connection.
///
/// # Cancellation
/// Dropping the future or the stream closes the connection, at any point.
///
/// # Errors
/// An unusable base URL, key or header is an error of kind
/// [`Configuration`](advisor_core::ErrorKind::Configuration), by [`validate`](Self::validate) or the first call.
/// The message shows none of them. For errors of a call see [`HttpClient`].
///
/// # Example
/// ```
/// use http::{HeaderName, HeaderValue};
/// use provider_http::server::{Authorization, Server, path_segment};
///
/// # fn main() -> advisor_core::Result<()> {
/// let server = Server::new("https://llm.example/v1", Authorization::Header(HeaderName::from_static("x-api-key")))
///     .with_api_header(HeaderName::from_static("api-version"), HeaderValue::from_static("2023-06-01"))
///     .with_api_key("sk-example");
/// let path = format!("/models/{}:stream", path_segment("some model"));
/// let call = server.call(&path, &[("alt", "sse")], "{}".into())?;
/// assert_eq!(call.uri.to_string(), "https://llm.example/v1/models/some%20model:stream?alt=sse");
/// assert_eq!(call.headers["x-api-key"], "sk-example");
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Clone)]
pub struct Server {
    base_url: String,
    authorization: Authorization,
    api_key: Option<SecretString>,
    /// Headers that the API demands. They are no secrets.
    api_headers: HeaderMap,
    /// The caller's headers.
    headers: Vec<(String, SecretString)>,
    http: HttpClient,
    answer_limits: AggregatorLimits,
    /// The secrets to redact, collected from key, headers and base URL at first use.
    redaction: Arc<OnceLock<Redaction>>,
}

impl Server {
    /// Creates a server without a key.
    pub fn new(base_url: impl Into<String>, authorization: Authorization) -> Self {
        Self {
            base_url: base_url.into(),
            authorization,
            api_key: None,
            api_headers: HeaderMap::new(),
            headers: Vec::new(),
            http: HttpClient::default(),
            answer_limits: AggregatorLimits::default(),
            redaction: Arc::default(),
        }
    }

    /// Sets the base URL, to which the paths of calls are appended.
    pub fn with_base_url(self, base_url: impl Into<String>) -> Self {
        Self { base_url: base_url.into(), redaction: Arc::default(), ..self }
    }

    /// Sets the header that carries the key.
    pub fn with_authorization(self, authorization: Authorization) -> Self {
        Self { authorization, ..self }
    }

    /// Sets the key.
    pub fn with_api_key(self, key: impl Into<SecretString>) -> Self {
        Self { api_key: Some(key.into()), redaction: Arc::default(), ..self }
    }

    /// Sets a header that the API demands, such as its version. Unlike the caller's headers, which take precedence
    /// over it, its value is no secret.
    pub fn with_api_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.api_headers.insert(name, value);
        self
    }

    /// Adds a header to every request, replacing an earlier one of this name. Its value is treated as a secret.
    pub fn with_header(mut self, name: &str, value: impl Into<SecretString>) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.into()));
        Self { redaction: Arc::default(), ..self }
    }

    /// Sets the timeouts.
    pub fn with_timeouts(self, timeouts: Timeouts) -> Self {
        Self { http: self.http.with_timeouts(timeouts), ..self }
    }

    /// Sets the schedule of retries, see [`HttpClient::with_retries`].
    pub fn with_retries(self, retries: Backoff) -> Self {
        Self { http: self.http.with_retries(retries), ..self }
    }

    /// Sets a function that is told of waits, see [`HttpClient::with_wait_notice`].
    pub fn with_wait_notice(self, notice: impl Fn(&Error, Duration) + Send + Sync + 'static) -> Self {
        Self { http: self.http.with_wait_notice(notice), ..self }
    }

    /// Sets the bounds for lines and events, see [`HttpClient::with_limits`].
    pub fn with_limits(self, limits: SseLimits) -> Self {
        Self { http: self.http.with_limits(limits), ..self }
    }

    /// Sets the bounds for an answer.
    pub fn with_answer_limits(self, limits: AggregatorLimits) -> Self {
        Self { answer_limits: limits, ..self }
    }

    /// Returns the bounds for an answer, for a format that keeps a part of it.
    pub fn answer_limits(&self) -> AggregatorLimits {
        self.answer_limits
    }

    /// Sets the transport, which is responsible for its own connect timeout.
    pub fn with_transport(self, transport: impl Transport) -> Self {
        Self { http: self.http.with_transport(transport), ..self }
    }

    /// Checks the base URL, the key and the headers, so that a program can refuse them before its first request.
    ///
    /// # Errors
    /// Of kind [`Configuration`](advisor_core::ErrorKind::Configuration), with a message that names the remedy.
    /// The message shows neither the base URL nor the key.
    pub fn validate(&self) -> Result<()> {
        self.call("/", &[], Bytes::new()).map(|_| ())
    }

    /// Returns the call with this body to a path below the base URL, with further query parameters.
    ///
    /// `path` begins with `/` and is escaped, see [`path_segment`]. A base URL that ends with the path, or with the
    /// version at its beginning (`/v1/…`), does not get them twice. The values in `query` are not escaped yet.
    ///
    /// # Errors
    /// As [`validate`](Self::validate).
    pub fn call(&self, path: &str, query: &[(&str, &str)], body: Bytes) -> Result<Call> {
        let uri = address::join(&self.base_url, path, query)?;
        let mut headers = address::headers(&self.api_headers, self.key_header()?);
        address::add_own(&mut headers, &self.headers)?;
        Ok(Call::new(uri, headers, body))
    }

    fn key_header(&self) -> Result<Option<(HeaderName, HeaderValue)>> {
        self.api_key.as_ref().map(|key| self.authorization.header(key)).transpose()
    }

    /// Sends the call, and streams the answer in the given round. `settings` apply to its aggregation, with the
    /// limits of this server. `format` makes the state of one attempt.
    ///
    /// # Errors
    /// See [`HttpClient::stream`].
    pub async fn stream<W: WireFormat>(
        &self,
        call: &Call,
        round: u32,
        mut settings: AggregatorSettings,
        format: impl Fn() -> W + Send + Sync,
    ) -> Result<ChunkStream> {
        settings.limits = self.answer_limits;
        let aggregator = MessageAggregator::with_settings(round, settings);
        self.http.stream(call, self.redaction(), format, aggregator).await
    }

    /// Sends the call, and reads the answer whole, as one JSON value.
    ///
    /// # Errors
    /// See [`HttpClient::json`].
    pub async fn json<T: DeserializeOwned>(&self, call: &Call) -> Result<T> {
        self.http.json(call, self.redaction()).await
    }

    /// Returns the redaction of this server's secrets. Clones share it until a setting with a secret changes.
    pub fn redaction(&self) -> &Redaction {
        self.redaction.get_or_init(|| {
            if self.sends_secrets_unencrypted() {
                let host = address::host(&self.base_url);
                tracing::warn!(host, "the key goes to the server without encryption: use https://");
            }
            Redaction::new(self.secrets().into_iter().map(SecretString::from))
        })
    }

    /// Returns the key, the values of the caller's headers, also behind a scheme such as `Bearer`, and those in the query of
    /// the base URL.
    fn secrets(&self) -> Vec<String> {
        let mut secrets: Vec<String> =
            self.api_key.iter().map(|key| key.expose_secret().to_owned()).collect();
        for (_, value) in &self.headers {
            let value = value.expose_secret();
            let is_scheme = |word: &str| SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(word));
            let bare =
                value.split_once(' ').filter(|(scheme, _)| is_scheme(scheme)).map(|(_, bare)| bare.trim());
            secrets.extend([value].into_iter().chain(bare).map(str::to_owned));
        }
        let (_, query) = self.base_url.split_once('?').unwrap_or_default();
        // A pair without a name may itself be a key.
        let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or(("", pair)));
        for (_, value) in pairs.filter(|(name, _)| *name != "api-version") {
            secrets.extend([value.to_owned(), percent_decode_str(value).decode_utf8_lossy().into_owned()]);
        }
        secrets
    }

    /// Checks whether the key, a header of the caller, or the user or the query of the base URL crosses a network without
    /// encryption: this URL begins with `http://`, and its host is not this machine. The first call then logs a warning.
    #[must_use]
    pub fn sends_secrets_unencrypted(&self) -> bool {
        let uri = self.base_url.trim().parse::<Uri>().ok();
        let Some(uri) = uri.filter(|uri| uri.scheme_str() == Some("http") && !is_local(uri)) else {
            return false;
        };
        let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
        has_user || uri.query().is_some() || self.api_key.is_some() || !self.headers.is_empty()
    }
}

/// Shows the host, but neither the key nor the headers nor the rest of the base URL.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("host", &address::host(&self.base_url))
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}
