//! `InMemoryStore`: the store in this process, with leases on request.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use advisor_core::{ConversationKey, TurnId, async_trait};
use dashmap::DashMap;
use tokio::time::Instant;

use crate::{
    Admission, AppliedBatch, Batch, BatchKey, BranchIndex, ConversationStore, Entry, EntryId, FencingToken,
    Leases, ListOrder, LogState, NewEntry, Page, ReadRange, Result, Snapshot, StoreError, Version, admit,
};

/// A store in this process's memory. Clones share the conversations, which end with the process.
///
/// It keeps every conversation, and the key of each batch, until it is deleted. Of a deleted conversation that was
/// leased it keeps the name and the fencing token. It has no bounds: a service that runs long deletes what it no
/// longer needs, or uses another store.
///
/// # Ordering
/// As in the contract of [`ConversationStore`].
///
/// # Cancellation
/// No operation waits: an append takes effect at its first poll, or never.
///
/// # Errors
/// Those of the contract. It is never unavailable.
///
/// # Example
/// See [`ConversationStore`].
#[derive(Clone, Default)]
pub struct InMemoryStore {
    logs: Arc<DashMap<ConversationKey, Log>>,
    hands_out_leases: bool,
}

impl InMemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Enables leases, as if several processes shared the store. For tests of leases.
    #[must_use]
    pub fn with_leases(self) -> Self {
        Self { hands_out_leases: true, ..self }
    }

    /// Runs `work` on a conversation's log. A new log is kept only if it has something.
    fn within<T>(&self, key: &ConversationKey, work: impl FnOnce(&mut Log) -> Result<T>) -> Result<T> {
        let done = work(&mut self.logs.entry(key.clone()).or_default());
        self.logs.remove_if(key, |_, log| log.is_blank());
        done
    }
}

#[async_trait]
impl ConversationStore for InMemoryStore {
    async fn load(&self, key: &ConversationKey, range: ReadRange) -> Result<Snapshot> {
        Ok(self.logs.get(key).map(|log| log.snapshot(log.tip(), range)).unwrap_or_default())
    }

    async fn load_branch(&self, key: &ConversationKey, tip: EntryId, range: ReadRange) -> Result<Snapshot> {
        match self.logs.get(key).filter(|log| log.tip() >= tip) {
            Some(log) => Ok(log.snapshot(tip, range)),
            None if tip == EntryId::BEGINNING => Ok(Snapshot::default()),
            None => Err(StoreError::NoSuchEntry { id: tip }),
        }
    }

    async fn read(&self, key: &ConversationKey, after: EntryId, limit: usize) -> Result<Vec<Entry>> {
        let from = usize::try_from(after.0).unwrap_or(usize::MAX);
        let page = |log: &Log| log.entries.iter().skip(from).take(limit).cloned().collect();
        Ok(self.logs.get(key).map(|log| page(&log)).unwrap_or_default())
    }

    async fn branches(&self, key: &ConversationKey) -> Result<Vec<EntryId>> {
        Ok(self.logs.get(key).map(|log| log.forks.tips(log.tip().0)).unwrap_or_default())
    }

    async fn append(&self, key: &ConversationKey, expected: Version, batch: Batch) -> Result<Version> {
        batch.entries.iter().try_for_each(|new| new.kind.validate())?;
        self.within(key, |log| log.append(expected, batch))
    }

    async fn delete(&self, key: &ConversationKey) -> Result {
        self.within(key, |log| {
            (log.entries, log.forks, log.batches) = Default::default();
            Ok(())
        })
    }

    async fn list(&self, page: &Page) -> Result<Vec<ConversationKey>> {
        let Some(after) = page.start() else { return Ok(Vec::new()) };
        let listed = |key: &ConversationKey| {
            let is_behind = match page.order {
                ListOrder::Ascending => key.conversation() > after,
                ListOrder::Descending => after.is_empty() || key.conversation() < after,
            };
            is_behind && key.tenant() == &*page.tenant
        };
        let exist = self.logs.iter().filter(|log| !log.entries.is_empty());
        let mut keys: Vec<_> = exist.map(|log| log.key().clone()).filter(listed).collect();
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
        waits: bool,
    ) -> Result<FencingToken> {
        self.within(key, |log| {
            log.may_hold(turn, takeover_from, waits)?;
            let token = FencingToken(log.token.map_or(1, |last| last.0.saturating_add(1)));
            (log.token, log.held) = (Some(token), Some(Held { turn: turn.clone(), until: after(ttl) }));
            Ok(token)
        })
    }

