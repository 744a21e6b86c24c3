//! `ChatResponse`: the finished aggregate of one answer.

pub(crate) mod finish;
pub(crate) mod usage;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    Block, BlockContent, BlockId, Finish, FinishReason, Message, MessageList, Text, ToolCall, Usage,
};

/// The finished aggregate of one model answer. Aggregated once, shared, cheap to clone.
///
/// Its JSON form is documented in `docs/json.md` of the repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChatResponse(Arc<Inner>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Inner {
    round: u32,
    message: Message,
    /// The ids of the message's blocks, in the same order.
    block_ids: Vec<BlockId>,
    finish: Finish,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response_id: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<Text>,
    #[serde(default, skip_serializing_if = "MessageList::is_empty")]
    transcript: MessageList,
}

impl ChatResponse {
    /// Creates a response that did not come from a model; its blocks are numbered from 0.
    ///
    /// `round` is the number of this answer in the turn; [`ChatResponse::in_round`] changes it.
    #[must_use]
    pub fn new(round: u32, message: Message, finish: impl Into<Finish>) -> Self {
        let block_ids = (0_u32..).take(message.blocks().len()).map(|index| BlockId::new(round, index));
        Self::with_ids(round, block_ids.collect(), message, finish.into())
    }

    /// Creates a response of these blocks with their ids.
    #[must_use]
    pub fn from_blocks(
        round: u32,
        blocks: impl IntoIterator<Item = (BlockId, Block)>,
        finish: impl Into<Finish>,
    ) -> Self {
        let (block_ids, blocks) = blocks.into_iter().unzip();
        Self::with_ids(round, block_ids, Message::assistant_blocks(blocks), finish.into())
    }

    fn with_ids(round: u32, block_ids: Vec<BlockId>, message: Message, finish: Finish) -> Self {
        Self(Arc::new(Inner {
            round,
            message,
            block_ids,
            finish,
            usage: None,
            response_id: None,
            model: None,
            transcript: MessageList::new(),
        }))
    }

    /// Returns the round of this answer.
    #[must_use]
    pub fn round(&self) -> u32 {
        self.0.round
    }

