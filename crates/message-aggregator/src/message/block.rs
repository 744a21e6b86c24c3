//! `Block`, `BlockContent`, `BlockKind`, `Citation`, `Opaque` and `ProviderData`: parts of an assistant message.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Media, Text, ToolCall};

/// One ordered part of an assistant message. Cheap to clone.
///
/// Two blocks are equal if their content and their provider data are equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Block(Arc<Inner>);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Inner {
    #[serde(flatten)]
    content: BlockContent,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    provider_data: Vec<ProviderData>,
}

/// Content of a [`Block`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockContent {
    /// Text for the user.
    Text(String),
    /// The model's reasoning, as far as the provider shows it.
    Reasoning(String),
    /// The model's refusal, if the provider sends it separately from the text.
    Refusal(String),
    /// Media that the model generated.
    Media(Media),
    /// A source that the answer cites.
    Citation(Citation),
    /// A call of a tool.
    ToolCall(ToolCall),
    /// Content that only the provider understands, such as a tool that runs on its side.
    Opaque(Opaque),
}

/// The kinds of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockKind {
    /// See [`BlockContent::Text`].
    Text,
    /// See [`BlockContent::Reasoning`].
    Reasoning,
    /// See [`BlockContent::Refusal`].
    Refusal,
    /// See [`BlockContent::Media`].
    Media,
    /// See [`BlockContent::Citation`].
    Citation,
    /// See [`BlockContent::ToolCall`].
    ToolCall,
    /// See [`BlockContent::Opaque`].
    Opaque,
}

/// A source that an answer cites.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Citation {
    /// The address of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Text>,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Text>,
    /// The quoted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<Text>,
}

/// Content that only one provider understands; replayed to it unchanged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Opaque {
    /// The wire format that can read `value`.
    pub format: Text,
    /// The provider's name for the kind of content.
    pub name: Text,
    /// The content as received.
    pub value: Value,
}

impl Opaque {
    /// Creates content of the given wire format.
    pub fn new(format: impl Into<Text>, name: impl Into<Text>, value: Value) -> Self {
        Self { format: format.into(), name: name.into(), value }
    }
}

/// Opaque provider data that belongs to a block and is sent back with it: signatures, ids, encrypted reasoning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderData {
    /// The wire format that can read `value`; others omit it.
    pub format: Text,
    /// The data as received.
    pub value: Value,
}

impl ProviderData {
    /// Creates data of the given wire format.
    pub fn new(format: impl Into<Text>, value: Value) -> Self {
        Self { format: format.into(), value }
    }
}

impl Block {
    /// Creates a block without provider data.
    #[must_use]
    pub fn new(content: BlockContent) -> Self {
        Self::with_data(content, Vec::new())
    }

    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(BlockContent::Text(text.into()))
    }

    /// Creates a block with provider data, in the order of arrival.
    #[must_use]
    pub fn with_data(content: BlockContent, provider_data: Vec<ProviderData>) -> Self {
        Self(Arc::new(Inner { content, provider_data }))
    }

    /// Returns the content of the block.
    #[must_use]
    pub fn content(&self) -> &BlockContent {
        &self.0.content
    }

    /// Returns the kind of the block.
    #[must_use]
    pub fn kind(&self) -> BlockKind {
        self.0.content.kind()
    }

    /// Returns the data to be replayed with this block, in the order of arrival.
    #[must_use]
    pub fn provider_data(&self) -> &[ProviderData] {
        &self.0.provider_data
    }

    /// Returns the text of a text block. A refusal is a block of its own kind; see [`Message::text`](crate::Message::text)
    /// for what a reader is shown.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        self.content().text_of(BlockKind::Text)
    }

    /// Returns the call of a tool-call block.
    #[must_use]
    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match self.content() {
            BlockContent::ToolCall(call) => Some(call),
            _ => None,
        }
    }
}

impl From<BlockContent> for Block {
    fn from(content: BlockContent) -> Self {
        Self::new(content)
    }
}

impl From<ToolCall> for Block {
    fn from(call: ToolCall) -> Self {
        Self::new(BlockContent::ToolCall(call))
    }
}

impl BlockContent {
    /// Returns the kind of this content.
    #[must_use]
    pub fn kind(&self) -> BlockKind {
        match self {
            Self::Text(_) => BlockKind::Text,
            Self::Reasoning(_) => BlockKind::Reasoning,
            Self::Refusal(_) => BlockKind::Refusal,
            Self::Media(_) => BlockKind::Media,
            Self::Citation(_) => BlockKind::Citation,
            Self::ToolCall(_) => BlockKind::ToolCall,
            Self::Opaque(_) => BlockKind::Opaque,
        }
    }

    /// Returns the text, if this is text of the given kind.
    #[must_use]
    pub fn text_of(&self, kind: BlockKind) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Reasoning(text) | Self::Refusal(text) if self.kind() == kind => {
                Some(text)
            }
            _ => None,
        }
    }

    /// Returns the text that a reader of text alone is shown: that of a text block or of a refusal.
    pub(crate) fn shown_text(&self) -> Option<&str> {
        self.text_of(BlockKind::Text).or_else(|| self.text_of(BlockKind::Refusal))
    }

    pub(crate) fn as_json(&self) -> Option<&Value> {
        match self {
            Self::Opaque(opaque) => Some(&opaque.value),
            Self::Text(_)
            | Self::Reasoning(_)
            | Self::Refusal(_)
            | Self::Media(_)
            | Self::Citation(_)
            | Self::ToolCall(_) => None,
        }
    }

    /// Creates text of this kind.
    pub(crate) fn from_text(kind: BlockKind, text: String) -> Self {
        match kind {
            BlockKind::Reasoning => Self::Reasoning(text),
            BlockKind::Refusal => Self::Refusal(text),
            _ => Self::Text(text),
        }
    }

    /// Returns the text that deltas of this kind extend.
    pub(crate) fn text_mut(&mut self, kind: BlockKind) -> Option<&mut String> {
        match (self, kind) {
            (Self::Text(text), BlockKind::Text)
            | (Self::Reasoning(text), BlockKind::Reasoning)
            | (Self::Refusal(text), BlockKind::Refusal) => Some(text),
            (Self::ToolCall(call), BlockKind::ToolCall) => Some(&mut call.arguments),
            _ => None,
        }
    }
}
