//! Google's Gemini API for advisor chains: streaming, tool calls, thought signatures.
//!
#![doc = include_str!("../README.md")]
//!
//! - A thought signature goes back on the part that it came with: a text, a call, media, or an empty part.
//! - Calls without ids get some. Arguments that arrive in pieces (`partialArgs`) are passed on at their end.
//! - Code that runs at Google, and other parts that only Gemini understands, are opaque blocks, and go back unchanged.
//! - Thoughts are reasoning; images and audio of the model are media blocks; sources are citations.
//! - Every failure has a kind that needs no type of this crate ([`advisor_core::ErrorKind`]). The key appears in no
//!   `Debug`, error or trace.
//! - [`recording::aggregate`] aggregates a recorded body without a network.

mod answer;
mod model;
mod request;
mod wire;

pub mod recording;

pub use model::GeminiModel;
pub use provider_http::failure::ProviderError;
#[doc(no_inline)]
pub use provider_http::{backoff, sse, timeouts, transport};
