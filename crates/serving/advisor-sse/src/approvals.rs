//! `Approvals`: the calls of a turn that wait for a person. `ApprovalId`.

use std::fmt;
use std::str::FromStr;

use advisor_core::{CallKey, ClientSideCall, ConversationKey, Error, Text, ToolCall, ToolSet, TurnId};
use sha2::{Digest, Sha256};

use crate::turn::ClientCall;

/// The calls of a turn that wait for the approval of a person, for the encoder of a protocol that has approvals.
///
/// These are calls that the finished turn leaves open, of tools that are not client-side.
#[derive(Debug, Clone)]
pub struct Approvals {
    conversation: ConversationKey,
    turn: TurnId,
    tools: ToolSet,
}

impl Approvals {
    /// Creates the approvals of a turn with these tools.
    #[must_use]
    pub fn new(conversation: ConversationKey, turn: TurnId, tools: ToolSet) -> Self {
        Self { conversation, turn, tools }
    }

    /// Returns the id of the approval that a call waits for; `None` if the client runs the call.
    pub(crate) fn find(&self, open: &ClientCall) -> Option<ApprovalId> {
        let ClientCall { block, id, call, position } = open;
        let tool = self.tools.find(&call.name)?;
        let key = CallKey::new(self.turn.clone(), block.round, *position);
        (!tool.definition().client_side).then(|| ApprovalId {
            key,
            digest: digest(&self.conversation, call, id),
            call: id.clone(),
        })
    }
}

/// Id of an approval. It is bound to one call: its conversation, key, tool and exact arguments. An id that a client has
/// changed names no call.
///
/// Its text is the key of the call, a digest, and the id under which the client knows the call, with dots in between.
///
/// # Example
/// ```
/// use advisor_core::{ClientSideCall, ConversationKey, Decision, Error};
/// use advisor_sse::ApprovalId;
///
/// /// Returns the decision about the call that an approval names, among those that the conversation waits for.
/// fn approve(id: &str, key: &ConversationKey, pending: &[ClientSideCall]) -> Result<Option<Decision>, Error> {
///     let id: ApprovalId = id.parse()?;
///     pending.iter().find(|call| id.names(key, call)).map(ClientSideCall::approve).transpose()
/// }
/// # assert!(approve("c1", &ConversationKey::new("c1")?, &[]).is_err());
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalId {
    key: CallKey,
    digest: String,
    call: Text,
}

impl ApprovalId {
    /// Checks whether it is the id of the approval of this call.
    #[must_use]
    pub fn names(&self, conversation: &ConversationKey, open: &ClientSideCall) -> bool {
        self.is_of(open) && self.digest == digest(conversation, &open.call, &self.call)
    }

    /// Checks whether it may be the id of the approval of this call, without reading the arguments.
    #[must_use]
    pub fn is_of(&self, open: &ClientSideCall) -> bool {
        open.key.as_ref() == Some(&self.key)
    }

    /// Returns the id of the call, as the client knows it.
    #[must_use]
    pub fn call(&self) -> &str {
        &self.call
    }
}

/// Returns a digest of what a person approves, and of the id under which the client knows the call. The lengths keep the
/// parts apart.
fn digest(conversation: &ConversationKey, call: &ToolCall, shown_id: &str) -> String {
    let mut hash = Sha256::new();
    for part in [conversation.to_string().as_str(), &call.name, &call.arguments, shown_id] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallKey { turn, round, position, .. } = &self.key;
        write!(f, "{turn}.{round}.{position}.{}.{}", self.digest, self.call)
    }
}

impl FromStr for ApprovalId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unread = || Error::configuration("the id of an approval is that of its request, unchanged");
        let mut parts = text.splitn(5, '.');
        let mut part = || parts.next().ok_or_else(unread);
        let turn = TurnId::new(part()?).map_err(|_| unread())?;
        let (round, position) = (part()?.parse(), part()?.parse());
        let key = CallKey::new(turn, round.map_err(|_| unread())?, position.map_err(|_| unread())?);
        Ok(Self { key, digest: part()?.into(), call: part()?.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(conversation: &str, call: &ToolCall) -> ApprovalId {
        let key = CallKey::new(TurnId::new("t-1").unwrap(), 2, 1);
        let conversation = ConversationKey::new(conversation).unwrap();
        ApprovalId { key, digest: digest(&conversation, call, "call.1_2"), call: "call.1_2".into() }
    }

    #[test]
    fn id_is_read_as_it_was_written() {
        let id = id_of("c", &ToolCall::new("call.1", "pay", "{}"));
        assert_eq!(id.to_string().parse::<ApprovalId>().unwrap(), id);
        for unread in ["", "t-1", ".1.1.d.c", "a b.1.1.d.c", "t.x.1.d.c", "t.1.-1.d.c", "t.1.1.d"] {
            let error = unread.parse::<ApprovalId>().unwrap_err().to_string();
            assert!(error.contains("the id of an approval"), "{unread}: {error}");
        }
    }

    /// An approval of one cent approves no other sum, and nothing in another conversation.
    #[test]
    fn law_t6_approval_names_one_call() {
        let call = |arguments: &str| ToolCall::new("call.1", "pay", arguments);
        let open = |position, call| {
            let key = Some(CallKey::new(TurnId::new("t-1").unwrap(), 2, position));
            ClientSideCall { key, call, started: false, definition: None }
        };
        let id = id_of("c", &call("{}"));
        let key = ConversationKey::new("c").unwrap();
        assert!(id.names(&key, &open(1, call("{}"))));
        assert!(!id.names(&key, &open(1, call("{ }"))));
        assert!(!id.names(&key, &open(0, call("{}"))));
        assert!(!id.names(&key, &open(1, ToolCall::new("call.1", "refund", "{}"))));
        assert!(!id.names(&ConversationKey::in_tenant("other", "c").unwrap(), &open(1, call("{}"))));
        assert!(
            !id.names(
                &key,
                &ClientSideCall { key: None, call: call("{}"), started: false, definition: None }
            )
        );
        let changed = ApprovalId { call: "call.1".into(), ..id };
        assert!(!changed.names(&key, &open(1, call("{}"))));
    }
}
