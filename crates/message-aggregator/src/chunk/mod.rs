//! `Chunk`, `BlockHead`, `CallHead`, `BlockDelta` and `ToolEvent`: the items of the stream that advisors see.

pub(crate) mod fold;

use serde::{Deserialize, Serialize};

use crate::{
    Block, BlockContent, BlockId, BlockKind, ChatResponse, Citation, Media, Opaque, Part, Text, ToolResult,
    Usage,
};

/// One item of the stream that advisors see.
///
/// A round opens blocks, extends them and closes them; several may be open at once. The last item of a successful
/// stream is [`Chunk::Completed`]. Its JSON form is documented in `docs/json.md` of the repository;
/// [`Chunk::from_json`] reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Chunk {
    /// The start of a block.
    Opened {
        /// The block.
        block: BlockId,
        /// Its kind and other data known at its start.
        head: BlockHead,
    },
    /// A piece of a block. The deltas of a block concatenate to its content.
    Delta {
        /// The block.
        block: BlockId,
        /// The piece.
        delta: BlockDelta,
    },
    /// The end of a block; no chunk of it follows.
    Closed {
        /// The block.
        block: BlockId,
        /// Its complete content.
        content: Block,
    },
    /// The start, progress or end of a tool, or a call that does not start.
    Tool(Box<ToolEvent>),
    /// The end of a round that is followed by another; all work inside the loop on this round has finished.
    RoundCompleted(ChatResponse),
    /// The token counts of a round. Emitted once, after the blocks of the model, however often the provider reports
    /// them.
    Usage {
        /// The round.
        round: u32,
        /// Its token counts.
        usage: Box<Usage>,
    },
    /// The output of this round is void: the model is called again. A reader discards what it keeps of this round.
    AttemptRestarted {
        /// The void round.
        round: u32,
    },
    /// The answer is complete, and so is all work of inner advisors on it.
    Completed(ChatResponse),
}

/// Data of a block known when it opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BlockHead {
    /// The kind of the block.
    pub kind: BlockKind,
    /// The call, for a tool-call block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<CallHead>>,
}

impl BlockHead {
    /// Creates the head of a block of this kind.
    #[must_use]
    pub fn new(kind: BlockKind) -> Self {
        Self { kind, call: None }
    }

    /// Creates the head of a block with this content.
    #[must_use]
    pub fn from_block(block: &Block) -> Self {
        let call = block
            .as_tool_call()
            .map(|call| Box::new(CallHead { name: call.name.clone(), call_id: call.id.clone() }));
        Self { kind: block.kind(), call }
    }
}

/// Data of a tool call known when its block opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::exhaustive_structs, reason = "editors write it")]
pub struct CallHead {
    /// The name of the tool.
    pub name: Text,
    /// The id of the call, as in its [`ToolCall`](crate::ToolCall). It is generated here if the provider sent none
    /// before the block opened; an id that the provider sends later is not shown.
    pub call_id: Text,
}

impl Chunk {
    /// Returns the text for the user in this chunk, if any: a piece of an answer or of a refusal.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Delta { delta: BlockDelta::Text(text) | BlockDelta::Refusal(text), .. } => Some(text),
            _ => None,
        }
    }

    /// Returns the response of a [`Chunk::Completed`].
    #[must_use]
    pub fn completed(&self) -> Option<&ChatResponse> {
        match self {
            Self::Completed(response) => Some(response),
            _ => None,
        }
    }

    /// Returns the block of this chunk, if any.
    #[must_use]
    pub fn block(&self) -> Option<BlockId> {
        match self {
            Self::Opened { block, .. } | Self::Delta { block, .. } | Self::Closed { block, .. } => {
                Some(*block)
            }
            Self::Tool(event) => Some(event.block),
            _ => None,
        }
    }

    /// Returns the round of this chunk.
    #[must_use]
    pub fn round(&self) -> u32 {
        match self {
            Self::Opened { block, .. } | Self::Delta { block, .. } | Self::Closed { block, .. } => {
                block.round
            }
            Self::Tool(event) => event.block.round,
            Self::Usage { round, .. } | Self::AttemptRestarted { round } => *round,
            Self::RoundCompleted(response) | Self::Completed(response) => response.round(),
        }
    }

    /// Returns the chunks of a complete block: opened, one delta unless it is empty, closed.
    pub fn from_block(block: BlockId, content: &Block) -> impl Iterator<Item = Self> + use<> {
        let delta = BlockDelta::from_content(content.content()).map(|delta| Self::Delta { block, delta });
        let opened = Self::Opened { block, head: BlockHead::from_block(content) };
        let closed = Self::Closed { block, content: content.clone() };
        std::iter::once(opened).chain(delta).chain(std::iter::once(closed))
    }
}

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

