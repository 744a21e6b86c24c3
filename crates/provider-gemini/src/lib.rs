//! Google's Gemini API for advisor chains: streaming, tool calls, thought signatures.
//!
//! [`GeminiModel`] is an [`advisor_core::ChatModel`] that calls `streamGenerateContent`.
//!
//! ```
//! use advisor_core::ChatClient;
//! use advisor_testkit::{ReplayServer, Reply};
//! use provider_gemini::GeminiModel;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A local server that replays one answer replaces a real one.
//! let event = r#"{"candidates":[{"content":{"parts":[{"text":"Good morning!"}]},"finishReason":"STOP"}]}"#;
//! let server = ReplayServer::start([Reply::sse(format!("data: {event}\r\n\r\n"))]).await?;
//!
//! let model = GeminiModel::new("gemini-2.5-flash").with_base_url(server.url()).with_api_key("example");
//! let client = ChatClient::builder(model).build()?;
//! assert_eq!(client.prompt().system("Be brief.").user("Hello").call().await?.text(), "Good morning!");
//! assert_eq!(server.requests()[0].path, "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
//! # Ok(()) }
//! ```
//!
//! - A thought signature goes back on the part that it came with: a text, a call, media, or an empty part.
//! - Calls without ids get some. Arguments that arrive in pieces (`partialArgs`) are written as JSON text, in order.
//! - Code that runs at Google, and other parts that only Gemini understands, are opaque blocks, and go back unchanged.
//! - Thoughts are reasoning; images and audio of the model are media blocks; sources are citations.
//! - Differences between servers and models are data: [`Profile`].
//! - Every failure has a kind that needs no type of this crate ([`advisor_core::ErrorKind`]). The key appears in no
//!   `Debug`, error or trace.
//! - [`recording::aggregate`] aggregates a recorded body without a network.

mod answer;
mod convert;
mod model;
mod profile;
mod request;
mod wire;

pub mod recording;

pub use model::GeminiModel;
pub use profile::{CallIdField, Generation, Profile, SchemaForm, StreamForm};
pub use provider_http::failure::ProviderError;
#[doc(no_inline)]
pub use provider_http::{backoff, sse, timeouts, transport};

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
