//! The abstraction over HTTP: one request in, one response whose body is a stream of bytes.

use std::error::Error;
use std::pin::Pin;

use async_trait::async_trait;
use bytes::Bytes;
use futures::Stream;
use http::{Request, Response};

mod reqwest_transport;
#[cfg(test)]
mod tests;
mod timed_out;
mod tls;

pub use reqwest_transport::ReqwestTransport;
pub use timed_out::{Clock, TimedOut};

/// The bytes of a response body, in order and, as far as the transport can tell, in the pieces in which they
/// arrived.
///
/// `None` is the clean end of the body; after an error nothing follows.
pub type ByteStream = Pin<Box<dyn Stream<Item = Result<Bytes, TransportError>> + Send>>;

/// Sends one HTTP request and returns the response as soon as its head has arrived.
///
/// [`ReqwestTransport`] is the implementation in use; tests and gateways provide their own. A transport resends no
/// request that a server may have processed. It follows no redirect, which would carry the key to another host. It
/// requests no compression. It does not limit the duration of an answer, since its caller does. A transport that
/// decompresses bodies must remove their `Content-Encoding`: a body that still has one is refused.
///
/// # Ordering
///
/// The body's bytes come in the order in which they were sent, each as soon as it has arrived. A transport does
/// not wait for a full buffer.
///
/// # Cancellation
///
/// Dropping the future of [`send`](Self::send), or the body, cancels the exchange. The connection is closed, or
/// with HTTP/2 the stream is reset, so that the server stops working. After a body was read to its end, the
/// connection can be used for the next request.
///
/// # Errors
///
/// A response of any status is a response, not an error. [`TransportError`] reports how far a failed exchange
/// came. No error may show a URL, a header or a body.
///
/// # Example
///
/// ```
/// use async_trait::async_trait;
/// use bytes::Bytes;
/// use futures::{StreamExt, TryStreamExt, stream};
/// use provider_http::transport::{ByteStream, Transport, TransportError};
///
/// /// Answers every request with the same body, without a network.
/// struct Canned(&'static str);
///
/// #[async_trait]
/// impl Transport for Canned {
///     async fn send(&self, _: http::Request<Bytes>) -> Result<http::Response<ByteStream>, TransportError> {
///         let body = stream::iter([Ok(Bytes::from(self.0))]);
///         Ok(http::Response::new(body.boxed()))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), TransportError> {
/// let response = Canned("data: [DONE]\n\n").send(http::Request::new(Bytes::new())).await?;
/// let body: Vec<Bytes> = response.into_body().try_collect().await?;
/// assert_eq!(body, ["data: [DONE]\n\n"]);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// Sends the request. Returns the response when its head has arrived.
    async fn send(&self, request: Request<Bytes>) -> Result<Response<ByteStream>, TransportError>;
}

/// The reason why an exchange with the server failed.
///
/// Neither this nor any of its sources shows the URL, a header or a body.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// No connection: refused, unreachable, unknown host, failed TLS handshake. The server has not seen the
    /// request.
    #[error("could not connect to the server")]
    Connect {
        /// The error of the connector.
        source: Box<dyn Error + Send + Sync>,
    },
    /// One of the [`Timeouts`](crate::timeouts::Timeouts) expired.
    #[error(transparent)]
    TimedOut(#[from] TimedOut),
    /// The connection was reset or closed before the response was complete. The server may have seen the request.
    #[error("the connection broke before the response was complete")]
    Broken {
        /// The error of the connection.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Any other failure, such as a URL to which no request can be sent. The server has not seen the request.
    #[error("the request could not be sent")]
    Other {
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
}
