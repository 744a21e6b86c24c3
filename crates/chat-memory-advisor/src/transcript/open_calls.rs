//! `OpenCalls`: the calls of one answer and their results so far; makes missing results.

use advisor_core::{CallStart, Message, OUTCOME_UNKNOWN, Text, ToolCall, ToolResult, VERIFY_BEFORE_RETRYING};

use crate::{NOT_RUN, NOT_STARTED};

/// The calls of one answer and the results received so far.
///
/// Ids need not be unique, not even within an answer: each result goes to the first call with its id that has
/// none.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenCalls {
    calls: Vec<OpenCall>,
    progress: Progress,
}

/// The progress of a turn with the calls of an answer.
#[derive(Debug, Clone, Copy, Default)]
enum Progress {
    /// It is unknown whether their tools were started.
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
    /// An incomplete call must not run.
    complete: bool,
    /// Whether its tool must not run twice and its start is recorded.
    started: bool,
}

impl OpenCalls {
    /// Returns the calls of an answer; none for other messages.
    pub(crate) fn from_message(message: &Message) -> Self {
        let open = |call: &ToolCall| OpenCall {
            id: call.id.clone(),
            name: call.name.clone(),
            result: None,
            complete: call.complete,
            started: false,
        };
        Self { calls: message.tool_calls().map(open).collect(), progress: Progress::Unknown }
    }

    /// Marks the calls as not started.
    pub(crate) fn not_started(self) -> Self {
        Self { progress: Progress::NotStarted, ..self }
    }

    /// Notes that from now on tools may be running for the calls.
    pub(crate) fn start(&mut self) {
        self.progress = Progress::Unknown;
    }

    /// Notes that the turn has ended and that its caller is to answer the calls.
    pub(crate) fn leave_to_caller(&mut self) {
        self.progress = Progress::LeftToCaller;
    }

    /// Notes that the start of a call is recorded. It is the call at the recorded position, or the first one with
    /// its id if the answer was changed on its way. A start for a call of another answer is ignored.
    pub(crate) fn note_start(&mut self, start: &CallStart) {
        let place = usize::try_from(start.key.position).unwrap_or(usize::MAX);
        let at_place = self.calls.get(place).is_some_and(|call| call.id == start.call_id && !call.started);
        let first = || self.calls.iter().position(|call| call.id == start.call_id && !call.started);
        let place = if at_place { Some(place) } else { first() };
        if let Some(call) = place.and_then(|place| self.calls.get_mut(place)) {
            call.started = true;
        }
    }

    /// Checks whether these are the calls of this answer, by their ids in order.
    pub(crate) fn are_those_of(&self, message: &Message) -> bool {
        self.calls.iter().map(|call| &call.id).eq(message.tool_calls().map(|call| &call.id))
    }

    /// Takes a tool message as the result of its call. Returns `false` if no open call has its id.
    pub(crate) fn accept(&mut self, message: &Message) -> bool {
        let Some(result) = message.tool_result() else { return false };
        let waiting = |call: &&mut OpenCall| call.id == result.call_id && call.result.is_none();
        let Some(call) = self.calls.iter_mut().find(waiting) else { return false };
        call.result = Some(message.clone());
        true
    }

    /// Checks whether a tool message would be accepted.
    pub(crate) fn waits_for(&self, message: &Message) -> bool {
        let Some(result) = message.tool_result() else { return false };
        self.calls.iter().any(|call| call.id == result.call_id && call.result.is_none())
    }

    /// Checks whether any call has no result.
    pub(crate) fn is_waiting(&self) -> bool {
        self.calls.iter().any(|call| call.result.is_none())
    }

    /// Checks whether any call that may run has no result.
    pub(crate) fn may_run(&self) -> bool {
        self.calls.iter().any(OpenCall::may_run)
    }

    /// Returns the results in call order, with error results for missing ones of calls that must not run.
    pub(crate) fn settled(&self) -> impl Iterator<Item = Message> {
        let settled = self.calls.iter().filter(|call| !call.may_run());
        settled.map(|call| call.result.clone().unwrap_or_else(|| call.without_result(self.progress)))
    }

    /// Returns error results for the calls that have none.
    pub(crate) fn missing(&self) -> Vec<Message> {
        let missing = self.calls.iter().filter(|call| call.result.is_none());
        missing.map(|call| call.without_result(self.progress)).collect()
    }

    /// Returns all results in call order, with error results for missing ones. No call is open afterwards.
    pub(crate) fn settle(&mut self) -> impl Iterator<Item = Message> {
        let Self { calls, progress } = std::mem::take(self);
        calls
            .into_iter()
            .map(move |call| call.result.clone().unwrap_or_else(|| call.without_result(progress)))
    }
}

impl OpenCall {
    fn may_run(&self) -> bool {
        self.complete && self.result.is_none()
    }

    fn without_result(&self, progress: Progress) -> Message {
        let call = ToolCall::new(self.id.clone(), self.name.clone(), "");
        let text = match progress {
            _ if self.started => VERIFY_BEFORE_RETRYING,
            Progress::NotStarted => NOT_STARTED,
            Progress::LeftToCaller => NOT_RUN,
            Progress::Unknown => OUTCOME_UNKNOWN,
        };
        Message::tool(ToolResult::error(&call, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{answer, calls};

    #[test]
    fn calls_of_answer_match_by_ordered_ids() {
        let open = OpenCalls::from_message(&calls(&["1", "2"]));
        assert!(open.are_those_of(&calls(&["1", "2"])));
        for other in [calls(&["2", "1"]), calls(&["1"]), calls(&["1", "2", "3"]), answer("no call")] {
            assert!(!open.are_those_of(&other));
        }
    }
}