    async fn renew(&self, key: &ConversationKey, token: FencingToken, ttl: Duration) -> Result {
        let mut log = self.logs.get_mut(key).filter(|log| log.token == Some(token));
        let held = log.as_mut().and_then(|log| log.held.as_mut());
        held.ok_or(StoreError::Fenced)?.until = after(ttl);
        Ok(())
    }
}

fn after(ttl: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    Instant::now() + ttl.min(YEAR)
}

impl fmt::Debug for InMemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemoryStore").field("conversations", &self.logs.len()).finish()
    }
}

/// One conversation: the entries of all branches, the batches by their keys, and the lease.
#[derive(Default)]
struct Log {
    entries: Vec<Entry>,
    forks: BranchIndex,
    /// The position of each batch's entries.
    batches: HashMap<BatchKey, Range<usize>>,
    /// The highest token that was issued, or used by an append.
    token: Option<FencingToken>,
    held: Option<Held>,
    waiting: WaitingTurns,
}

struct Held {
    turn: TurnId,
    until: Instant,
}

impl Log {
    /// Returns whether there is nothing to keep.
    fn is_blank(&self) -> bool {
        self.entries.is_empty() && self.token.is_none()
    }

    fn version(&self) -> Version {
        Version::EMPTY.after(self.entries.len())
    }

    /// Returns the last entry.
    fn tip(&self) -> EntryId {
        EntryId(self.version().0)
    }

    fn snapshot(&self, tip: EntryId, range: ReadRange) -> Snapshot {
        Snapshot::along(&self.entries, &self.forks.path(tip), range)
    }

    fn append(&mut self, expected: Version, batch: Batch) -> Result<Version> {
        let state = LogState {
            version: self.version(),
            token: self.token,
            last_turn: self.entries.last().map_or(&[], |last| last.turn.as_str().as_bytes()),
            applied: self.batches.get(&batch.key).map(|range| self.applied(range, &batch)),
        };
        if let Admission::Done(version) = admit(&state, expected, &batch)? {
            return Ok(version);
        }
        self.token = batch.token.or(self.token);
        let (from, current) = (self.entries.len(), self.version());
        let first = current.0.saturating_add(1);
        if let Some(parent) = batch.fork_at(current) {
            self.forks.insert(first, parent);
        }
        for (seq, new) in (first..).zip(batch.entries) {
            let parent = self.forks.parent_of(seq);
            // Other stores keep the round with a message, and nowhere else.
            let round = new.round.filter(|_| new.kind.as_message().is_some());
            self.entries.push(Entry { seq, turn: new.turn, parent, kind: new.kind, round });
        }
        self.batches.insert(batch.key, from..self.entries.len());
        Ok(self.version())
    }

    /// Compares a batch with the one that was applied at this position.
    fn applied(&self, range: &Range<usize>, batch: &Batch) -> AppliedBatch {
        let written = self.entries.get(range.clone()).unwrap_or_default();
        let same = |(old, new): (&Entry, &NewEntry)| old.turn == new.turn && old.kind == new.kind;
        AppliedBatch {
            before: Version::EMPTY.after(range.start),
            after: Version::EMPTY.after(range.end),
            parent: written.first().and_then(|first| first.parent),
            same_entries: written.iter().zip(&batch.entries).all(same),
        }
    }

    /// Checks whether a turn may acquire the lease. If it may not and `waits`, it takes a place in the queue.
    fn may_hold(&mut self, turn: &TurnId, takeover_from: Option<FencingToken>, waits: bool) -> Result {
        let now = Instant::now();
        self.waiting.0.retain(|place| place.until > now);
        // Without a lease, the conversation has no token that could be taken over.
        let takes_over = self.held.is_some() && takeover_from.is_some() && takeover_from == self.token;
        let held = self.held.as_ref();
        let passes = takes_over && held.is_some_and(|held| held.turn == *turn);
        let busy = match held.filter(|held| held.until > now && !takes_over) {
            Some(held) => Some((held.turn.clone(), held.until)),
            None if passes => None,
            None => self.waiting.ahead_of(turn, takes_over, now).map(|(turn, until)| (turn.clone(), until)),
        };
        let Some((by, until)) = busy else {
            self.waiting.0.retain(|place| place.turn != *turn);
            return Ok(());
        };
        if waits {
            self.waiting.wait(turn, now);
        }
        // A turn waits only where a lease was issued.
        let token = self.token.unwrap_or(FencingToken(0));
        Err(StoreError::Locked { turn: by, token, remaining: until.saturating_duration_since(now) })
    }
}

