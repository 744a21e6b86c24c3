//! `TurnId` and `ConversationKey`: validated ids and their text forms.

use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Error;

/// Id of a turn and its idempotency key: the same id is the same turn.
///
/// It has 1 to 128 characters of `A-Z`, `a-z`, `0-9`, `-` and `_`. So a [`CallKey`](crate::CallKey) can be passed to
/// other systems unchanged.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TurnId(Arc<str>);

/// Key of a conversation within a tenant. Different keys never share data.
///
/// Both ids are opaque text: 1 to 512 bytes of UTF-8 without NUL, such as a path, an address or an emoji. Nothing
/// is trimmed, normalised or folded: `a` and `A` are two conversations, and so are two ways to write `é`. Stores
/// encode the ids as needed.
///
/// Its text is `tenant/conversation`. Both parts are percent-encoded, except letters, digits and ASCII punctuation
/// other than `%` and `/`. Two keys never have the same text.
///
/// # Example
/// ```
/// use advisor_core::ConversationKey;
///
/// let key = ConversationKey::new("user:42/ä")?;
/// assert_eq!(key.conversation(), "user:42/ä");
/// assert_eq!(key.to_string(), "default/user:42%2Fä");
/// # Ok::<(), advisor_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConversationKey {
    tenant: IdPart,
    conversation: IdPart,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct IdPart(Arc<str>);

/// The maximum length of a turn's id, in bytes.
const LONGEST_TURN: usize = 128;

/// The maximum length of a tenant's or a conversation's id, in bytes.
const LONGEST: usize = 512;

impl IdPart {
    fn new(what: &str, id: &str) -> Result<Self, Error> {
        // PostgreSQL allows no NUL in text, and a key has to fit every store.
        if id.is_empty() || id.len() > LONGEST || id.contains('\0') {
            return Err(Error::configuration(format!(
                "a {what} id is a text of 1 to {LONGEST} bytes without NUL; map other ids to such before passing them"
            )));
        }
        Ok(Self(Arc::from(id)))
    }
}

impl TurnId {
    /// Creates a new unique id, sortable by time.
    #[must_use]
    pub fn random() -> Self {
        Self(Arc::from(uuid::Uuid::now_v7().to_string()))
    }

    /// Creates an id from the caller's text.
    ///
    /// # Errors
    /// Unless it has 1 to 128 characters of `A-Z`, `a-z`, `0-9`, `-` and `_`.
    pub fn new(id: &str) -> Result<Self, Error> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if id.is_empty() || id.len() > LONGEST_TURN || !id.bytes().all(allowed) {
            return Err(Error::configuration(format!(
                "a turn id has 1 to {LONGEST_TURN} characters of A-Z, a-z, 0-9, `-` and `_`; map other ids to such before passing them"
            )));
        }
        Ok(Self(Arc::from(id)))
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ConversationKey {
    /// Creates the key of a conversation of the tenant `default`.
    ///
    /// # Errors
    /// Unless the id has 1 to 512 bytes and no NUL.
    pub fn new(conversation: &str) -> Result<Self, Error> {
        Self::in_tenant("default", conversation)
    }

    /// Creates the key of a conversation of a tenant.
    ///
    /// # Errors
    /// Unless both ids have 1 to 512 bytes and no NUL.
    pub fn in_tenant(tenant: &str, conversation: &str) -> Result<Self, Error> {
        Ok(Self {
            tenant: IdPart::new("tenant", tenant)?,
            conversation: IdPart::new("conversation", conversation)?,
        })
    }

    /// Returns the tenant's id.
    #[must_use]
    pub fn tenant(&self) -> &str {
        &self.tenant.0
    }

    /// Returns the conversation's id within the tenant.
    #[must_use]
    pub fn conversation(&self) -> &str {
        &self.conversation.0
    }
}

impl TryFrom<String> for TurnId {
    type Error = Error;

    fn try_from(id: String) -> Result<Self, Error> {
        Self::new(&id)
    }
}

impl TryFrom<String> for IdPart {
    type Error = Error;

