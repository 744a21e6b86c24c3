//! The providers with which a conversation continues: how to read their requests, and their rules.

pub(crate) mod chat;
pub(crate) mod common;
pub(crate) mod gemini;
pub(crate) mod messages;
pub(crate) mod ollama;
pub(crate) mod responses;
pub(crate) mod text;

use advisor_tests::prelude::*;
use bytes::Bytes;

use crate::history::origins::Origin;
use crate::transport::ScriptedTransport;

/// A provider with which the conversation continues.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// The server, which can read its own data.
    pub(crate) server: &'static str,
    pub(crate) model: fn(ScriptedTransport) -> Arc<dyn ChatModel>,
    /// Writes an answer of this text.
    pub(crate) answer: fn(&str) -> Bytes,
    /// The format of calls in its text.
    pub(crate) in_text: Option<TextFormat>,
    /// Reads a request without any code of the provider's crate.
    pub(crate) read: fn(&Value) -> Vec<Item>,
    /// Checks whether the server accepts the id of a call.
    pub(crate) accepts_id: fn(&str) -> bool,
    /// Checks whether the server accepts the name of a tool.
    pub(crate) accepts_name: fn(&str) -> bool,
    pub(crate) rules: &'static [&'static [Rule]],
}

/// A documented rule of a provider.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    /// Panics if a request breaks the rule.
    pub(crate) check: fn(&Sent<'_>),
}

/// A request that the target sent.
pub(crate) struct Sent<'a> {
    pub(crate) origin: &'a Origin,
    pub(crate) target: &'a Target,
    pub(crate) body: Value,
    /// The messages, results of tools apart from one another.
    pub(crate) items: Vec<Item>,
}

impl Sent<'_> {
    /// Checks whether the conversation began on the same server.
    pub(crate) fn is_at_home(&self) -> bool {
        self.origin.server == self.target.server && self.origin.in_text.is_none()
    }

    /// Returns the answer of a round, counted from 0.
    pub(crate) fn answer(&self, round: usize) -> &Item {
        self.of(Role::Assistant).nth(round).expect("an answer")
    }

    pub(crate) fn of(&self, role: Role) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(move |item| item.role == role)
    }
}

/// One message of a request.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) role: Role,
    pub(crate) text: String,
    /// Pictures in base64.
    pub(crate) pictures: Vec<String>,
    pub(crate) calls: Vec<Call>,
    /// The call that a result answers.
    pub(crate) result_of: Option<ResultOf>,
    /// The message, or its part, on the wire.
    pub(crate) wire: Value,
}

/// A call on the wire.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

/// The call that a result answers, as far as the API says it.
#[derive(Debug, Clone)]
pub(crate) struct ResultOf {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
}

impl Item {
    pub(crate) fn new(role: Role, wire: &Value) -> Self {
        Self {
            role,
            text: String::new(),
            pictures: Vec::new(),
            calls: Vec::new(),
            result_of: None,
            wire: wire.clone(),
        }
    }

    pub(crate) fn with_text(self, text: &str) -> Self {
        Self { text: format!("{}{text}", self.text), ..self }
    }

    /// Adds content: a text, or a list of parts.
    pub(crate) fn with_content(mut self, content: &Value) -> Self {
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
pub(crate) fn picture(part: &Value) -> Option<String> {
    let url = |value: &Value| Some(value.as_str()?.strip_prefix("data:image/png;base64,")?.to_owned());
    url(&part["image_url"])
        .or_else(|| url(&part["image_url"]["url"]))
        .or_else(|| word(&part["source"], "data"))
        .or_else(|| word(&part["inlineData"], "data"))
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

pub(crate) fn word(value: &Value, key: &str) -> Option<String> {
    value[key].as_str().map(str::to_owned)
}

/// Checks for 1 to 64 ASCII letters, digits, `_` and `-`, as nearly all servers demand of a name.
pub(crate) fn is_word(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

/// All targets. `elsewhere` is another server that speaks the API of an origin.
pub(crate) const ALL: [&Target; 14] = [
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