/// The turns that wait for a lease, in the order in which they came. A refused request of a turn that waits takes a
/// place at the end, and each further one keeps it. A free lease goes to the first place.
#[derive(Default)]
struct WaitingTurns(Vec<Place>);

struct Place {
    turn: TurnId,
    since: Instant,
    until: Instant,
}

impl WaitingTurns {
    /// The time for which a request keeps a place. A turn that is gone delays those behind it by this time.
    const LASTS: Duration = Duration::from_secs(3);

    /// The time for which other turns may pass a waiting one by a takeover.
    const PASSED_FOR: Duration = Duration::from_secs(10);

    /// The number of places of a conversation. Further turns wait without order until one is free.
    const MOST: usize = 100;

    /// Returns the first place that this turn has to let go first: its turn, and its end. `takes_over` says whether
    /// the turn takes over the lease of another turn.
    fn ahead_of(&self, turn: &TurnId, takes_over: bool, now: Instant) -> Option<(&TurnId, Instant)> {
        let first = self.0.first().filter(|first| first.turn != *turn)?;
        let is_passed = takes_over && now.saturating_duration_since(first.since) < Self::PASSED_FOR;
        (!is_passed).then_some((&first.turn, first.until))
    }

    /// Takes or keeps the place of a turn whose request was refused.
    fn wait(&mut self, turn: &TurnId, now: Instant) {
        let until = now + Self::LASTS;
        if let Some(place) = self.0.iter_mut().find(|place| place.turn == *turn) {
            place.until = until;
        } else if self.0.len() < Self::MOST {
            self.0.push(Place { turn: turn.clone(), since: now, until });
        }
    }
}

#[cfg(test)]
mod tests {
    use advisor_core::Message;

    use super::*;
    use crate::EntryKind;
    use crate::tests::turn;

    #[tokio::test]
    async fn law_r1_of_a_deleted_conversation_nothing_is_kept() {
        let (store, key) = (InMemoryStore::new(), ConversationKey::new("c").unwrap());
        let said = NewEntry::new(turn("t"), EntryKind::Message(Message::user("x")));
        let batch = Batch::new(BatchKey::new(turn("t"), 0, "x"), vec![said]);
        store.append(&key, Version::EMPTY, batch.clone()).await.unwrap();
        store.delete(&key).await.unwrap();
        assert!(store.logs.is_empty());
        store.append(&key, Version(1), batch).await.unwrap_err();
        assert!(store.logs.is_empty(), "nor of a refused one");
    }

    #[tokio::test]
    async fn an_empty_batch_takes_no_place() {
        let (store, key) = (InMemoryStore::new(), ConversationKey::new("c").unwrap());
        let nothing = Batch::new(BatchKey::new(turn("t"), 0, "x"), Vec::new());
        assert_eq!(store.append(&key, Version::EMPTY, nothing).await.unwrap(), Version::EMPTY);
        assert!(store.logs.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn lease_without_end_lasts_one_year() {
        let (store, key) = (InMemoryStore::new().with_leases(), ConversationKey::new("c").unwrap());
        store.acquire(&key, &turn("t"), Duration::MAX, None, false).await.unwrap();
        tokio::time::advance(Duration::from_secs(364 * 24 * 3600)).await;
        let held = store.acquire(&key, &turn("u"), Duration::ZERO, None, false).await;
        assert!(matches!(held, Err(StoreError::Locked { .. })), "{held:?}");
        tokio::time::advance(Duration::from_secs(24 * 3600)).await;
        store.acquire(&key, &turn("u"), Duration::ZERO, None, false).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn law_r1_places_are_bounded() {
        let mut waiting = WaitingTurns::default();
        for number in 0..300 {
            waiting.wait(&turn(&number.to_string()), Instant::now());
        }
        assert_eq!(waiting.0.len(), WaitingTurns::MOST);
    }
}
