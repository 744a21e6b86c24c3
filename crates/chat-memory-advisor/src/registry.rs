use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use advisor_core::{ConversationKey, TurnId};
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use tokio::sync::Notify;

use crate::seal::Unfinished;
use crate::window::Measure;
use crate::{ConversationStore, Snapshot, StoreError, View};

/// The turns of this process: which one runs in a conversation, and which stopped without their end being
/// written.
#[derive(Debug)]
pub(crate) struct Registry {
    conversations: DashMap<ConversationKey, Slot>,
    /// The bytes of all that is unfinished, and the most there may be of them.
    bytes: AtomicUsize,
    most: usize,
    claims: AtomicU64,
}

impl Default for Registry {
    fn default() -> Self {
        let (conversations, bytes) = (DashMap::new(), AtomicUsize::new(0));
        Self { conversations, bytes, most: 64 << 20, claims: AtomicU64::new(0) }
    }
}

#[derive(Debug, Default)]
struct Slot {
    /// The claim of the turn that runs. Its id would not do: a turn may be submitted twice.
    running: Option<u64>,
    unfinished: Vec<Unfinished>,
    /// Wakes the turns that wait, one at a time. They hold it, too.
    freed: Arc<Notify>,
}

/// The right of a turn to be the one that runs in its conversation. It ends with the claim.
#[derive(Debug)]
pub(crate) struct Claim {
    registry: Arc<Registry>,
    key: ConversationKey,
    turn: TurnId,
    number: u64,
    /// The beginning of the turn may be written, but nobody knows it yet.
    pub(crate) beginning: bool,
}

impl Registry {
    /// Claims a conversation for a turn, unless one runs in it.
    pub(crate) fn claim(self: &Arc<Self>, key: &ConversationKey, turn: &TurnId) -> Option<Claim> {
        self.claim_or_wait(key, turn).ok()
    }

    /// Claims a conversation for a turn, after those that came before.
    pub(crate) async fn claim_in_turn(self: &Arc<Self>, key: &ConversationKey, turn: &TurnId) -> Claim {
        loop {
            match self.claim_or_wait(key, turn) {
                Ok(claim) => return claim,
                Err(waiting) => waiting.freed.notified().await,
            }
        }
    }

    fn claim_or_wait(self: &Arc<Self>, key: &ConversationKey, turn: &TurnId) -> Result<Claim, Waiting> {
        let number = self.claims.fetch_add(1, Ordering::Relaxed);
        let mut slot = self.conversations.entry(key.clone()).or_default();
        let (registry, key) = (Arc::clone(self), key.clone());
        if slot.running.is_some() {
            let freed = Arc::clone(&slot.freed);
            drop(slot);
            return Err(Waiting { registry, key, freed });
        }
        slot.running = Some(number);
        Ok(Claim { registry, key, turn: turn.clone(), number, beginning: false })
    }

    /// The turns of a conversation that stopped without their end being written.
    pub(crate) fn unfinished(&self, key: &ConversationKey) -> Vec<Unfinished> {
        self.conversations.get(key).map(|slot| slot.unfinished.clone()).unwrap_or_default()
    }

    /// Reads what is needed so that the window, and a turn whose end does not count, are there.
    pub(crate) async fn load(
        &self,
        store: &dyn ConversationStore,
        key: &ConversationKey,
        measure: &Measure,
    ) -> Result<Snapshot, StoreError> {
        let overridden = self.unfinished(key).iter().any(Unfinished::overrides);
        let mut view = if overridden { View::All } else { measure.view() };
        loop {
            let snapshot = store.load(key, view).await?;
            match measure.view_after(view, &snapshot) {
                Some(larger) => view = larger,
                None => return Ok(snapshot),
            }
        }
    }

