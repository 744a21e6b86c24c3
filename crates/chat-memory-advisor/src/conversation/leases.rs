//! `HeldLeases`: fencing tokens and unanswered requests of leases that this process may hold, with their bound.

use advisor_core::{ConversationKey, TurnId};
use conversation_store::FencingToken;

use crate::conversation::map::{ConversationMap, Weight};
use crate::conversation::unfinished_turn::OVERHEAD;

/// The leases that this process may hold in the store, bounded by their bytes.
pub(crate) type HeldLeases = ConversationMap<HeldLease>;

/// The lease of a conversation, as far as this process knows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeldLease {
    /// The fencing token of the running turn; or of the last one, if its lease could not be released.
    pub(crate) token: Option<FencingToken>,
    /// Turns that requested the lease and received no answer; the store may have granted it.
    pub(crate) unanswered_requests: Vec<TurnId>,
}

impl ConversationMap<HeldLease> {
    pub(crate) fn lease(&self, key: &ConversationKey) -> HeldLease {
        self.read(key, HeldLease::clone).unwrap_or_default()
    }

    pub(crate) fn token(&self, key: &ConversationKey) -> Option<FencingToken> {
        self.read(key, |lease| lease.token).flatten()
    }

    /// Returns all fencing tokens, each with its conversation.
    pub(crate) fn tokens(&self) -> Vec<(ConversationKey, FencingToken)> {
        let tokens = self.read_all(|key, lease| Some((key.clone(), lease.token?)));
        tokens.into_iter().flatten().collect()
    }

    /// Notes that a turn requests the lease.
    pub(crate) fn note_request(&self, key: &ConversationKey, turn: &TurnId) {
        self.change(key, |lease| lease.unanswered_requests.push(turn.clone()));
    }

    /// Notes that the store has answered a request of the turn.
    pub(crate) fn note_answer(&self, key: &ConversationKey, turn: &TurnId) {
        self.change_known(key, |lease| {
            if let Some(asked) = lease.unanswered_requests.iter().rposition(|asked| asked == turn) {
                lease.unanswered_requests.remove(asked);
            }
        });
    }

    /// Forgets the requests without an answer: another lease was granted, so they had no effect.
    pub(crate) fn forget_requests(&self, key: &ConversationKey) {
        self.change_known(key, |lease| lease.unanswered_requests.clear());
    }

    pub(crate) fn set_token(&self, key: &ConversationKey, token: FencingToken) {
        self.change(key, |lease| lease.token = Some(token));
    }

    /// Notes that the store has released the lease with this fencing token.
    pub(crate) fn note_released(&self, key: &ConversationKey, token: FencingToken) {
        self.change_known(key, |lease| _ = lease.token.take_if(|held| *held == token));
    }

    /// Removes the lease of a conversation if all leases exceed the limit and no turn runs under it. This is safe:
    /// a lease expires.
    ///
    /// `is_running` is called while the lease cannot change. So a turn that has begun since notes its own lease
    /// afterwards.
    pub(crate) fn evict(&self, key: &ConversationKey, is_running: impl FnOnce() -> bool) {
        if self.weight() > self.most {
            self.change_known(key, |lease| {
                if !is_running() {
                    *lease = HeldLease::default();
                }
            });
        }
    }
}

impl Weight for HeldLease {
    const MOST: usize = 8 << 20;

    fn weight(&self) -> usize {
        (usize::from(self.token.is_some()) + self.unanswered_requests.len()) * OVERHEAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_logs::turn;

    #[test]
    fn law_r1_leases_without_turn_are_bounded() {
        let leases = HeldLeases::with_most(10 * OVERHEAD);
        let key = |name: usize| ConversationKey::new(&format!("c{name}")).unwrap();
        for name in 0..100 {
            leases.set_token(&key(name), FencingToken::new(1));
            leases.note_request(&key(name), &turn("t"));
            leases.evict(&key(name), || false);
        }
        assert!(leases.len() <= 11, "{}", leases.len());
        leases.set_token(&key(99), FencingToken::new(1));
        leases.evict(&key(99), || true);
        assert!(leases.token(&key(99)).is_some(), "that of a running turn stays");
    }

    #[test]
    fn lease_is_released_by_its_token_and_requests_end_with_a_grant() {
        let leases = HeldLeases::default();
        let key = ConversationKey::new("c").unwrap();
        leases.note_request(&key, &turn("a"));
        leases.note_request(&key, &turn("b"));
        leases.set_token(&key, FencingToken::new(2));
        leases.note_released(&key, FencingToken::new(1));
        assert_eq!(leases.token(&key), Some(FencingToken::new(2)), "another lease was released");
        leases.note_released(&key, FencingToken::new(2));
        assert_eq!(leases.token(&key), None);
        assert_eq!(leases.lease(&key).unanswered_requests, [turn("a"), turn("b")]);
        leases.forget_requests(&key);
        assert!(leases.lease(&key).unanswered_requests.is_empty());
        assert_eq!(leases.weight(), 0);
    }

    #[test]
    fn law_r1_leases_at_the_limit_stay() {
        let leases = HeldLeases::with_most(OVERHEAD);
        let key = ConversationKey::new("c").unwrap();
        leases.set_token(&key, FencingToken::new(1));
        leases.evict(&key, || false);
        assert!(leases.token(&key).is_some());
    }
}
