//! The chunks that one link of a chain passes outwards.

use advisor_core::Chunk;
use serde_json::json;

use super::Journal;

/// Records the first chunk of an answer and its end, also if the answer is dropped.
pub(super) struct Passing {
    journal: Journal,
    link: Link,
    chunks: u64,
    ended: bool,
}

/// The words of a link's events.
pub(super) enum Link {
    Advisor { name: String },
    Model { round: u32 },
}

impl Passing {
    /// Records that the link is called.
    pub(super) fn begin(journal: &Journal, link: Link) -> Self {
        journal.record(match &link {
            Link::Advisor { name } => format!("advisor.enter {name}"),
            Link::Model { round } => format!("model.ask r{round}"),
        });
        Self { journal: journal.clone(), link, chunks: 0, ended: false }
    }

    pub(super) fn see(&mut self, chunk: &Chunk) {
        if let Chunk::Completed(response) = chunk {
            self.ended = true;
            let label = self.label("completed", "end", response.round());
            self.journal.record_with(label, json!({"chunks": self.chunks}));
            return;
        }
        self.chunks += 1;
        if self.chunks == 1 {
            self.journal.record(self.label("first_chunk", "first_chunk", chunk.round()));
        }
    }

    fn label(&self, of_advisor: &str, of_model: &str, round: u32) -> String {
        match &self.link {
            Link::Advisor { name } => format!("advisor.{of_advisor} {name} r{round}"),
            Link::Model { .. } => format!("model.{of_model} r{round}"),
        }
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        if !self.ended {
            self.journal.record(match &self.link {
                Link::Advisor { name } => format!("advisor.drop {name}"),
                Link::Model { round } => format!("model.drop r{round}"),
            });
        }
    }
}
