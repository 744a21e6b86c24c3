//! `ChatResponse`, `Finish`, `FinishReason`, `Limit` and `Usage`: the finished aggregate of one answer.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Block, BlockContent, BlockId, Message, MessageList, Text, ToolCall};

/// The finished aggregate of one model answer. Aggregated once, shared, cheap to clone.
///
/// It dereferences to its [fields](ResponseFields). A response that others share is copied before a field changes.
///
/// Its JSON form is documented in `docs/json.md` of the repository.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChatResponse(Arc<ResponseFields>);

/// The fields of a [`ChatResponse`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResponseFields {
    round: u32,
    message: Message,
    /// The ids of the message's blocks, in the same order.
    block_ids: Vec<BlockId>,
    /// The reason for the end of the answer.
    pub finish: Finish,
    /// The token counts of the round, or of all rounds on the response that ends a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The provider's id of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<Text>,
    /// The model that answered, as reported by the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Text>,
    /// The messages of the turn, from the user's to the final answer. Empty unless this response ends a turn.
    ///
    /// The user's messages are as the caller gave them. An advisor that maps them changes the request and, outside
    /// memory, the stored messages.
    #[serde(default, skip_serializing_if = "<[Message]>::is_empty")]
    pub transcript: MessageList,
}

impl Deref for ChatResponse {
    type Target = ResponseFields;

    fn deref(&self) -> &ResponseFields {
        &self.0
    }
}

impl DerefMut for ChatResponse {
    fn deref_mut(&mut self) -> &mut ResponseFields {
        Arc::make_mut(&mut self.0)
    }
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
        Self(Arc::new(ResponseFields {
            round,
            message,
            block_ids,
            finish,
            usage: None,
            response_id: None,
            model: None,
            transcript: MessageList::default(),
        }))
    }

    /// Returns the round of this answer.
    #[must_use]
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Returns the assistant message of the answer.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.message
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
        self.finish.reason == FinishReason::Refusal || self.message().blocks().iter().any(refuses)
    }

    /// Iterates over the blocks of the answer with their ids, in order.
    pub fn blocks(&self) -> impl Iterator<Item = (BlockId, &Block)> {
        self.block_ids.iter().copied().zip(self.message.blocks())
    }

    /// Iterates over the tool calls of the answer with the ids of their blocks, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = (BlockId, &ToolCall)> {
        self.blocks().filter_map(|(id, block)| Some((id, block.as_tool_call()?)))
    }

    /// Iterates over the calls that the turn leaves to its caller, with the ids of their blocks, in order: those of
    /// [`tool_calls`](Self::tool_calls) without a result in the [`transcript`](ResponseFields::transcript).
    ///
    /// A tool loop runs the calls of its tools, also beside calls of client-side tools. Their results are in the
    /// transcript. Incomplete calls, and calls of an answer that was cut off, must not run.
    pub fn open_calls(&self) -> impl Iterator<Item = (BlockId, &ToolCall)> {
        let results = self.transcript.iter().rev().map_while(Message::tool_result);
        let mut answered: Vec<_> = results.map(|result| &result.call_id).collect();
        self.tool_calls().filter(move |(_, call)| {
            // Ids need not be unique: a result belongs to the first call with its id that has none.
            let answer = answered.iter().position(|id| **id == call.id);
            answer.map(|answer| answered.swap_remove(answer)).is_none()
        })
    }

    /// Adds token counts, such as those of an earlier attempt, whose answer was rejected.
    #[must_use]
    pub fn with_added_usage(mut self, usage: Option<Usage>) -> Self {
        if let Some(usage) = usage {
            self.usage.get_or_insert_default().add(&usage);
        }
        self
    }

    /// Sets the finish reason.
    #[must_use]
    pub fn with_finish(mut self, finish: impl Into<Finish>) -> Self {
        self.finish = finish.into();
        self
    }

    /// Replaces the blocks of the answer.
    #[must_use]
    pub fn with_blocks(mut self, blocks: impl IntoIterator<Item = (BlockId, Block)>) -> Self {
        let (block_ids, blocks) = blocks.into_iter().unzip();
        self.block_ids = block_ids;
        self.message = Message::assistant_blocks(blocks);
        self
    }

    /// Replaces the message by one with as many blocks. Its identity is kept.
    #[doc(hidden)]
    #[must_use]
    pub fn with_message(mut self, message: Message) -> Self {
        self.message = message;
        self
    }

    /// Moves the response to another round, such as an answer of an earlier turn that is repeated.
    ///
    /// Its blocks are renumbered from 0, in the order of their previous ids. All other data is
    /// unchanged, including token counts and transcript.
    #[must_use]
    pub fn in_round(mut self, round: u32) -> Self {
        self.round = round;
        let mut block_ids: Vec<_> = self.block_ids.iter_mut().collect();
        block_ids.sort();
        for (index, id) in (0_u32..).zip(block_ids) {
            *id = BlockId::new(round, index);
        }
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

/// Reason for the end of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model finished its answer.
    Stop,
    /// The token limit of the request or of the model was reached; the answer is cut.
    Length,
    /// The model waits for tool results.
    ToolCalls,
    /// A filter of the provider stopped the answer.
    ContentFilter,
    /// The model refused.
    Refusal,
    /// The provider paused the answer and expects another request with the output so far: a round without results.
    Paused,
    /// Tools that return directly answered the user; one text block per result.
    ReturnDirect,
    /// A bound of the tool loop was reached.
    Limit(Limit),
    /// The model sent no content.
    Empty,
    /// An error, a cancellation or a drop ended the answer; it holds the output so far.
    Interrupted,
    /// An unknown reason, as the provider wrote it. It may have cut the answer anywhere.
    Other(Text),
}

