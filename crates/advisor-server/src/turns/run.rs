use advisor_core::SharedTurn;
use chat_memory_advisor::MemoryReceipt;

use crate::refusal::may_begin_again;

/// One run of a turn in this process.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) turn: SharedTurn,
    pub(super) receipt: MemoryReceipt,
}

impl Run {
    /// Checks whether a repeated request begins the turn again: its client has disconnected, its failure invites a retry,
    /// or memory never had it.
    pub(super) fn is_void(&self) -> bool {
        let turn = &self.turn;
        turn.is_abandoned()
            || turn.error().is_some_and(|error| may_begin_again(error.kind()))
            || self.is_outside_memory()
    }

    /// Checks whether the turn has ended, and memory never had it.
    pub(super) fn is_outside_memory(&self) -> bool {
        self.turn.has_ended() && !self.receipt.has_turn()
    }
}
