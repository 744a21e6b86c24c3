//! `UsageSoFar`: token counts of the shown rounds, for an answer that ends early.

use message_aggregator::{Chunk, Usage};

/// The token counts of the rounds that a stream has shown, for an answer that ends early.
#[derive(Debug, Default)]
pub(crate) struct UsageSoFar {
    /// Of the completed rounds.
    completed: Option<Usage>,
    /// Of the current round, as far as known.
    running: Option<Usage>,
}

impl UsageSoFar {
    pub(crate) fn note(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::RoundCompleted(response) => {
                self.running = response.usage().copied();
                self.completed = self.total();
                self.running = None;
            }
            Chunk::Usage { usage, .. } => self.running.get_or_insert_default().merge(usage),
            _ => {}
        }
    }

    pub(crate) fn total(&self) -> Option<Usage> {
        let mut total = self.completed;
        if let Some(running) = &self.running {
            total.get_or_insert_default().add(running);
        }
        total
    }
}
