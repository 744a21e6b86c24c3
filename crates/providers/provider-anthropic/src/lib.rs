//! Anthropic Messages for advisor chains: streaming, thinking with signatures, tool calls, server tools,
//! prompt caching.
//!
#![doc = include_str!("../README.md")]
//!
//! ```text
//! request ─▶ body ─▶ transport ─▶ clocks ─▶ SSE decoder ─▶ wire JSON ─▶ deltas ─▶ aggregator ─▶ chunks
//! ```
//!
//! - Thinking is reasoning. Its signature and encrypted thinking are kept with it, and go back unchanged, in order.
//! - A tool that the server runs is an opaque block, never a tool call. A paused answer has the finish reason
//!   [`Paused`](advisor_core::FinishReason::Paused), and the tool loop asks the server to go on.
//! - `refusal`, `max_tokens` and `model_context_window_exceeded` are finish reasons after which no call runs. A citation is a
//!   block for the user, and goes back with its text.
//! - Token counts are cumulative; the largest ones count, compactions included. The tokens of the request include cached ones.
//! - The messages of a request take turns: results of tools come first in the user's message. A conversation that
//!   began with another provider goes on: call ids are mapped, and thinking of others is left out.
//! - [`PromptCaching`] marks the beginning of a request that stays the same.
//! - Every failure has a kind that needs no type of this crate ([`advisor_core::ErrorKind`]). If the server gave a
//!   reason, the source is a [`ProviderError`]. The key appears in no `Debug`, error or trace.
//! - [`recording::aggregate`] aggregates a recorded body without a network.

mod answer;
mod caching;
mod model;
mod request;
mod wire;

pub mod recording;

pub use caching::PromptCaching;
pub use model::AnthropicModel;
pub use provider_http::failure::ProviderError;
#[doc(no_inline)]
pub use provider_http::{backoff, sse, timeouts, transport};
