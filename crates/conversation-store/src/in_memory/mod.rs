mod entries;
mod log;
mod places;
mod recent;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{ConversationKey, TurnId, async_trait};
use tokio::time::Instant;

use crate::{
    Batch, ConversationStore, Entry, EntryId, FencingToken, Leases, Page, ReadRange, Snapshot, StoreError,
    Version,
};
use places::Places;

/// Conversations in this process's memory. Clones share them; they end with the process.
///
/// It keeps everything until it is deleted, and for each batch its key. A service that runs for long bounds it:
/// [`with_max_conversations`](Self::with_max_conversations) lets go of the conversation that was used longest ago, and
/// [`with_max_entries`](Self::with_max_entries) ends a conversation that has grown too long. What one entry holds is bounded
/// where it comes from: answers and results have their limits, and what users say has the application's.
///
/// # Ordering
/// As in the contract of [`ConversationStore`]. Loads, reads, appends and leases are uses of a conversation; lists are
/// none. A bounded store makes one append at a time.
///
/// Room is made in the moment in which another conversation is stored, and only for one that is. A conversation that is
/// held, or whose last turn is open, never makes room (memory closes the turns that it left open when there is none); one that waits for results of its caller may. One that made room is as if it was deleted: it is empty,
/// what expects a version of it is refused as [`StoreError::Gone`], and its keys are forgotten. Its fence is not: a
/// conversation that begins anew refuses every fence below the highest that was ever forgotten. So a lease whose time is
/// over may be lost with its conversation, and fences that this store did not hand out must rise over all conversations.
///
/// # Cancellation
/// Nothing waits: an append is made when it is first polled, or never.
///
/// # Errors
/// [`StoreError::Full`] for a conversation that is not there yet, if all places are taken by conversations that are held or
/// whose turn is open; [`StoreError::ConversationFull`] for a turn that would begin beyond the bound on entries. A turn that
/// has begun is always taken to its end.
///
/// # Example
/// ```
/// use std::num::NonZeroUsize;
/// use advisor_core::{ConversationKey, FinishReason, Message, TurnEnd, TurnId};
/// use conversation_store::{
///     Batch, BatchKey, ConversationStore, EntryKind, InMemoryStore, NewEntry, Page, Version,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = InMemoryStore::with_max_conversations(NonZeroUsize::MIN);
/// for name in ["ada", "bob"] {
///     let turn = TurnId::mint();
///     let said = Message::user(format!("I am {name}."));
///     let kinds = [said.into(), EntryKind::TurnEnded(TurnEnd::Completed(FinishReason::Stop))];
///     let entries = kinds.map(|kind| NewEntry::new(turn.clone(), kind)).into();
///     let batch = Batch::new(BatchKey::new(turn, 0, "input"), entries);
///     store.append(&ConversationKey::new(name)?, Version::EMPTY, batch).await?;
/// }
/// // Ada's conversation has made room.
/// let left = store.list(&Page::first("default", 9)).await?;
/// assert_eq!(left.iter().map(|key| key.conversation()).collect::<Vec<_>>(), ["bob"]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct InMemoryStore {
    places: Arc<Places>,
    most_entries: usize,
    hands_out_leases: bool,
}

impl InMemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::of(Places::default())
    }

    /// An empty store of so many conversations at the most: the one that was used longest ago, and is idle, makes room.
    ///
    /// A conversation that was only leased counts as well.
    #[must_use]
    pub fn with_max_conversations(most: NonZeroUsize) -> Self {
        Self::of(Places::bounded(most))
    }

    /// The same store, in which no turn begins in a conversation of so many entries or more.
    ///
    /// The turn that is running goes on to its end, so that a conversation has at most one turn more.
    #[must_use]
    pub fn with_max_entries(self, most: NonZeroUsize) -> Self {
        Self { most_entries: most.get(), ..self }
    }

    /// The same store, which hands out leases as if several processes shared it: for tests of what they do.
    #[must_use]
    pub fn with_leases(self) -> Self {
        Self { hands_out_leases: true, ..self }
    }

    fn of(places: Places) -> Self {
        Self { places: Arc::new(places), most_entries: usize::MAX, hands_out_leases: false }
    }
}

impl Default for InMemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl ConversationStore for InMemoryStore {
    async fn load(&self, key: &ConversationKey, view: ReadRange) -> Result<Snapshot, StoreError> {
        let log = self.places.used(key);
        Ok(log.map(|log| log.entries().snapshot(log.entries().tip(), view)).unwrap_or_default())
    }

    async fn load_branch(
        &self,
        key: &ConversationKey,
        tip: EntryId,
        view: ReadRange,
    ) -> Result<Snapshot, StoreError> {
        let log = self.places.used(key).filter(|log| log.entries().tip() >= tip);
        match log {
            Some(log) => Ok(log.entries().snapshot(tip, view)),
            None if tip == EntryId::BEGINNING => Ok(Snapshot::default()),
            None => Err(StoreError::NoSuchEntry { id: tip }),
        }
    }

