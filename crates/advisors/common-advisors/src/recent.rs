//! `Recent`: the last value of each of a bounded number of keys, such as conversations.

use std::collections::HashMap;
use std::hash::Hash;

/// The last value of each of a bounded number of keys.
///
/// There are two halves. If the newer one is full, it becomes the older one, whose values are forgotten.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    newer: HashMap<K, V>,
    older: HashMap<K, V>,
}

impl<K: Clone + Eq + Hash, V> Recent<K, V> {
    pub(crate) fn of(&self, key: &K) -> Option<&V> {
        self.newer.get(key).or_else(|| self.older.get(key))
    }

    /// Notes the value of a key; of at most `most` keys.
    pub(crate) fn note(&mut self, key: &K, value: V, most: usize) {
        if most == 0 {
            return;
        }
        if let Some(known) = self.newer.get_mut(key) {
            *known = value;
            return;
        }
        if self.newer.len() >= (most / 2).max(1) {
            let full = std::mem::take(&mut self.newer);
            self.older = if most > 1 { full } else { HashMap::new() };
        }
        self.newer.insert(key.clone(), value);
    }
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self { newer: HashMap::new(), older: HashMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn law_r1_recent_keys_are_bounded() {
        for most in [1, 2, 3, 10] {
            let mut recent = Recent::default();
            for number in 0..100 {
                recent.note(&number, number, most);
                assert_eq!(recent.of(&number), Some(&number));
                assert!(recent.newer.len() + recent.older.len() <= most, "{most}");
            }
            assert_eq!(recent.of(&(99 - (most / 2).max(1))).is_some(), most > 1, "{most}");
            assert_eq!(recent.of(&80), None);
        }
        let mut none = Recent::default();
        none.note(&1, 1, 0);
        assert_eq!(none.of(&1), None);
    }
}
