//! The rounds of an earlier run of a turn, which a reader of this run is shown first.

use message_aggregator::{ChatResponse, ToolResult};

use crate::Turn;

/// A stored round of a turn that stopped and is submitted again.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EarlierRound {
    /// The answer, under the number of its round.
    pub response: ChatResponse,
    /// The results of its calls.
    pub results: Vec<ToolResult>,
}

impl EarlierRound {
    /// Creates a round whose calls have no results yet.
    #[must_use]
    pub fn new(response: ChatResponse) -> Self {
        Self { response, results: Vec::new() }
    }
}

impl Turn {
    /// Notes the rounds that an earlier run of the turn has stored, in order. A memory calls it when the turn continues.
    pub fn note_earlier_rounds(&self, rounds: Vec<EarlierRound>) {
        self.lock().earlier_rounds = rounds;
    }

    /// Takes the rounds of an earlier run. A tool loop emits them before its first round, so that what a reader of the
    /// turn is shown is what is stored.
    #[must_use]
    pub fn take_earlier_rounds(&self) -> Vec<EarlierRound> {
        std::mem::take(&mut self.lock().earlier_rounds)
    }
}
