use std::fmt;

use advisor_core::ConversationKey;

use crate::SetupError;

/// What the names of a store's keys begin with.
///
/// Stores with different prefixes on one server share nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Prefix(String);

const LONGEST: usize = 64;

impl Prefix {
    /// This prefix.
    ///
    /// # Errors
    /// [`SetupError::Prefix`] unless it has 1 to 64 characters of `A-Z`, `a-z`, `0-9`, `-`, `_`, `.` and `:`.
    /// A brace would move conversations of a cluster to other slots.
    pub fn new(prefix: &str) -> Result<Self, SetupError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        if prefix.is_empty() || prefix.len() > LONGEST || !prefix.bytes().all(allowed) {
            return Err(SetupError::Prefix);
        }
        Ok(Self(prefix.into()))
    }

    /// The prefix as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The keys of a conversation, in the order in which the scripts expect them. One tag, one slot.
    pub(crate) fn conversation(&self, key: &ConversationKey) -> Vec<String> {
        let name = |part| format!("{}:{{{}/{}}}:{part}", self.0, key.tenant(), key.conversation());
        ["meta", "log", "turns", "batches", "lease", "void", "forks"].map(name).into()
    }

    /// The keys of the index of a tenant.
    pub(crate) fn index(&self, tenant: &str) -> Vec<String> {
        ["conversations", "marks"].map(|part| format!("{}:{{{tenant}}}:{part}", self.0)).into()
    }
}

/// `advisor`.
impl Default for Prefix {
    fn default() -> Self {
        Self("advisor".into())
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// What a cluster takes of a key to find its slot: what stands between the first `{` and the first `}`
    /// after it, if that is anything. As its specification says.
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
    fn keys_of_a_conversation_share_a_tag_and_keys_of_two_share_none() {
        let prefix = Prefix::new("app:v2").unwrap();
        let (mut keys, mut tags) = (HashSet::new(), HashSet::new());
        for (tenant, conversation) in
            [("a", "b"), ("b", "a"), ("ab", "c"), ("a", "bc"), ("a-b", "c"), ("a", "a")]
        {
            let of_one = prefix.conversation(&ConversationKey::in_tenant(tenant, conversation).unwrap());
            let tag = String::from(tag(of_one.first().unwrap()));
            assert!(
                of_one.iter().all(|key| self::tag(key) == tag && key.starts_with("app:v2:")),
                "{of_one:?}"
            );
            assert!(tags.insert(tag));
            assert!(of_one.into_iter().all(|key| keys.insert(key)));
        }
        for tenant in ["a", "b", "ab"] {
            let index = prefix.index(tenant);
            assert!(index.iter().all(|key| tag(key) == tenant), "{index:?}");
            assert!(index.into_iter().all(|key| keys.insert(key)));
        }
    }
}
