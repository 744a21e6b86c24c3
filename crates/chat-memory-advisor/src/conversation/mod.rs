pub(crate) mod damaged;
pub(crate) mod guard;
pub(crate) mod interrupted_turn;
pub(crate) mod waiters;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use advisor_core::{ConversationKey, TurnId};
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

use crate::conversation::damaged::Damaged;
use crate::conversation::guard::Running;
use crate::conversation::interrupted_turn::{InterruptedTurn, OVERHEAD};
use crate::conversation::waiters::Waiters;
use crate::transcript::summary::Pending;
use conversation_store::FencingToken;

/// The turns of this process: the running turn of each conversation, and the stopped turns whose end is not
/// written yet.
#[derive(Debug)]
pub(crate) struct Registry {
    conversations: DashMap<ConversationKey, Slot>,
    /// The bytes of all unfinished turns, and their limit.
    bytes: AtomicUsize,
    most: usize,
    /// The bytes of data that can be evicted (leases, pending summaries), and their limit.
    spare: AtomicUsize,
    most_spare: usize,
    numbers: AtomicU64,
    /// Whether turns may be interrupted by others.
    interrupts: AtomicBool,
    pub(crate) damaged: Damaged,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            conversations: DashMap::new(),
            bytes: AtomicUsize::new(0),
            most: 64 << 20,
            spare: AtomicUsize::new(0),
            most_spare: 16 << 20,
            numbers: AtomicU64::new(0),
            interrupts: AtomicBool::new(false),
            damaged: Damaged::default(),
        }
    }
}

/// The state of one conversation in this process.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub(crate) running: Option<Running>,
    unfinished: Vec<InterruptedTurn>,
    pub(crate) waiters: Waiters,
    /// The fencing token of the running turn; or of the last one, if its lease could not be released.
    pub(crate) fence: Option<FencingToken>,
    /// Turns that requested the lease and received no answer; the store may have granted it.
    pub(crate) asked_for: Vec<TurnId>,
    /// A summary that is not written yet, and whether one is being made.
    pub(crate) summary: Option<Pending>,
    pub(crate) summarizing: bool,
}

impl Registry {
    /// Returns the turns of a conversation that stopped before their end was written.
    pub(crate) fn unfinished(&self, key: &ConversationKey) -> Vec<InterruptedTurn> {
        self.conversations.get(key).map(|slot| slot.unfinished.clone()).unwrap_or_default()
    }

    /// Returns `part` of an unfinished turn, if the turn is registered.
    pub(crate) fn left_of<T>(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        part: impl FnOnce(&InterruptedTurn) -> T,
    ) -> Option<T> {
        let slot = self.conversations.get(key)?;
        slot.unfinished.iter().find(|known| known.turn == *turn).map(part)
    }

    /// Checks whether this end is still to be written. A turn without a number did not fit into the limit; it
    /// counts as unfinished unless it runs again.
    pub(crate) fn is_left(&self, key: &ConversationKey, left: &InterruptedTurn) -> bool {
        let slot = self.conversations.get(key);
        match left.number {
            Some(_) => {
                slot.is_some_and(|slot| slot.unfinished.iter().any(|known| known.number == left.number))
            }
            None => !slot.is_some_and(|slot| slot.runs(&left.turn)),
        }
    }

    /// Returns all turns that stopped before their end was written, each with its conversation.
    pub(crate) fn all_unfinished(&self) -> Vec<(ConversationKey, InterruptedTurn)> {
        let of_slot = |key: &ConversationKey, slot: &Slot| {
            slot.unfinished.iter().map(|turn| (key.clone(), turn.clone())).collect::<Vec<_>>()
        };
        self.conversations.iter().flat_map(|slot| of_slot(slot.key(), slot.value())).collect()
    }

    /// Returns the fencing tokens that no running turn needs, each with its conversation.
    pub(crate) fn idle_fences(&self) -> Vec<(ConversationKey, FencingToken)> {
        let idle = self.conversations.iter().filter(|slot| slot.running.is_none());
        idle.filter_map(|slot| Some((slot.key().clone(), slot.fence?))).collect()
    }

