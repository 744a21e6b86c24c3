//! `Block`, `BlockContent`, `BlockKind` and `BlockId`, `Citation`, `Opaque` and `ProviderData`: parts of an assistant message.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
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

/// Id of a block: its round, its position in the round, and its part of that position. Unique within a turn.
///
/// Ids are ordered as the blocks of a message are. A block of the model has part 0. A block that an advisor adds
/// has the position of the block it follows, and a further part. As text, and in JSON, it is `1.0`, or `1.0.2` with a
/// part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId {
    /// The round, counted from 1.
    pub round: u32,
    // Position and part in one number, so that an id, and with it each chunk, stays small.
    index: u32,
}

/// The bits of an index that hold the part.
const PART_BITS: u32 = 16;

impl BlockId {
    /// The number of positions in a round. A block beyond them cannot have an id.
    pub(crate) const POSITIONS: u32 = 1 << (u32::BITS - PART_BITS);

    /// The number of parts of a position.
    pub(crate) const PARTS: u32 = 1 << PART_BITS;

    /// Creates the id of the block at `position` of `round`. Positions count from 0; the last one stands for all
    /// beyond it.
    #[must_use]
    pub fn new(round: u32, position: u32) -> Self {
        Self { round, index: position.min(Self::POSITIONS - 1) << PART_BITS }
    }

    /// Returns the id of a part of the same position; `None` if there is no such part.
    #[must_use]
    pub fn with_part(self, part: u32) -> Option<Self> {
        (part < Self::PARTS)
            .then(|| Self { index: Self::new(self.round, self.position()).index | part, ..self })
    }

    /// Returns the block's position in the round by first appearance, counted from 0.
    #[must_use]
    pub fn position(self) -> u32 {
        self.index >> PART_BITS
    }

    /// Returns the block's part of its position: 0 for the block of the model, from 1 for blocks that advisors add.
    #[must_use]
    pub fn part(self) -> u32 {
        self.index & (Self::PARTS - 1)
    }

    /// Returns the last possible id of a round.
    pub(crate) fn last_of(round: u32) -> Self {
        Self { round, index: u32::MAX }
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.round, self.position())?;
        match self.part() {
            0 => Ok(()),
            part => write!(f, ".{part}"),
        }
    }
}

impl Serialize for BlockId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads the form that `Display` writes, and no other.
impl<'de> Deserialize<'de> for BlockId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Text::deserialize(deserializer)?;
        let mut numbers = text.split('.').map(|number| number.parse::<u32>().ok());
        let mut next = || numbers.next().flatten();
        let id = next().zip(next()).map(|(round, position)| Self::new(round, position));
        let id = id.and_then(|id| id.with_part(next().unwrap_or_default()));
        // Leading zeros, signs, more numbers and positions that do not exist are other texts.
        id.filter(|id| text == *id.to_string()).ok_or_else(|| {
            serde::de::Error::custom("not the id of a block: it is like `1.0`, or like `1.0.2` with a part")
        })
    }
}

impl fmt::Debug for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chunk;

    #[test]
    fn law_r4_chunk_stays_small_with_added_blocks() {
        assert_eq!((size_of::<BlockId>(), size_of::<Chunk>()), (8, 40));
    }

    #[test]
    fn law_s3_ids_are_ordered_as_their_blocks() {
        let parts =
            |position| [0, 1, BlockId::PARTS - 1].map(|part| BlockId::new(1, position).with_part(part));
        let ids: Vec<_> = [0, 1, BlockId::POSITIONS - 1].into_iter().flat_map(parts).flatten().collect();
        assert!(ids.is_sorted_by(|a, b| a < b) && ids.len() == 9, "{ids:?}");
        assert!(ids.iter().all(|id| *id < BlockId::new(2, 0) && *id <= BlockId::last_of(1)));
        let last = BlockId::new(3, u32::MAX).with_part(7).unwrap();
        assert_eq!((last.round, last.position(), last.part()), (3, BlockId::POSITIONS - 1, 7));
        assert_eq!(BlockId::new(1, 2).with_part(BlockId::PARTS), None);
        assert_eq!(last.with_part(0), Some(BlockId::new(3, u32::MAX)));
        let shown = [BlockId::new(1, 2), BlockId::new(1, 2).with_part(3).unwrap()].map(|id| id.to_string());
        assert_eq!(shown, ["1.2", "1.2.3"]);
    }

    #[test]
    fn ids_are_read_as_they_are_written() {
        for text in ["0.0", "1.2", "1.2.3", "4294967295.65535.65535"] {
            let id: BlockId = serde_json::from_value(text.into()).unwrap();
            assert_eq!((id.to_string(), serde_json::to_value(id).unwrap()), (text.to_owned(), text.into()));
        }
        for text in
            ["", "1", "1.", "1.2.", "1.2.0", "1.2.3.4", "01.2", "+1.2", "1.65536", "1.2.65536", "1.-2"]
        {
            assert!(serde_json::from_value::<BlockId>(text.into()).is_err(), "{text}");
        }
    }
}
