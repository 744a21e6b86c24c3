//! `Damaged`: logs one warning per damaged entry.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use advisor_core::ConversationKey;

use conversation_store::{EntryKind, Snapshot};

/// The damaged entries that were reported already.
#[derive(Debug, Default)]
pub(crate) struct Damaged(Mutex<HashSet<(ConversationKey, u64)>>);

/// The maximum number of them. Beyond that, the set is cleared, and entries are reported once more.
const MOST: usize = 1_024;

impl Damaged {
    /// Warns once of each damaged entry of a snapshot. The content of the entries is not logged.
    pub(crate) fn warn(&self, key: &ConversationKey, snapshot: &Snapshot) {
        for seq in self.unreported(key, snapshot) {
            tracing::warn!(
                conversation = %key,
                seq,
                "an entry of a conversation cannot be read; it stays in the store and is not sent to the model"
            );
        }
    }

    fn unreported(&self, key: &ConversationKey, snapshot: &Snapshot) -> Vec<u64> {
        let open = snapshot.open_turn.iter().flat_map(|open| &open.entries);
        let damaged: Vec<_> = snapshot
            .entries
            .iter()
            .chain(open)
            .filter(|entry| matches!(entry.kind, EntryKind::Corrupt(_)))
            .map(|entry| entry.seq)
            .collect();
        if damaged.is_empty() {
            return damaged;
        }
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() > MOST {
            reported.clear();
        }
        damaged.into_iter().filter(|seq| reported.insert((key.clone(), *seq))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_logs::{log, user};
    use conversation_store::ReadRange;

    #[test]
    fn law_r1_damaged_entries_are_reported_once_in_bounded_memory() {
        let damaged = Damaged::default();
        let entries = log(&[("t", vec![user("u").into(), EntryKind::Corrupt(b"secret".into())])]);
        let snapshot = Snapshot::from_log(&entries, ReadRange::All);
        let key = |name: &str| ConversationKey::new(name).unwrap();
        assert_eq!(damaged.unreported(&key("a"), &snapshot), [2]);
        assert_eq!(damaged.unreported(&key("a"), &snapshot), [] as [u64; 0]);
        for other in 0..3 * MOST {
            assert_eq!(damaged.unreported(&key(&format!("c{other}")), &snapshot), [2]);
            assert!(damaged.0.lock().unwrap().len() <= MOST + 1);
        }
    }
}
