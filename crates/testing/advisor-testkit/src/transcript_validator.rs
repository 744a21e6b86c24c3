//! `validate_transcript` and `TranscriptError`: finds errors that a provider would refuse.

use std::collections::VecDeque;

use advisor_core::{Message, Role, Text};

/// A defect of a transcript. `at` is the index of a message, from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// A call of the preceding answer has no result.
    #[error("message {at}: the result of call `{call_id}` is missing here")]
    MissingResult {
        /// The index at which the result is missing.
        at: usize,
        /// The id of the call.
        call_id: Text,
    },
    /// A result comes before that of an earlier call of the same answer.
    #[error("message {at}: the result of call `{call_id}` comes before that of an earlier call")]
    ResultOutOfOrder {
        /// The index of the result.
        at: usize,
        /// The id of its call.
        call_id: Text,
    },
    /// A result answers no call of the preceding answer, or one that has a result already.
    #[error("message {at}: no open call has the id `{call_id}`")]
    OrphanResult {
        /// The index of the result.
        at: usize,
        /// The id that it names.
        call_id: Text,
    },
    /// An answer has neither content nor calls.
    #[error("message {at}: the answer is empty")]
    EmptyAnswer {
        /// The index of the answer.
        at: usize,
    },
    /// Two user messages follow each other.
    #[error("message {at}: the user speaks twice in a row")]
    TwoUserMessages {
        /// The index of the second message.
        at: usize,
    },
}

/// Returns the defects of a transcript that a provider would reject; none if it is valid.
///
/// In a valid transcript, each answer with calls is followed by exactly one result per call, in call order. It has
/// no other results, no empty answers, and never two user messages in a row.
///
/// # Example
/// ```
/// use advisor_core::{Message, ToolCall};
/// use advisor_testkit::{TranscriptError, validate_transcript};
///
/// let asked = Message::user("How late is it?");
/// let call = Message::assistant_blocks(vec![ToolCall::new("c1", "time", "{}").into()]);
/// let defects = validate_transcript([&asked, &call]);
/// assert_eq!(defects, [TranscriptError::MissingResult { at: 2, call_id: "c1".into() }]);
/// ```
#[must_use]
pub fn validate_transcript<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<TranscriptError> {
    let mut defects = Vec::new();
    let mut waiting: VecDeque<Text> = VecDeque::new();
    let mut last = None;
    let mut end = 0;
    for (at, message) in messages.into_iter().enumerate() {
        end = at + 1;
        let role = message.role();
        if let Some(result) = message.tool_result() {
            defects.extend(take_result(&mut waiting, at, &result.call_id));
        } else if role != Role::System {
            defects.extend(waiting.drain(..).map(|call_id| TranscriptError::MissingResult { at, call_id }));
        }
        match role {
            Role::Assistant if message.is_empty_answer() => defects.push(TranscriptError::EmptyAnswer { at }),
            Role::User if last == Some(Role::User) => defects.push(TranscriptError::TwoUserMessages { at }),
            _ => {}
        }
        waiting.extend(message.tool_calls().map(|call| call.id.clone()));
        if role != Role::System {
            last = Some(role);
        }
    }
    defects.extend(waiting.into_iter().map(|call_id| TranscriptError::MissingResult { at: end, call_id }));
    defects
}

fn take_result(waiting: &mut VecDeque<Text>, at: usize, call_id: &Text) -> Option<TranscriptError> {
    match waiting.iter().position(|id| id == call_id) {
        Some(0) => {
            waiting.pop_front();
            None
        }
        Some(place) => {
            waiting.remove(place);
            Some(TranscriptError::ResultOutOfOrder { at, call_id: call_id.clone() })
        }
        None => Some(TranscriptError::OrphanResult { at, call_id: call_id.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use advisor_core::{Block, BlockContent, ToolCall, ToolResult};

    fn calls(ids: &[&str]) -> Message {
        Message::assistant_blocks(ids.iter().map(|id| Block::from(ToolCall::new(*id, "f", "{}"))).collect())
    }

    fn result(id: &str) -> Message {
        Message::tool(ToolResult::new(&ToolCall::new(id, "f", ""), vec!["ok".into()]))
    }

    #[test]
    fn a_valid_transcript_has_no_defects() {
        let valid = [
            Message::system("s"),
            Message::user("u"),
            calls(&["a", "b", "a"]),
            result("a"),
            result("b"),
            result("a"),
            Message::assistant("done"),
            Message::user("u"),
        ];
        assert_eq!(validate_transcript(&valid), []);
    }

    #[test]
    fn each_defect_is_found_at_its_place() {
        let reasoning = Message::assistant_blocks(vec![Block::new(BlockContent::Reasoning("hm".into()))]);
        let table = [
            (vec![calls(&["a"])], TranscriptError::MissingResult { at: 1, call_id: "a".into() }),
            (
                vec![calls(&["a"]), Message::user("u"), result("a")],
                TranscriptError::MissingResult { at: 1, call_id: "a".into() },
            ),
            (
                vec![calls(&["a", "b"]), result("b"), result("a")],
                TranscriptError::ResultOutOfOrder { at: 1, call_id: "b".into() },
            ),
            (vec![result("a")], TranscriptError::OrphanResult { at: 0, call_id: "a".into() }),
            (
                vec![calls(&["a"]), result("a"), result("a")],
                TranscriptError::OrphanResult { at: 2, call_id: "a".into() },
            ),
            (vec![Message::assistant(" \n")], TranscriptError::EmptyAnswer { at: 0 }),
            (vec![reasoning], TranscriptError::EmptyAnswer { at: 0 }),
            (
                vec![Message::user("u"), Message::system("s"), Message::user("u")],
                TranscriptError::TwoUserMessages { at: 2 },
            ),
        ];
        for (messages, defect) in table {
            let found = validate_transcript(&messages);
            assert_eq!(found.first(), Some(&defect), "{messages:?}");
            assert!(defect.to_string().starts_with("message "));
        }
    }
}
