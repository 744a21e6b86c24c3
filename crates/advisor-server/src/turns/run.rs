//! `Run`: one run of a turn in this process, and whether the turn has an outcome.

use std::future::ready;

use advisor_core::{Chunk, Error, Message, SharedTurn};
use chat_memory_advisor::MemoryReceipt;
use futures::{FutureExt, StreamExt};

use super::IdOrigin;
use crate::refusal::may_begin_again;

/// One run of a turn in this process.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) turn: SharedTurn,
    pub(super) receipt: MemoryReceipt,
    pub(super) id: IdOrigin,
}

impl Run {
    /// Checks whether a repeated request begins the turn again: its client has disconnected, its failure invites a retry,
    /// or memory never had it. A client that has not chosen the id cannot ask for the failure again, only for an answer.
    pub(super) fn is_void(&self) -> bool {
        let turn = &self.turn;
        let is_answer = |error: &Error| self.id == IdOrigin::Client && !may_begin_again(error.kind());
        turn.is_abandoned()
            || turn.error().is_some_and(|error| !is_answer(&error))
            || self.is_outside_memory()
    }

    /// Checks whether the turn has ended, and memory never had it.
    pub(super) fn is_outside_memory(&self) -> bool {
        self.turn.has_ended() && !self.receipt.has_turn()
    }

    /// Returns the answer of a turn that has ended, as long as its chunks are kept.
    pub(super) fn answer(&self) -> Option<Message> {
        let chunks = self.turn.observe_from(0).filter_map(|chunk| ready(chunk.ok()));
        match chunks.collect::<Vec<_>>().now_or_never()?.pop()? {
            Chunk::Completed(response) => Some(response.message().clone()),
            _ => None,
        }
    }
}
