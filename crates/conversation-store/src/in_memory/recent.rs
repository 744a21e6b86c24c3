//! `Recent`: conversations in order of last use, for eviction.

use std::collections::{BTreeMap, HashMap};

use advisor_core::ConversationKey;

/// The conversations of a bounded store in the order of their last use.
#[derive(Default)]
pub(super) struct Recent {
    uses: i64,
    retired: i64,
    /// Negative for retired conversations.
    last_use: HashMap<ConversationKey, i64>,
    by_use: BTreeMap<i64, ConversationKey>,
}

impl Recent {
    pub(super) fn len(&self) -> usize {
        self.by_use.len()
    }

    /// Records a use, if the conversation is stored and not retired.
    pub(super) fn used(&mut self, key: &ConversationKey) {
        if self.last_use.get(key).is_some_and(|last| *last >= 0) {
            self.revive(key);
        }
    }

    /// Makes a conversation, if it is stored, the last used one.
    pub(super) fn revive(&mut self, key: &ConversationKey) {
        self.uses += 1;
        self.move_to(key, self.uses);
    }

    /// Makes a conversation, if it is stored, the least recently used one, whatever reads it.
    pub(super) fn retire(&mut self, key: &ConversationKey) {
        self.retired -= 1;
        self.move_to(key, self.retired);
    }

    fn move_to(&mut self, key: &ConversationKey, place: i64) {
        if let Some(last) = self.last_use.get_mut(key)
            && let Some(key) = self.by_use.remove(last)
        {
            *last = place;
            self.by_use.insert(place, key);
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
