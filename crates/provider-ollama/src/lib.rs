//! Ollama's own API for advisor chains: streaming, thinking, tool calls, images.
//!
//! [`OllamaModel`] is an [`advisor_core::ChatModel`]. It sends requests to `/api/chat` and emits chunks as the server
//! sends them, one JSON object a line.
//!
//! ```
//! use advisor_core::ChatClient;
//! use advisor_testkit::{ReplayServer, Reply};
//! use provider_ollama::OllamaModel;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A local server that replays one answer replaces a real one.
//! let body = concat!(
//!     r#"{"message":{"role":"assistant","content":"Good morning"},"done":false}"#, "\n",
//!     r#"{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}"#, "\n",
//! );
//! let server = ReplayServer::start([Reply::sse(body).with_header("content-type", "application/x-ndjson")]).await?;
//!
//! let client = ChatClient::builder(OllamaModel::new("qwen3").with_base_url(server.url())).build()?;
//! let response = client.prompt().system("Be brief.").user("Hello").call().await?;
//! assert_eq!(response.text(), "Good morning");
//! assert_eq!(server.requests()[0].path, "/api/chat");
//! # Ok(()) }
//! ```
//!
//! - Every failure has a kind that needs no type of this crate ([`advisor_core::ErrorKind`]). If the server
//!   gave a reason, the source is a [`ProviderError`]. The key appears in no `Debug`, error or trace.
//! - A request is retried only while no part of the answer was shown: [`backoff`].
//! - Timeouts exist for connecting, the first byte, idle time and progress: [`timeouts`]. Loading a large model counts
//!   as waiting for the first byte.
//! - [`recording::aggregate`] aggregates a recorded body without a network.

mod answer;
mod model;
pub mod recording;
mod request;
mod wire;

pub use model::OllamaModel;
pub use provider_http::failure::ProviderError;
#[doc(no_inline)]
pub use provider_http::{backoff, sse, timeouts, transport};

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