    /// All turns that stopped without their end being written, each with its conversation.
    pub(crate) fn all_unfinished(&self) -> Vec<(ConversationKey, Unfinished)> {
        let of_slot = |key: &ConversationKey, slot: &Slot| {
            slot.unfinished.iter().map(|turn| (key.clone(), turn.clone())).collect::<Vec<_>>()
        };
        self.conversations.iter().flat_map(|slot| of_slot(slot.key(), slot.value())).collect()
    }

    /// The turn stopped and its end is still to be written. What is known of it already is replaced. Where
    /// there is no room for its texts, it is kept without them; where there is none at all, it is closed as
    /// after a crash.
    pub(crate) fn leave(&self, key: &ConversationKey, turn: Unfinished) {
        self.forget(key, &turn.turn);
        let room = self.most.saturating_sub(self.bytes.load(Ordering::Relaxed));
        let mut kept = turn;
        if kept.bytes() > room {
            tracing::warn!(
                conversation = %key,
                turn = %kept.turn,
                "too much waits to be written of turns that were dropped, and what this one had shown is lost; give the client a spawner"
            );
            kept = kept.without_texts();
        }
        if kept.bytes() <= room {
            self.change(key, |slot| slot.unfinished.push(kept));
        }
    }

    /// The end of the turn is written.
    pub(crate) fn forget(&self, key: &ConversationKey, turn: &TurnId) {
        self.change(key, |slot| slot.unfinished.retain(|known| known.turn != *turn));
    }

    /// Every turn before the running one is closed.
    pub(crate) fn forget_all(&self, key: &ConversationKey) {
        self.change(key, |slot| slot.unfinished.clear());
    }

    fn change(&self, key: &ConversationKey, change: impl FnOnce(&mut Slot)) {
        let mut slot = match self.conversations.entry(key.clone()) {
            Entry::Occupied(slot) => slot,
            Entry::Vacant(none) => none.insert_entry(Slot::default()),
        };
        let before = slot.get().bytes();
        change(slot.get_mut());
        self.bytes.fetch_add(slot.get().bytes().wrapping_sub(before), Ordering::Relaxed);
        let waited_for = Arc::strong_count(&slot.get().freed) > 1;
        if slot.get().running.is_none() && slot.get().unfinished.is_empty() && !waited_for {
            slot.remove();
        }
    }
}

/// A turn that waits for its conversation.
struct Waiting {
    registry: Arc<Registry>,
    key: ConversationKey,
    freed: Arc<Notify>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.freed = Arc::default();
        // The slot may have been kept for this turn alone.
        self.registry.change(&self.key, |_| {});
    }
}

impl Slot {
    fn bytes(&self) -> usize {
        self.unfinished.iter().map(Unfinished::bytes).sum()
    }
}

impl Claim {
    /// Claims the conversation again for the same turn, unless another one runs in it.
    pub(crate) fn renew(&self) -> bool {
        let mut slot = self.registry.conversations.entry(self.key.clone()).or_default();
        *slot.running.get_or_insert(self.number) == self.number
    }

