//! `ConversationMap`: a value per conversation, whose bytes are counted and which is removed when unused.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use advisor_core::ConversationKey;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

/// A value for each conversation, and the sum of their weights. A value without weight is removed.
///
/// Each operation is atomic for its conversation, and no guard of the map leaves this type.
#[derive(Debug)]
pub(crate) struct ConversationMap<V> {
    values: DashMap<ConversationKey, V>,
    weight: AtomicUsize,
    /// The limit of the sum of weights. Beyond it, values are refused or evicted.
    pub(super) most: usize,
    numbers: AtomicU64,
}

pub(crate) trait Weight: Default {
    /// The default limit of the sum.
    const MOST: usize;

    /// Returns the weight: 0 if the value is unused.
    fn weight(&self) -> usize;
}

impl<V: Weight> ConversationMap<V> {
    pub(super) fn with_most(most: usize) -> Self {
        let (weight, numbers) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self { values: DashMap::new(), weight, most, numbers }
    }

    /// Changes the value of a conversation.
    pub(super) fn change<R>(&self, key: &ConversationKey, change: impl FnOnce(&mut V) -> R) -> R {
        let mut value = match self.values.entry(key.clone()) {
            Entry::Occupied(value) => value,
            Entry::Vacant(none) => none.insert_entry(V::default()),
        };
        let before = value.get().weight();
        let changed = change(value.get_mut());
        let after = value.get().weight();
        self.weight.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        if after == 0 {
            value.remove();
        }
        changed
    }

    /// Changes the value of a conversation, if it has one.
    pub(super) fn change_known(&self, key: &ConversationKey, change: impl FnOnce(&mut V)) {
        self.values.remove_if_mut(key, |_, value| {
            let before = value.weight();
            change(value);
            let after = value.weight();
            self.weight.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
            after == 0
        });
    }

    /// Reads the value of a conversation, if it has one.
    pub(super) fn read<R>(&self, key: &ConversationKey, read: impl FnOnce(&V) -> R) -> Option<R> {
        self.values.get(key).map(|value| read(&value))
    }

    /// Reads all values and collects the results.
    pub(super) fn read_all<R>(&self, read: impl Fn(&ConversationKey, &V) -> R) -> Vec<R> {
        self.values.iter().map(|value| read(value.key(), value.value())).collect()
    }

    /// Returns the sum of all weights.
    pub(super) fn weight(&self) -> usize {
        self.weight.load(Ordering::Relaxed)
    }

    /// Returns a number that is unique in this map.
    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

impl<V: Weight> Default for ConversationMap<V> {
    fn default() -> Self {
        Self::with_most(V::MOST)
    }
}
