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

    /// Notes the value of a key; of at most `most` keys, of which there are two or more.
    pub(crate) fn note(&mut self, key: &K, value: V, most: usize) {
        if let Some(known) = self.newer.get_mut(key) {
            *known = value;
            return;
        }
        if self.newer.len() >= most / 2 {
            self.older = std::mem::take(&mut self.newer);
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
        for most in [2, 3, 10] {
            let mut recent = Recent::default();
            for number in 0..100 {
                recent.note(&number, number, most);
                assert_eq!(recent.of(&number), Some(&number));
                assert!(recent.newer.len() + recent.older.len() <= most, "{most}");
            }
            assert!(recent.of(&(99 - most / 2)).is_some(), "{most}");
            assert_eq!(recent.of(&80), None);
        }
    }
}
