//! The HTTP client of a connection: rustls with ring, no redirects. It gives each answer to a request that request's id, or makes it an error: otherwise
//! the call would wait its whole time.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use advisor_core::{Error, Result};
use futures::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use reqwest::Url;
use reqwest::redirect::Policy;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    StreamableHttpResponseLimits,
};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;
use sse_stream::Sse;

type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// The answer of a server with an error that names no request, or another one.
#[derive(Debug, thiserror::Error)]
#[error("an error that does not name its request")]
pub(super) struct Unnamed(pub(super) ErrorData);

impl Unnamed {
    /// Checks whether the server has refused the request before it ran: it could not read it, or the library of the server
    /// refused it (`-32000`, `-32001`).
    pub(super) fn is_refusal(&self) -> bool {
        let by_library = [ErrorCode(-32_000), ErrorCode(-32_001)].contains(&self.0.code);
        by_library || [ErrorCode::INVALID_REQUEST, ErrorCode::PARSE_ERROR].contains(&self.0.code)
    }
}

/// A client for the requests of one connection.
#[derive(Clone)]
pub(super) struct HttpClient {
    inner: reqwest::Client,
    /// The session in which the last request was answered. One in which none was answered cannot be a forgotten one.
    answered: Arc<Mutex<Option<Arc<str>>>>,
}

impl HttpClient {
    pub(super) fn new(inner: reqwest::Client) -> Self {
        Self { inner, answered: Arc::default() }
    }

    /// Checks the answer to a request.
    fn check(
        &self,
        answer: Result<StreamableHttpPostResponse, Failure>,
        request: &Sent,
        session: Option<Arc<str>>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let answered = || self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = session.is_some() && *answered() == session;
        match answer {
            Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Error(mut error), other))
                if error.id.as_ref().is_none_or(|id| !is_same(id, &request.id)) =>
            {
                if request.begins {
                    error.id = Some(request.id.clone());
                    return Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Error(error), other));
                }
                let unnamed = Unnamed(error.error);
                if is_known && unnamed.is_refusal() {
                    return Err(StreamableHttpError::SessionExpired);
                }
                Err(io::Error::other(unnamed).into())
            }
            Ok(StreamableHttpPostResponse::Json(message, other)) => {
                let is_answer = match &message {
                    JsonRpcMessage::Response(response) => is_same(&response.id, &request.id),
                    JsonRpcMessage::Error(_) => true,
                    _ => false,
                };
                if !is_answer {
                    let text = "the answer to a request is of another one";
                    return Err(StreamableHttpError::UnexpectedServerResponse(text.into()));
                }
                *answered() = session;
                Ok(StreamableHttpPostResponse::Json(message, other))
            }
            Ok(answer) => {
                *answered() = session;
                Ok(answer)
            }
            // Some servers answer so in place of 404, which alone the protocol has for it.
            Err(StreamableHttpError::UnexpectedServerResponse(text))
                if is_known && text.starts_with("HTTP 400") =>
            {
                Err(StreamableHttpError::SessionExpired)
            }
            failed => failed,
        }
    }
}

/// A request whose answer is checked.
struct Sent {
    id: RequestId,
    /// Whether it begins the connection: the library of the protocol decides by its error how to go on.
    begins: bool,
}

impl Sent {
    fn of(message: &ClientJsonRpcMessage) -> Option<Self> {
        let JsonRpcMessage::Request(request) = message else { return None };
        let begins = matches!(
            request.request,
            ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_)
        );
        Some(Self { id: request.id.clone(), begins })
    }
}

/// Checks whether an answer has the id of a request. Some servers make a text of a number.
pub(super) fn is_same(answer: &RequestId, request: &RequestId) -> bool {
    answer.to_string() == request.to_string()
}

impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        bearer: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session, bearer, headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        bearer: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let request = Sent::of(&message);
        let posted = session.clone();
        let answer =
            self.inner.post_message_with_response_limits(uri, message, posted, bearer, headers, limits);
        match (answer.await, request) {
            (answer, Some(request)) => self.check(answer, &request, session),
            (answer, None) => answer,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        bearer: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        self.inner.delete_session(uri, session, bearer, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        bearer: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.inner.get_stream(uri, session, last_event, bearer, headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        bearer: Option<String>,
        headers: Headers,
        max_bytes: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.inner
            .get_stream_with_max_sse_event_size(uri, session, last_event, bearer, headers, max_bytes)
            .await
    }
}

/// Creates an HTTP client for requests to one address, with rustls and ring. The process-wide provider of rustls is neither
/// needed nor set. A server on this machine, which a proxy would not find, is asked without one.
pub(super) fn http_client(url: &str) -> Result<reqwest::Client> {
    // A redirect would send the headers, and so the keys, to another place.
    let client =
        reqwest::Client::builder().redirect(Policy::none()).tls_backend_preconfigured(rustls_config()?);
    let client = if is_local(url) { client.no_proxy() } else { client };
    client.build().map_err(|error| broken(error.without_url()))
}

/// Checks whether requests to an address cross a network without encryption.
pub(super) fn is_open(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.scheme() == "http") && !is_local(url)
}

/// Checks whether an address has parts that may be secret: a user, or a query.
pub(super) fn has_secrets(url: &str) -> bool {
    Url::parse(url)
        .is_ok_and(|url| url.query().is_some() || !url.username().is_empty() || url.password().is_some())
}

/// Checks whether an address is on this machine.
fn is_local(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let host = url.host_str().unwrap_or_default();
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let address = address.parse::<IpAddr>().map(|address| address.to_canonical());
    // A connection to the unspecified address goes to this machine.
    host.strip_suffix('.').unwrap_or(host) == "localhost"
        || address.is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}

fn rustls_config() -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(broken)?.with_platform_verifier().map_err(broken)?;
    Ok(config.with_no_client_auth())
}

fn broken(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::configuration("the HTTP client of an MCP server cannot be created").with_source(error)
}
