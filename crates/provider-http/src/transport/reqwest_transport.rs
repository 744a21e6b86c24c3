//! The transport over reqwest.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::mem;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderValue};
use http::{Request, Response};
use reqwest::{Body, Client, redirect};

use super::{ByteStream, Transport, TransportError, tls};
use crate::transport::{Clock, TimedOut};

/// How often a request is sent again that a server has refused unseen.
const SENT_AGAIN: usize = 2;

/// HTTP/1.1 and HTTP/2 over [`reqwest`], on tokio.
///
/// No redirect is followed, nothing is decompressed, and nothing limits how long an answer may take. Connections are kept and
/// used again once a body was read to its end; on several threads a request that follows in the same instant may still open a
/// second one. The proxies that the environment names (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`)
/// are used.
///
/// Which TLS it speaks is a matter of this crate's features: `rustls-ring` (default), `rustls-aws-lc` or `native-tls`. With
/// rustls, certificates are checked against the roots of the operating system, which are loaded once per process, when the
/// first `https://` connection needs them. Clones share their connections.
///
/// A connection lives in the runtime in which it was opened, and a request may take one that another runtime opened: it then waits until
/// that one runs. Several runtimes that do not run all the time need a transport each.
#[derive(Clone)]
pub struct ReqwestTransport {
    client: Client,
    connect: Option<Duration>,
}

impl ReqwestTransport {
    /// A transport with its own pool of connections. `connect` limits name lookup, TCP and TLS handshake together.
    ///
    /// # Errors
    ///
    /// [`TransportError::Other`] if TLS cannot be set up.
    pub fn new(connect: Option<Duration>) -> Result<Self, TransportError> {
        let identity = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]);
        let mut builder = Client::builder()
            .default_headers(identity)
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .redirect(redirect::Policy::none())
            .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")));
        if let Some(connect) = connect {
            builder = builder.connect_timeout(connect);
        }
        let client = tls::choose(builder)?.build().map_err(not_sent)?;
        Ok(Self { client, connect })
    }

    /// A transport over a client that you have set up, for what [`new`](Self::new) does not offer: client certificates, other
    /// roots, a proxy of its own. Switch redirects off in it, and set no total timeout.
    ///
    /// Its TLS is reqwest's, with reqwest's features: switch one on in your own dependency on reqwest, such as `rustls`. Without
    /// one, and with rustls in this crate, making a client panics in reqwest unless the process has a default crypto provider.
    #[must_use]
    pub fn from_client(client: Client) -> Self {
        Self { client, connect: None }
    }

    /// Sends the request, and again if a server has refused it unseen. reqwest would do so only for a body in one piece, into which
    /// a long conversation would be copied for every request.
    async fn execute(&self, request: Request<Vec<Bytes>>) -> reqwest::Result<reqwest::Response> {
        for _ in 0..SENT_AGAIN {
            match self.client.execute(in_pieces(request.clone())?).await {
                Err(error) if was_refused(&error) => {}
                response => return response,
            }
        }
        self.client.execute(in_pieces(request)?).await
    }

    /// What became of a request without a response.
    fn no_response(&self, error: reqwest::Error) -> TransportError {
        match self.connect {
            _ if error.is_builder() => not_sent(error),
            Some(after) if error.is_connect() && error.is_timeout() => {
                TimedOut::new(Clock::Connect, after).into()
            }
            _ if error.is_connect() => TransportError::Connect { source: without_words(error) },
            _ => broken(error),
        }
    }
}

/// Shows no header: a client that was set up elsewhere may have keys among its default headers.
impl fmt::Debug for ReqwestTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReqwestTransport").field("connect", &self.connect).finish_non_exhaustive()
    }
}

#[async_trait]
impl Transport for ReqwestTransport {
    async fn send(&self, request: Request<Vec<Bytes>>) -> Result<Response<ByteStream>, TransportError> {
        tls::check(request.uri())?;
        // Lets the runtime read its sockets first. The client drops a kept connection that has closed, or on which bytes came that
        // no request asked for, but only once the runtime has told it. A request written before that would get those bytes as
        // its answer, and could not be sent again, since the server may have read it.
        tokio::task::yield_now().await;
        let mut response = self.execute(request).await.map_err(|error| self.no_response(error))?;

        let mut head = Response::new(());
        *head.status_mut() = response.status();
        *head.version_mut() = response.version();
        *head.headers_mut() = mem::take(response.headers_mut());
        Ok(head.map(|()| response.bytes_stream().map_err(broken).boxed()))
    }
}

/// The request for reqwest, which cannot know from pieces how long the body is.
fn in_pieces(mut request: Request<Vec<Bytes>>) -> reqwest::Result<reqwest::Request> {
    let length: usize = request.body().iter().map(Bytes::len).sum();
    request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    request.map(|pieces| Body::wrap_stream(stream::iter(pieces).map(Ok::<_, Infallible>))).try_into()
}

/// Whether an HTTP/2 server has said that it did not look at the request: it goes away, or refused the stream.
fn was_refused(error: &reqwest::Error) -> bool {
    said_by_server(error).is_some_and(|error| {
        let reason = if error.is_go_away() { h2::Reason::NO_ERROR } else { h2::Reason::REFUSED_STREAM };
        error.reason() == Some(reason)
    })
}

/// What an HTTP/2 server said.
fn said_by_server(error: &reqwest::Error) -> Option<&h2::Error> {
    let mut sources = std::iter::successors(error.source(), |&error| error.source());
    sources.find_map(|error| error.downcast_ref::<h2::Error>()).filter(|error| error.is_remote())
}

fn not_sent(error: reqwest::Error) -> TransportError {
    TransportError::Other { source: without_words(error) }
}

fn broken(error: reqwest::Error) -> TransportError {
    TransportError::Broken { source: without_words(error) }
}

/// Without what no error may show: reqwest's errors name the URL, and with it what a caller may have put into it; those of HTTP/2 have
/// the words with which a server goes away.
fn without_words(error: reqwest::Error) -> Box<dyn Error + Send + Sync> {
    match said_by_server(&error).and_then(h2::Error::reason) {
        Some(reason) => format!("the server gave up: {reason}").into(),
        None => error.without_url().into(),
    }
}