    /// Registers a turn that stopped before its end was written, and replaces its earlier registration. If its
    /// texts exceed the limit, it is registered without them. If it does not fit at all, it is closed as after a
    /// crash, unless the caller writes the returned value at once.
    pub(crate) fn leave(&self, key: &ConversationKey, turn: InterruptedTurn) -> InterruptedTurn {
        let known = self.left_of(key, &turn.turn, |known| known.fence);
        self.forget_turn(key, &turn.turn);
        let room = self.most.saturating_sub(self.bytes.load(Ordering::Relaxed));
        let fence = turn.fence.max(known.flatten());
        let left = InterruptedTurn { fence, number: Some(self.next_number()), ..turn };
        let mut kept = left.clone();
        if kept.bytes() > room {
            tracing::warn!(
                conversation = %key,
                turn = %kept.turn,
                "too much waits to be written of turns that were dropped, and what this one had shown is lost if it is not written at once; give the client a spawner"
            );
            kept = kept.without_texts();
        }
        if kept.bytes() > room {
            return InterruptedTurn { number: None, ..left };
        }
        self.change(key, |slot| slot.unfinished.push(kept));
        left
    }

    /// Removes an unfinished turn whose end is written.
    pub(crate) fn forget(&self, key: &ConversationKey, left: &InterruptedTurn) {
        self.change(key, |slot| slot.unfinished.retain(|known| known.number != left.number));
    }

    /// Removes all unfinished runs of a turn: its end is written, or the turn continues.
    pub(crate) fn forget_turn(&self, key: &ConversationKey, turn: &TurnId) {
        self.change(key, |slot| slot.unfinished.retain(|known| known.turn != *turn));
    }

    /// Removes all unfinished turns of a conversation: every turn before the running one is closed.
    pub(crate) fn forget_all(&self, key: &ConversationKey) {
        self.change(key, |slot| slot.unfinished.clear());
    }

    /// Allows turns to be interrupted from now on, whichever memory they belong to.
    pub(crate) fn interrupts(&self) {
        self.interrupts.store(true, Ordering::Relaxed);
    }

    pub(crate) fn may_interrupt(&self) -> bool {
        self.interrupts.load(Ordering::Relaxed)
    }

    /// Returns a number that is unique in this registry.
    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Changes the state of a conversation, and removes it if it is unused afterwards.
    pub(crate) fn change<R>(&self, key: &ConversationKey, change: impl FnOnce(&mut Slot) -> R) -> R {
        let mut slot = match self.conversations.entry(key.clone()) {
            Entry::Occupied(slot) => slot,
            Entry::Vacant(none) => none.insert_entry(Slot::default()),
        };
        let (before, spare) = (slot.get().bytes(), slot.get().spare());
        let changed = change(slot.get_mut());
        if slot.get().running.is_none() && self.spare.load(Ordering::Relaxed) > self.most_spare {
            // Safe to evict: a lease expires, and a summary is made again.
            let slot = slot.get_mut();
            (slot.fence, slot.asked_for, slot.summary) = Default::default();
        }
        self.bytes.fetch_add(slot.get().bytes().wrapping_sub(before), Ordering::Relaxed);
        self.spare.fetch_add(slot.get().spare().wrapping_sub(spare), Ordering::Relaxed);
        if slot.get().is_unused() {
            slot.remove();
        }
        changed
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.conversations.is_empty()
    }
}

impl Slot {
    /// Checks whether the turn runs or waits to run in this process.
    pub(crate) fn runs(&self, turn: &TurnId) -> bool {
        self.running.as_ref().is_some_and(|running| running.turn == *turn) || self.waiters.have(turn)
    }

    /// Stores the fencing token of a new lease, which also applies to the unfinished turns of this conversation.
    pub(crate) fn note_lease(&mut self, fence: FencingToken) {
        self.fence = Some(fence);
        self.unfinished.iter_mut().for_each(|left| left.fence = Some(fence));
    }

    /// Checks whether a turn of this process has the conversation, waits for it, or had it after the turn `left`.
    pub(crate) fn is_used_after(&self, left: &InterruptedTurn) -> bool {
        let later = |known: &InterruptedTurn| known.number == left.number && known.fence > left.fence;
        self.running.is_some() || !self.waiters.is_empty() || self.unfinished.iter().any(later)
    }

    /// Notes that the store has answered a lease request of the turn.
    pub(crate) fn was_answered(&mut self, turn: &TurnId) {
        if let Some(asked) = self.asked_for.iter().rposition(|asked| asked == turn) {
            self.asked_for.remove(asked);
        }
    }

    /// Returns the bytes of the unfinished turns.
    fn bytes(&self) -> usize {
        self.unfinished.iter().map(InterruptedTurn::bytes).sum()
    }

    /// Returns the bytes of the data that can be evicted.
    fn spare(&self) -> usize {
        let leases = usize::from(self.fence.is_some()) + self.asked_for.len();
        let summary = self.summary.as_ref().map_or(0, |summary| OVERHEAD + summary.summary.text.len());
        leases * OVERHEAD + summary
    }

