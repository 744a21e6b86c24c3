//! `Chunk`, `BlockHead`, `CallHead` and `BlockObserver`: the items of the stream that advisors see.

pub(crate) mod block_delta;
pub(crate) mod fold;
pub(crate) mod from_json;
pub(crate) mod stream_validator;
pub(crate) mod tool_event;

use serde::{Deserialize, Serialize};

use crate::{Block, BlockDelta, BlockId, BlockKind, ChatResponse, Text, ToolEvent, Usage};

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
#[non_exhaustive]
pub struct CallHead {
    /// The name of the tool.
    pub name: Text,
    /// The id of the call, as in its [`ToolCall`](crate::ToolCall). It is generated here if the provider sent none
    /// before the block opened; an id that the provider sends later is not shown.
    pub call_id: Text,
}

impl CallHead {
    /// Creates the head of a call of the tool `name`.
    pub fn new(name: impl Into<Text>, call_id: impl Into<Text>) -> Self {
        Self { name: name.into(), call_id: call_id.into() }
    }
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

    /// Calls `observer` if this chunk opens, extends or closes a block, voids a round, or completes the answer.
    pub fn observe(&self, observer: &mut (impl BlockObserver + ?Sized)) {
        match self {
            Self::Opened { block, head } => observer.opened(*block, head),
            Self::Delta { block, delta } => observer.delta(*block, delta),
            Self::Closed { block, content } => observer.closed(*block, content),
            Self::AttemptRestarted { round } => observer.restarted(*round),
            Self::Completed(response) => observer.completed(response),
            _ => {}
        }
    }
}

/// Callbacks for blocks, for use without a stream; call them with [`Chunk::observe`].
///
/// # Example
/// ```
/// use message_aggregator::{Block, BlockId, BlockObserver, Delta, MessageAggregator};
///
/// #[derive(Default)]
/// struct Whole(Vec<Block>);
/// impl BlockObserver for Whole {
///     fn closed(&mut self, _block: BlockId, content: &Block) {
///         self.0.push(content.clone());
///     }
/// }
///
/// let mut whole = Whole::default();
/// let mut aggregator = MessageAggregator::new(1);
/// let mut chunks = Default::default();
/// aggregator.push(Delta::text("Hello"), &mut chunks)?;
/// aggregator.push(Delta::done(), &mut chunks)?;
/// aggregator.finish(&mut chunks)?;
/// chunks.iter().for_each(|chunk| chunk.observe(&mut whole));
/// assert_eq!(whole.0[0].as_text(), Some("Hello"));
/// # Ok::<(), message_aggregator::AggregateError>(())
/// ```
pub trait BlockObserver {
    /// Runs when a block opens.
    fn opened(&mut self, _block: BlockId, _head: &BlockHead) {}

    /// Runs for each piece of a block.
    fn delta(&mut self, _block: BlockId, _delta: &BlockDelta) {}

    /// Runs when a block closes.
    fn closed(&mut self, _block: BlockId, _content: &Block) {}

    /// Runs when the blocks of a round become void, since the model is called again.
    fn restarted(&mut self, _round: u32) {}

    /// Runs when the answer is complete. It does not run for an answer that fails or is dropped.
    fn completed(&mut self, _response: &ChatResponse) {}
}
