use std::collections::{BTreeMap, HashMap};

use advisor_core::ConversationKey;

/// The conversations of a bounded store in the order of their last use.
#[derive(Default)]
pub(super) struct Recent {
    uses: u64,
    last_use: HashMap<ConversationKey, u64>,
    by_use: BTreeMap<u64, ConversationKey>,
}

impl Recent {
    pub(super) fn len(&self) -> usize {
        self.by_use.len()
    }

    /// Records a use, if the conversation is stored.
    pub(super) fn used(&mut self, key: &ConversationKey) {
        if let Some(last) = self.last_use.get_mut(key)
            && let Some(key) = self.by_use.remove(last)
        {
            self.uses += 1;
            *last = self.uses;
            self.by_use.insert(self.uses, key);
        }
    }

    /// Adds a conversation that is not stored yet.
    pub(super) fn enter(&mut self, key: ConversationKey) {
        self.uses += 1;
        self.last_use.insert(key.clone(), self.uses);
        self.by_use.insert(self.uses, key);
    }

    pub(super) fn leave(&mut self, key: &ConversationKey) {
        if let Some(last) = self.last_use.remove(key) {
            self.by_use.remove(&last);
        }
    }

    /// Iterates from the least recently used conversation to the latest.
    pub(super) fn oldest_first(&self) -> impl Iterator<Item = &ConversationKey> {
        self.by_use.values()
    }
}
