//! Reading of a conversation: `Registry::load` reads a larger part until it shows enough, `find_in_log` searches.

use advisor_core::{ConversationKey, Error};
use conversation_store::{ConversationStore, Entry, EntryId, ReadRange, Snapshot, StoreError};

use crate::conversation::Registry;
use crate::conversation::unfinished_turn::UnfinishedTurn;
use crate::transcript::window::Measure;

/// The number of entries that are searched at once.
const PAGE: usize = 256;

/// The factor by which a read grows if it does not show enough.
const GROWTH: usize = 4;

impl Registry {
    /// Returns the range to read first for a window: everything if an unfinished turn has an end that replaces one in
    /// the log.
    pub(crate) fn first_range(&self, key: &ConversationKey, measure: &Measure) -> ReadRange {
        let is_replaced = self.unfinished_in(key).iter().any(UnfinishedTurn::overrides);
        if is_replaced { ReadRange::All } else { measure.first_range() }
    }

    /// Reads a branch: the one up to `tip`, or the one written last. `see` gets this range of it, and larger ones, until
    /// it returns that it has seen enough, or has seen everything.
    ///
    /// # Errors
    /// Those of the store, for a turn whose conversation cannot be loaded.
    pub(crate) async fn load<T>(
        &self,
        store: &dyn ConversationStore,
        key: &ConversationKey,
        tip: Option<EntryId>,
        mut range: ReadRange,
        mut see: impl FnMut(Snapshot) -> (T, bool),
    ) -> Result<T, Error> {
        loop {
            let snapshot = match tip {
                None => store.load(key, range).await,
                Some(tip) => store.load_branch(key, tip, range).await,
            };
            let snapshot = snapshot.map_err(StoreError::into_load_error)?;
            self.warn_of_damage(key, &snapshot);
            let larger = match range {
                ReadRange::LastEntries(count) => ReadRange::LastEntries(count.saturating_mul(GROWTH)),
                ReadRange::LastTurns(count) => ReadRange::LastTurns(count.saturating_mul(GROWTH)),
                // Everything is read, or the range is of a newer kind.
                range => range,
            };
            // Damaged data may lack their beginning, so a range may not grow until the first entry is read.
            let is_all = snapshot.is_whole() || larger == range;
            match see(snapshot) {
                (seen, is_enough) if is_enough || is_all => return Ok(seen),
                _ => range = larger,
            }
        }
    }
}

/// Searches the log after an entry, on all branches.
pub(crate) async fn find_in_log<T>(
    store: &dyn ConversationStore,
    key: &ConversationKey,
    mut after: EntryId,
    find: impl Fn(&Entry) -> Option<T>,
) -> Result<Option<T>, Error> {
    loop {
        let page = store.read(key, after, PAGE).await.map_err(StoreError::into_load_error)?;
        let (found, last) = (page.iter().find_map(&find), page.get(PAGE - 1));
        match last.filter(|_| found.is_none()) {
            Some(last) => after = EntryId::new(last.seq),
            None => return Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use conversation_store::{Batch, BatchKey, InMemoryStore, NewEntry, Version};

    use super::*;
    use crate::tests::{turn, user};

    #[tokio::test]
    async fn search_of_log_reads_all_pages() {
        let (store, key) = (InMemoryStore::new(), ConversationKey::new("c").unwrap());
        let entries =
            (0..2 * PAGE + 1).map(|number| NewEntry::new(turn("t"), user(&number.to_string()).into()));
        let batch = Batch::new(BatchKey::for_input(turn("t")), entries.collect());
        store.append(&key, Version::new(0), batch).await.unwrap();
        let first_after = |after: u64, least: u64| {
            find_in_log(&store, &key, EntryId::new(after), move |entry| {
                Some(entry.seq).filter(|seq| *seq >= least)
            })
        };
        let all = 2 * PAGE as u64 + 1;
        assert_eq!(first_after(0, all).await.unwrap(), Some(all), "it is on the third page");
        assert_eq!(first_after(3, 1).await.unwrap(), Some(4), "the first one behind the given entry");
        assert_eq!(first_after(0, all + 1).await.unwrap(), None);
        assert_eq!(first_after(PAGE as u64 + 1, all + 1).await.unwrap(), None, "the last page is full");
    }
}
