use advisor_core::{ConversationKey, TurnId};
use conversation_store::FencingToken;

use crate::conversation::interrupted_turn::InterruptedTurn;
use crate::conversation::map::{ConversationMap, Weight};

/// The turns of this process that stopped before their end was written, bounded by their bytes.
pub(crate) type UnfinishedTurns = ConversationMap<Vec<InterruptedTurn>>;

impl ConversationMap<Vec<InterruptedTurn>> {
    /// Returns the unfinished turns of a conversation.
    pub(crate) fn of(&self, key: &ConversationKey) -> Vec<InterruptedTurn> {
        self.read(key, Vec::clone).unwrap_or_default()
    }

    /// Returns all unfinished turns, each with its conversation.
    pub(crate) fn all(&self) -> Vec<(ConversationKey, InterruptedTurn)> {
        let of_key = |key: &ConversationKey, turns: &Vec<InterruptedTurn>| {
            turns.iter().map(|turn| (key.clone(), turn.clone())).collect::<Vec<_>>()
        };
        self.read_all(of_key).concat()
    }

    /// Checks whether an unfinished turn of a conversation satisfies `is_it`.
    pub(crate) fn any(&self, key: &ConversationKey, is_it: impl Fn(&InterruptedTurn) -> bool) -> bool {
        self.read(key, |turns| turns.iter().any(is_it)).unwrap_or_default()
    }

    /// Registers a turn and replaces its earlier registration. If its texts exceed the limit, it is registered
    /// without them. If it does not fit at all, it is closed as after a crash, unless the caller writes the
    /// returned value at once.
    pub(crate) fn leave(&self, key: &ConversationKey, turn: InterruptedTurn) -> InterruptedTurn {
        let (number, id) = (self.next_number(), turn.turn.clone());
        let (left, is_cut) = self.change(key, |turns| {
            let before = turns.weight();
            let known = turns.iter().find(|known| known.turn == turn.turn).and_then(|known| known.token);
            turns.retain(|known| known.turn != turn.turn);
            let others = self.weight().saturating_sub(before).saturating_add(turns.weight());
            let room = self.most.saturating_sub(others);
            let left = InterruptedTurn { token: turn.token.max(known), number: Some(number), ..turn };
            let is_cut = left.bytes() > room;
            let kept = if is_cut { left.clone().without_texts() } else { left.clone() };
            if kept.bytes() > room {
                return (InterruptedTurn { number: None, ..left }, is_cut);
            }
            turns.push(kept);
            (left, is_cut)
        });
        // A `tracing` subscriber may use this memory, so nothing is locked here.
        if is_cut {
            tracing::warn!(
                conversation = %key,
                turn = %id,
                "too many texts of dropped turns wait to be written, and the text of this turn is lost if it is not written at once; give the client a spawner"
            );
        }
        left
    }

    /// Sets the fencing token of a new lease, under which these turns can be closed.
    pub(crate) fn set_token(&self, key: &ConversationKey, token: FencingToken) {
        self.change_known(key, |turns| turns.iter_mut().for_each(|turn| turn.token = Some(token)));
    }

    /// Removes a turn whose end is written.
    pub(crate) fn forget(&self, key: &ConversationKey, left: &InterruptedTurn) {
        self.change_known(key, |turns| turns.retain(|known| known.number != left.number));
    }

    /// Removes all runs of a turn: its end is written, or the turn continues.
    pub(crate) fn forget_turn(&self, key: &ConversationKey, turn: &TurnId) {
        self.change_known(key, |turns| turns.retain(|known| known.turn != *turn));
    }

    /// Removes all turns of a conversation: every turn before the running one is closed.
    pub(crate) fn forget_all(&self, key: &ConversationKey) {
        self.change_known(key, Vec::clear);
    }
}

impl Weight for Vec<InterruptedTurn> {
    const MOST: usize = 64 << 20;

    fn weight(&self) -> usize {
        self.iter().map(InterruptedTurn::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_logs::turn;
    use advisor_core::TurnEnd;
    use conversation_store::Version;

    fn silent(name: &str) -> InterruptedTurn {
        InterruptedTurn::beginning(turn(name), Version::EMPTY, Vec::new())
    }

    #[test]
    fn law_r1_unfinished_turns_are_bounded() {
        let unfinished = UnfinishedTurns::with_most(2000);
        let left = |name: &str| {
            let partial = "x".repeat(500).into();
            InterruptedTurn { end: TurnEnd::Interrupted { partial }, ..silent(name) }
        };
        let key = |name: &str| ConversationKey::new(name).unwrap();
        for name in ["a", "b", "c", "c", "d", "e"] {
            unfinished.leave(&key(name), left(name));
        }
        let texts = |name: &str| unfinished.of(&key(name)).iter().map(InterruptedTurn::bytes).sum::<usize>();
        assert!(texts("c") > 500 && texts("d") < 500, "a turn that does not fit is kept without its text");
        assert!(unfinished.read(&key("e"), |_| ()).is_none(), "or leaves no trace");
        unfinished.forget_turn(&key("a"), &turn("a"));
        unfinished.leave(&key("e"), left("e"));
        assert_eq!(unfinished.of(&key("e")).len(), 1, "a written turn frees its space");
        for name in ["b", "c", "e"] {
            unfinished.forget_all(&key(name));
        }
        assert_eq!((unfinished.weight(), unfinished.len()), (0, 0));
    }

    #[test]
    fn law_k3_reregistered_turn_keeps_highest_fence() {
        let unfinished = UnfinishedTurns::default();
        let key = ConversationKey::new("c").unwrap();
        unfinished.leave(&key, InterruptedTurn { token: Some(FencingToken::new(7)), ..silent("a") });
        assert_eq!(unfinished.leave(&key, silent("a")).token, Some(FencingToken::new(7)));
    }

    #[test]
    fn unfinished_runs_are_kept_until_written() {
        let unfinished = UnfinishedTurns::default();
        let key = ConversationKey::new("c").unwrap();
        for name in ["a", "b", "b"] {
            unfinished.leave(&key, silent(name));
        }
        assert_eq!(unfinished.of(&key).len(), 2);
        assert_eq!(unfinished.all().len(), 2);
        unfinished.forget_turn(&key, &turn("b"));
        assert_eq!(unfinished.of(&key)[0].turn, turn("a"));
        unfinished.forget_all(&key);
        assert!(unfinished.all().is_empty());
    }
}
