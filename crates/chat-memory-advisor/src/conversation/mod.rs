pub(crate) mod claim;
pub(crate) mod damaged;
pub(crate) mod unfinished;
pub(crate) mod waiters;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use advisor_core::{ConversationKey, TurnId};
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

use crate::conversation::claim::Running;
use crate::conversation::damaged::Damaged;
use crate::conversation::unfinished::{OVERHEAD, Unfinished};
use crate::conversation::waiters::Waiters;
use crate::transcript::summary::Pending;
use conversation_store::FencingToken;

/// The turns of this process: which one runs in a conversation, and which stopped without their end being
/// written.
#[derive(Debug)]
pub(crate) struct Registry {
    conversations: DashMap<ConversationKey, Slot>,
    /// The bytes of all that is unfinished, and the most there may be of them.
    bytes: AtomicUsize,
    most: usize,
    /// The same of what can be done without.
    spare: AtomicUsize,
    most_spare: usize,
    numbers: AtomicU64,
    /// Turns may be interrupted by others.
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

/// What is known of one conversation.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub(crate) running: Option<Running>,
    unfinished: Vec<Unfinished>,
    pub(crate) waiters: Waiters,
    /// The fence of the turn that runs; or of the last one, if its lease could not be given back.
    pub(crate) fence: Option<FencingToken>,
    /// The turns that may hold the conversation by an answer of the store that nobody heard.
    pub(crate) asked_for: Vec<TurnId>,
    /// A summary that is still to be written, and whether one is being made.
    pub(crate) summary: Option<Pending>,
    pub(crate) summarizing: bool,
}

impl Registry {
    /// The turns of a conversation that stopped without their end being written.
    pub(crate) fn unfinished(&self, key: &ConversationKey) -> Vec<Unfinished> {
        self.conversations.get(key).map(|slot| slot.unfinished.clone()).unwrap_or_default()
    }

    /// Something of what is left of a turn, if anything is.
    pub(crate) fn left_of<T>(
        &self,
        key: &ConversationKey,
        turn: &TurnId,
        part: impl FnOnce(&Unfinished) -> T,
    ) -> Option<T> {
        let slot = self.conversations.get(key)?;
        slot.unfinished.iter().find(|known| known.turn == *turn).map(part)
    }

    /// Whether what was left here is still to be written. Of what found no room only that is known that the turn does not
    /// run again.
    pub(crate) fn is_left(&self, key: &ConversationKey, left: &Unfinished) -> bool {
        let slot = self.conversations.get(key);
        match left.number {
            Some(_) => {
                slot.is_some_and(|slot| slot.unfinished.iter().any(|known| known.number == left.number))
            }
            None => !slot.is_some_and(|slot| slot.runs(&left.turn)),
        }
    }

    /// All turns that stopped without their end being written, each with its conversation.
    pub(crate) fn all_unfinished(&self) -> Vec<(ConversationKey, Unfinished)> {
        let of_slot = |key: &ConversationKey, slot: &Slot| {
            slot.unfinished.iter().map(|turn| (key.clone(), turn.clone())).collect::<Vec<_>>()
        };
        self.conversations.iter().flat_map(|slot| of_slot(slot.key(), slot.value())).collect()
    }

    /// The fences that no turn needs any more, each with its conversation.
    pub(crate) fn idle_fences(&self) -> Vec<(ConversationKey, FencingToken)> {
        let idle = self.conversations.iter().filter(|slot| slot.running.is_none());
        idle.filter_map(|slot| Some((slot.key().clone(), slot.fence?))).collect()
    }

