//! `Message`, `MessageContent`, `Role` and `WireForms`: an immutable shared message with its marks and its written forms.

pub(crate) mod block;
pub(crate) mod list;
pub(crate) mod part;
pub(crate) mod text;
pub(crate) mod tool_call;

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Block, BlockContent, Part, Text, ToolCall, ToolResult};

/// One message of a transcript: immutable, opaque, cheap to clone.
///
/// A message caches its serialised form per wire format, so that a conversation sent a hundred times is serialised
/// once. Two messages are equal if their content and their marks are equal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Message(Arc<Inner>);

#[derive(Debug, Serialize, Deserialize)]
struct Inner {
    #[serde(flatten)]
    content: MessageContent,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ephemeral: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    hidden: bool,
    #[serde(skip)]
    wire_forms: WireForms,
}

/// Content of a [`Message`], by its author.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", content = "content", rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageContent {
    /// Instructions. They belong to a request and are never stored.
    System(Text),
    /// The user's input.
    User(Vec<Part>),
    /// The model's answer, in order.
    Assistant(Vec<Block>),
    /// The result of a tool.
    Tool(ToolResult),
}

/// The author of a [`Message`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::exhaustive_enums, reason = "every wire format maps exactly these four")]
pub enum Role {
    /// The author of the application.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

impl Message {
    /// Creates a message with the given content.
    #[must_use]
    pub fn new(content: MessageContent) -> Self {
        let wire_forms = WireForms::default();
        Self(Arc::new(Inner { content, ephemeral: false, hidden: false, wire_forms }))
    }

    /// Creates instructions to the model.
    pub fn system(text: impl Into<Text>) -> Self {
        Self::new(MessageContent::System(text.into()))
    }

    /// Creates a user message of one text.
    pub fn user(text: impl Into<Text>) -> Self {
        Self::user_parts(vec![Part::Text(text.into())])
    }

    /// Creates a user message of several parts, such as text, pictures and files.
    #[must_use]
    pub fn user_parts(parts: Vec<Part>) -> Self {
        Self::new(MessageContent::User(parts))
    }

    /// Creates an answer of one text block.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::assistant_blocks(vec![Block::text(text)])
    }

    /// Creates an answer of several blocks.
    #[must_use]
    pub fn assistant_blocks(blocks: Vec<Block>) -> Self {
        Self::new(MessageContent::Assistant(blocks))
    }

    /// Creates a message with the result of a tool.
    #[must_use]
    pub fn tool(result: ToolResult) -> Self {
        Self::new(MessageContent::Tool(result))
    }

    /// Marks the message as ephemeral: it is sent, but memory does not store it.
    #[must_use]
    pub fn ephemeral(self) -> Self {
        Self(Arc::new(Inner { ephemeral: true, ..self.0.copy() }))
    }

    /// Marks the message as hidden: memory stores it and it is sent, but the user was not shown it.
    ///
    /// Transcripts contain it. A display of a transcript omits messages that are [hidden](Self::is_hidden).
    #[must_use]
    pub fn hidden(self) -> Self {
        Self(Arc::new(Inner { hidden: true, ..self.0.copy() }))
    }

    /// Returns the content.
    #[must_use]
    pub fn content(&self) -> &MessageContent {
        &self.0.content
    }

    /// Checks whether memory omits the message.
    #[must_use]
    pub fn is_ephemeral(&self) -> bool {
        self.0.ephemeral
    }

    /// Checks whether the message is hidden from the user.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.0.hidden
    }

    /// Returns the author's role.
    #[must_use]
    pub fn role(&self) -> Role {
        match self.content() {
            MessageContent::System(_) => Role::System,
            MessageContent::User(_) => Role::User,
            MessageContent::Assistant(_) => Role::Assistant,
            MessageContent::Tool(_) => Role::Tool,
        }
    }

    /// Returns all its text, concatenated: text parts, text blocks or the text of a tool result. The text of a refusal
    /// counts, so that who reads nothing else learns why there is no answer.
    ///
    /// No separator is inserted, so that it equals the emitted deltas; providers split sentences into blocks. An
    /// author of several blocks has to write the separators.
    #[must_use]
    pub fn text(&self) -> String {
        match self.content() {
            MessageContent::System(text) => String::from(text.as_str()),
            MessageContent::User(parts) => parts.iter().filter_map(Part::as_text).collect(),
            MessageContent::Assistant(blocks) => {
                blocks.iter().filter_map(|block| block.content().shown_text()).collect()
            }
            MessageContent::Tool(result) => result.text(),
        }
    }

    /// Returns the blocks of an assistant message; empty for others.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        match self.content() {
            MessageContent::Assistant(blocks) => blocks,
            _ => &[],
        }
    }

    /// Iterates over the tool calls of an assistant message, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks().iter().filter_map(Block::as_tool_call)
    }

    /// Returns the result of a tool message.
    #[must_use]
    pub fn tool_result(&self) -> Option<&ToolResult> {
        match self.content() {
            MessageContent::Tool(result) => Some(result),
            _ => None,
        }
    }

    /// Checks whether this is an answer without text, media or calls, which no provider accepts in a transcript.
    /// Reasoning, citations and white space alone count as empty, with and without data of a provider. The data of one
    /// provider mean nothing to another, and a signature of no content is not needed.
    #[must_use]
    pub fn is_empty_answer(&self) -> bool {
        let MessageContent::Assistant(blocks) = self.content() else { return false };
        blocks.iter().all(|block| match block.content() {
            BlockContent::Text(text) | BlockContent::Refusal(text) => text.trim().is_empty(),
            BlockContent::Reasoning(_) | BlockContent::Citation(_) => true,
            _ => false,
        })
    }

    /// Iterates over the JSON values in the message, each with the number of levels around it in the message's
    /// JSON form. Everything else in that form is nested less deep, and has names of this crate.
    pub fn json_values(&self) -> impl Iterator<Item = (usize, &Value)> {
        let (levels, parts, blocks) = match self.content() {
            MessageContent::System(_) => (0, &[][..], &[][..]),
            MessageContent::User(parts) => (3, parts.as_slice(), &[][..]),
            MessageContent::Assistant(blocks) => (0, &[][..], blocks.as_slice()),
            MessageContent::Tool(result) => (4, result.parts.as_slice(), &[][..]),
        };
        let of_parts = parts.iter().filter_map(move |part| Some((levels, part.as_json()?)));
        let of_blocks = blocks.iter().flat_map(|block| {
            let data = block.provider_data().iter().map(|data| (5, &data.value));
            block.content().as_json().map(|value| (4, value)).into_iter().chain(data)
        });
        of_parts.chain(of_blocks)
    }

    /// Checks whether both are handles of the same message, not merely equal.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn marks(&self) -> (bool, bool) {
        (self.0.ephemeral, self.0.hidden)
    }

    /// Returns the cached wire form of this message; `make` creates it at the first call.
    ///
    /// `T` is a type of the caller, one per wire format.
    pub fn wire_form<T: Send + Sync + 'static>(&self, make: impl FnOnce(&Self) -> T) -> &T {
        self.0.wire_forms.form(|| make(self))
    }
}

