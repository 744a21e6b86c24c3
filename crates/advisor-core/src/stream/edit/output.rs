//! `EditedChunks`: the output of an editor: `push`, `open`, `add`, `close`, `end_answer`, `fail`.

use std::collections::VecDeque;

use message_aggregator::{Block, BlockDelta, BlockHead, BlockId, Chunk, FinishReason};

use super::blocks::EditedBlocks;
use crate::{Error, ErrorKind, Turn};

/// The output of a [`ChunkEditor`](crate::ChunkEditor).
///
/// It keeps the output of every editor well-formed (law S3). It leaves out:
/// - chunks of a block that is not open, and of a round that has ended;
/// - deltas of another kind than their block;
/// - blocks that neither the answer has nor [`open`](Self::open) has made;
/// - the ends of rounds and answers that did not come from the inner stream.
///
/// Blocks that are left open close before their round ends. A call that closes so is incomplete, unless the model
/// completed it.
#[derive(Debug)]
pub struct EditedChunks<'a> {
    pub(super) blocks: &'a mut EditedBlocks,
    pub(super) ready: &'a mut VecDeque<Chunk>,
    pub(super) turn: &'a Turn,
    pub(super) stop: &'a mut Option<Stop>,
}

/// The reason why an editor stops its stream.
#[derive(Debug)]
pub(super) enum Stop {
    Ended(FinishReason),
    Failed(Error),
}

impl EditedChunks<'_> {
    /// Emits a chunk.
    ///
    /// A block of the model that is not emitted is left out of the answer. It may be opened as another kind, which
    /// replaces it in its place. A block that is closed with provider data keeps it, if its content equals the
    /// emitted content.
    pub fn push(&mut self, chunk: Chunk) {
        if self.stop.is_none() {
            self.blocks.let_out(chunk, self.ready);
        }
    }

    /// Opens a block of the editor's own, and returns its id. The block comes after the block `after` and all
    /// blocks that were added there before.
    ///
    /// `after` is any block of the round, also one that is left out. Without one,
    /// [`BlockId::new`]`(round, 0)` is the beginning of the round.
    ///
    /// A call without an id, or with that of another call, gets a new id. Inside the tool loop a complete call
    /// is run like those of the model.
    ///
    /// One block of the model has room for [`BlockId::PARTS`]` - 1` added blocks after it. One more ends the stream
    /// with an error of kind [`TooLarge`](ErrorKind::TooLarge).
    pub fn open(&mut self, after: BlockId, head: BlockHead) -> BlockId {
        let Some(block) = self.turn.next_part(after).filter(|_| self.stop.is_none()) else {
            let error = Error::new(ErrorKind::TooLarge, "an editor added too many blocks after one block");
            self.stop.get_or_insert(Stop::Failed(error));
            // Nothing more is emitted, so it names no block.
            return after;
        };
        self.blocks.open_added(block, head, self.ready);
        block
    }

    /// Emits a piece of an open block.
    pub fn push_delta(&mut self, block: BlockId, delta: BlockDelta) {
        self.push(Chunk::Delta { block, delta });
    }

    /// Closes an open block with the content that was emitted. A call is then complete, unless that of the model is
    /// not.
    pub fn close(&mut self, block: BlockId) {
        if self.stop.is_none() {
            self.blocks.close(block, self.ready);
        }
    }

    /// Adds a whole block after `after`, as [`open`](Self::open) does, and returns its id.
    pub fn add(&mut self, after: BlockId, content: Block) -> BlockId {
        let block = self.open(after, BlockHead::from_block(&content));
        if let Some(delta) = BlockDelta::from_content(content.content()) {
            self.push_delta(block, delta);
        }
        self.push(Chunk::Closed { block, content });
        block
    }

    /// Ends the answer after the chunks emitted so far, as [`ChunkStream::end_when`](crate::ChunkStream::end_when)
    /// does: open blocks close, the source is dropped, and `Completed` follows with this reason. Nothing is emitted
    /// after that.
    pub fn end_answer(&mut self, reason: FinishReason) {
        self.stop.get_or_insert(Stop::Ended(reason));
    }

    /// Fails the stream with this error after the chunks emitted so far. Nothing is emitted after that.
    ///
    /// The error gets the output of the round so far as its partial answer.
    pub fn fail(&mut self, error: Error) {
        self.stop.get_or_insert(Stop::Failed(error));
    }
}
