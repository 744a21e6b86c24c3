//! `Server`: the address, the key and the headers of the server behind a model. It sends calls and streams their answers.
//!
//! A model of any provider has a field `server: `[`Server`]. The macro
//! [`server_setters!`](crate::server_setters) gives it the setters that all models have, and [`Variables`] reads its
//! settings from the environment.

mod address;
mod call;
mod delta_stream;
mod setters;
#[cfg(test)]
mod tests;
mod variables;
mod whole_answer;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

#[doc(no_inline)]
pub use advisor_core::{AggregatorLimits, Result, Text};
use advisor_core::{AggregatorSettings, ChunkStream, Error, MessageAggregator};
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use percent_encoding::percent_decode_str;
use secrecy::ExposeSecret;
#[doc(no_inline)]
pub use secrecy::SecretString;
use serde::de::DeserializeOwned;

use crate::answer::{AnswerDecoder, WireFormat};
use crate::backoff::Backoff;
use crate::failure::{Failures, ProviderError, is_word};
use crate::local::is_local;
pub use crate::path_segment::path_segment;
use crate::redaction::{Redaction, ServerWords};
use crate::sse::SseLimits;
use crate::timeouts::{self, Timeouts, UnreadBody};
use crate::transport::{ReqwestTransport, Transport};
pub use address::Authorization;
pub use call::Call;
use delta_stream::DeltaStream;
pub use variables::{EnvSettings, Variables};

/// The most bytes read of a response that reports a failure.
const LONGEST_REPORT: usize = 64 << 10;

const COMPRESSED: &str = "the provider's answer is compressed, which was not asked for; switch compression off for this \
    address at the server, or at the proxy in front of it";

/// The words before a secret in a header.
const SCHEMES: [&str; 4] = ["bearer", "basic", "token", "key"];