impl Inner {
    /// Returns the same content and marks, without cached wire forms.
    fn copy(&self) -> Self {
        Self { content: self.content.clone(), wire_forms: WireForms::default(), ..*self }
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || (self.content() == other.content() && self.marks() == other.marks())
    }
}

/// Cached wire forms of an immutable value: each form is created once.
///
/// Each provider uses its own type, so forms of different wire formats are separate. Without them, a round in a turn of 50
/// rounds costs 460,000 instructions more.
///
/// ```
/// use message_aggregator::WireForms;
///
/// let forms = WireForms::default();
/// assert_eq!(forms.form(|| String::from("written")), "written");
/// assert_eq!(forms.form(|| String::from("again")), "written");
/// ```
#[derive(Default)]
pub struct WireForms(OnceLock<Form>);

struct Form {
    format: TypeId,
    value: Box<dyn Any + Send + Sync>,
    next: Box<WireForms>,
}

impl WireForms {
    /// Returns the form of type `T`; `make` creates it at the first call.
    pub fn form<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> &T {
        let mut make = Some(make);
        let mut slot = self;
        loop {
            let form = slot.0.get_or_init(|| Form {
                format: TypeId::of::<T>(),
                value: make
                    .take()
                    .map_or_else(|| Box::new(()) as Box<dyn Any + Send + Sync>, |make| Box::new(make())),
                next: Box::default(),
            });
            // Another format, or another thread's, holds this slot: try the next one.
            if form.format == TypeId::of::<T>()
                && let Some(value) = form.value.downcast_ref()
            {
                return value;
            }
            slot = &form.next;
        }
    }
}

impl fmt::Debug for WireForms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WireForms")
    }
}

#[cfg(test)]
mod mod_tests {
    use super::*;

    #[test]
    fn marks_are_part_of_message_and_json() {
        let plain = Message::assistant("I stopped here.");
        let json = serde_json::to_value(&plain).unwrap();
        assert_eq!(json.as_object().unwrap().len(), 2, "a mark that is not set takes no room");
        for marked in [plain.clone().hidden(), plain.clone().ephemeral(), plain.clone().hidden().ephemeral()]
        {
            let mut json = serde_json::to_value(&marked).unwrap();
            let read: Message = serde_json::from_value(json.clone()).unwrap();
            assert_eq!((read == marked, marked == plain), (true, false));
            // A version that does not know a mark ignores it.
            json["mood"] = true.into();
            assert_eq!(serde_json::from_value::<Message>(json).unwrap(), marked);
        }
        assert!(plain.clone().hidden().is_hidden() && !plain.is_hidden());
    }

    #[test]
    fn blank_answer_is_empty() {
        let answer = |blocks: &[BlockContent]| {
            Message::assistant_blocks(blocks.iter().cloned().map(Block::new).collect())
        };
        let (text, reasoning) =
            (|text: &str| BlockContent::Text(text.into()), BlockContent::Reasoning("Hm.".into()));
        let call = BlockContent::ToolCall(ToolCall::new("c1", "look", ""));
        let signed = vec![crate::ProviderData::new("gemini", Value::from("signature"))];
        let nothing = Block::with_data(text(""), signed);
        assert!(Message::assistant_blocks(vec![nothing.clone()]).is_empty_answer());
        assert!(!Message::assistant_blocks(vec![Block::text("Hi."), nothing]).is_empty_answer());
        for (blocks, empty) in [
            (&[][..], true),
            (&[text(" \n")], true),
            (std::slice::from_ref(&reasoning), true),
            (&[reasoning.clone(), text("Hi.")], false),
            (&[reasoning.clone(), call], false),
        ] {
            assert_eq!(answer(blocks).is_empty_answer(), empty, "{blocks:?}");
        }
        assert!(!Message::user("").is_empty_answer(), "only answers are");
    }
}

#[cfg(test)]
mod wire_form_tests {
    use super::*;

    #[test]
    fn a_form_is_made_once_per_format() {
        let forms = WireForms::default();
        assert_eq!(*forms.form(|| 1_u32), 1);
        assert_eq!(*forms.form(|| 2_u32), 1);
        assert_eq!(forms.form(|| String::from("a")), "a");
        assert_eq!(*forms.form(|| 3_u32), 1);
        assert_eq!(forms.form(|| String::from("b")), "a");
    }
}
