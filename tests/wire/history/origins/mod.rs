//! The providers with which a conversation begins: what their servers send in each round.

pub(crate) mod chat;
pub(crate) mod gemini;
pub(crate) mod messages;
pub(crate) mod ollama;
pub(crate) mod responses;
pub(crate) mod text;
use advisor_tests::prelude::*;

use crate::transport::ScriptedTransport;

/// A provider with which the conversation begins.
pub(crate) struct Origin {
    pub(crate) name: &'static str,
    /// The server that can read its data.
    pub(crate) server: &'static str,
    pub(crate) model: fn(ScriptedTransport) -> Arc<dyn ChatModel>,
    /// The bodies of its four answers.
    pub(crate) answers: fn() -> Vec<String>,
    /// The format of calls in its text.
    pub(crate) in_text: Option<TextFormat>,
    /// What only its server can read, and gets back: signatures and encrypted content.
    pub(crate) secrets: &'static [&'static str],
}

pub(crate) const ALL: [&Origin; 6] = [
    &chat::OPENROUTER,
    &responses::OPENAI,
    &messages::ANTHROPIC,
    &gemini::GOOGLE,
    &ollama::LOCAL,
    &text::LOCAL,
];

/// Writes server-sent events without names.
fn events(events: impl IntoIterator<Item = Value>) -> String {
    events.into_iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// Writes server-sent events whose names are their types.
fn named_events(events: impl IntoIterator<Item = Value>) -> String {
    let named =
        |event: Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("a type"));
    events.into_iter().map(named).collect()
}
