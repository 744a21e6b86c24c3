//! Ollama's own API for advisor chains: streaming, thinking, tool calls, images.
//!
#![doc = include_str!("../README.md")]
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

pub use model::OllamaModel;
pub use provider_http::failure::ProviderError;
#[doc(no_inline)]
pub use provider_http::{backoff, sse, timeouts, transport};
