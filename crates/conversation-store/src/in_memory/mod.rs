//! `InMemoryStore`: the store in this process, with optional bounds and leases.

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
    Batch, ConversationStore, Entry, EntryId, FencingToken, Leases, ListOrder, Page, PageStart, ReadRange,
    Result, Snapshot, StoreError, Version,
};
use places::Places;

/// A store in this process's memory. Clones share the conversations, which end with the process.
///
/// It keeps every conversation, and the key of each batch, until it is deleted. Of a deleted conversation that was
/// leased it keeps the name and the fencing token. A long-running service should set
/// bounds: [`with_max_conversations`](Self::with_max_conversations) evicts the least recently used conversation,
/// and [`with_max_entries`](Self::with_max_entries) stops a conversation that has grown too long. The size of one
/// entry is bounded at its source: answers and results have limits, and the application limits the messages of users.
///
/// # Ordering
/// As in the contract of [`ConversationStore`]. Loads, reads, appends and leases count as uses of a conversation;
/// lists do not. A bounded store runs one append at a time.
///
/// # Eviction
/// A conversation is evicted only at the moment when a new one is stored. A conversation that is leased, or whose
/// last turn is open, is never evicted; one that waits for results from its caller may be. Memory closes
/// interrupted turns when the store is full.
///
/// An evicted conversation counts as deleted: it is empty and its keys are forgotten. An append that expects an
/// earlier version of it is refused as [`StoreError::Gone`]. Its fencing token is not forgotten: a conversation
/// that starts again refuses every token below the highest evicted one. So an expired lease may be lost with its
/// conversation. Fencing tokens from another source must increase across all conversations.
///
/// # Cancellation
/// No operation waits: an append takes effect at its first poll, or never.
///
/// # Errors
/// [`StoreError::Full`] for a new conversation if all others are leased or have an open turn.
/// [`StoreError::ConversationFull`] for a turn that would start beyond the bound on entries; a turn that has
/// started can always be finished.
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
///     let turn = TurnId::random();
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
    most_entries: Option<NonZeroUsize>,
    hands_out_leases: bool,
}

impl InMemoryStore {
    /// Creates an unbounded, empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::from_places(Places::default())
    }

    /// Creates an empty store of at most `most` conversations. When it is full, the least recently used idle
    /// conversation is evicted.
    ///
    /// A conversation that was only leased also counts. One that was leased and deleted counts too, and is evicted
    /// first.
    #[must_use]
    pub fn with_max_conversations(most: NonZeroUsize) -> Self {
        Self::from_places(Places::bounded(most))
    }

    /// Sets the number of entries from which on no new turn starts in a conversation.
    ///
    /// A running turn can finish, so a conversation exceeds the bound by at most one turn.
    #[must_use]
    pub fn with_max_entries(self, most: NonZeroUsize) -> Self {
        Self { most_entries: Some(most), ..self }
    }

    /// Enables leases, as if several processes shared the store. For tests of leases.
    #[must_use]
    pub fn with_leases(self) -> Self {
        Self { hands_out_leases: true, ..self }
    }

    fn from_places(places: Places) -> Self {
        Self { places: Arc::new(places), most_entries: None, hands_out_leases: false }
    }
}

impl Default for InMemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl ConversationStore for InMemoryStore {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot> {
        let log = self.places.used(key);
        Ok(log.map(|log| log.entries.snapshot(log.entries.tip(), range)).unwrap_or_default())
    }

    async fn load_branch(&self, key: &ConversationKey, tip: EntryId, range: ReadRange) -> Result<Snapshot> {
        let log = self.places.used(key).filter(|log| log.entries.tip() >= tip);
        match log {
            Some(log) => Ok(log.entries.snapshot(tip, range)),
            None if tip == EntryId::BEGINNING => Ok(Snapshot::default()),
            None => Err(StoreError::NoSuchEntry { id: tip }),
        }
    }

    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        Ok(self.places.used(key).map(|log| log.entries.page(after, limit)).unwrap_or_default())
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>> {
        let log = self.places.used(key);
        Ok(log.map(|log| log.entries.tips()).unwrap_or_default())
    }

    async fn append(&self, key: &ConversationKey, expected: Version, batch: Batch) -> Result<Version> {
        batch.validate()?;
        self.places.within(key, |log| log.append(expected, batch, self.most_entries))
    }

    async fn delete(&self, key: &ConversationKey) -> Result {
        self.places.delete(key);
        Ok(())
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>> {
        let start = page.start();
        let listed = |key: &ConversationKey| {
            let is_behind = match (start, page.order) {
                (PageStart::Beginning, _) => true,
                (PageStart::After(after), ListOrder::Ascending) => key.conversation() > after,
                (PageStart::After(after), ListOrder::Descending) => key.conversation() < after,
                (PageStart::End, _) => false,
            };
            is_behind && key.tenant() == &*page.tenant
        };
        let _unchanged = self.places.unchanged();
        let mut keys: Vec<_> = self
            .places
            .logs()
            .iter()
            .filter(|log| log.entries.exist())
            .map(|log| log.key().clone())
            .filter(listed)
            .collect();
        keys.sort_unstable();
        if page.order == ListOrder::Descending {
            keys.reverse();
        }
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
        ttl: Duration,
        takeover_from: Option<FencingToken>,
    ) -> Result<FencingToken> {
        self.lease(key, turn, ttl, takeover_from, false)
    }

    async fn acquire_in_turn(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        ttl: Duration,
        takeover_from: Option<FencingToken>,
    ) -> Result<FencingToken> {
        self.lease(key, turn, ttl, takeover_from, true)
    }

    async fn renew(&self, key: &ConversationKey, token: FencingToken, ttl: Duration) -> Result {
        self.change_held(key, token, after(ttl)).ok_or(StoreError::Fenced)
    }

    async fn release(&self, key: &ConversationKey, token: FencingToken) -> Result {
        self.change_held(key, token, Instant::now());
        Ok(())
    }
}

impl InMemoryStore {
    /// Requests the lease. If `waits` and it is refused, the turn takes or keeps a place in the queue.
    fn lease(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        ttl: Duration,
        takeover_from: Option<FencingToken>,
        waits: bool,
    ) -> Result<FencingToken> {
        self.places.within(key, |log| {
            let now = Instant::now();
            log.may_hold(turn, takeover_from, waits, (now, self.places.since_start(now)))?;
            let token = self.places.next_token(log.token);
            log.hold(turn.clone(), token, after(ttl));
            Ok(token)
        })
    }

    fn change_held(&self, key: &ConversationKey, token: FencingToken, until: Instant) -> Option<()> {
        self.places.logs().get_mut(key)?.hold_until(token, until)
    }
}

fn after(ttl: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    Instant::now() + ttl.min(YEAR)
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
    async fn lease_without_end_lasts_one_year() {
        let (store, key) = (InMemoryStore::new().with_leases(), ConversationKey::new("c").unwrap());
        store.acquire(&key, &turn("t"), Duration::MAX, None).await.unwrap();
        tokio::time::advance(Duration::from_secs(364 * 24 * 3600)).await;
        let held = store.acquire(&key, &turn("u"), Duration::ZERO, None).await;
        assert!(matches!(held, Err(StoreError::Locked { .. })), "{held:?}");
        tokio::time::advance(Duration::from_secs(24 * 3600)).await;
        store.acquire(&key, &turn("u"), Duration::ZERO, None).await.unwrap();
    }
}
