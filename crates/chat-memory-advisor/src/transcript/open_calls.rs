use advisor_core::{CallStart, Message, Text, ToolCall, ToolResult};

use crate::MemoryTexts;

/// The calls of one answer and the results they have got so far.
///
/// Ids need not be unique, not even within an answer: each result goes to the first call of its id that
/// has none.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenCalls {
    calls: Vec<OpenCall>,
    progress: Progress,
}

/// How far a turn has come with the calls of an answer.
#[derive(Debug, Clone, Copy, Default)]
enum Progress {
    /// Nobody knows whether their tools were started.
    #[default]
    Unknown,
    /// No tool can have been started for any of them.
    NotStarted,
    /// The turn has ended and left them to the caller, without starting a tool.
    LeftToCaller,
}

#[derive(Debug, Clone)]
struct OpenCall {
    id: Text,
    name: Text,
    result: Option<Message>,
    /// Its tool must not run twice, and its start is recorded.
    started: bool,
}

impl OpenCalls {
    /// The calls of an answer; none for other messages.
    pub(crate) fn of(message: &Message) -> Self {
        let open = |call: &ToolCall| OpenCall {
            id: call.id.clone(),
            name: call.name.clone(),
            result: None,
            started: false,
        };
        Self { calls: message.tool_calls().map(open).collect(), progress: Progress::Unknown }
    }

    /// The same calls, of which none has been started yet.
    pub(crate) fn not_started(self) -> Self {
        Self { progress: Progress::NotStarted, ..self }
    }

    /// From now on, tools may be running for them.
    pub(crate) fn start(&mut self) {
        self.progress = Progress::Unknown;
    }

    /// The turn has ended with an answer: whoever called it is to answer them.
    pub(crate) fn leave_to_caller(&mut self) {
        self.progress = Progress::LeftToCaller;
    }

    /// The start of this call is recorded: it is the one at its place, or the first of its id if the answer was changed
    /// on its way. The start of another answer's call is no news.
    pub(crate) fn note_start(&mut self, start: &CallStart) {
        let place = usize::try_from(start.key.position).unwrap_or(usize::MAX);
        let at_place = self.calls.get(place).is_some_and(|call| call.id == start.call_id && !call.started);
        let first = || self.calls.iter().position(|call| call.id == start.call_id && !call.started);
        let place = if at_place { Some(place) } else { first() };
        if let Some(call) = place.and_then(|place| self.calls.get_mut(place)) {
            call.started = true;
        }
    }

    /// Whether these are the calls of this answer, by their ids.
    pub(crate) fn are_those_of(&self, message: &Message) -> bool {
        self.calls.iter().map(|call| &call.id).eq(message.tool_calls().map(|call| &call.id))
    }

    /// Takes a tool message for the call it answers. One that answers none of them is refused.
    pub(crate) fn accept(&mut self, message: &Message) -> bool {
        let Some(result) = message.tool_result() else { return false };
        let waiting = |call: &&mut OpenCall| call.id == result.call_id && call.result.is_none();
        let Some(call) = self.calls.iter_mut().find(waiting) else { return false };
        call.result = Some(message.clone());
        true
    }

    /// Whether a tool message would be accepted.
    pub(crate) fn waits_for(&self, message: &Message) -> bool {
        let Some(result) = message.tool_result() else { return false };
        self.calls.iter().any(|call| call.id == result.call_id && call.result.is_none())
    }

    /// Whether any call has no result.
    pub(crate) fn is_waiting(&self) -> bool {
        self.calls.iter().any(|call| call.result.is_none())
    }

    /// Error results for the calls that have none.
    pub(crate) fn missing(&self, texts: &MemoryTexts) -> Vec<Message> {
        let missing = self.calls.iter().filter(|call| call.result.is_none());
        missing.map(|call| call.without_result(self.progress, texts)).collect()
    }

    /// All results in call order; those that are missing are made. Nothing is open afterwards.
    pub(crate) fn settle(&mut self, texts: &MemoryTexts) -> impl Iterator<Item = Message> {
        let Self { calls, progress } = std::mem::take(self);
        calls
            .into_iter()
            .map(move |call| call.result.clone().unwrap_or_else(|| call.without_result(progress, texts)))
    }
}

impl OpenCall {
    fn without_result(&self, progress: Progress, texts: &MemoryTexts) -> Message {
        let call = ToolCall::new(self.id.clone(), self.name.clone(), "");
        let text = match progress {
            _ if self.started => &texts.verify_before_retrying,
            Progress::NotStarted => &texts.not_started,
            Progress::LeftToCaller => &texts.not_run,
            Progress::Unknown => &texts.outcome_unknown,
        };
        Message::tool(ToolResult::error(&call, text.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_logs::{answer, calls};

    #[test]
    fn the_calls_of_an_answer_are_known_by_their_ids_in_order() {
        let open = OpenCalls::of(&calls(&["1", "2"]));
        assert!(open.are_those_of(&calls(&["1", "2"])));
        for other in [calls(&["2", "1"]), calls(&["1"]), calls(&["1", "2", "3"]), answer("no call")] {
            assert!(!open.are_those_of(&other));
        }
    }
}