    fn try_from(id: String) -> Result<Self, Error> {
        Self::new("tenant or conversation", &id)
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
        write!(f, "{}/{}", self.tenant, self.conversation)
    }
}

/// Percent-encodes `/`, `%` and all characters that a terminal or a log might interpret.
impl fmt::Display for IdPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            let is_plain = match character {
                '%' | '/' => false,
                character => character.is_ascii_graphic() || character.is_alphanumeric(),
            };
            if is_plain {
                f.write_char(character)?;
            } else {
                let mut bytes = [0; 4];
                character.encode_utf8(&mut bytes).bytes().try_for_each(|byte| write!(f, "%{byte:02X}"))?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for ConversationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConversationKey({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntoId;
    use std::collections::HashSet;

    #[test]
    fn id_accepts_up_to_512_bytes_without_nul() {
        let longest = "x".repeat(LONGEST);
        let wide = "\u{1F980}".repeat(LONGEST / 4);
        for id in
            ["a", " ", ".", "..", "user:42/ä", "{x}", "a\nb", "\u{7F}", "\u{202E}", "'\"", &longest, &wide]
        {
            let key = ConversationKey::in_tenant(id, id).unwrap();
            assert_eq!((key.tenant(), key.conversation()), (id, id));
            assert_eq!(id.into_id().unwrap(), Some(ConversationKey::new(id).unwrap()));
            let json = serde_json::to_string(&key).unwrap();
            assert_eq!(serde_json::from_str::<ConversationKey>(&json).unwrap(), key);
        }
        let (longer, wider) = (longest + "x", wide + "\u{1F980}");
        for id in ["", "\0", "a\0b", &longer, &wider] {
            for refused in [ConversationKey::new(id), ConversationKey::in_tenant(id, "c")] {
                let error = refused.unwrap_err().to_string();
                assert!(error.contains("1 to 512 bytes without NUL"), "{error}");
            }
            let json = serde_json::json!({"tenant": "t", "conversation": id});
            assert!(serde_json::from_value::<ConversationKey>(json).is_err());
        }
    }

    #[test]
    fn distinct_keys_have_distinct_plain_texts() {
        let ids =
            ["a", "A", "a/b", "b", "a%2Fb", "%", "%25", "a b", "a+b", "é", "e\u{301}", "a\nb", "\u{1B}[2J"];
        let mut texts = HashSet::new();
        for (tenant, conversation) in ids.iter().flat_map(|one| ids.map(|other| (*one, other))) {
            let text = ConversationKey::in_tenant(tenant, conversation).unwrap().to_string();
            assert_eq!(text.matches('/').count(), 1, "{text}");
            assert!(!text.contains(|character: char| character.is_control() || character.is_whitespace()));
            assert!(texts.insert(text), "{tenant:?} {conversation:?}");
        }
        let key = ConversationKey::in_tenant("acme_1", "user:42/ä b").unwrap();
        assert_eq!(key.to_string(), "acme_1/user:42%2Fä%20b");
        assert_eq!(format!("{key:?}"), "ConversationKey(acme_1/user:42%2Fä%20b)");
        assert_eq!(ConversationKey::new("e\u{301}").unwrap().to_string(), "default/e%CC%81");
    }

    #[test]
    fn ids_are_made_of_whatever_text_there_is() {
        let text = String::from("c-1");
        let key = ConversationKey::new("c-1").unwrap();
        let turn = TurnId::new("c-1").unwrap();
        let keys = ["c-1".into_id(), (&text).into_id(), text.clone().into_id(), key.clone().into_id()];
        assert!(keys.into_iter().all(|made| made.unwrap() == Some(key.clone())));
        let turns = ["c-1".into_id(), (&text).into_id(), text.into_id(), turn.clone().into_id()];
        assert!(turns.into_iter().all(|made| made.unwrap() == Some(turn.clone())));
        let longest = "x".repeat(LONGEST_TURN);
        assert!(TurnId::new(&longest).is_ok());
        for id in ["", "a b", "a/b", "ä", "a\0", &(longest + "x")] {
            assert!(TurnId::new(id).is_err(), "{id:?}");
        }
    }
}
