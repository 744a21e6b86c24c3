//! The providers with which a conversation continues: how to read their requests, and their rules.

pub mod chat;
pub mod common;
pub mod gemini;
pub mod messages;
pub mod ollama;
pub mod responses;
pub mod text;

use std::sync::Arc;

use advisor_chain::text_tool_calls::PromptFormat;
use advisor_chain::{ChatModel, Role};
use serde_json::Value;

use crate::origins::Origin;
use crate::transport::ScriptedTransport;

/// A provider with which the conversation continues.
pub struct Target {
    pub name: &'static str,
    /// The server, which can read its own data.
    pub server: &'static str,
    pub model: fn(ScriptedTransport) -> Arc<dyn ChatModel>,
    /// Writes an answer of this text.
    pub answer: fn(&str) -> String,
    /// The format of calls in its text.
    pub in_text: Option<PromptFormat>,
    /// Reads a request without any code of the provider's crate.
    pub read: fn(&Value) -> Vec<Item>,
    /// Checks whether the server accepts the id of a call.
    pub accepts_id: fn(&str) -> bool,
    /// Checks whether the server accepts the name of a tool.
    pub accepts_name: fn(&str) -> bool,
    pub rules: &'static [&'static [Rule]],
}

/// A documented rule of a provider.
pub struct Rule {
    pub name: &'static str,
    /// Panics if a request breaks the rule.
    pub check: fn(&Sent<'_>),
}

/// A request that the target sent.
pub struct Sent<'a> {
    pub origin: &'a Origin,
    pub target: &'a Target,
    pub body: Value,
    /// The messages, results of tools apart from one another.
    pub items: Vec<Item>,
}

impl Sent<'_> {
    /// Checks whether the conversation began on the same server.
    pub fn is_at_home(&self) -> bool {
        self.origin.server == self.target.server && self.origin.in_text.is_none()
    }

    /// Returns the answer of a round, counted from 0.
    pub fn answer(&self, round: usize) -> &Item {
        self.of(Role::Assistant).nth(round).expect("an answer")
    }

    pub fn of(&self, role: Role) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(move |item| item.role == role)
    }
}

/// One message of a request.
#[derive(Debug, Clone)]
pub struct Item {
    pub role: Role,
    pub text: String,
    /// Pictures in base64.
    pub pictures: Vec<String>,
    pub calls: Vec<Call>,
    /// The call that a result answers.
    pub result_of: Option<ResultOf>,
    /// The message, or its part, on the wire.
    pub wire: Value,
}

/// A call on the wire.
#[derive(Debug, Clone)]
pub struct Call {
    pub id: Option<String>,
    pub name: String,
    pub arguments: Value,
}

/// The call that a result answers, as far as the API says it.
#[derive(Debug, Clone)]
pub struct ResultOf {
    pub id: Option<String>,
    pub name: Option<String>,
}

impl Item {
    pub fn new(role: Role, wire: &Value) -> Self {
        Self {
            role,
            text: String::new(),
            pictures: Vec::new(),
            calls: Vec::new(),
            result_of: None,
            wire: wire.clone(),
        }
    }

    pub fn with_text(self, text: &str) -> Self {
        Self { text: format!("{}{text}", self.text), ..self }
    }

    /// Adds content: a text, or a list of parts.
    pub fn with_content(mut self, content: &Value) -> Self {
        if let Some(text) = content.as_str() {
            return self.with_text(text);
        }
        for part in list(content) {
            match word(part, "text") {
                Some(text) => self = self.with_text(&text),
                None => self.pictures.extend(picture(part)),
            }
        }
        self
    }
}

/// Returns the picture of a part, in the form of any API.
pub fn picture(part: &Value) -> Option<String> {
    let url = |value: &Value| Some(value.as_str()?.strip_prefix("data:image/png;base64,")?.to_owned());
    url(&part["image_url"])
        .or_else(|| url(&part["image_url"]["url"]))
        .or_else(|| word(&part["source"], "data"))
        .or_else(|| word(&part["inlineData"], "data"))
}

pub fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

pub fn word(value: &Value, key: &str) -> Option<String> {
    value[key].as_str().map(str::to_owned)
}

/// Checks for 1 to 64 ASCII letters, digits, `_` and `-`, as nearly all servers demand of a name.
pub fn is_word(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

/// All targets. `elsewhere` is another server that speaks the API of an origin.
pub const ALL: [&Target; 14] = [
    &chat::OPENAI,
    &chat::MISTRAL,
    &chat::DEEPSEEK,
    &chat::OPENROUTER,
    &chat::COMPATIBLE,
    &responses::OPENAI,
    &responses::ELSEWHERE,
    &messages::ANTHROPIC,
    &messages::ELSEWHERE,
    &gemini::GOOGLE,
    &gemini::VERTEX,
    &ollama::LOCAL,
    &text::XML,
    &text::JSON,
];