impl FinishReason {
    /// Checks whether the reason means that the answer is cut off, so that none of its calls may run.
    ///
    /// Under an [unknown](Self::Other) reason those calls run whose end the wire marked. The others are incomplete
    /// ([`leaves_calls_whole`](Self::leaves_calls_whole)).
    #[must_use]
    pub fn vetoes_calls(&self) -> bool {
        matches!(self, Self::Length | Self::ContentFilter | Self::Refusal | Self::Interrupted)
    }

    /// Checks whether the reason is known to leave the calls before it whole, so that it ends those whose end the wire
    /// did not mark. An unknown reason does not.
    #[must_use]
    pub fn leaves_calls_whole(&self) -> bool {
        // No wildcard: whoever adds a reason decides.
        match self {
            Self::Stop
            | Self::ToolCalls
            | Self::Paused
            | Self::ReturnDirect
            | Self::Limit(_)
            | Self::Empty => true,
            Self::Length | Self::ContentFilter | Self::Refusal | Self::Interrupted | Self::Other(_) => false,
        }
    }
}

/// The bound of the tool loop that was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// Rounds in one turn.
    Rounds(u32),
    /// Tool calls in one turn.
    Calls(u32),
    /// Calls of one tool in one turn.
    CallsPerTool {
        /// The name of the tool.
        tool: Text,
        /// The bound.
        limit: u32,
    },
    /// Calls of one tool with equal arguments in a row, in one turn, of which none has brought another result.
    SameCall {
        /// The name of the tool.
        tool: Text,
        /// The bound.
        limit: u32,
    },
    /// Wall time of one turn, in milliseconds.
    Time(u64),
    /// Another limit, in the words of the advisor that set it, such as "the budget of 10000 tokens".
    Other(Text),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rounds(limit) => write!(f, "the limit of {limit} rounds in one turn"),
            Self::Calls(limit) => write!(f, "the limit of {limit} tool calls in one turn"),
            Self::CallsPerTool { tool, limit } => {
                write!(f, "the limit of {limit} calls of the tool `{tool}` in one turn")
            }
            Self::SameCall { tool, limit } => {
                write!(
                    f,
                    "the limit of {limit} equal calls of the tool `{tool}` in a row without another result"
                )
            }
            Self::Time(limit) => write!(f, "the time limit of {limit} ms for one turn"),
            Self::Other(limit) => f.write_str(limit),
        }
    }
}