    async fn read(
        &self,
        key: &ConversationKey,
        after: EntryId,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        Ok(self.places.used(key).map(|log| log.entries().page(after, limit)).unwrap_or_default())
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>, StoreError> {
        let log = self.places.used(key);
        Ok(log.map(|log| log.entries().tips()).unwrap_or_default())
    }

    async fn append(
        &self,
        key: &ConversationKey,
        expected: Version,
        batch: Batch,
    ) -> Result<Version, StoreError> {
        batch.validate()?;
        self.places.within(key, |log| log.append(expected, batch, self.most_entries))
    }

    async fn delete(&self, key: &ConversationKey) -> Result<(), StoreError> {
        self.places.delete(key);
        Ok(())
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>, StoreError> {
        let listed = |key: &ConversationKey| key.tenant() == &*page.tenant && page.after.as_ref() < Some(key);
        let _unchanged = self.places.unchanged();
        let mut keys: Vec<_> = self
            .places
            .logs()
            .iter()
            .filter(|log| log.exists())
            .map(|log| log.key().clone())
            .filter(listed)
            .collect();
        keys.sort_unstable();
        keys.truncate(page.limit);
        Ok(keys)
    }

    fn leases(&self) -> Option<&dyn Leases> {
        self.hands_out_leases.then_some(self)
    }
}

#[async_trait]
impl Leases for InMemoryStore {
    async fn acquire(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        time: Duration,
        takeover_from: Option<FencingToken>,
    ) -> Result<FencingToken, StoreError> {
        self.places.within(key, |log| {
            if let (Some(held), Some(fence)) = (log.holder(), log.fence())
                && takeover_from != Some(fence)
            {
                let remaining = held.until.saturating_duration_since(Instant::now());
                return Err(StoreError::Locked { turn: held.turn.clone(), fence, remaining });
            }
            let fence = self.places.next_fence(log.fence());
            log.hold(turn.clone(), fence, after(time));
            Ok(fence)
        })
    }

    async fn renew(
        &self,
        key: &ConversationKey,
        fence: FencingToken,
        time: Duration,
    ) -> Result<(), StoreError> {
        self.change_held(key, fence, after(time)).ok_or(StoreError::Fenced)
    }

    async fn release(&self, key: &ConversationKey, fence: FencingToken) -> Result<(), StoreError> {
        self.change_held(key, fence, Instant::now());
        Ok(())
    }
}

impl InMemoryStore {
    fn change_held(&self, key: &ConversationKey, fence: FencingToken, until: Instant) -> Option<()> {
        self.places.logs().get_mut(key)?.hold_until(fence, until)
    }
}

fn after(time: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    Instant::now() + time.min(YEAR)
}

impl fmt::Debug for InMemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemoryStore").field("conversations", &self.places.logs().len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use advisor_core::Message;

    use super::*;
    use crate::test_logs::turn;
    use crate::{BatchKey, EntryKind, NewEntry};

    #[tokio::test]
    async fn law_r1_of_a_deleted_conversation_nothing_is_kept() {
        let (store, key) = (InMemoryStore::new(), ConversationKey::new("c").unwrap());
        let said = NewEntry::new(turn("t"), EntryKind::Message(Message::user("x")));
        let batch = Batch::new(BatchKey::new(turn("t"), 0, "x"), vec![said]);
        store.append(&key, Version::EMPTY, batch).await.unwrap();
        store.delete(&key).await.unwrap();
        assert!(store.places.logs().is_empty());
    }

    #[tokio::test]
    async fn an_empty_batch_takes_no_place() {
        let most = NonZeroUsize::MIN;
        for store in [InMemoryStore::new(), InMemoryStore::with_max_conversations(most)] {
            let key = ConversationKey::new("c").unwrap();
            let nothing = Batch::new(BatchKey::new(turn("t"), 0, "x"), Vec::new());
            assert_eq!(store.append(&key, Version::EMPTY, nothing).await.unwrap(), Version::EMPTY);
            assert!(store.places.logs().is_empty());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_without_an_end_lasts_for_a_year() {
        let (store, key) = (InMemoryStore::new().with_leases(), ConversationKey::new("c").unwrap());
        store.acquire(&key, &turn("t"), Duration::MAX, None).await.unwrap();
        tokio::time::advance(Duration::from_secs(364 * 24 * 3600)).await;
        let held = store.acquire(&key, &turn("u"), Duration::ZERO, None).await;
        assert!(matches!(held, Err(StoreError::Locked { .. })), "{held:?}");
        tokio::time::advance(Duration::from_secs(24 * 3600)).await;
        store.acquire(&key, &turn("u"), Duration::ZERO, None).await.unwrap();
    }
}
