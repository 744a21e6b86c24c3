pub(crate) mod block_delta;
pub(crate) mod fold;

use crate::{Block, BlockDelta, BlockId, BlockKind, ChatResponse, Part, Text, ToolResult, Usage};

/// One item of the stream that advisors see.
///
/// A round opens blocks, extends them and closes them; several may be open at once. The last item of
/// a stream that succeeds is [`Chunk::Completed`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Chunk {
    /// A block begins.
    Opened {
        /// The block.
        block: BlockId,
        /// What it will be.
        head: BlockHead,
    },
    /// A block goes on. The deltas of a block concatenate to its content.
    Delta {
        /// The block.
        block: BlockId,
        /// What comes next in it.
        delta: BlockDelta,
    },
    /// A block has ended; nothing more of it follows.
    Closed {
        /// The block.
        block: BlockId,
        /// All of it.
        content: Block,
    },
    /// A tool started, tells how far it is, or has finished.
    Tool(Box<ToolEvent>),
    /// A round has ended and another one follows; everything inside the loop is done with it.
    RoundCompleted(ChatResponse),
    /// The token counts of a round, once, after its blocks, however often the provider reports them.
    Usage {
        /// The round.
        round: u32,
        /// What it used.
        usage: Box<Usage>,
    },
    /// What was shown of this round is void: it is asked again from the start.
    AttemptRestarted {
        /// The round that is void.
        round: u32,
    },
    /// The answer is complete, and so is all that advisors further inside do about it.
    Completed(ChatResponse),
}

/// What is known of a block when it opens.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockHead {
    /// The kind of the block.
    pub kind: BlockKind,
    /// Which of several parallel answers it belongs to.
    pub choice: u32,
    /// The call, if the block is one.
    pub call: Option<Box<CallHead>>,
}

impl BlockHead {
    /// The head of a block of this kind in the first choice.
    #[must_use]
    pub fn new(kind: BlockKind) -> Self {
        Self { kind, choice: 0, call: None }
    }

    /// The head of a block that holds `block`.
    #[must_use]
    pub fn from_block(block: &Block) -> Self {
        let call = block
            .as_tool_call()
            .map(|call| Box::new(CallHead { name: call.name.clone(), call_id: Some(call.id.clone()) }));
        Self { kind: block.kind(), choice: 0, call }
    }
}

/// What is known of a tool call when its block opens.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallHead {
    /// The tool.
    pub name: Text,
    /// The provider's id, if it came already.
    pub call_id: Option<Text>,
}

impl CallHead {
    /// A call of the tool `name`.
    pub fn new(name: impl Into<Text>, call_id: Option<Text>) -> Self {
        Self { name: name.into(), call_id }
    }
}

/// Something that happened to a tool call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolEvent {
    /// The block of the call.
    pub block: BlockId,
    /// The id of the call.
    pub call_id: Text,
    /// The tool.
    pub name: Text,
    /// What happened.
    pub kind: ToolEventKind,
}

impl ToolEvent {
    /// An event of the call in `block`.
    pub fn new(block: BlockId, call_id: Text, name: Text, kind: ToolEventKind) -> Self {
        Self { block, call_id, name, kind }
    }
}

/// The kinds of [`ToolEvent`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ToolEventKind {
    /// The tool starts, with these arguments as the model wrote them.
    Started {
        /// The arguments.
        arguments: Text,
    },
    /// The tool tells how far it is.
    Progress(Part),
    /// The tool has answered, well or not.
    Finished(ToolResult),
}

impl Chunk {
    /// The text for the user that this chunk adds, if it adds any.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Delta { delta: BlockDelta::Text(text), .. } => Some(text),
            _ => None,
        }
    }

    /// The response of the last chunk of a stream.
    #[must_use]
    pub fn completed(&self) -> Option<&ChatResponse> {
        match self {
            Self::Completed(response) => Some(response),
            _ => None,
        }
    }

    /// The block this chunk belongs to, if it belongs to one.
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

    /// The round this chunk belongs to.
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

    /// The chunks that show a whole block at once: opened, its one delta unless it is empty, closed.
    pub fn from_block(block: BlockId, content: &Block) -> impl Iterator<Item = Self> + use<> {
        let delta = BlockDelta::from_content(content.content()).map(|delta| Self::Delta { block, delta });
        let opened = Self::Opened { block, head: BlockHead::from_block(content) };
        let closed = Self::Closed { block, content: content.clone() };
        std::iter::once(opened).chain(delta).chain(std::iter::once(closed))
    }

    /// Calls `observer` if this chunk opens, extends or closes a block.
    pub fn observe(&self, observer: &mut (impl BlockObserver + ?Sized)) {
        match self {
            Self::Opened { block, head } => observer.opened(*block, head),
            Self::Delta { block, delta } => observer.delta(*block, delta),
            Self::Closed { block, content } => observer.closed(*block, content),
            _ => {}
        }
    }
}

/// Callbacks at block level, for those who want them without a stream; feed it with [`Chunk::observe`].
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
    /// A block begins.
    fn opened(&mut self, _block: BlockId, _head: &BlockHead) {}

    /// A block goes on.
    fn delta(&mut self, _block: BlockId, _delta: &BlockDelta) {}

    /// A block has ended.
    fn closed(&mut self, _block: BlockId, _content: &Block) {}
}
