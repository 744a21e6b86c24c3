//! One request and its answer: sending, retries, the check of the response, the stream of chunks.

mod delta_stream;
mod whole_answer;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use advisor_core::{ChunkStream, Error, MessageAggregator, Result};
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};

use crate::answer::{AnswerDecoder, WireFormat};
use crate::backoff::{Backoff, Waits};
use crate::failure::{Failures, Logged, Report};
use crate::names::ToolNames;
use crate::redaction::{Redaction, ServerWords};
use crate::sse::SseLimits;
use crate::timeouts::{self, Timeouts, UnreadBody};
use crate::transport::{ReqwestTransport, Transport};
use delta_stream::DeltaStream;

/// The most bytes read of a response that reports a failure.
const LONGEST_REPORT: usize = 64 << 10;

const COMPRESSED: &str = "the provider's answer is compressed, which was not asked for; switch compression off for this \
    address at the server, or at the proxy in front of it";

/// A POST request that can be sent repeatedly, with the data for reading its answers.
#[non_exhaustive]
pub struct Call {
    /// The full address.
    pub uri: Uri,
    /// The headers. Without a `Content-Type`, `application/json` is sent.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The tool names of the request, which the names in an answer mean.
    pub tools: Option<Arc<ToolNames>>,
}

impl Call {
    /// Creates a call.
    #[must_use]
    pub fn new(uri: Uri, headers: HeaderMap, body: Bytes) -> Self {
        Self { uri, headers, body, tools: None }
    }

    /// Sets the tool names of the request.
    #[must_use]
    pub fn with_tools(self, tools: Arc<ToolNames>) -> Self {
        Self { tools: Some(tools), ..self }
    }
}

/// Sends calls and streams their answers. Cheap to clone; clones share their connections.
///
/// # Ordering
/// Chunks come as the server sends them. The body is read to its end before `Completed`, so that the next request
/// reuses the connection.
///
/// # Cancellation
/// Dropping the future or the stream closes the connection, at any point.
///
/// # Errors
/// Typed, see [`ErrorKind`](advisor_core::ErrorKind). If the server gave a reason, a
/// [`ProviderError`](crate::failure::ProviderError) is the source.
///
/// # Example
/// ```
/// # use std::collections::VecDeque;
/// # use advisor_core::{Delta, FinishReason};
/// # use provider_http::answer::{AnswerEvent, Framing, Meaning, WireFormat};
/// use advisor_core::{ChunkStream, MessageAggregator, Result};
/// use http::{HeaderMap, Uri};
/// use provider_http::exchange::{Call, HttpClient};
/// use provider_http::redaction::Redaction;
/// # #[derive(Debug)]
/// # struct Lines;
/// # impl WireFormat for Lines {
/// #     const FRAMING: Framing = Framing::Lines;
/// #     fn read(&mut self, event: AnswerEvent<'_>, deltas: &mut VecDeque<Delta>) -> serde_json::Result<Meaning> {
/// #         let event: serde_json::Value = serde_json::from_str(event.data)?;
/// #         deltas.extend(event["text"].as_str().map(Delta::text));
/// #         Ok(Meaning::Piece)
/// #     }
/// # }
///
/// // `Lines` is the wire format.
/// async fn ask(client: &HttpClient, question: &str) -> Result<ChunkStream> {
///     let uri = Uri::from_static("http://127.0.0.1:8080/answer");
///     let call = Call::new(uri, HeaderMap::new(), question.to_owned().into());
///     client.stream(&call, &Redaction::default(), || Lines, MessageAggregator::new(1)).await
/// }
/// ```
#[must_use]
#[derive(Clone, Default)]
pub struct HttpClient {
    timeouts: Timeouts,
    retries: Backoff,
    limits: SseLimits,
    /// The caller's transport.
    transport: Option<Arc<dyn Transport>>,
    /// The default transport, created by the first request.
    reqwest: Arc<OnceLock<ReqwestTransport>>,
    /// Is told of each wait before another attempt.
    wait_notice: Option<WaitNotice>,
}

/// A function that is told of a wait before another attempt: why, and for how long.
type WaitNotice = Arc<dyn Fn(&Error, Duration) + Send + Sync>;

impl HttpClient {
    /// Sets the timeouts.
    pub fn with_timeouts(self, timeouts: Timeouts) -> Self {
        // The transport takes the connect timeout when it is created.
        let same = self.timeouts.connect_timeout == timeouts.connect_timeout;
        let reqwest = if same { self.reqwest } else { Arc::default() };
        Self { timeouts, reqwest, ..self }
    }

    /// Sets the schedule of retries.
    ///
    /// A request is retried after a transient failure: no connection, a timeout, 429, 5xx, or an error in place
    /// of the answer. The server's `Retry-After` takes precedence over the schedule; beyond
    /// [`Backoff::max_retry_after`], the error comes at once. Nothing is retried once a part of the answer was shown.
    pub fn with_retries(self, retries: Backoff) -> Self {
        Self { retries, ..self }
    }

    /// Sets a function that is told of each wait before another attempt: the error of the last one, and the wait. It must
    /// not block.
    pub fn with_wait_notice(self, notice: impl Fn(&Error, Duration) + Send + Sync + 'static) -> Self {
        Self { wait_notice: Some(Arc::new(notice)), ..self }
    }

    /// Sets the bounds for lines and events. The bound for an event also applies to a JSON value.
    pub fn with_limits(self, limits: SseLimits) -> Self {
        Self { limits, ..self }
    }

