//! `Registry`: the conversations of this process, by purpose, and the operations that concern two purposes.

pub(crate) mod damaged;
pub(crate) mod guard;
pub(crate) mod lease_state;
pub(crate) mod leases;
pub(crate) mod lock;
pub(crate) mod map;
pub(crate) mod summaries;
pub(crate) mod unfinished_turn;
pub(crate) mod unfinished_turns;

use std::sync::Arc;

use advisor_core::ConversationKey;
use conversation_store::FencingToken;

use crate::conversation::damaged::Damaged;
use crate::conversation::leases::HeldLeases;
use crate::conversation::lock::Locks;
use crate::conversation::summaries::PendingSummaries;
use crate::conversation::unfinished_turn::UnfinishedTurn;
use crate::conversation::unfinished_turns::UnfinishedTurns;

/// The conversations of this process: the running turn of each, and the turns, summaries and leases that are still
/// to be written or released.
///
/// Each part is atomic. An operation on two of them gives the reason why the order of its steps suffices.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    pub(crate) locks: Arc<Locks>,
    pub(crate) unfinished: UnfinishedTurns,
    pub(crate) leases: HeldLeases,
    pub(crate) summaries: PendingSummaries,
    pub(crate) damaged: Damaged,
}

impl Registry {
    /// Checks whether this end is still to be written. A turn without a number did not fit into the limit; it
    /// counts as unfinished unless it runs again.
    pub(crate) fn is_unfinished(&self, key: &ConversationKey, turn: &UnfinishedTurn) -> bool {
        match turn.number {
            Some(_) => self.unfinished.any(key, |known| known.number == turn.number),
            None => !self.locks.is_used_by(key, &turn.turn),
        }
    }

    /// Stores the fencing token of a new lease, which also applies to the unfinished turns of this conversation.
    pub(crate) fn note_lease(&self, key: &ConversationKey, token: FencingToken) {
        // The turns first: if one is being closed under the old token and is fenced, `is_used_after` sees the new
        // token.
        self.unfinished.set_token(key, token);
        self.leases.set_token(key, token);
    }

    /// Checks whether a turn of this process has the conversation, waits for it, or had it after `turn`.
    pub(crate) fn is_used_after(&self, key: &ConversationKey, turn: &UnfinishedTurn) -> bool {
        // The lock first: a turn that has released it by then has noted its lease before.
        let later = |known: &UnfinishedTurn| known.number == turn.number && known.token > turn.token;
        self.locks.is_used(key) || self.unfinished.any(key, later)
    }

