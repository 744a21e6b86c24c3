//! Bodies of providers, written in code. That of Chat Completions is in the testkit.

mod body;
mod gemini;
mod messages;
mod ollama;
mod responses;

pub use gemini::GeminiTranscript;
pub use messages::MessagesTranscript;
pub use ollama::OllamaTranscript;
pub use responses::ResponsesTranscript;
