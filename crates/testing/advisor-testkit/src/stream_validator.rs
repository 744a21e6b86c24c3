//! `StreamValidator` and `StreamViolation`: checks that the chunks of a stream are well-formed.

use std::collections::BTreeMap;

use advisor_core::{Block, BlockId, BlockKind, ChatResponse, Chunk, ChunkFold, ToolEvent, ToolEventKind};

/// Checks that the chunks of a stream from any source are well-formed.
///
/// - Each block opens once, is extended only while it is open, by pieces of its kind, and closes once (law S3).
/// - Its content at the end is the concatenation of its pieces. All blocks of a round close before the round ends.
/// - The response of a round has every block that was shown, in the same order (law S4). It may have more, since the
///   tool loop need not show all of a round.
/// - The events of a call are those of [`ToolEventKind`]: a start, progress and an end, or only that it did not start
///   (law T2).
/// - [`Chunk::Completed`] comes once, and nothing follows it (law S1).
///
/// It keeps the shown content until the stream ends.
///
/// # Example
/// ```
/// use advisor_core::{Block, BlockId, Chunk};
/// use advisor_testkit::{StreamValidator, StreamViolation};
///
/// let block = BlockId::new(1, 0);
/// let mut validator = StreamValidator::new();
/// for chunk in Chunk::from_block(block, &Block::text("Hello")) {
///     validator.push(&chunk)?;
/// }
/// let closed = Chunk::Closed { block, content: Block::text("Hello") };
/// assert_eq!(validator.push(&closed), Err(StreamViolation::NotOpen(block)));
/// assert_eq!(validator.finish(), Err(StreamViolation::Unfinished));
/// # Ok::<(), StreamViolation>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct StreamValidator {
    fold: ChunkFold,
    /// The kinds of the blocks that are open.
    open: BTreeMap<BlockId, BlockKind>,
    /// The calls that had an event, and whether they run.
    calls: BTreeMap<BlockId, CallState>,
    /// The last round that has ended.
    ended: Option<u32>,
    is_completed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    Runs,
    Ended,
}

/// The first rule that the chunks of a stream break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamViolation {
    /// A block opens a second time.
    #[error("block {0} opens twice")]
    OpenedTwice(BlockId),
    /// A block is extended or closed while it is not open.
    #[error("block {0} is extended or closed while it is not open")]
    NotOpen(BlockId),
    /// A block has a piece or a content of another kind, or its head does not fit its kind.
    #[error("block {0} has content of another kind")]
    OtherKind(BlockId),
    /// A block closes with another content than its pieces.
    #[error("block {0} closes with another content than its pieces")]
    OtherContent(BlockId),
    /// A block opens in a round that has ended.
    #[error("block {0} opens after its round has ended")]
    RoundEnded(BlockId),
    /// A block is open when its round ends.
    #[error("block {0} is still open when its round ends")]
    LeftOpen(BlockId),
    /// A shown block is not in the response of its round, or not in this place.
    #[error("block {0} was shown and is not in the response, or not in its place")]
    NotInResponse(BlockId),
    /// A call starts, or does not start, although it started or ended before.
    #[error("the call of block {0} starts a second time")]
    StartedTwice(BlockId),
    /// A tool reports progress or ends while it does not run.
    #[error("the tool of block {0} reports progress or ends while it does not run")]
    NotRunning(BlockId),
    /// A chunk follows the completion.
    #[error("a chunk follows the completion")]
    AfterCompletion,
    /// The stream ends without its completion.
    #[error("the stream ends without its completion")]
    Unfinished,
}

impl StreamValidator {
    /// Creates a validator of one stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks the next chunk.
    ///
    /// # Errors
    /// The rule that the chunk breaks. Later chunks are checked as if this chunk were absent.
    pub fn push(&mut self, chunk: &Chunk) -> Result<(), StreamViolation> {
        if self.is_completed {
            return Err(StreamViolation::AfterCompletion);
        }
        self.check(chunk)?;
        self.note(chunk);
        Ok(())
    }

    /// Checks that the stream may end here successfully. One that ends with an error may end anywhere.
    ///
    /// # Errors
    /// [`Unfinished`](StreamViolation::Unfinished) without a completion.
    pub fn finish(&self) -> Result<(), StreamViolation> {
        if self.is_completed { Ok(()) } else { Err(StreamViolation::Unfinished) }
    }

