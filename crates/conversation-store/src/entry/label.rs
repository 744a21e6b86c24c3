//! `EntryKind::label`: names an entry without its content, for journals and logs.

use advisor_core::MessageContent;

use super::EntryKind;

impl EntryKind {
    /// Returns a label without content, for journals and logs.
    ///
    /// Such as `user`, `assistant(c1,c2)` with the ids of its calls, `started(c1)`, `result(c1)`, `pending`, `summary` or `end`.
    #[must_use]
    pub fn label(&self) -> String {
        let message = match self {
            Self::Message(message) => message,
            Self::CallStarted(start) => return format!("started({})", start.call_id),
            Self::CallPending(_) => return "pending".into(),
            Self::TurnEnded(_) => return "end".into(),
            Self::Summary(_) => return "summary".into(),
            Self::Corrupt(_) => return "corrupt".into(),
            Self::Unknown(_) => return "unknown".into(),
        };
        match message.content() {
            MessageContent::System(_) => "system".into(),
            MessageContent::User(_) => "user".into(),
            MessageContent::Assistant(_) => {
                let calls: Vec<_> = message.tool_calls().map(|call| call.id.as_str()).collect();
                format!("assistant({})", calls.join(","))
            }
            MessageContent::Tool(result) => format!("result({})", result.call_id),
            _ => "unknown".into(),
        }
    }
}
