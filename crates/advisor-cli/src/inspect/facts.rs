//! The numbers of a journal.

use std::fmt;

use advisor_testkit::Event;
use serde_json::Value;

/// Counts of a whole journal, and times if it has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Facts {
    turns: usize,
    model_calls: usize,
    tool_runs: usize,
    failed_tools: usize,
    not_started: usize,
    input_tokens: u64,
    output_tokens: u64,
    /// For each turn, the milliseconds until the first chunk of the model.
    first_chunks_ms: Vec<u64>,
}

impl Facts {
    pub(super) fn new(events: &[Event]) -> Self {
        let mut facts = Self::default();
        let mut asked = None;
        for event in events {
            let word = event.label.split(' ').next().unwrap_or_default();
            let tokens = |name: &str| event.fields.get(name).and_then(Value::as_u64).unwrap_or_default();
            match word {
                "turn.start" => {
                    facts.turns += 1;
                    asked = event.at_ms;
                }
                "model.ask" => facts.model_calls += 1,
                "model.first_chunk" => {
                    let waited = asked.take().zip(event.at_ms).map(|(from, to)| to.saturating_sub(from));
                    facts.first_chunks_ms.extend(waited);
                }
                "tool.start" => facts.tool_runs += 1,
                "tool.not_started" => facts.not_started += 1,
                "tool.end" if event.fields.get("is_error") == Some(&Value::Bool(true)) => {
                    facts.failed_tools += 1;
                }
                "usage" => {
                    facts.input_tokens = facts.input_tokens.saturating_add(tokens("input_tokens"));
                    facts.output_tokens = facts.output_tokens.saturating_add(tokens("output_tokens"));
                }
                _ => {}
            }
        }
        facts
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 10;
        write!(f, "turns: {}, model calls: {}, tool runs: {}", self.turns, self.model_calls, self.tool_runs)?;
        if self.failed_tools + self.not_started > 0 {
            write!(f, " ({} failed, {} not started)", self.failed_tools, self.not_started)?;
        }
        if self.input_tokens.saturating_add(self.output_tokens) > 0 {
            write!(f, ", tokens: {} in and {} out", self.input_tokens, self.output_tokens)?;
        }
        if !self.first_chunks_ms.is_empty() {
            let times: Vec<_> = self.first_chunks_ms.iter().take(MOST).map(u64::to_string).collect();
            let more = if self.first_chunks_ms.len() > MOST { ", …" } else { "" };
            write!(f, ", first chunk after: {}{more} ms", times.join(", "))?;
        }
        Ok(())
    }
}
