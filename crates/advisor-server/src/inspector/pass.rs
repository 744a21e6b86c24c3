//! `Pass`: records one way through an advisor or the model.

use advisor_core::{ChatResponse, Chunk};
use serde_json::{Value, json};

use super::journal::TurnJournal;

/// One way through an advisor or the model, from the request to the end of the answer.
pub(super) struct Pass {
    journal: TurnJournal,
    part: Part,
    chunks: u64,
    has_ended: bool,
}

/// The part of a chain that is passed.
pub(super) enum Part {
    Advisor(String),
    Model { round: u32 },
}

impl Pass {
    /// Records that the part is asked.
    pub(super) fn begin(journal: TurnJournal, part: Part) -> Self {
        let label = match &part {
            Part::Advisor(name) => format!("advisor.enter {name}"),
            Part::Model { round } => format!("model.ask r{round}"),
        };
        journal.record(label, Value::Null);
        Self { journal, part, chunks: 0, has_ended: false }
    }

    /// Takes note of a chunk that comes out.
    pub(super) fn see(&mut self, chunk: &Chunk) {
        if let Chunk::Completed(response) = chunk {
            return self.complete(response);
        }
        self.chunks += 1;
        if self.chunks == 1 {
            let label = match &self.part {
                Part::Advisor(name) => format!("advisor.first_chunk {name} r{}", chunk.round()),
                Part::Model { round } => format!("model.first_chunk r{round}"),
            };
            self.journal.record(label, Value::Null);
        }
    }

    fn complete(&mut self, response: &ChatResponse) {
        self.has_ended = true;
        let label = match &self.part {
            Part::Advisor(name) => format!("advisor.completed {name} r{}", response.round()),
            Part::Model { round } => format!("model.end r{round}"),
        };
        self.journal.record(label, json!({"chunks": self.chunks}));
        if let (Part::Model { round }, Some(usage)) = (&self.part, response.usage()) {
            let tokens = json!({"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens});
            self.journal.record(format!("usage r{round}"), tokens);
        }
    }
}

/// An answer that fails or is dropped ends its pass here.
impl Drop for Pass {
    fn drop(&mut self) {
        if !self.has_ended {
            let label = match &self.part {
                Part::Advisor(name) => format!("advisor.drop {name}"),
                Part::Model { round } => format!("model.drop r{round}"),
            };
            self.journal.record(label, Value::Null);
        }
    }
}