    /// Returns the fencing tokens that no running turn needs, each with its conversation.
    pub(crate) fn idle_tokens(&self) -> Vec<(ConversationKey, FencingToken)> {
        // The tokens first: a turn that begins to run in between has another token.
        let mut tokens = self.leases.tokens();
        tokens.retain(|(key, _)| !self.locks.is_held(key));
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::guard::ConversationGuard;
    use crate::conversation::lease_state::LeaseState;
    use crate::conversation::lock::Owner;
    use crate::conversation::unfinished_turn::Stage;
    use crate::test_logs::turn;
    use advisor_core::Turn;
    use conversation_store::Version;

    fn silent(name: &str) -> UnfinishedTurn {
        UnfinishedTurn::new(turn(name), Version::EMPTY, Vec::new())
    }

    fn guard(registry: &Arc<Registry>, key: &ConversationKey, name: &str) -> ConversationGuard {
        let lease = Arc::new(LeaseState::new(&Turn::new(turn(name))));
        let owner: Arc<dyn Owner> = Arc::<LeaseState>::clone(&lease);
        ConversationGuard::new(registry, &lease, registry.locks.try_lock(key, &owner).unwrap())
    }

    #[test]
    fn law_k3_run_without_room_is_closed_unless_turn_reruns() {
        let registry =
            Arc::new(Registry { unfinished: UnfinishedTurns::with_most(0), ..Registry::default() });
        let key = ConversationKey::new("c").unwrap();
        let refused = registry.unfinished.register(&key, silent("a"));
        assert!(registry.unfinished.turns_in(&key).is_empty() && registry.is_unfinished(&key, &refused));
        let _again = guard(&registry, &key, "a");
        assert!(!registry.is_unfinished(&key, &refused));
    }

    #[test]
    fn law_k3_forgetting_one_run_keeps_other_unfinished_run() {
        let registry = Registry::default();
        let key = ConversationKey::new("c").unwrap();
        let first = registry.unfinished.register(&key, silent("a"));
        let second = registry.unfinished.register(&key, silent("a"));
        registry.unfinished.forget(&key, &first);
        assert!(!registry.is_unfinished(&key, &first) && registry.is_unfinished(&key, &second));
    }

    #[test]
    fn law_r1_bounded_leases_and_summaries_never_evict_shown_text() {
        let registry = Arc::new(Registry { leases: HeldLeases::with_most(0), ..Registry::default() });
        let key = ConversationKey::new("c").unwrap();
        let running = guard(&registry, &key, "a");
        registry.unfinished.register(&key, UnfinishedTurn { stage: Stage::AfterEnd, ..silent("b") });
        registry.note_lease(&key, FencingToken::new(1));
        running.release();
        assert!(running.lock.relock() && registry.leases.token(&key).is_none(), "evicted once no turn runs");
        registry.note_lease(&key, FencingToken::new(1));
        registry.leases.evict(&key, || registry.locks.is_held(&key));
        assert!(registry.leases.token(&key).is_some() && registry.idle_tokens().is_empty());
        drop(running);
        assert!(registry.leases.token(&key).is_none());
        assert_eq!(registry.unfinished.turns_in(&key)[0].stage, Stage::AfterEnd);
    }

    #[test]
    fn beginning_of_dropped_turn_is_kept_and_conversation_freed() {
        let registry = Arc::new(Registry::default());
        let key = ConversationKey::new("c").unwrap();
        let mut first = guard(&registry, &key, "a");
        first.unconfirmed = Some(silent("a"));
        drop(first);
        registry.unfinished.register(&key, silent("b"));
        assert_eq!(registry.unfinished.turns_in(&key).len(), 2);
        let _running = guard(&registry, &key, "c");
    }

    #[test]
    fn law_k3_fenced_text_stays_for_later_turn_here() {
        let registry = Arc::new(Registry::default());
        let (key, other) = (ConversationKey::new("c").unwrap(), ConversationKey::new("d").unwrap());
        let fenced = UnfinishedTurn { token: Some(FencingToken::new(1)), ..silent("a") };
        let fenced = registry.unfinished.register(&key, fenced);
        assert!(!registry.is_used_after(&key, &fenced), "the turn that holds the lease is elsewhere");
        {
            let _running = guard(&registry, &key, "b");
            assert!(registry.is_used_after(&key, &fenced));
            assert!(!registry.is_used_after(&other, &fenced));
        }
        assert!(!registry.is_used_after(&key, &fenced));
        registry.note_lease(&key, FencingToken::new(2));
        assert!(registry.is_used_after(&key, &fenced), "a turn had the lease and has released it");
        let newer = registry.unfinished.turns_in(&key).remove(0);
        assert!(!registry.is_used_after(&key, &newer));
        let unknown = UnfinishedTurn { number: None, ..fenced };
        assert!(!registry.is_used_after(&key, &unknown), "another run has the token");
    }

    #[test]
    fn law_k3_unconfirmed_turn_has_the_token_of_its_lease() {
        let registry = Arc::new(Registry::default());
        let key = ConversationKey::new("c").unwrap();
        let lease = Arc::new(LeaseState::new(&Turn::new(turn("a"))));
        let owner: Arc<dyn Owner> = Arc::<LeaseState>::clone(&lease);
        let lock = registry.locks.try_lock(&key, &owner).unwrap();
        let mut running = ConversationGuard::new(&registry, &lease, lock);
        running.unconfirmed = Some(UnfinishedTurn { token: Some(FencingToken::new(1)), ..silent("a") });
        drop(running);
        assert_eq!(registry.unfinished.turns_in(&key)[0].token, None, "the turn has no lease");
    }
}
