//! A loopback HTTP server that answers from a script, byte for byte.
//!
//! [`ReplayServer`] listens on 127.0.0.1. It answers each request with the next [`Reply`] of a script, or with
//! the result of a function. A reply is a list of [`Step`]s: write these bytes, wait at a
//! [`Gate`](crate::Gate), pause, stall, cut, reset. The server keeps the [`ReceivedRequest`]s, counts events
//! ([`Counts`]) and detects a client that disconnects in the middle of a reply.
//!
//! ```
//! use advisor_testkit::{ChatTranscript, Reply, ReplayServer};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let body = ChatTranscript::new("example-model").text("Hello").finish("stop").done();
//! let server = ReplayServer::start([Reply::sse(body).split_every(7)]).await?;
//!
//! // Any HTTP client will do; this one is written by hand.
//! let mut client = tokio::net::TcpStream::connect(server.address()).await?;
//! client.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}").await?;
//! let mut answer = String::new();
//! client.read_to_string(&mut answer).await?;
//!
//! assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"));
//! assert_eq!(server.requests()[0].path, "/v1/chat/completions");
//! # Ok(())
//! # }
//! ```

mod reply;
mod request;
mod server;
mod step;
mod write;

pub use reply::{Framing, Reply};
pub use request::ReceivedRequest;
pub use server::{Counts, ReplayServer};
pub use step::Step;