    /// Returns the assistant message of the answer.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.0.message
    }

    /// Returns the text of the answer, its text blocks and refusals concatenated; see [`Message::text`].
    #[must_use]
    pub fn text(&self) -> String {
        self.message().text()
    }

    /// Checks whether the model refused to answer: by its finish reason, or by the text of a refusal, which some
    /// providers send with an ordinary finish reason. [`text`](Self::text) has that text; a program that takes the
    /// text of an answer as data checks this first.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        let refuses =
            |block: &Block| matches!(block.content(), BlockContent::Refusal(text) if !text.trim().is_empty());
        self.finish().reason == FinishReason::Refusal || self.message().blocks().iter().any(refuses)
    }

    /// Returns the reason for the end of the answer.
    #[must_use]
    pub fn finish(&self) -> &Finish {
        &self.0.finish
    }

    /// Iterates over the blocks of the answer with their ids, in order.
    pub fn blocks(&self) -> impl Iterator<Item = (BlockId, &Block)> {
        self.0.block_ids.iter().copied().zip(self.0.message.blocks())
    }

    /// Iterates over the tool calls of the answer with the ids of their blocks, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = (BlockId, &ToolCall)> {
        self.blocks().filter_map(|(id, block)| Some((id, block.as_tool_call()?)))
    }

    /// Iterates over the calls that the turn leaves to its caller, with the ids of their blocks, in order: those of
    /// [`tool_calls`](Self::tool_calls) without a result in the [`transcript`](Self::transcript).
    ///
    /// A tool loop runs the calls of its tools, also beside calls of client-side tools. Their results are in the
    /// transcript. Incomplete calls, and calls of an answer that was cut off, must not run.
    pub fn open_calls(&self) -> impl Iterator<Item = (BlockId, &ToolCall)> {
        let results = self.0.transcript.iter().rev().map_while(Message::tool_result);
        let mut answered: Vec<_> = results.map(|result| &result.call_id).collect();
        self.tool_calls().filter(move |(_, call)| {
            // Ids need not be unique: a result belongs to the first call with its id that has none.
            let answer = answered.iter().position(|id| **id == call.id);
            answer.map(|answer| answered.swap_remove(answer)).is_none()
        })
    }

    /// Returns the token counts of the round, or of all rounds on the response that ends a turn.
    #[must_use]
    pub fn usage(&self) -> Option<&Usage> {
        self.0.usage.as_ref()
    }

    /// Returns the provider's id of the answer.
    #[must_use]
    pub fn response_id(&self) -> Option<&str> {
        self.0.response_id.as_deref()
    }

    /// Returns the model that answered, as reported by the provider.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.0.model.as_deref()
    }

    /// Returns the messages of the turn, from the user's to the final answer. Empty unless this response ends a
    /// turn.
    ///
    /// The user's messages are as the caller gave them. An advisor that maps them changes the request and, outside
    /// memory, the stored messages.
    #[must_use]
    pub fn transcript(&self) -> &MessageList {
        &self.0.transcript
    }

    /// Sets the token counts.
    #[must_use]
    pub fn with_usage(self, usage: Option<Usage>) -> Self {
        self.changed(|inner| inner.usage = usage)
    }

    /// Adds token counts, such as those of an earlier attempt, whose answer was rejected.
    #[must_use]
    pub fn with_added_usage(self, usage: Option<&Usage>) -> Self {
        let Some(usage) = usage else { return self };
        self.changed(|inner| inner.usage.get_or_insert_default().add(usage))
    }

    /// Sets the messages of the turn.
    #[must_use]
    pub fn with_transcript(self, transcript: MessageList) -> Self {
        self.changed(|inner| inner.transcript = transcript)
    }

    /// Replaces the blocks of the answer.
    #[must_use]
    pub fn with_blocks(self, blocks: impl IntoIterator<Item = (BlockId, Block)>) -> Self {
        let (block_ids, blocks) = blocks.into_iter().unzip();
        self.changed(|inner| {
            inner.block_ids = block_ids;
            inner.message = Message::assistant_blocks(blocks);
        })
    }

    /// Replaces the message by one with as many blocks. Its identity is kept.
    #[doc(hidden)]
    #[must_use]
    pub fn with_message(self, message: Message) -> Self {
        self.changed(|inner| inner.message = message)
    }

    /// Sets the finish reason.
    #[must_use]
    pub fn with_finish(self, finish: impl Into<Finish>) -> Self {
        let finish = finish.into();
        self.changed(|inner| inner.finish = finish)
    }

    /// Moves the response to another round, such as an answer of an earlier turn that is repeated.
    ///
    /// Its blocks are renumbered from 0, in the order of their previous ids. All other data is
    /// unchanged, including token counts and transcript.
    #[must_use]
    pub fn in_round(self, round: u32) -> Self {
        self.changed(|inner| {
            inner.round = round;
            let mut block_ids: Vec<_> = inner.block_ids.iter_mut().collect();
            block_ids.sort();
            for (index, id) in (0_u32..).zip(block_ids) {
                *id = BlockId::new(round, index);
            }
        })
    }

    pub(crate) fn with_origin(self, response_id: Option<Text>, model: Option<Text>) -> Self {
        self.changed(|inner| {
            inner.response_id = response_id;
            inner.model = model;
        })
    }

    fn changed(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

/// A finished answer of this text, in round 0. Without a text it has no block, and ends as [`FinishReason::Empty`].
impl From<Text> for ChatResponse {
    fn from(text: Text) -> Self {
        match text.is_empty() {
            true => Self::new(0, Message::assistant_blocks(Vec::new()), FinishReason::Empty),
            false => Self::new(0, Message::assistant(text), FinishReason::Stop),
        }
    }
}

/// As from a [`Text`].
impl From<&str> for ChatResponse {
    fn from(text: &str) -> Self {
        Text::from(text).into()
    }
}

/// As from a [`Text`].
impl From<String> for ChatResponse {
    fn from(text: String) -> Self {
        Text::from(text).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_calls_have_no_result_behind_the_answer() {
        let call = |id: &str| Block::from(ToolCall::new(id, "look", "{}"));
        let result = |id: &str| {
            Message::tool(crate::ToolResult::new(&ToolCall::new(id, "look", ""), vec!["ok".into()]))
        };
        let answer = Message::assistant_blocks(["a", "b", "a"].map(call).to_vec());
        let open = |transcript: Vec<Message>| {
            let response = ChatResponse::new(2, answer.clone(), FinishReason::ToolCalls);
            let response = response.with_transcript(MessageList::from(transcript));
            response.open_calls().map(|(block, call)| (block, call.id.to_string())).collect::<Vec<_>>()
        };
        let all = [(0, "a"), (1, "b"), (2, "a")].map(|(at, id)| (BlockId::new(2, at), id.to_owned()));
        assert_eq!(open(Vec::new()), all);
        // A result of an earlier round answers no call of this one.
        assert_eq!(open(vec![result("b"), answer.clone()]), all);
        assert_eq!(open(vec![answer.clone(), result("a")]), all[1..]);
        assert_eq!(open(vec![answer.clone(), result("a"), result("b"), result("a")]), []);
    }

    #[test]
    fn law_s3_renumbered_round_gives_blocks_own_ordered_ids() {
        // The ids have a gap, are not in order, and one is of another round.
        let ids = [(1, 2), (1, 0), (1, 4), (2, 0)].map(|(round, index)| BlockId::new(round, index));
        let blocks = ids.into_iter().zip(["b", "a", "c", "d"].map(Block::text));
        let transcript = MessageList::from(vec![Message::user("?"), Message::assistant("bacd")]);
        let response = ChatResponse::from_blocks(1, blocks, FinishReason::Stop)
            .with_usage(Some(Usage::new(3, 4)))
            .with_transcript(transcript.clone());
        let moved = response.clone().in_round(7);
        assert_eq!((response.round(), moved.round()), (1, 7));
        let ids: Vec<_> = moved.blocks().map(|(id, _)| id).collect();
        assert_eq!(ids, [1, 0, 2, 3].map(|index| BlockId::new(7, index)));
        assert!(moved.message().is_same(response.message()));
        assert_eq!(moved.finish(), response.finish());
        assert_eq!((moved.usage(), moved.transcript()), (response.usage(), &transcript));
    }
}
