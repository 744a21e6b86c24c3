//! `RunningCalls`: the answer with running tools; makes results for calls that the turn abandons.

use message_aggregator::{Message, ToolCall, ToolResult};

use crate::{CallKey, OUTCOME_UNKNOWN, Record, StartedCalls, Step, Turn, VERIFY_BEFORE_RETRYING};

/// An answer whose tools may be running.
#[derive(Debug, Clone)]
pub(crate) struct RunningCalls {
    round: u32,
    answer: Message,
}

impl RunningCalls {
    /// Returns the running calls after `record`, given those before it.
    pub(crate) fn after(record: &Record, before: Option<Self>) -> Option<Self> {
        match record.step {
            Step::Answer => {
                let answer = record.messages.last().cloned()?;
                Some(Self { round: record.round, answer })
            }
            Step::Started(_) => before,
            _ => None,
        }
    }
}

impl Turn {
    /// Returns results for running calls that `record` abandons: an advisor dropped a loop while its tools ran,
    /// and called the chain again.
    pub(crate) fn cut_off_before(&self, record: &Record) -> Vec<Message> {
        let (Step::Answer | Step::Injected | Step::End(_), Some(next)) =
            (&record.step, record.messages.last())
        else {
            return Vec::new();
        };
        self.results_of_interrupted(next).map(|(_, results)| results).unwrap_or_default()
    }

    /// Returns a result for each running call, since the turn ends now with `last`, and the round of those calls.
    /// The calls of `last` itself are client-side.
    pub(crate) fn results_of_interrupted(&self, last: &Message) -> Option<(u32, Vec<Message>)> {
        let RunningCalls { round, answer } =
            self.running_calls().filter(|running| !running.answer.is_same(last))?;
        let started = self.extensions().get::<StartedCalls>().unwrap_or_default();
        let result = |(position, call): (u32, &ToolCall)| {
            let key = CallKey::new(self.id().clone(), round, position);
            let text = if started.contains(&key) { VERIFY_BEFORE_RETRYING } else { OUTCOME_UNKNOWN };
            Message::tool(ToolResult::error(call, text))
        };
        let results: Vec<_> = (0..).zip(answer.tool_calls()).map(result).collect();
        (!results.is_empty()).then_some((round, results))
    }
}
