//! `Question`: the text, the tenant, and the digest of everything else that determines the answer.

use std::fmt;

use advisor_core::{ChatRequest, Embedding, MessageContent, Role, Text};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// A question: the text of the last message of a request, which the user wrote.
///
/// `Debug` omits the text.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// The tenant of the conversation; empty if tenants share their answers.
    pub tenant: Text,
    /// A digest of everything else that determines the answer, as 64 hexadecimal digits: the tenant, all other
    /// messages, the options and the tools.
    ///
    /// Versions of this crate may compute different ones.
    pub context: Text,
    /// The text.
    pub text: Text,
    /// The embedding of the text.
    pub embedding: Embedding,
}

impl Question {
    /// Creates the question of a request.
    pub(super) fn new(tenant: &str, request: &ChatRequest, text: Text, embedding: Embedding) -> Self {
        let context = context_of(tenant, request);
        Self { tenant: tenant.into(), context, text, embedding }
    }

    /// Returns a digest of tenant, context and text, as 64 hexadecimal digits.
    #[must_use]
    pub fn id(&self) -> Text {
        id(&self.tenant, &self.context, &self.text)
    }
}

/// Returns the id of the question of a request, if it has one.
pub(in crate::response_cache) fn id_of(tenant: &str, request: &ChatRequest) -> Option<Text> {
    Some(id(tenant, &context_of(tenant, request), &text_of(request)?))
}

fn id(tenant: &str, context: &str, text: &str) -> Text {
    digest(|add| [tenant, context, text].into_iter().for_each(|part| add(part.as_bytes())))
}

/// Returns the text of the last message, if it is a text of the user. An advisor adds ephemeral ones, such as a correction.
pub(super) fn text_of(request: &ChatRequest) -> Option<Text> {
    let last = request.messages.last().filter(|last| last.role() == Role::User && !last.is_ephemeral())?;
    let MessageContent::User(parts) = last.content() else { return None };
    let is_text = parts.iter().all(|part| part.as_text().is_some());
    let text = last.text();
    (is_text && !text.trim().is_empty()).then(|| text.into())
}

fn context_of(tenant: &str, request: &ChatRequest) -> Text {
    let messages = request.messages.iter().take(request.messages.len().saturating_sub(1));
    // Both have no JSON form. Their fields are all in that of `Debug`, apart from the values of the extra ones.
    let tools: Vec<_> =
        [&request.tools, request.api_tools()].map(|set| format!("{:?}", definitions(set))).into();
    let options = format!("{:?}", request.options);
    digest(|add| {
        for part in [tenant, &options].into_iter().chain(tools.iter().map(String::as_str)) {
            add(part.as_bytes());
        }
        add(&json(&request.options.extra));
        messages.for_each(|message| add(&json(message)));
    })
}

fn definitions(tools: &advisor_core::ToolSet) -> Vec<&advisor_core::ToolDefinition> {
    tools.definitions().collect()
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // A value without a JSON form cannot be sent either.
    serde_json::to_vec(value).unwrap_or_default()
}

/// Returns the digest of several parts, none of which can pass for the end of another one.
fn digest(parts: impl FnOnce(&mut dyn FnMut(&[u8]))) -> Text {
    let mut digest = Sha256::new();
    parts(&mut |part| {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    });
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

/// Omits the text, which is content, and the embedding, which tells about it.
impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("tenant", &self.tenant)
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}
