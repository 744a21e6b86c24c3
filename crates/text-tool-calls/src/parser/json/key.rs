//! `Key`: the meanings of members around a call.

/// The meaning of a member of an object around a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// The name of the tool.
    Name,
    /// The name of the tool, or an object with the call in it.
    Call,
    /// A list of calls.
    Calls,
    /// The arguments, as an object or as JSON in a string.
    Arguments,
    /// The id of the call.
    Id,
    /// A known member without meaning here.
    Note,
    Unknown,
}

impl From<&str> for Key {
    fn from(name: &str) -> Self {
        match name {
            "name" | "tool_name" => Self::Name,
            "tool" | "function" | "function_call" | "tool_call" => Self::Call,
            "tool_calls" | "tools" => Self::Calls,
            "arguments" | "parameters" | "args" | "input" => Self::Arguments,
            "id" | "call_id" => Self::Id,
            "type" | "index" => Self::Note,
            _ => Self::Unknown,
        }
    }
}