    /// The turn runs no longer.
    pub(crate) fn release(&self) {
        self.registry.change(&self.key, |slot| {
            if slot.running.take_if(|running| *running == self.number).is_some() {
                slot.freed.notify_one();
            }
        });
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.beginning {
            self.registry.leave(&self.key, Unfinished::silent(self.turn.clone()));
        }
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::turn;
    use advisor_core::TurnEnd;

    #[test]
    fn one_turn_runs_at_a_time_and_leaves_no_trace() {
        let registry = Arc::new(Registry::default());
        let key = ConversationKey::new("c").unwrap();
        let first = registry.claim(&key, &turn("a")).unwrap();
        assert!(registry.claim(&key, &turn("b")).is_none());
        assert!(registry.claim(&key, &turn("a")).is_none(), "nor the same turn twice");
        drop(first);
        let second = registry.claim(&key, &turn("b")).unwrap();
        assert!(registry.claim(&key, &turn("c")).is_none());
        drop(second);
        assert!(registry.conversations.is_empty());
    }

    #[tokio::test]
    async fn turns_that_wait_begin_in_their_order_and_leave_no_trace() {
        use futures::{FutureExt, poll};
        let registry = Arc::new(Registry::default());
        let key = ConversationKey::new("c").unwrap();
        let running = registry.claim(&key, &turn("a")).unwrap();
        let (b, c, d) = (turn("b"), turn("c"), turn("d"));
        let mut second = Box::pin(registry.claim_in_turn(&key, &b));
        let mut dropped = Box::pin(registry.claim_in_turn(&key, &c));
        let mut last = Box::pin(registry.claim_in_turn(&key, &d));
        for _ in 0..2 {
            assert!(poll!(&mut second).is_pending() && poll!(&mut dropped).is_pending());
            assert!(poll!(&mut last).is_pending());
        }
        drop(running);
        let second = second.now_or_never().unwrap();
        drop(dropped);
        assert!(poll!(&mut last).is_pending());
        drop(second);
        drop(last.now_or_never().unwrap());
        assert!(registry.conversations.is_empty());
        let running = registry.claim(&key, &turn("a")).unwrap();
        let mut given_up = Box::pin(registry.claim_in_turn(&key, &b));
        assert!(poll!(&mut given_up).is_pending());
        drop(running);
        drop(given_up);
        assert!(registry.conversations.is_empty(), "also if the one that was woken gives up");
    }

    #[test]
    fn a_turn_goes_on_unless_another_has_begun() {
        let registry = Arc::new(Registry::default());
        let key = ConversationKey::new("c").unwrap();
        let first = registry.claim(&key, &turn("a")).unwrap();
        first.release();
        assert!(first.renew());
        assert!(registry.claim(&key, &turn("b")).is_none());
        first.release();
        // The same turn, submitted again, is not the same claim.
        let _second = registry.claim(&key, &turn("a")).unwrap();
        assert!(!first.renew());
        drop(first);
        assert!(registry.claim(&key, &turn("c")).is_none(), "a claim ends nothing but itself");
    }

    #[test]
    fn law_r1_what_is_left_is_bounded() {
        let registry = Registry { most: 2000, ..Registry::default() };
        let left = |name: &str| {
            let partial = "x".repeat(500).into();
            Unfinished { end: TurnEnd::Interrupted { partial }, ..Unfinished::silent(turn(name)) }
        };
        let key = |name: &str| ConversationKey::new(name).unwrap();
        for name in ["a", "b", "c", "c", "d", "e"] {
            registry.leave(&key(name), left(name));
        }
        let texts = |name: &str| registry.unfinished(&key(name)).iter().map(Unfinished::bytes).sum::<usize>();
        assert!(texts("c") > 500 && texts("d") < 500, "what does not fit is kept without its text");
        assert!(!registry.conversations.contains_key(&key("e")), "or leaves no trace");
        registry.forget(&key("a"), &turn("a"));
        registry.leave(&key("e"), left("e"));
        assert_eq!(registry.unfinished(&key("e")).len(), 1, "what was written makes room");
        for name in ["b", "c", "e"] {
            registry.forget_all(&key(name));
        }
        assert_eq!(registry.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_is_left_is_kept_until_it_is_written() {
        let registry = Arc::new(Registry::default());
        let key = ConversationKey::new("c").unwrap();
        let mut claim = registry.claim(&key, &turn("a")).unwrap();
        claim.beginning = true;
        drop(claim);
        registry.leave(&key, Unfinished::silent(turn("b")));
        registry.leave(&key, Unfinished::silent(turn("b")));
        assert_eq!(registry.unfinished(&key).len(), 2);
        assert_eq!(registry.all_unfinished().len(), 2);
        let _running = registry.claim(&key, &turn("c")).unwrap();
        registry.forget(&key, &turn("b"));
        assert_eq!(registry.unfinished(&key)[0].turn, turn("a"));
        registry.forget_all(&key);
        assert!(registry.all_unfinished().is_empty());
    }
}