/// A server: base URL, key, headers, and how it is called. Cheap to clone; clones share their connections.
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
/// The message shows none of them. Errors of a call are typed, see [`ErrorKind`](advisor_core::ErrorKind). If the server
/// gave a reason, a [`ProviderError`] is the source.
///
/// # Example
/// ```
/// use http::{HeaderName, HeaderValue};
/// use provider_http::server::{Authorization, Server, path_segment};
///
/// # fn main() -> advisor_core::Result<()> {
/// let authorization = Authorization::Header(HeaderName::from_static("x-api-key"));
/// let mut server = Server::new("https://llm.example/v1", authorization).with_api_key("sk-example");
/// server.api_headers.insert("api-version", HeaderValue::from_static("2023-06-01"));
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
    /// The header that carries the key.
    pub authorization: Authorization,
    api_key: Option<SecretString>,
    /// Headers that the API demands, such as its version. Unlike the caller's headers, which take precedence over them,
    /// they are no secrets.
    pub api_headers: HeaderMap,
    /// The caller's headers.
    headers: Vec<(String, SecretString)>,
    timeouts: Timeouts,
    /// The schedule of retries.
    ///
    /// A request is retried after a transient failure: no connection, a timeout, 429, 5xx, or an error in place
    /// of the answer. The server's `Retry-After` takes precedence over the schedule; beyond
    /// [`Backoff::max_retry_after`], the error comes at once. Nothing is retried once a part of the answer was shown.
    pub retries: Backoff,
    /// The bounds for lines and events. The bound for an event also applies to a JSON value.
    pub limits: SseLimits,
    /// The bounds for an answer.
    pub answer_limits: AggregatorLimits,
    /// The caller's transport, which is responsible for its own connect timeout.
    pub transport: Option<Arc<dyn Transport>>,
    /// The default transport, created by the first request.
    reqwest: Arc<OnceLock<ReqwestTransport>>,
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
            timeouts: Timeouts::default(),
            retries: Backoff::default(),
            limits: SseLimits::default(),
            answer_limits: AggregatorLimits::default(),
            transport: None,
            reqwest: Arc::default(),
            redaction: Arc::default(),
        }
    }

    /// Sets the base URL, to which the paths of calls are appended.
    pub fn with_base_url(self, base_url: impl Into<String>) -> Self {
        Self { base_url: base_url.into(), redaction: Arc::default(), ..self }
    }

    /// Sets the key.
    pub fn with_api_key(self, key: impl Into<SecretString>) -> Self {
        Self { api_key: Some(key.into()), redaction: Arc::default(), ..self }
    }

    /// Adds a header to every request, replacing an earlier one of this name. Its value is treated as a secret.
    pub fn with_header(mut self, name: &str, value: impl Into<SecretString>) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.into()));
        Self { redaction: Arc::default(), ..self }
    }

    /// Sets the timeouts.
    pub fn with_timeouts(self, timeouts: Timeouts) -> Self {
        // The transport takes the connect timeout when it is created.
        let same = self.timeouts.connect_timeout == timeouts.connect_timeout;
        let reqwest = if same { self.reqwest } else { Arc::default() };
        Self { timeouts, reqwest, ..self }
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
        Ok(Call { uri, headers, body, tools: None })
    }

    fn key_header(&self) -> Result<Option<(HeaderName, HeaderValue)>> {
        self.api_key.as_ref().map(|key| self.authorization.header(key)).transpose()
    }

    /// Sends the call, and streams the answer in the given round. Retries while nothing was shown and the failure is
    /// transient. `settings` apply to the aggregation, with the limits of this server. `format` makes the state of one
    /// attempt.
    pub async fn stream<W: WireFormat>(
        &self,
        call: &Call,
        round: u32,
        mut settings: AggregatorSettings,
        format: impl Fn() -> W + Send + Sync,
    ) -> Result<ChunkStream> {
        settings.limits = self.answer_limits;
        let aggregator = MessageAggregator::with_settings(round, settings);
        let deltas = self.ask(|attempt| self.deltas(call, format(), attempt)).await?;
        Ok(ChunkStream::from_deltas(aggregator, deltas))
    }

    async fn deltas<W: WireFormat>(&self, call: &Call, format: W, attempt: u32) -> Result<DeltaStream<W>> {
        let (headers, body) = self.send(call, attempt).await?;
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let decoder = AnswerDecoder::new(format, self.limits, self.redaction().clone())
            .with_content_type(content_type.unwrap_or_default())
            .with_most_kept(self.answer_limits.answer_bytes);
        let decoder = call.tools.iter().cloned().fold(decoder, AnswerDecoder::with_tools);
        let mut deltas = DeltaStream::new(body.into_answer(), decoder, &self.timeouts);
        deltas.begin().await?;
        Ok(deltas)
    }

    /// Sends the call, and reads the answer whole, as one JSON value. Retries while the failure is transient.
    ///
    /// The bound for an event limits the body, and [`Timeouts`] apply: the first byte, each further one, and the whole
    /// body.
    ///
    /// # Errors
    /// JSON of another form is an error of kind [`Protocol`](advisor_core::ErrorKind::Protocol).
    pub async fn json<T: DeserializeOwned>(&self, call: &Call) -> Result<T> {
        let failures = &Failures::new(self.redaction().clone());
        let (timeouts, longest) = (&self.timeouts, self.limits.event);
        let read = |attempt| async move {
            let (_, body) = self.send(call, attempt).await?;
            whole_answer::read(body.into_answer(), timeouts, longest, failures).await
        };
        self.ask(read).await
    }

    /// Makes attempts until one succeeds, or none may follow.
    async fn ask<T, F: Future<Output = Result<T>>>(&self, attempt: impl Fn(u32) -> F) -> Result<T> {
        let mut waits = self.retries.waits();
        let mut number = 0;
        loop {
            number += 1;
            let error = match attempt(number).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let wait = if error.is_retryable() { waits.next_wait(error.retry_after()) } else { None };
            log(number, &error, wait);
            tokio::time::sleep(wait.ok_or(error)?).await;
        }
    }

    /// Sends the call once. Returns the headers and the body of a successful response.
    async fn send(&self, call: &Call, attempt: u32) -> Result<(HeaderMap, UnreadBody)> {
        let failures = Failures::new(self.redaction().clone());
        let mut request = Request::new(call.body.clone());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = call.uri.clone();
        *request.headers_mut() = call.headers.clone();
        tracing::debug!(attempt, host = call.host(), bytes = call.body.len(), "asking the model");

        let response = timeouts::send(self.transport()?, request, &self.timeouts).await;
        let response = response.map_err(|error| failures.transport(error))?;
        let (head, body) = response.into_parts();
        tracing::debug!(attempt, status = head.status.as_u16(), "the provider answers");
        let compressed = is_compressed(&head.headers);
        if !head.status.is_success() {
            let report = if compressed { Vec::new() } else { body.into_report(LONGEST_REPORT).await };
            return Err(failures.response(head.status, &head.headers, &report));
        }
        if compressed {
            return Err(failures.protocol(None, COMPRESSED, &ServerWords::default()));
        }
        Ok((head.headers, body))
    }

    fn transport(&self) -> Result<&dyn Transport> {
        if let Some(transport) = &self.transport {
            return Ok(&**transport);
        }
        if let Some(transport) = self.reqwest.get() {
            return Ok(transport);
        }
        let transport = ReqwestTransport::new(self.timeouts.connect_timeout)
            .map_err(|error| Failures::default().transport(error))?;
        Ok(self.reqwest.get_or_init(|| transport))
    }

    /// Returns the redaction of this server's secrets. Clones share it until a setting with a secret changes.
    pub(crate) fn redaction(&self) -> &Redaction {
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
    fn sends_secrets_unencrypted(&self) -> bool {
        let uri = self.base_url.trim().parse::<Uri>().ok();
        let Some(uri) = uri.filter(|uri| uri.scheme_str() == Some("http") && !is_local(uri)) else {
            return false;
        };
        let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
        has_user || uri.query().is_some() || self.api_key.is_some() || !self.headers.is_empty()
    }
}

/// Logs that an attempt failed, the reason without any content, and whether another attempt follows.
fn log(attempt: u32, error: &Error, wait: Option<Duration>) {
    let kind = error.kind();
    let source = std::error::Error::source(error);
    let said = source.and_then(|source| source.downcast_ref::<ProviderError>());
    let status = said.and_then(|said| said.status);
    // The provider's sentences may quote the conversation, its codes do not.
    let codes = said.map(|said| [&said.code, &said.kind, &said.param]).into_iter().flatten();
    let mut codes = codes.map(|code| code.as_deref().filter(|code| is_word(code)));
    let [code, r#type, param] = std::array::from_fn(|_| codes.next().flatten());
    match wait {
        None => tracing::warn!(attempt, ?kind, status, code, r#type, param, "the model call failed"),
        Some(wait) => {
            let wait_ms = wait.as_millis() as u64;
            tracing::warn!(attempt, ?kind, status, code, r#type, param, wait_ms, "asking the model again");
        }
    }
}

/// Checks whether the body is compressed. Other codings in the header, such as character sets, do not count.
fn is_compressed(headers: &HeaderMap) -> bool {
    let named = headers.get_all(CONTENT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|value| value.split(',')).any(|coding| {
        let compressions = ["gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress"];
        compressions.iter().any(|compression| coding.trim().eq_ignore_ascii_case(compression))
    })
}

/// Shows the host and the settings, but neither the key nor the headers nor the rest of the base URL.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("host", &address::host(&self.base_url))
            .field("timeouts", &self.timeouts)
            .field("retries", &self.retries)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