    /// Sets the transport, which is responsible for its own connect timeout.
    pub fn with_transport(self, transport: impl Transport) -> Self {
        Self { transport: Some(Arc::new(transport)), ..self }
    }

    /// Sends the call, and streams the answer through the aggregator. Retries while nothing was shown and the
    /// failure is transient.
    ///
    /// `format` makes the state of one attempt. `redaction` applies to the server's words in errors and logs.
    pub async fn stream<W: WireFormat>(
        &self,
        call: &Call,
        redaction: &Redaction,
        format: impl Fn() -> W + Send + Sync,
        aggregator: MessageAggregator,
    ) -> Result<ChunkStream> {
        let failures = Failures::new(redaction.clone());
        let mut waits = self.retries.waits();
        let mut attempt = 0_u32;
        loop {
            attempt += 1;
            let decoder = AnswerDecoder::new(format(), self.limits, redaction.clone());
            let decoder = call.tools.iter().cloned().fold(decoder, AnswerDecoder::with_tools);
            match self.attempt(call, &failures, decoder, attempt).await {
                Ok(deltas) => return Ok(ChunkStream::from_deltas(aggregator, deltas)),
                Err(error) => tokio::time::sleep(self.wait_after(error, attempt, &mut waits)?).await,
            }
        }
    }

    async fn attempt<W: WireFormat>(
        &self,
        call: &Call,
        failures: &Failures,
        decoder: AnswerDecoder<W>,
        attempt: u32,
    ) -> Result<DeltaStream<W>> {
        let (headers, body) = self.send(call, failures, attempt, W::read_report).await?;
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let decoder = decoder.with_content_type(content_type.unwrap_or_default());
        let mut deltas = DeltaStream::new(body.into_answer(), decoder, &self.timeouts);
        deltas.begin().await?;
        Ok(deltas)
    }

    /// Sends the call once. Returns the headers and the body of a successful response. `read` finds the error in the
    /// body of another one.
    async fn send(
        &self,
        call: &Call,
        failures: &Failures,
        attempt: u32,
        read: fn(&str) -> Option<Report>,
    ) -> Result<(HeaderMap, UnreadBody)> {
        let mut request = Request::new(call.body.clone());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = call.uri.clone();
        *request.headers_mut() = call.headers.clone();
        request.headers_mut().entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
        tracing::debug!(attempt, host = host_of(&call.uri), bytes = call.body.len(), "asking the model");

        let response = timeouts::send(self.transport()?, request, &self.timeouts).await;
        let response = response.map_err(|error| failures.transport(error))?;
        let (head, body) = response.into_parts();
        tracing::debug!(attempt, status = head.status.as_u16(), "the provider answers");
        let compressed = is_compressed(&head.headers);
        if !head.status.is_success() {
            let report = if compressed { Vec::new() } else { body.into_report(LONGEST_REPORT).await };
            return Err(failures.response(head.status, &head.headers, &report, read));
        }
        if compressed {
            return Err(failures.protocol(None, COMPRESSED, &ServerWords::default()));
        }
        Ok((head.headers, body))
    }

    /// Returns the wait before the next attempt, and tells of it.
    ///
    /// # Errors
    /// The error of the last attempt, if no other one follows.
    fn wait_after(&self, error: Error, attempt: u32, waits: &mut Waits) -> Result<Duration> {
        let wait = if error.is_retryable() { waits.next_wait(error.retry_after()) } else { None };
        log(attempt, &error, wait);
        if let (Some(notice), Some(wait)) = (&self.wait_notice, wait) {
            notice(&error, wait);
        }
        wait.ok_or(error)
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
}

/// Shows the host and the names of the headers. The rest may hold a key or content of the conversation.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("host", &host_of(&self.uri))
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Returns the host and port of an address. Any other part of it may hold a key.
fn host_of(uri: &Uri) -> String {
    match (uri.host().unwrap_or_default(), uri.port_u16()) {
        (host, Some(port)) => format!("{host}:{port}"),
        (host, None) => host.to_owned(),
    }
}

/// Logs that an attempt failed, the reason without any content, and whether another attempt follows.
fn log(attempt: u32, error: &Error, wait: Option<Duration>) {
    let (kind, Logged { status, code, kind: r#type, param }) = (error.kind(), Logged::from_error(error));
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

/// Shows the settings, but neither the transport nor anything of a request.
impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient")
            .field("timeouts", &self.timeouts)
            .field("retries", &self.retries)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn law_r3_debug_of_call_shows_no_key() {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("canary"))]);
        let uri = Uri::from_static("http://example.org:8080/canary?key=canary");
        let call = Call::new(uri, headers, "canary".into());
        let shown = format!("{call:?}");
        assert!(shown.contains("example.org:8080") && !shown.contains("canary"), "{shown}");
    }

    #[test]
    fn transport_is_shared_until_connect_timeout_changes() {
        let client = HttpClient::default();
        let place = |client: &HttpClient| {
            client.transport().expect("a transport");
            Arc::as_ptr(&client.reqwest)
        };
        assert_eq!(place(&client), place(&client.clone()));
        let timeouts = Timeouts { idle_timeout: None, ..Timeouts::default() };
        assert_eq!(place(&client), place(&client.clone().with_timeouts(timeouts)));
        assert_ne!(
            place(&client),
            place(&client.clone().with_timeouts(Timeouts { connect_timeout: None, ..timeouts }))
        );
    }
}