/// A finish reason and its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finish {
    /// The reason, in the terms of this project.
    pub reason: FinishReason,
    /// The provider's word for it, if sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_written: Option<Text>,
    /// Whether the reason was inferred from the content, because the provider's stream ended without one.
    #[serde(default)]
    pub inferred: bool,
}

impl Finish {
    /// Creates a reason that the provider wrote as `as_written`.
    pub fn written(reason: FinishReason, as_written: impl Into<Text>) -> Self {
        Self { reason, as_written: Some(as_written.into()), inferred: false }
    }

    /// Creates a reason that was inferred from the content, because the provider sent none.
    #[must_use]
    pub fn inferred(reason: FinishReason) -> Self {
        Self { reason, as_written: None, inferred: true }
    }
}

impl From<FinishReason> for Finish {
    fn from(reason: FinishReason) -> Self {
        Self { reason, as_written: None, inferred: false }
    }
}

/// Token counts of an answer. Counts that a provider did not report are `None`, never 0.
/// So is a negative count, a fraction and a count of 2⁵³ or more: none is rounded.
///
/// A count includes its parts, with every provider. If a server counts a part separately, its provider adds it:
/// Anthropic's cache reads and writes, Gemini's thoughts, xAI's reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// All tokens that the model read: the request, and results of tools that the provider ran. Tokens that were read
    /// from a prompt cache or written to one are included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// All tokens that the model wrote, including reasoning and calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Total tokens as reported; `None` if the provider does not report them. See [`Usage::total`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// The part of `input_tokens` that was read from a prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
    /// The part of `input_tokens` that was written to a prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// The part of `output_tokens` that was spent on reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Creates usage with the two counts that every provider reports.
    #[must_use]
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self { input_tokens: Some(input_tokens), output_tokens: Some(output_tokens), ..Self::default() }
    }

    /// Returns the total tokens: as reported, or else the sum of request and answer.
    ///
    /// Many providers report no total, so a budget that reads `total_tokens` may never be reached. The result is
    /// `None` only if neither the total nor both of its parts were reported.
    ///
    /// # Example
    /// ```
    /// use message_aggregator::Usage;
    ///
    /// let usage = Usage::new(1_000, 24);
    /// assert_eq!((usage.total_tokens, usage.total()), (None, Some(1_024)));
    /// ```
    #[must_use]
    pub fn total(&self) -> Option<u64> {
        let parts = || Some(self.input_tokens?.saturating_add(self.output_tokens?));
        self.total_tokens.or_else(parts)
    }

    /// Takes the counts that `later` reports of the same answer. They are cumulative, so a lower one takes nothing
    /// back: some servers end an answer with zeros.
    pub fn merge(&mut self, later: &Self) {
        self.combine(later, u64::max);
    }

    /// Adds the counts of another round. If only one of the two reported a total, the sum of the other's parts is
    /// used.
    pub fn add(&mut self, other: &Self) {
        let is_reported = self.total_tokens.is_some() || other.total_tokens.is_some();
        let totals = if is_reported { [self.total(), other.total()] } else { [None, None] };
        self.combine(other, u64::saturating_add);
        self.total_tokens = totals.into_iter().flatten().reduce(u64::saturating_add);
    }

    fn combine(&mut self, other: &Self, both: impl Fn(u64, u64) -> u64) {
        let one = |mine: &mut Option<u64>, theirs: Option<u64>| {
            *mine = match (*mine, theirs) {
                (Some(mine), Some(theirs)) => Some(both(mine, theirs)),
                (mine, theirs) => theirs.or(mine),
            };
        };
        one(&mut self.input_tokens, other.input_tokens);
        one(&mut self.output_tokens, other.output_tokens);
        one(&mut self.total_tokens, other.total_tokens);
        one(&mut self.cached_input_tokens, other.cached_input_tokens);
        one(&mut self.cache_write_tokens, other.cache_write_tokens);
        one(&mut self.reasoning_tokens, other.reasoning_tokens);
    }
}

