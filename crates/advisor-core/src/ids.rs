use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Error;

/// Names a turn; also its idempotency key: the same id is the same turn.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TurnId(Arc<str>);

/// Names a conversation within a tenant. Different keys never share anything.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConversationKey {
    tenant: IdPart,
    conversation: IdPart,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct IdPart(Arc<str>);

const LONGEST: usize = 128;

fn checked(what: &str, id: &str) -> Result<Arc<str>, Error> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if id.is_empty() || id.len() > LONGEST || !id.bytes().all(allowed) {
        return Err(Error::configuration(format!(
            "a {what} id has 1 to {LONGEST} characters of A-Z, a-z, 0-9, `-` and `_`; map other ids to such before passing them"
        )));
    }
    Ok(Arc::from(id))
}

impl TurnId {
    /// A new id that no other turn has, sortable by time.
    #[must_use]
    pub fn mint() -> Self {
        Self(Arc::from(uuid::Uuid::now_v7().to_string()))
    }

    /// A turn id of the caller's.
    ///
    /// # Errors
    /// Unless it has 1 to 128 characters of `A-Z`, `a-z`, `0-9`, `-` and `_`.
    pub fn new(id: &str) -> Result<Self, Error> {
        checked("turn", id).map(Self)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ConversationKey {
    /// A conversation of the unnamed tenant.
    ///
    /// # Errors
    /// Unless the id has 1 to 128 characters of `A-Z`, `a-z`, `0-9`, `-` and `_`.
    pub fn new(conversation: &str) -> Result<Self, Error> {
        Self::in_tenant("default", conversation)
    }

    /// A conversation of a tenant.
    ///
    /// # Errors
    /// Unless both ids have 1 to 128 characters of `A-Z`, `a-z`, `0-9`, `-` and `_`.
    pub fn in_tenant(tenant: &str, conversation: &str) -> Result<Self, Error> {
        Ok(Self {
            tenant: IdPart(checked("tenant", tenant)?),
            conversation: IdPart(checked("conversation", conversation)?),
        })
    }

    /// The tenant's id.
    #[must_use]
    pub fn tenant(&self) -> &str {
        &self.tenant.0
    }

    /// The conversation's id within the tenant.
    #[must_use]
    pub fn conversation(&self) -> &str {
        &self.conversation.0
    }
}

impl TryFrom<&str> for ConversationKey {
    type Error = Error;

    fn try_from(conversation: &str) -> Result<Self, Error> {
        Self::new(conversation)
    }
}

impl TryFrom<String> for TurnId {
    type Error = Error;

    fn try_from(id: String) -> Result<Self, Error> {
        Self::new(&id)
    }
}

impl TryFrom<&str> for TurnId {
    type Error = Error;

    fn try_from(id: &str) -> Result<Self, Error> {
        Self::new(id)
    }
}

impl TryFrom<String> for IdPart {
    type Error = Error;

    fn try_from(id: String) -> Result<Self, Error> {
        checked("conversation", &id).map(Self)
    }
}

impl From<TurnId> for String {
    fn from(id: TurnId) -> Self {
        Self::from(&*id.0)
    }
}

impl From<IdPart> for String {
    fn from(id: IdPart) -> Self {
        Self::from(&*id.0)
    }
}

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TurnId({})", self.0)
    }
}

impl fmt::Display for ConversationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant(), self.conversation())
    }
}

impl fmt::Debug for ConversationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConversationKey({self})")
    }
}
