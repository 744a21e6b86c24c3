//! OpenAI's APIs for advisor chains: Chat Completions with profiles for compatible servers, and the Responses API.
//!
//! [`OpenAiModel`] is an [`advisor_core::ChatModel`]. It sends requests over HTTP and emits chunks as the
//! server sends them. It reads the body to its end before the answer completes, so that the next request reuses
//! the connection. A turn of fifty rounds makes one connection; on several threads the pool may open a second.
//!
//! ```
//! use advisor_core::ChatClient;
//! use advisor_testkit::{ChatTranscript, ReplayServer, Reply};
//! use provider_openai::OpenAiModel;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A local server that replays one answer replaces a real one.
//! let body = ChatTranscript::new("example-model").text("Good morning").text(", Vietnam!").finish("stop").done();
//! let server = ReplayServer::start([Reply::sse(body)]).await?;
//!
//! let model = OpenAiModel::new("example-model").with_base_url(format!("{}/v1", server.url())).with_api_key("sk-example");
//! let client = ChatClient::builder(model).build()?;
//! let response = client.prompt().system("Be brief.").user("Hello").call().await?;
//! assert_eq!(response.text(), "Good morning, Vietnam!");
//! assert_eq!(server.requests()[0].path, "/v1/chat/completions");
//! # Ok(()) }
//! ```
//!
//! ```text
//! request ─▶ body, each message written once ─▶ transport ─▶ clocks ─▶ SSE decoder ─▶ wire JSON ─▶ deltas ─▶ aggregator ─▶ chunks
//!            profile: the form for this server                         bytes, bounded   all optional  no state
//! ```
//!
//! - [`OpenAiResponsesModel`] is the same for the Responses API: reasoning continues over tool calls, and the server
//!   runs its own tools.
//! - [`OpenAiEmbeddings`] turns texts into vectors, for retrieval.
//! - Differences between servers are data: [`Profile`]. The host of the base URL selects one.
//! - Every failure has a kind that needs no type of this crate ([`advisor_core::ErrorKind`]). If the server
//!   gave a reason, the source is a [`ProviderError`]. The key appears in no `Debug`, error or trace.
//! - A request is retried only while no part of the answer was shown: [`backoff`].
//! - Timeouts exist for connecting, the first byte, idle time and progress, and for bodies that are not
//!   streamed. A streamed answer has no total timeout: [`timeouts`].
//! - The transport can be replaced: [`transport`]. The decoder of server-sent events can be used alone:
//!   [`sse`].
//! - [`recording::aggregate`] aggregates a recorded body without a network.

mod answer;
mod audio;
mod convert;
mod embeddings;
mod model;
mod profile;
mod request;
mod responses;
mod wire;
mod written;

pub mod recording;

pub use embeddings::OpenAiEmbeddings;
pub use model::OpenAiModel;
pub use profile::{
    EchoScope, Endpoint, MessageRules, NamedTool, NoText, OptionRules, Profile, ReasoningEcho,
    ReasoningField, TextMode, ThinkTags,
};
pub use provider_http::failure::ProviderError;
pub use provider_http::names::{Alphabet, IdRule, Length};
pub use provider_http::server::Authorization;
#[doc(no_inline)]
pub use provider_http::{backoff, sse, timeouts, transport};
pub use responses::OpenAiResponsesModel;

/// Tests the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