    fn is_unused(&self) -> bool {
        let still = self.running.is_none() && self.unfinished.is_empty() && !self.summarizing;
        still
            && self.fence.is_none()
            && self.asked_for.is_empty()
            && self.summary.is_none()
            && self.waiters.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_logs::turn;
    use advisor_core::TurnEnd;
    use conversation_store::Version;
    use futures::FutureExt;
    use std::sync::Arc;

    fn silent(name: &str) -> InterruptedTurn {
        InterruptedTurn::beginning(turn(name), Version::EMPTY, Vec::new())
    }

    #[test]
    fn law_r1_what_is_left_is_bounded() {
        let registry = Registry { most: 2000, ..Registry::default() };
        let left = |name: &str| {
            let partial = "x".repeat(500).into();
            InterruptedTurn { end: TurnEnd::Interrupted { partial }, ..silent(name) }
        };
        let key = |name: &str| ConversationKey::new(name).unwrap();
        for name in ["a", "b", "c", "c", "d", "e"] {
            registry.leave(&key(name), left(name));
        }
        let texts =
            |name: &str| registry.unfinished(&key(name)).iter().map(InterruptedTurn::bytes).sum::<usize>();
        assert!(texts("c") > 500 && texts("d") < 500, "what does not fit is kept without its text");
        assert!(!registry.conversations.contains_key(&key("e")), "or leaves no trace");
        registry.forget_turn(&key("a"), &turn("a"));
        registry.leave(&key("e"), left("e"));
        assert_eq!(registry.unfinished(&key("e")).len(), 1, "what was written makes room");
        for name in ["b", "c", "e"] {
            registry.forget_all(&key(name));
        }
        assert_eq!(registry.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn law_k3_run_without_room_is_closed_unless_turn_reruns() {
        let registry = Arc::new(Registry { most: 0, ..Registry::default() });
        let key = ConversationKey::new("c").unwrap();
        let refused = registry.leave(&key, silent("a"));
        assert!(registry.unfinished(&key).is_empty() && registry.is_left(&key, &refused));
        let _again = claim(&registry, &key, "a");
        assert!(!registry.is_left(&key, &refused));
    }

    #[test]
    fn law_k3_what_is_left_again_keeps_the_highest_fence() {
        let registry = Registry::default();
        let key = ConversationKey::new("c").unwrap();
        registry.leave(&key, InterruptedTurn { fence: Some(FencingToken::new(7)), ..silent("a") });
        assert_eq!(registry.leave(&key, silent("a")).fence, Some(FencingToken::new(7)));
    }

    #[test]
    fn law_k3_forgetting_one_run_keeps_other_unfinished_run() {
        let registry = Registry::default();
        let key = ConversationKey::new("c").unwrap();
        let first = registry.leave(&key, silent("a"));
        let second = registry.leave(&key, silent("a"));
        registry.forget(&key, &first);
        assert!(!registry.is_left(&key, &first) && registry.is_left(&key, &second));
    }

    #[test]
    fn law_r1_bounded_leases_and_summaries_never_evict_shown_text() {
        let registry = Registry { most_spare: 10 * OVERHEAD, ..Registry::default() };
        let key = |name: usize| ConversationKey::new(&format!("c{name}")).unwrap();
        for name in 0..100 {
            registry.change(&key(name), |slot| slot.fence = Some(FencingToken::new(1)));
            registry.change(&key(name), |slot| slot.asked_for.push(turn("t")));
        }
        assert!(registry.conversations.len() <= 11, "{}", registry.conversations.len());
        registry.leave(&key(0), InterruptedTurn { resumed: true, ..silent("a") });
        assert!(registry.unfinished(&key(0))[0].resumed);
    }

    fn claim(registry: &Arc<Registry>, key: &ConversationKey, name: &str) -> guard::ConversationGuard {
        registry.claim(key, &turn(name), &Arc::default()).now_or_never().flatten().unwrap()
    }

    #[test]
    fn unfinished_runs_are_kept_until_written() {
        let registry = Arc::new(Registry::default());
        let key = ConversationKey::new("c").unwrap();
        let mut first = claim(&registry, &key, "a");
        first.beginning = Some(silent("a"));
        drop(first);
        registry.leave(&key, silent("b"));
        registry.leave(&key, silent("b"));
        assert_eq!(registry.unfinished(&key).len(), 2);
        assert_eq!(registry.all_unfinished().len(), 2);
        let _running = claim(&registry, &key, "c");
        registry.forget_turn(&key, &turn("b"));
        assert_eq!(registry.unfinished(&key)[0].turn, turn("a"));
        registry.forget_all(&key);
        assert!(registry.all_unfinished().is_empty());
    }
}
