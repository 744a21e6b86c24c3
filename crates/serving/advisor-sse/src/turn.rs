//! `Turn`: the calls of a turn, their unique ids, and those left to the client. `Ending`: how its answer ends.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use advisor_core::{
    Block, BlockContent, BlockId, BlockKind, ChatResponse, Chunk, FinishReason, MediaSource, Text, ToolCall,
};
use serde::Serialize;

/// The parts of a turn that several protocols need: its calls, and whether it showed anything.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// The ids of the calls. They are unique in the turn: models repeat ids in later rounds.
    ids: BTreeMap<BlockId, Text>,
    names: CallIds,
    /// The arguments of the calls whose blocks have closed.
    arguments: BTreeMap<BlockId, String>,
    /// The calls that the server ran or refused.
    ended: BTreeSet<BlockId>,
    /// Whether the user has seen text or media.
    has_content: bool,
    /// The number of void attempts of each round that has any.
    void: BTreeMap<u32, u32>,
    /// The round of a restart that the last chunk reported. Its blocks keep their ids until the next chunk, so that an
    /// encoder can end them.
    restarted: Option<u32>,
}

/// A call that the client has to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientCall {
    pub(crate) block: BlockId,
    pub(crate) id: Text,
    pub(crate) call: ToolCall,
    /// The position of the call among those of its answer, from 0.
    pub(crate) position: u32,
}

impl Turn {
    /// Makes the ids of the calls end so.
    pub(crate) fn set_call_suffix(&mut self, suffix: Text) {
        self.names = CallIds::with_suffix(suffix);
    }

    /// Takes note of a chunk.
    pub(crate) fn note(&mut self, chunk: &Chunk) {
        if let Some(round) = self.restarted.take() {
            self.forget(round);
        }
        match chunk {
            Chunk::Opened { block, head } => {
                if let Some(call) = &head.call {
                    self.name(*block, &call.call_id);
                }
            }
            Chunk::Closed { content, .. } if is_content(content) => self.has_content = true,
            Chunk::Closed { block, content } => {
                let arguments = content.as_tool_call().map(|call| (*block, call.arguments.clone()));
                self.arguments.extend(arguments);
            }
            Chunk::Tool(event) => {
                // The loop may hide the blocks of a round and show its tools.
                self.name(event.block, &event.call_id);
                if event.result().is_some() {
                    self.ended.insert(event.block);
                }
            }
            Chunk::AttemptRestarted { round } => self.restarted = Some(*round),
            _ => {}
        }
    }

    /// Returns an id of the block for the client. Blocks of a later attempt of a round have other ids.
    pub(crate) fn part_id(&self, block: BlockId) -> String {
        match self.void.get(&block.round) {
            Some(void) => format!("{block}-{}", void + 1),
            None => block.to_string(),
        }
    }

    /// Returns the id of the call in a block.
    pub(crate) fn id(&self, block: BlockId) -> Text {
        self.ids.get(&block).cloned().unwrap_or_default()
    }

    /// Returns the arguments of the call in a block, if the block was shown and has closed.
    pub(crate) fn arguments(&self, block: BlockId) -> &str {
        self.arguments.get(&block).map_or("", String::as_str)
    }

    /// Returns the calls of a finished turn that are left to the client: complete ones that the server did not run.
    pub(crate) fn client_calls(&mut self, response: &ChatResponse) -> Vec<ClientCall> {
        if response.finish.reason.vetoes_calls() {
            return Vec::new();
        }
        let is_open = |block: &BlockId, call: &ToolCall| call.complete && !self.ended.contains(block);
        let calls: Vec<_> = response.open_calls().filter(|(block, call)| is_open(block, call)).collect();
        let positions: BTreeMap<_, _> = response.tool_calls().map(|(block, _)| block).zip(0..).collect();
        let to_call = |(block, call): (BlockId, &ToolCall)| {
            self.name(block, &call.id);
            let position = positions.get(&block).copied().unwrap_or_default();
            ClientCall { block, id: self.id(block), call: call.clone(), position }
        };
        calls.into_iter().map(to_call).collect()
    }

    /// Checks whether the user has seen neither text nor media of the turn.
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_content
    }

    /// Forgets the blocks of a round. The ids of its calls stay in use.
    fn forget(&mut self, round: u32) {
        *self.void.entry(round).or_default() += 1;
        self.ids.retain(|block, _| block.round != round);
        self.arguments.retain(|block, _| block.round != round);
        self.ended.retain(|block| block.round != round);
    }

    fn name(&mut self, block: BlockId, call_id: &Text) {
        if self.ids.contains_key(&block) {
            return;
        }
        let id = self.names.next_id(call_id);
        self.ids.insert(block, id);
    }
}

/// Checks whether a chunk belongs to a citation. Until another one comes, citations may belong to the text before them.
pub(crate) fn is_of_citation(chunk: &Chunk) -> bool {
    match chunk {
        Chunk::Opened { head, .. } => head.kind == BlockKind::Citation,
        Chunk::Delta { delta, .. } => delta.kind() == BlockKind::Citation,
        Chunk::Closed { content, .. } => content.kind() == BlockKind::Citation,
        _ => false,
    }
}

