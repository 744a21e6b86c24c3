//! `MessageAggregator`: deltas in, chunks and one response out.

mod blocks;
pub(crate) mod bounds;
mod call;
mod identity;
pub(crate) mod settings;

use std::collections::VecDeque;

use crate::aggregator::blocks::AnswerBlocks;
use crate::aggregator::bounds::{AnswerBytes, Result};
use crate::{
    AggregateError, AggregatorSettings, BlockKind, ChatResponse, Chunk, Delta, DeltaKind, Finish,
    FinishReason, Text, Usage,
};

/// Turns the deltas of one model answer into chunks and one response.
///
/// It is the only place where an answer is aggregated: text into blocks, fragments into tool calls. It does no I/O
/// and never blocks.
///
/// # Ordering
/// Each call appends the chunks of its delta, in order. A tool call's block ends when the provider ends it or when
/// the answer ends; not as soon as its arguments parse. The block of a call without arguments ends with the
/// answer, since later fragments decide whether the call is complete.
///
/// # Errors
/// A typed [`AggregateError`]: the bounds of [`AggregatorLimits`](crate::AggregatorLimits), or an answer that was
/// cut off.
///
/// # Example
/// ```
/// use message_aggregator::{Delta, FinishReason, MessageAggregator, ToolCallDelta};
///
/// let mut chunks = Default::default();
/// let mut aggregator = MessageAggregator::new(1);
/// aggregator.push(Delta::text("Let me "), &mut chunks)?;
/// aggregator.push(Delta::text("look."), &mut chunks)?;
/// aggregator.push(Delta::tool_call(ToolCallDelta::start(0, "c1", "weather")), &mut chunks)?;
/// aggregator.push(Delta::tool_call(ToolCallDelta::arguments(0, r#"{"city":"Oslo"}"#)), &mut chunks)?;
/// assert_eq!(aggregator.partial().text(), "Let me look.");
/// aggregator.push(Delta::finish(FinishReason::ToolCalls), &mut chunks)?;
/// let response = aggregator.finish(&mut chunks)?;
/// assert_eq!(response.tool_calls().next().unwrap().1.name, "weather");
/// # Ok::<(), message_aggregator::AggregateError>(())
/// ```
#[derive(Debug)]
pub struct MessageAggregator {
    answer: Answer,
    blocks: AnswerBlocks,
    usage: Option<Usage>,
    response_id: Option<Text>,
    model: Option<Text>,
    end_marker: EndMarker,
}

/// Whether the end marker of an answer has arrived. Without one, the answer ends with its finish reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndMarker {
    Missing,
    Received,
}

/// What the blocks of an answer share.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) settings: AggregatorSettings,
    pub(crate) round: u32,
    /// The number of blocks.
    pub(crate) blocks: u32,
    pub(crate) bytes: AnswerBytes,
}

/// The answer and the chunks of one delta.
pub(crate) struct Sink<'a> {
    pub(crate) answer: &'a mut Answer,
    pub(crate) chunks: &'a mut VecDeque<Chunk>,
}

impl MessageAggregator {
    /// Creates an aggregator for the answer of `round`.
    #[must_use]
    pub fn new(round: u32) -> Self {
        Self::with_settings(round, AggregatorSettings::default())
    }

    /// Creates an aggregator for the answer of `round`, with these settings.
    #[must_use]
    pub fn with_settings(round: u32, settings: AggregatorSettings) -> Self {
        let bytes = AnswerBytes::new(settings.limits.answer_bytes);
        Self {
            answer: Answer { settings, round, blocks: 0, bytes },
            blocks: AnswerBlocks::default(),
            usage: None,
            response_id: None,
            model: None,
            end_marker: EndMarker::Missing,
        }
    }

    /// Takes the next delta and appends its chunks to `chunks`.
    ///
    /// After [`DeltaKind::Done`] only token counts are processed.
    ///
    /// # Errors
    /// If a bound is exceeded. [`Self::partial`] still returns the answer so far.
    #[inline]
    pub fn push(&mut self, delta: Delta, chunks: &mut VecDeque<Chunk>) -> Result<(), AggregateError> {
        match self.extend(delta) {
            Ok(chunk) => {
                chunks.push_back(chunk);
                Ok(())
            }
            Err(delta) => self.push_other(delta, chunks),
        }
    }