#[cfg(test)]
mod mod_tests {
    use super::*;

    #[test]
    fn open_calls_have_no_result_behind_the_answer() {
        let call = |id: &str| Block::from(ToolCall::new(id, "look", "{}"));
        let result = |id: &str| {
            Message::tool(crate::ToolResult::new(&ToolCall::new(id, "look", ""), vec!["ok".into()]))
        };
        let answer = Message::assistant_blocks(["a", "b", "a"].map(call).to_vec());
        let open = |transcript: Vec<Message>| {
            let mut response = ChatResponse::new(2, answer.clone(), FinishReason::ToolCalls);
            response.transcript = transcript.into();
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
        let mut response = ChatResponse::from_blocks(1, blocks, FinishReason::Stop);
        response.usage = Some(Usage::new(3, 4));
        response.transcript = transcript.clone();
        let moved = response.clone().in_round(7);
        assert_eq!((response.round(), moved.round()), (1, 7));
        let ids: Vec<_> = moved.blocks().map(|(id, _)| id).collect();
        assert_eq!(ids, [1, 0, 2, 3].map(|index| BlockId::new(7, index)));
        assert!(moved.message().is_same(response.message()));
        assert_eq!(moved.finish, response.finish);
        assert_eq!((moved.usage, &moved.transcript), (response.usage, &transcript));
    }
}

#[cfg(test)]
mod usage_tests {
    use super::*;

    #[test]
    fn total_is_reported_value_or_sum_of_parts() {
        let reported = Usage { total_tokens: Some(9), ..Usage::new(1, 2) };
        let input_only = Usage { output_tokens: None, ..Usage::new(1, 2) };
        let output_only = Usage { input_tokens: None, ..Usage::new(1, 2) };
        let most = Usage::new(u64::MAX, 1);
        for (usage, total) in [
            (reported, Some(9)),
            (Usage::new(1, 2), Some(3)),
            (Usage::new(0, 0), Some(0)),
            (input_only, None),
            (output_only, None),
            (Usage::default(), None),
            (most, Some(u64::MAX)),
        ] {
            assert_eq!(usage.total(), total, "{usage:?}");
        }
    }

    #[test]
    fn counts_grow_within_round_and_rounds_sum() {
        let mut round = Usage::new(10, 1);
        round.merge(&Usage { output_tokens: Some(5), ..Usage::default() });
        round.merge(&Usage::new(0, 4));
        assert_eq!(round, Usage::new(10, 5));
        let mut turn = Usage::default();
        turn.add(&round);
        turn.add(&Usage { total_tokens: Some(3), ..Usage::new(1, 2) });
        assert_eq!(turn, Usage { total_tokens: Some(18), ..Usage::new(11, 7) }, "no round is left out");
        let mut unreported = Usage::new(1, 2);
        unreported.add(&Usage::new(3, 4));
        assert_eq!(unreported, Usage::new(4, 6));
    }

    /// An attempt may report no counts.
    #[test]
    fn response_adds_the_counts_of_an_earlier_attempt() {
        let answer = ChatResponse::new(1, Message::assistant("Oslo"), FinishReason::Stop);
        let mut counted = answer.clone();
        counted.usage = Some(Usage::new(3, 4));
        let (earlier, sum) = (Some(Usage::new(1, 2)), Some(Usage::new(4, 6)));
        assert_eq!(counted.clone().with_added_usage(earlier).usage, sum);
        assert_eq!(counted.with_added_usage(None).usage, Some(Usage::new(3, 4)));
        assert_eq!(answer.with_added_usage(earlier).usage, earlier);
    }
}
