//! What the tests of wires share: streams recorded from providers, bodies written in code, decoding in pieces.

pub mod decoding;
pub mod recordings;
mod transcript;

pub use transcript::{GeminiTranscript, MessagesTranscript, OllamaTranscript, ResponsesTranscript};