    /// Takes a delta that extends the current text or the open arguments, and returns its one chunk. This is the
    /// fast path of nearly all deltas. Returns any other delta unchanged.
    #[inline]
    fn extend(&mut self, delta: Delta) -> Result<Chunk, Delta> {
        if self.end_marker == EndMarker::Received {
            return Err(delta);
        }
        let (key, answer) = (delta.block, &mut self.answer);
        let block = match &delta.kind {
            DeltaKind::Text(text) => self.blocks.extend_current(key, BlockKind::Text, text, answer),
            DeltaKind::Reasoning(text) => self.blocks.extend_current(key, BlockKind::Reasoning, text, answer),
            DeltaKind::Arguments { index: Some(index), text } => {
                self.blocks.extend_call(*index, text, answer)
            }
            _ => None,
        };
        let Some(block) = block else { return Err(delta) };
        match delta.kind {
            DeltaKind::Text(text) => Ok(block.piece(BlockKind::Text, text)),
            DeltaKind::Reasoning(text) => Ok(block.piece(BlockKind::Reasoning, text)),
            DeltaKind::Arguments { text, .. } => Ok(block.piece(BlockKind::ToolCall, text)),
            _ => Err(delta),
        }
    }

    fn push_other(&mut self, delta: Delta, chunks: &mut VecDeque<Chunk>) -> Result {
        match delta.kind {
            DeltaKind::Usage(usage) => self.usage.get_or_insert_default().merge(&usage),
            _ if self.end_marker == EndMarker::Received => {}
            DeltaKind::Origin(origin) => {
                self.answer.bytes.set_once(&mut self.response_id, origin.response_id)?;
                self.answer.bytes.set_once(&mut self.model, origin.model)?;
            }
            DeltaKind::Done => self.end_marker = EndMarker::Received,
            kind => self.blocks.push(delta.block, kind, &mut Sink { answer: &mut self.answer, chunks })?,
        }
        Ok(())
    }

    /// Ends the answer. Appends the closing chunks and returns the response.
    ///
    /// # Errors
    /// [`AggregateError::Truncated`] if neither a finish reason nor an end marker has arrived.
    pub fn finish(mut self, chunks: &mut VecDeque<Chunk>) -> Result<ChatResponse, AggregateError> {
        if self.end_marker == EndMarker::Missing && self.finish_reason().is_none() {
            return Err(AggregateError::Truncated { partial: Box::new(self.partial()) });
        }
        let mut sink = Sink { answer: &mut self.answer, chunks };
        let finish = self.blocks.close_all(self.end_marker, &mut sink);
        if let Some(usage) = self.usage {
            chunks.push_back(Chunk::Usage { round: self.answer.round, usage: Box::new(usage) });
        }
        Ok(self.response(finish))
    }

    /// Returns the answer so far as an interrupted one, with its token counts, and the provider's word for the end if it has
    /// arrived. A source may hold back the counts of single pieces until another delta follows, since counts only grow.
    /// Its open calls are incomplete. Calls that the provider ended stay complete, as they were shown; the finish
    /// reason [vetoes](FinishReason::vetoes_calls) them.
    #[must_use]
    pub fn partial(&self) -> ChatResponse {
        let reason = FinishReason::Interrupted;
        self.response(match self.finish_reason() {
            Some(finish) => Finish { reason, inferred: false, ..finish.clone() },
            None => reason.into(),
        })
    }

    /// Returns the finish reason so far.
    #[must_use]
    pub fn finish_reason(&self) -> Option<&Finish> {
        self.blocks.finish()
    }

    fn response(&self, finish: Finish) -> ChatResponse {
        let blocks = self.blocks.all(&self.answer.settings.call_id_prefix);
        let mut response = ChatResponse::from_blocks(self.answer.round, blocks, finish);
        response.usage = self.usage;
        response.response_id = self.response_id.clone();
        response.model = self.model.clone();
        response
    }
}