/// The types of chunks that this version reads.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChunkType {
    Opened,
    Delta,
    Closed,
    Tool {
        event: EventType,
    },
    RoundCompleted,
    Usage,
    AttemptRestarted,
    Completed,
    #[serde(other)]
    Unknown,
}

/// The types of tool events that this version reads.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum EventType {
    Started,
    Progress,
    Finished,
    NotStarted,
    #[serde(other)]
    Unknown,
}

impl Chunk {
    /// Reads a chunk from its JSON form. `None` is a chunk, or a tool event, of a type that a later version added:
    /// skip it.
    ///
    /// # Errors
    /// That of the parser if the text is not JSON, or is not the form of its type. Its text may contain values of the
    /// JSON.
    ///
    /// # Example
    /// ```
    /// use message_aggregator::Chunk;
    ///
    /// let chunk = Chunk::from_json(r#"{"type":"delta","block":"1.0","delta":{"type":"text","value":"Hello"}}"#)?;
    /// assert_eq!(chunk.and_then(|chunk| chunk.text().map(String::from)), Some("Hello".into()));
    /// assert_eq!(Chunk::from_json(r#"{"type":"of_a_later_version"}"#)?, None);
    /// assert!(Chunk::from_json(r#"{"type":"usage"}"#).is_err());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn from_json(json: &str) -> Result<Option<Self>, serde_json::Error> {
        let error = match serde_json::from_str(json) {
            Ok(chunk) => return Ok(Some(chunk)),
            Err(error) => error,
        };
        match serde_json::from_str(json) {
            Ok(ChunkType::Unknown | ChunkType::Tool { event: EventType::Unknown }) => Ok(None),
            _ => Err(error),
        }
    }
}

/// An event of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(clippy::exhaustive_structs, reason = "the loop writes it")]
pub struct ToolEvent {
    /// The block of the call.
    pub block: BlockId,
    /// The id of the call.
    pub call_id: Text,
    /// The name of the tool.
    pub name: Text,
    /// The kind of the event.
    #[serde(rename = "event")]
    pub kind: ToolEventKind,
}

impl ToolEvent {
    /// Returns the result of the call, if this event ends it.
    #[must_use]
    pub fn result(&self) -> Option<&ToolResult> {
        match &self.kind {
            ToolEventKind::Finished { result } | ToolEventKind::NotStarted { result, .. } => Some(result),
            ToolEventKind::Started { .. } | ToolEventKind::Progress { .. } => None,
        }
    }
}

/// The kinds of [`ToolEvent`].
///
/// A call that runs has `Started`, any number of `Progress`, then `Finished`. A call that never starts has
/// `NotStarted` alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolEventKind {
    /// The tool starts.
    Started {
        /// The arguments as the model wrote them.
        arguments: Text,
    },
    /// The tool reports progress.
    Progress {
        /// The report.
        part: Part,
    },
    /// The tool has returned a result, or it failed, panicked or took too long.
    Finished {
        /// The result.
        result: ToolResult,
    },
    /// The call does not start.
    NotStarted {
        /// The reason.
        reason: NotStartedReason,
        /// The error result that the model reads in place of a result.
        result: ToolResult,
    },
}

/// The reason why a call did not start, without content of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NotStartedReason {
    /// No tool of the request has this name.
    UnknownTool,
    /// The call is incomplete: its answer was cut off within it, or it is unclear which fragments belong to it.
    IncompleteCall,
    /// The arguments are not JSON, or do not fit the tool's schema.
    InvalidArguments,
    /// The application left the call out or ended the turn.
    Denied,
    /// A limit of the tool loop was reached.
    Limit,
    /// The answer was cut off, filtered or refused.
    AnswerCutOff,
    /// The call was, or may have been, started before, and must not run twice.
    AlreadyStarted,
    /// An error ended the turn.
    TurnFailed,
    /// A reason that was read from JSON and that this version does not know.
    #[serde(other)]
    Other,
}

impl NotStartedReason {
    /// Returns the reason as one word, such as `unknown_tool`, for traces and counters.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::IncompleteCall => "incomplete_call",
            Self::InvalidArguments => "invalid_arguments",
            Self::Denied => "denied",
            Self::Limit => "limit",
            Self::AnswerCutOff => "answer_cut_off",
            Self::AlreadyStarted => "already_started",
            Self::TurnFailed => "turn_failed",
            Self::Other => "other",
        }
    }
}
