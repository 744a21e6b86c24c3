//! The transport over reqwest.

use std::error::Error;
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use http::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};
use http::{Request, Response};
use reqwest::{Client, ClientBuilder, redirect};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::{Instant, sleep_until};

use super::{ByteStream, Transport, TransportError, tls};
use crate::local::is_local;
use crate::transport::{Clock, TimedOut};

/// The time after the end of a body in which its connection becomes free, as a task of another thread does that. A request
/// before that would open another one.
const RELEASE: Duration = Duration::from_millis(2);

/// HTTP/1.1 and HTTP/2 over [`reqwest`], on tokio.
///
/// It follows no redirect, decompresses nothing, and does not limit the duration of an answer. It reuses a
/// connection once a body was read to its end. On several threads, a request that follows in the same instant waits for that
/// connection, for at most 2 ms. It uses the proxies in the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`), but never
/// for a server on this machine.
///
/// The features of this crate select the TLS backend: `rustls-ring` (default), `rustls-aws-lc` or `native-tls`.
/// With rustls, certificates are checked against the roots of the operating system. They are loaded once per
/// process, when the first `https://` connection needs them. Clones share their connections.
///
/// A connection lives in the runtime that opened it. A request may use a connection that another runtime opened,
/// and then waits until that runtime runs. Runtimes that do not run all the time need separate transports.
#[derive(Clone)]
pub struct ReqwestTransport {
    client: Client,
    /// The client for servers on this machine, which a proxy would not find.
    local: Client,
    connect_timeout: Option<Duration>,
    released: Released,
}

/// The time at which a body was last at its end.
#[derive(Debug, Clone, Default)]
struct Released(Arc<Mutex<Option<Instant>>>);

/// A body that is read. When it is dropped, its connection becomes free.
struct InUse(Released);

impl ReqwestTransport {
    /// Creates a transport with its own connection pool. `connect_timeout` limits name lookup, TCP and TLS
    /// handshake together.
    ///
    /// # Errors
    ///
    /// [`TransportError::Other`] if TLS cannot be set up.
    pub fn new(connect_timeout: Option<Duration>) -> Result<Self, TransportError> {
        let client = configured(connect_timeout)?.build().map_err(not_sent)?;
        let local = configured(connect_timeout)?.no_proxy().build().map_err(not_sent)?;
        Ok(Self { client, local, connect_timeout, released: Released::default() })
    }

    /// Creates a transport over your own client, for settings that [`new`](Self::new) does not offer: client
    /// certificates, other roots, a separate proxy. Disable redirects in it, and set no total timeout.
    ///
    /// Its TLS is reqwest's: enable a TLS feature in your own dependency on reqwest, such as `rustls`. Without
    /// one, and with rustls in this crate, creating a client panics in reqwest unless the process has a default
    /// crypto provider.
    #[must_use]
    pub fn from_client(client: Client) -> Self {
        Self { local: client.clone(), client, connect_timeout: None, released: Released::default() }
    }

    /// Returns the error of a request without a response.
    fn no_response(&self, error: reqwest::Error) -> TransportError {
        match self.connect_timeout {
            _ if error.is_builder() => not_sent(error),
            Some(after) if error.is_connect() && error.is_timeout() => {
                TimedOut::new(Clock::Connect, after).into()
            }
            _ if error.is_connect() => TransportError::Connect { source: without_server_text(error) },
            _ => broken(error),
        }
    }
}

/// Shows no header: a client that was set up elsewhere may have keys in its default headers.
impl fmt::Debug for ReqwestTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReqwestTransport")
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Transport for ReqwestTransport {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<ByteStream>, TransportError> {
        tls::check(request.uri())?;
        // Lets the runtime read its sockets first. The client drops a kept connection that has closed, or that
        // received bytes without a request, but only once the runtime has reported it. A request written before
        // that would get those bytes as its answer. It could not be sent again, since the server may have read it.
        tokio::task::yield_now().await;
        self.released.wait().await;
        let client = if is_local(request.uri()) { &self.local } else { &self.client };
        // The client sends a request again that an HTTP/2 server refused without processing it.
        let sent = async { client.execute(request.try_into()?).await };
        let mut response = sent.await.map_err(|error| self.no_response(error))?;

        let mut head = Response::new(());
        *head.status_mut() = response.status();
        *head.version_mut() = response.version();
        *head.headers_mut() = mem::take(response.headers_mut());
        let in_use = InUse(self.released.clone());
        let broken = move |error| {
            // The stream owns it, and is dropped at its end.
            let _ = &in_use;
            broken(error)
        };
        Ok(head.map(|()| response.bytes_stream().map_err(broken).boxed()))
    }
}

impl Released {
    /// Waits until the connection of the last body is free. In a runtime of one thread it is already.
    async fn wait(&self) {
        let threads = Handle::try_current().map(|runtime| runtime.runtime_flavor());
        let last = *self.lock();
        if let (Ok(RuntimeFlavor::MultiThread), Some(free)) =
            (threads, last.and_then(|last| last.checked_add(RELEASE)))
        {
            sleep_until(free).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        *self.0.lock() = Some(Instant::now());
    }
}

/// Returns the settings of both clients.
fn configured(connect_timeout: Option<Duration>) -> Result<ClientBuilder, TransportError> {
    let identity = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]);
    let mut builder = Client::builder()
        .default_headers(identity)
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .redirect(redirect::Policy::none())
        .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")));
    if let Some(timeout) = connect_timeout {
        builder = builder.connect_timeout(timeout);
    }
    tls::choose(builder)
}

/// Returns the HTTP/2 error that the server sent, if any.
fn remote_h2_error(error: &reqwest::Error) -> Option<&h2::Error> {
    let mut sources = std::iter::successors(error.source(), |&error| error.source());
    sources.find_map(|error| error.downcast_ref::<h2::Error>()).filter(|error| error.is_remote())
}

fn not_sent(error: reqwest::Error) -> TransportError {
    TransportError::Other { source: without_server_text(error) }
}

fn broken(error: reqwest::Error) -> TransportError {
    TransportError::Broken { source: without_server_text(error) }
}

/// Removes text that no error may show. reqwest's errors name the URL, and with it any secret that a caller put
/// into it. HTTP/2 errors have the server's text of a `GOAWAY`.
fn without_server_text(error: reqwest::Error) -> Box<dyn Error + Send + Sync> {
    match remote_h2_error(&error).and_then(h2::Error::reason) {
        Some(reason) => format!("the server gave up: {reason}").into(),
        None => error.without_url().into(),
    }
}