    /// The turn stopped and its end is still to be written. What is known of it already is replaced. Where
    /// there is no room for its texts, it is kept without them; where there is none at all, it is closed as
    /// after a crash, unless what is given here is written at once.
    pub(crate) fn leave(&self, key: &ConversationKey, turn: Unfinished) -> Unfinished {
        let known = self.left_of(key, &turn.turn, |known| known.fence);
        self.forget_turn(key, &turn.turn);
        let room = self.most.saturating_sub(self.bytes.load(Ordering::Relaxed));
        let fence = turn.fence.max(known.flatten());
        let left = Unfinished { fence, number: Some(self.next_number()), ..turn };
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
            return Unfinished { number: None, ..left };
        }
        self.change(key, |slot| slot.unfinished.push(kept));
        left
    }

    /// What was left here is written.
    pub(crate) fn forget(&self, key: &ConversationKey, left: &Unfinished) {
        self.change(key, |slot| slot.unfinished.retain(|known| known.number != left.number));
    }

    /// The end of the turn is written, or the turn goes on.
    pub(crate) fn forget_turn(&self, key: &ConversationKey, turn: &TurnId) {
        self.change(key, |slot| slot.unfinished.retain(|known| known.turn != *turn));
    }

    /// Every turn before the running one is closed.
    pub(crate) fn forget_all(&self, key: &ConversationKey) {
        self.change(key, |slot| slot.unfinished.clear());
    }

    /// Turns are interrupted from now on, whichever memory they are of.
    pub(crate) fn interrupts(&self) {
        self.interrupts.store(true, Ordering::Relaxed);
    }

    pub(crate) fn may_interrupt(&self) -> bool {
        self.interrupts.load(Ordering::Relaxed)
    }

    /// A number that nothing else here has.
    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Changes what is known of a conversation, and forgets it if that is nothing.
    pub(crate) fn change<R>(&self, key: &ConversationKey, change: impl FnOnce(&mut Slot) -> R) -> R {
        let mut slot = match self.conversations.entry(key.clone()) {
            Entry::Occupied(slot) => slot,
            Entry::Vacant(none) => none.insert_entry(Slot::default()),
        };
        let (before, spare) = (slot.get().bytes(), slot.get().spare());
        let changed = change(slot.get_mut());
        if slot.get().running.is_none() && self.spare.load(Ordering::Relaxed) > self.most_spare {
            // A lease ends with its time, and a summary is made again.
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
    /// Whether the turn runs here, or waits for that.
    pub(crate) fn runs(&self, turn: &TurnId) -> bool {
        self.running.as_ref().is_some_and(|running| running.turn == *turn) || self.waiters.have(turn)
    }

    /// A turn of this process has a lease, which is also good for what others have left here.
    pub(crate) fn note_lease(&mut self, fence: FencingToken) {
        self.fence = Some(fence);
        self.unfinished.iter_mut().for_each(|left| left.fence = Some(fence));
    }

    /// Whether a turn of this process has the conversation, is to have it, or had it after the one that was left.
    pub(crate) fn is_used_after(&self, left: &Unfinished) -> bool {
        let later = |known: &Unfinished| known.number == left.number && known.fence > left.fence;
        self.running.is_some() || !self.waiters.is_empty() || self.unfinished.iter().any(later)
    }

    /// The store has said whether the turn holds the conversation.
    pub(crate) fn was_answered(&mut self, turn: &TurnId) {
        if let Some(asked) = self.asked_for.iter().rposition(|asked| asked == turn) {
            self.asked_for.remove(asked);
        }
    }

    /// What the turns take whose end is still to be written.
    fn bytes(&self) -> usize {
        self.unfinished.iter().map(Unfinished::bytes).sum()
    }

    /// What takes room and can be done without.
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

    fn silent(name: &str) -> Unfinished {
        Unfinished::beginning(turn(name), Version::EMPTY, Vec::new())
    }

    #[test]
    fn law_r1_what_is_left_is_bounded() {
        let registry = Registry { most: 2000, ..Registry::default() };
        let left = |name: &str| {
            let partial = "x".repeat(500).into();
            Unfinished { end: TurnEnd::Interrupted { partial }, ..silent(name) }
        };
        let key = |name: &str| ConversationKey::new(name).unwrap();
        for name in ["a", "b", "c", "c", "d", "e"] {
            registry.leave(&key(name), left(name));
        }
        let texts = |name: &str| registry.unfinished(&key(name)).iter().map(Unfinished::bytes).sum::<usize>();
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
    fn law_k3_what_finds_no_room_is_closed_all_the_same_unless_the_turn_runs_again() {
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
        registry.leave(&key, Unfinished { fence: Some(FencingToken::new(7)), ..silent("a") });
        assert_eq!(registry.leave(&key, silent("a")).fence, Some(FencingToken::new(7)));
    }

    #[test]
    fn law_k3_what_is_written_of_one_run_leaves_what_another_run_of_the_turn_left() {
        let registry = Registry::default();
        let key = ConversationKey::new("c").unwrap();
        let first = registry.leave(&key, silent("a"));
        let second = registry.leave(&key, silent("a"));
        registry.forget(&key, &first);
        assert!(!registry.is_left(&key, &first) && registry.is_left(&key, &second));
    }

    #[test]
    fn law_r1_leases_and_summaries_are_bounded_and_take_no_room_from_what_was_shown() {
        let registry = Registry { most_spare: 10 * OVERHEAD, ..Registry::default() };
        let key = |name: usize| ConversationKey::new(&format!("c{name}")).unwrap();
        for name in 0..100 {
            registry.change(&key(name), |slot| slot.fence = Some(FencingToken::new(1)));
            registry.change(&key(name), |slot| slot.asked_for.push(turn("t")));
        }
        assert!(registry.conversations.len() <= 11, "{}", registry.conversations.len());
        registry.leave(&key(0), Unfinished { resumed: true, ..silent("a") });
        assert!(registry.unfinished(&key(0))[0].resumed);
    }

    fn claim(registry: &Arc<Registry>, key: &ConversationKey, name: &str) -> claim::Claim {
        registry.claim(key, &turn(name), &Arc::default()).now_or_never().flatten().unwrap()
    }

    #[test]
    fn what_is_left_is_kept_until_it_is_written() {
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