/// Checks whether a block has content that a user sees.
fn is_content(block: &Block) -> bool {
    match block.content() {
        BlockContent::Text(text) | BlockContent::Refusal(text) => !text.is_empty(),
        BlockContent::Media(media) => !matches!(media.source, MediaSource::ProviderFile(_)),
        _ => false,
    }
}

/// The ids of the calls of one turn, as clients get them. Models repeat ids in later rounds; a repeated one is numbered.
///
/// Stored calls that are named in the order of their turn have the same ids as in its stream, if no attempt was void.
///
/// # Example
/// ```
/// use advisor_core::Text;
/// use advisor_sse::CallIds;
///
/// let mut ids = CallIds::default();
/// let shown = ["call_0", "call_0", "call_1"].map(|id| ids.next_id(&Text::from(id)));
/// assert_eq!(shown, ["call_0", "call_0_2", "call_1"].map(Text::from));
///
/// let mut ids = CallIds::with_suffix("-a1");
/// assert_eq!([ids.next_id(&"call_0".into()), ids.next_id(&"call_0".into())], ["call_0-a1", "call_0_2-a1"].map(Text::from));
/// ```
#[derive(Debug, Clone, Default)]
pub struct CallIds {
    used: HashSet<Text>,
    suffix: Text,
}

impl CallIds {
    /// Creates the ids of a turn that all end so. Clients that keep the calls of several turns together need it: models
    /// repeat ids in later turns, too.
    #[must_use]
    pub fn with_suffix(suffix: impl Into<Text>) -> Self {
        Self { used: HashSet::new(), suffix: suffix.into() }
    }

    /// Returns the id of the next call of the turn, which the model has named so.
    pub fn next_id(&mut self, call_id: &Text) -> Text {
        let suffix = &self.suffix;
        let mut id =
            if suffix.is_empty() { call_id.clone() } else { Text::from(format!("{call_id}{suffix}")) };
        let mut number = 2_u32;
        while !self.used.insert(id.clone()) {
            id = Text::from(format!("{call_id}_{number}{suffix}"));
            number += 1;
        }
        id
    }
}

/// How an answer ends, as far as clients distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The answer is whole.
    Whole,
    /// The client has calls to run.
    ClientCalls,
    /// The answer reached a limit of its length.
    Length,
    /// A filter or a refusal ended it.
    Filtered,
    /// It was interrupted.
    Interrupted,
    /// A limit of the turn ended it, such as a number of rounds or a budget.
    Limit,
}

impl Ending {
    /// Returns the ending of a turn that leaves calls to the client, or none.
    pub(crate) fn new(reason: &FinishReason, has_client_calls: bool) -> Self {
        match reason {
            _ if has_client_calls => Self::ClientCalls,
            FinishReason::Length => Self::Length,
            FinishReason::ContentFilter | FinishReason::Refusal => Self::Filtered,
            FinishReason::Interrupted => Self::Interrupted,
            FinishReason::Limit(_) => Self::Limit,
            _ => Self::Whole,
        }
    }

    /// Returns the reason and a notice if the answer is not whole.
    pub(crate) fn incomplete(self) -> Option<Incomplete> {
        let (reason, message) = match self {
            Self::Whole | Self::ClientCalls => return None,
            Self::Length => ("length", "the answer is cut: it reached its greatest length"),
            Self::Filtered => ("content_filter", "the answer was refused or filtered"),
            Self::Interrupted => ("interrupted", "the answer was interrupted"),
            // Without the words of the limit, which may be those of the application.
            Self::Limit => ("limit", "the answer ended at a limit"),
        };
        Some(Incomplete { reason, message })
    }
}

/// The reason why an answer is not whole, for protocols without a field for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Incomplete {
    /// The reason, as one word.
    pub(crate) reason: &'static str,
    /// A notice for the user.
    pub(crate) message: &'static str,
}

#[cfg(test)]
mod tests {
    use advisor_core::{BlockHead, CallHead, Message};

    use super::*;

    fn opened(block: BlockId, id: &str) -> Chunk {
        let mut head = BlockHead::new(BlockKind::ToolCall);
        head.call = Some(Box::new(CallHead { name: "look".into(), call_id: id.into() }));
        Chunk::Opened { block, head }
    }

    #[test]
    fn repeated_ids_of_calls_become_unique() {
        let mut turn = Turn::default();
        let blocks = [1, 2, 3].map(|round| BlockId::new(round, 0));
        for block in blocks {
            turn.note(&opened(block, "c"));
        }
        assert_eq!(blocks.map(|block| turn.id(block)), ["c", "c_2", "c_3"].map(Text::from));
    }

    #[test]
    fn only_complete_calls_are_for_the_client() {
        let mut cut = ToolCall::new("c2", "look", "{");
        cut.complete = false;
        let blocks = vec![ToolCall::new("c1", "look", "{}").into(), cut.into()];
        let response = |reason| ChatResponse::new(1, Message::assistant_blocks(blocks.clone()), reason);
        let calls = Turn::default().client_calls(&response(FinishReason::ToolCalls));
        assert_eq!(calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["c1"]);
        assert!(Turn::default().client_calls(&response(FinishReason::Length)).is_empty());
    }
}
