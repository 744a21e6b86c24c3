//! OpenAI's APIs for advisor chains: Chat Completions with profiles for compatible servers, and Responses.
//!
#![doc = include_str!("../README.md")]
//!
//! ```text
//! request ─▶ body, each message written once ─▶ transport ─▶ clocks ─▶ SSE decoder ─▶ wire JSON ─▶ deltas ─▶ aggregator ─▶ chunks
//!            profile: the form for this server                         bytes, bounded   all optional  no state
//! ```
//!
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
pub use profile::{Profile, ReasoningEcho, ThinkTags};
pub use provider_http::failure::ProviderError;
pub use provider_http::names::IdRule;
pub use provider_http::server::Authorization;
#[doc(no_inline)]
pub use provider_http::{backoff, sse, timeouts, transport};
pub use responses::OpenAiResponsesModel;