    fn check(&self, chunk: &Chunk) -> Result<(), StreamViolation> {
        match chunk {
            Chunk::Opened { block, head } => {
                // A later round begins only after the earlier ones have ended, even if their ends are not shown.
                if let Some(earlier) = self.open.keys().next().filter(|open| open.round < block.round) {
                    return Err(StreamViolation::LeftOpen(*earlier));
                }
                let has_call = head.call.is_some();
                if self.fold.has_opened(*block) {
                    return Err(StreamViolation::OpenedTwice(*block));
                }
                if self.ended.is_some_and(|ended| block.round <= ended) {
                    return Err(StreamViolation::RoundEnded(*block));
                }
                require(has_call == (head.kind == BlockKind::ToolCall), StreamViolation::OtherKind(*block))
            }
            Chunk::Delta { block, delta } => self.check_open(*block, delta.kind()),
            Chunk::Closed { block, content } => {
                self.check_open(*block, content.kind())?;
                let is_same = self.fold.block(*block).is_some_and(|shown| closes_as(&shown, content));
                require(is_same, StreamViolation::OtherContent(*block))
            }
            Chunk::Tool(event) => self.check_event(event),
            Chunk::RoundCompleted(response) | Chunk::Completed(response) => self.check_end(chunk, response),
            _ => Ok(()),
        }
    }

    fn check_open(&self, block: BlockId, kind: BlockKind) -> Result<(), StreamViolation> {
        let opened = self.open.get(&block).ok_or(StreamViolation::NotOpen(block))?;
        require(*opened == kind, StreamViolation::OtherKind(block))
    }

    fn check_event(&self, event: &ToolEvent) -> Result<(), StreamViolation> {
        let state = self.calls.get(&event.block);
        match &event.kind {
            ToolEventKind::Started { .. } | ToolEventKind::NotStarted { .. } => {
                require(state.is_none(), StreamViolation::StartedTwice(event.block))
            }
            // Progress, or the end of a call that runs.
            _ => require(state == Some(&CallState::Runs), StreamViolation::NotRunning(event.block)),
        }
    }

    fn check_end(&self, chunk: &Chunk, response: &ChatResponse) -> Result<(), StreamViolation> {
        let is_ending =
            |block: &&BlockId| matches!(chunk, Chunk::Completed(_)) || block.round <= response.round();
        if let Some(block) = self.open.keys().find(is_ending) {
            return Err(StreamViolation::LeftOpen(*block));
        }
        let mut known = response.blocks();
        for (id, block) in self.fold.blocks(response.round()) {
            // Provider data that came after the end of a block is only in the response.
            let is_shown = |(known, content): (BlockId, &Block)| {
                known == id
                    && content.content() == block.content()
                    && content.provider_data().starts_with(block.provider_data())
            };
            require(known.any(is_shown), StreamViolation::NotInResponse(id))?;
        }
        Ok(())
    }

    fn note(&mut self, chunk: &Chunk) {
        self.fold.push(chunk);
        match chunk {
            Chunk::Opened { block, head } => {
                self.open.insert(*block, head.kind);
            }
            Chunk::Closed { block, .. } => {
                self.open.remove(block);
            }
            Chunk::Tool(event) => {
                let state = if event.result().is_some() { CallState::Ended } else { CallState::Runs };
                self.calls.insert(event.block, state);
            }
            Chunk::AttemptRestarted { round } => {
                self.open.retain(|block, _| block.round != *round);
                self.calls.retain(|block, _| block.round != *round);
            }
            Chunk::RoundCompleted(response) => self.ended = self.ended.max(Some(response.round())),
            Chunk::Completed(_) => self.is_completed = true,
            _ => {}
        }
    }
}

/// Checks whether an open block may close with this content. Only the end of a call states whether it is complete.
fn closes_as(shown: &Block, content: &Block) -> bool {
    match (shown.as_tool_call(), content.as_tool_call()) {
        (Some(shown), Some(call)) => {
            (&shown.id, &shown.name, &shown.arguments) == (&call.id, &call.name, &call.arguments)
        }
        _ => shown.content() == content.content(),
    }
}

fn require(holds: bool, violation: StreamViolation) -> Result<(), StreamViolation> {
    if holds { Ok(()) } else { Err(violation) }
}

#[cfg(test)]
mod tests;
