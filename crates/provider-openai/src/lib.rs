//! OpenAI-compatible Chat Completions for advisor chains: streaming, tool calls, profiles for compatible servers.
//!
//! [`OpenAiModel`] is an [`advisor_core::ChatModel`]: requests go out over HTTP, chunks come in as the server sends them, and the
//! body is read to its end before the answer completes, so that the next request finds the connection open: a turn of fifty rounds
//! makes one connection; on several threads the pool may open a second.
//!
//! ```
//! use advisor_core::ChatClient;
//! use advisor_testkit::{ChatTranscript, ReplayServer, Reply};
//! use provider_openai::OpenAiModel;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A server on this machine that plays one answer stands in for a real one.
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
//!            profile: what this server wants                           bytes, bounded   all optional  no state
//! ```
//!
//! - What servers do differently is data: [`Profile`]. The base URL's host chooses one.
//! - What fails has a kind that needs no type of this crate ([`advisor_core::ErrorKind`]); what the server said is its source,
//!   [`ProviderError`]. The key is in no `Debug`, error or trace.
//! - Requests are asked again only while nothing of the answer was shown: [`backoff`].
//! - Clocks for connecting, the first byte, silence and progress, and for whatever is not streamed; none for a streamed answer: [`timeouts`].
//! - The way to the server can be replaced: [`transport`]. The decoder of server-sent events stands on its own: [`sse`].
//! - [`aggregate_recording`] tells what becomes of a recorded body, without a network.

mod answer;
mod convert;
mod events;
mod failure;
mod model;
mod profile;
mod recording;
mod request;
mod wire;

pub use failure::ProviderError;
pub use model::OpenAiModel;
pub use profile::{
    Authorization, CallIds, EchoWhen, Endpoint, MaxTokensField, MessageRules, NamedTool, NoText, OptionRules,
    Profile, ReasoningEcho, ReasoningField, RequiredTool, SeedField, TextMode,
};
#[doc(no_inline)]
pub use provider_http::{backoff, sse, timeouts, transport};
pub use recording::{aggregate_recording, frame_json_lines};
