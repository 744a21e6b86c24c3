//! `Prefix`: the names of all keys, with percent-encoded ids and one hash tag per conversation.

use std::fmt::Write as _;

use advisor_core::ConversationKey;

use crate::failure::SetupError;

/// The checked prefix of a store's keys.
#[derive(Clone)]
pub(crate) struct Prefix(String);

const LONGEST: usize = 64;

impl Prefix {
    pub(crate) fn new(prefix: &str) -> Result<Self, SetupError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        if prefix.is_empty() || prefix.len() > LONGEST || !prefix.bytes().all(allowed) {
            return Err(SetupError::Prefix);
        }
        Ok(Self(prefix.into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the keys of a conversation in the order that the scripts expect.
    pub(crate) fn conversation(&self, key: &ConversationKey) -> Vec<String> {
        ["meta", "log", "turns", "batches", "lease", "void", "forks"].map(|part| self.key(key, part)).into()
    }

    /// Returns a key of a conversation. All of them share one hash tag, hence one slot.
    pub(crate) fn key(&self, key: &ConversationKey, part: &str) -> String {
        let (tenant, conversation) = (encoded(key.tenant()), encoded(key.conversation()));
        format!("{}:{{{tenant}/{conversation}}}:{part}", self.0)
    }

    /// Returns the keys of a tenant's index.
    pub(crate) fn index(&self, tenant: &str) -> Vec<String> {
        let tenant = encoded(tenant);
        ["conversations", "marks"].map(|part| format!("{}:{{{tenant}}}:{part}", self.0)).into()
    }

    /// Returns a key that no tenant or conversation has, since no encoded id contains `/`.
    pub(crate) fn probe(&self) -> String {
        format!("{}:{{/}}:probe", self.0)
    }
}

/// Percent-encodes an id, so that it contains neither a brace, which would change the slot, nor a `/`. Letters,
/// digits, `-` and `_` stay unchanged.
fn encoded(id: &str) -> String {
    let mut encoded = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            write!(encoded, "%{byte:02X}").unwrap_or_default();
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Returns the part of a key that selects its cluster slot, by the cluster specification.
    ///
    /// It is the text between the first `{` and the next `}`, if that is not empty.
    fn tag(key: &str) -> &str {
        let inner = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
        inner.filter(|tag| !tag.is_empty()).unwrap_or(key)
    }

    #[test]
    fn prefixes_that_would_change_the_slot_are_refused() {
        let longest = "a".repeat(LONGEST);
        for prefix in ["advisor", "app:v2", "a.b_c-D9", longest.as_str()] {
            assert_eq!(Prefix::new(prefix).unwrap().as_str(), prefix);
        }
        let longer = "a".repeat(LONGEST + 1);
        for prefix in ["", "{", "a}", "{a}", "a b", "a*", "a/b", "ä", "a\0", "a\n", longer.as_str()] {
            assert!(matches!(Prefix::new(prefix), Err(SetupError::Prefix)), "{prefix}");
        }
    }

    #[test]
    fn probe_key_belongs_to_no_conversation() {
        let prefix = Prefix::new("advisor").unwrap();
        let probe = prefix.probe();
        for id in ["/", "%2F", "probe"] {
            let conversation = prefix.conversation(&ConversationKey::in_tenant(id, id).unwrap());
            assert!(!conversation.contains(&probe) && !prefix.index(id).contains(&probe), "{id}");
        }
    }

    #[test]
    fn law_m5_only_keys_of_same_conversation_share_tag() {
        let prefix = Prefix::new("app:v2").unwrap();
        let (mut keys, mut tags) = (HashSet::new(), HashSet::new());
        for (tenant, conversation) in [
            ("a", "b"),
            ("b", "a"),
            ("ab", "c"),
            ("a", "bc"),
            ("a-b", "c"),
            ("a", "a"),
            ("a/b", "c"),
            ("a", "b/c"),
            ("{a}", "b"),
            ("}", "{"),
            ("a", "%41"),
            ("a", "A"),
            ("%", "25"),
            ("%25", "%"),
            ("a", "\u{1F980}"),
            ("a", "é"),
            ("a", "e\u{301}"),
        ] {
            let of_one = prefix.conversation(&ConversationKey::in_tenant(tenant, conversation).unwrap());
            let tag = String::from(tag(of_one.first().unwrap()));
            assert!(
                of_one.iter().all(|key| self::tag(key) == tag && key.starts_with("app:v2:")),
                "{of_one:?}"
            );
            assert!(tags.insert(tag));
            assert!(of_one.into_iter().all(|key| keys.insert(key)));
        }
        for tenant in ["a", "b", "ab", "a/b", "{a}", "}", "%", "%25", "a{"] {
            let index = prefix.index(tenant);
            assert!(index.iter().all(|key| tag(key) == encoded(tenant)), "{index:?}");
            assert!(index.into_iter().all(|key| keys.insert(key)));
        }
    }

    #[test]
    fn key_names_from_restricted_ids_stay_unchanged() {
        let (prefix, key) =
            (Prefix::new("advisor").unwrap(), ConversationKey::in_tenant("Acme_1", "c-2").unwrap());
        let names = prefix.conversation(&key);
        assert_eq!(names[0], "advisor:{Acme_1/c-2}:meta");
        assert_eq!(names.last().unwrap(), "advisor:{Acme_1/c-2}:forks");
        assert_eq!(prefix.index("Acme_1"), ["advisor:{Acme_1}:conversations", "advisor:{Acme_1}:marks"]);
        let key = ConversationKey::new("user:42/ä").unwrap();
        assert_eq!(prefix.conversation(&key)[1], "advisor:{default/user%3A42%2F%C3%A4}:log");
    }
}
