use std::fmt;
use std::str::FromStr;

use advisor_core::{Error, Text, ToolSet, TurnId};

use super::turn::ClientCall;

/// The calls of a turn that wait for the approval of a person, for the encoder of a protocol that has approvals.
///
/// These are calls that the finished turn leaves open, of tools that are not client-side.
#[derive(Debug, Clone)]
pub struct Approvals {
    turn: TurnId,
    tools: ToolSet,
}

impl Approvals {
    /// Creates the approvals of a turn with these tools.
    #[must_use]
    pub fn new(turn: TurnId, tools: ToolSet) -> Self {
        Self { turn, tools }
    }

    /// Returns the id of the approval that a call waits for; `None` if the client runs the call.
    pub(crate) fn find(&self, call: &ClientCall) -> Option<ApprovalId> {
        let tool = self.tools.find(&call.call.name)?;
        (!tool.definition().client_side).then(|| ApprovalId::new(self.turn.clone(), call.id.clone()))
    }
}

/// Id of an approval. It names one call of a conversation: its turn, and the id under which the client knows it there.
///
/// Its text is the turn, a dot, and the id of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalId {
    turn: TurnId,
    call: Text,
}

impl ApprovalId {
    /// Creates the id of the approval of a call.
    #[must_use]
    pub fn new(turn: TurnId, call: impl Into<Text>) -> Self {
        Self { turn, call: call.into() }
    }

    /// Returns the turn that made the call.
    #[must_use]
    pub fn turn(&self) -> &TurnId {
        &self.turn
    }

    /// Returns the id of the call, as the client knows it.
    #[must_use]
    pub fn call(&self) -> &str {
        &self.call
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.turn, self.call)
    }
}

impl FromStr for ApprovalId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unread = || Error::configuration("an approval has the id of its request, which has a dot");
        let (turn, call) = text.split_once('.').ok_or_else(unread)?;
        Ok(Self::new(TurnId::new(turn)?, call))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_read_as_it_was_written() {
        let id = ApprovalId::new(TurnId::new("t-1").unwrap(), "call.1_2");
        assert_eq!(id.to_string(), "t-1.call.1_2");
        assert_eq!(id.to_string().parse::<ApprovalId>().unwrap(), id);
        for unread in ["", "t-1", ".c", "a b.c"] {
            assert!(unread.parse::<ApprovalId>().is_err(), "{unread}");
        }
    }
}
