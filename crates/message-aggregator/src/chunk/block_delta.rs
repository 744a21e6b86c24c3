//! `BlockDelta`: the next piece of a block, by block kind.

use serde::{Deserialize, Serialize};

use crate::{BlockContent, BlockKind, Citation, Media, Opaque, Text};

/// A piece of a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockDelta {
    /// Text of a text block.
    Text(Text),
    /// Text of a reasoning block.
    Reasoning(Text),
    /// Text of a refusal block.
    Refusal(Text),
    /// Characters of a tool call's arguments.
    Arguments(Text),
    /// A complete media block.
    Media(Box<Media>),
    /// A complete citation block.
    Citation(Box<Citation>),
    /// A complete opaque block.
    Opaque(Box<Opaque>),
}

impl BlockDelta {
    /// Returns the kind of the blocks that this delta can extend.
    #[must_use]
    pub fn kind(&self) -> BlockKind {
        match self {
            Self::Text(_) => BlockKind::Text,
            Self::Reasoning(_) => BlockKind::Reasoning,
            Self::Refusal(_) => BlockKind::Refusal,
            Self::Arguments(_) => BlockKind::ToolCall,
            Self::Media(_) => BlockKind::Media,
            Self::Citation(_) => BlockKind::Citation,
            Self::Opaque(_) => BlockKind::Opaque,
        }
    }

    /// Creates a piece of text of a block, or of a call's arguments.
    #[inline]
    pub(crate) fn from_text(kind: BlockKind, text: Text) -> Self {
        match kind {
            BlockKind::Reasoning => Self::Reasoning(text),
            BlockKind::Refusal => Self::Refusal(text),
            BlockKind::ToolCall => Self::Arguments(text),
            _ => Self::Text(text),
        }
    }

    /// Returns the one delta that holds all content of a block; `None` for an empty one.
    #[must_use]
    pub fn from_content(content: &BlockContent) -> Option<Self> {
        let text = |all: &String| (!all.is_empty()).then(|| Text::from(all.as_str()));
        match content {
            BlockContent::Text(all) => text(all).map(Self::Text),
            BlockContent::Reasoning(all) => text(all).map(Self::Reasoning),
            BlockContent::Refusal(all) => text(all).map(Self::Refusal),
            BlockContent::ToolCall(call) => text(&call.arguments).map(Self::Arguments),
            BlockContent::Media(media) => Some(Self::Media(Box::new(media.clone()))),
            BlockContent::Citation(citation) => Some(Self::Citation(Box::new(citation.clone()))),
            BlockContent::Opaque(opaque) => Some(Self::Opaque(Box::new(opaque.clone()))),
        }
    }
}
