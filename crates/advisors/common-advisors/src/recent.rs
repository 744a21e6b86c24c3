//! `Recent`: the last route of each of a bounded number of conversations.

use std::collections::HashMap;
use std::mem;

use advisor_core::ConversationKey;

/// The last route of each of a bounded number of conversations.
///
/// There are two halves. If the newer one is full, it becomes the older one, whose routes are forgotten.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    newer: HashMap<ConversationKey, usize>,
    older: HashMap<ConversationKey, usize>,
}

impl Recent {
    pub(crate) fn of(&self, key: &ConversationKey) -> Option<usize> {
        self.newer.get(key).or_else(|| self.older.get(key)).copied()
    }

    /// Notes the route of a conversation; of at most `most`, which are two or more.
    pub(crate) fn note(&mut self, key: &ConversationKey, route: usize, most: usize) {
        if !self.newer.contains_key(key) && self.newer.len() >= most / 2 {
            self.older = mem::take(&mut self.newer);
        }
        self.newer.insert(key.clone(), route);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn law_r1_recent_keys_are_bounded() {
        let key = |number: usize| ConversationKey::new(&number.to_string()).unwrap();
        for most in [2, 3, 10] {
            let mut recent = Recent::default();
            for number in 0..100 {
                recent.note(&key(number), number, most);
                assert_eq!(recent.of(&key(number)), Some(number));
                assert!(recent.newer.len() + recent.older.len() <= most, "{most}");
            }
            assert!(recent.of(&key(99 - most / 2)).is_some(), "{most}");
            assert_eq!(recent.of(&key(80)), None);
        }
    }
}
