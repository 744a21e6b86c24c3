//! `UnfinishedTurns`: stopped turns whose end is not yet written, with their bound.

use advisor_core::{ConversationKey, TurnId};
use conversation_store::FencingToken;

use crate::conversation::map::{ConversationMap, Weight};
use crate::conversation::unfinished_turn::UnfinishedTurn;

/// The turns of this process that stopped before their end was written, bounded by their bytes.
pub(crate) type UnfinishedTurns = ConversationMap<Vec<UnfinishedTurn>>;

impl ConversationMap<Vec<UnfinishedTurn>> {
    /// Returns the unfinished turns of a conversation.
    pub(crate) fn turns_in(&self, key: &ConversationKey) -> Vec<UnfinishedTurn> {
        self.read(key, Vec::clone).unwrap_or_default()
    }

    /// Returns all unfinished turns, each with its conversation.
    pub(crate) fn all(&self) -> Vec<(ConversationKey, UnfinishedTurn)> {
        let of_key = |key: &ConversationKey, turns: &Vec<UnfinishedTurn>| {
            turns.iter().map(|turn| (key.clone(), turn.clone())).collect::<Vec<_>>()
        };
        self.read_all(of_key).concat()
    }

    /// Checks whether an unfinished turn of a conversation satisfies `is_it`.
    pub(crate) fn any(&self, key: &ConversationKey, is_it: impl Fn(&UnfinishedTurn) -> bool) -> bool {
        self.read(key, |turns| turns.iter().any(is_it)).unwrap_or_default()
    }

    /// Registers a turn and replaces its earlier registration. If its texts exceed the limit, it is registered
    /// without them. If it does not fit at all, it is closed as after a crash, unless the caller writes the
    /// returned value at once.
    pub(crate) fn register(&self, key: &ConversationKey, turn: UnfinishedTurn) -> UnfinishedTurn {
        let (number, id) = (self.next_number(), turn.turn.clone());
        let (registered, is_cut) = self.change(key, |turns| {
            let before = turns.weight();
            let known = turns.iter().find(|known| known.turn == turn.turn).and_then(|known| known.token);
            turns.retain(|known| known.turn != turn.turn);
            let others = self.weight().saturating_sub(before).saturating_add(turns.weight());
            let room = self.most.saturating_sub(others);
            let turn = UnfinishedTurn { token: turn.token.max(known), number: Some(number), ..turn };
            let is_cut = turn.bytes() > room;
            let kept = if is_cut { turn.clone().without_texts() } else { turn.clone() };
            if kept.bytes() > room {
                return (UnfinishedTurn { number: None, ..turn }, is_cut);
            }
            turns.push(kept);
            (turn, is_cut)
        });
        // A `tracing` subscriber may use this memory, so nothing is locked here.
        if is_cut {
            tracing::warn!(
                conversation = %key,
                turn = %id,
                "too many texts of dropped turns wait to be written, and the text of this turn is lost if it is not written at once; give the client a spawner"
            );
        }
        registered
    }

    /// Sets the fencing token of a new lease, under which these turns can be closed.
    pub(crate) fn set_token(&self, key: &ConversationKey, token: FencingToken) {
        self.change_known(key, |turns| turns.iter_mut().for_each(|turn| turn.token = Some(token)));
    }

    /// Removes a turn whose end is written.
    pub(crate) fn forget(&self, key: &ConversationKey, turn: &UnfinishedTurn) {
        self.change_known(key, |turns| turns.retain(|known| known.number != turn.number));
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

impl Weight for Vec<UnfinishedTurn> {
    const MOST: usize = 64 << 20;

    fn weight(&self) -> usize {
        self.iter().map(UnfinishedTurn::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_logs::turn;
    use advisor_core::TurnEnd;
    use conversation_store::Version;

    fn silent(name: &str) -> UnfinishedTurn {
        UnfinishedTurn::new(turn(name), Version::EMPTY, Vec::new())
    }

    #[test]
    fn law_r1_unfinished_turns_are_bounded() {
        let unfinished = UnfinishedTurns::with_most(2100);
        let with_text = |name: &str| {
            let partial = "x".repeat(500).into();
            UnfinishedTurn { end: TurnEnd::Interrupted { partial }, ..silent(name) }
        };
        let key = |name: &str| ConversationKey::new(name).unwrap();
        for name in ["a", "b", "c", "c", "d", "e"] {
            unfinished.register(&key(name), with_text(name));
        }
        let texts =
            |name: &str| unfinished.turns_in(&key(name)).iter().map(UnfinishedTurn::bytes).sum::<usize>();
        assert!(texts("c") > 500 && texts("d") < 500, "a turn that does not fit is kept without its text");
        assert_eq!(unfinished.turns_in(&key("d")).len(), 1);
        assert!(unfinished.read(&key("e"), |_| ()).is_none(), "or leaves no trace");
        unfinished.forget_turn(&key("a"), &turn("a"));
        unfinished.register(&key("e"), with_text("e"));
        assert_eq!(unfinished.turns_in(&key("e")).len(), 1, "a written turn frees its space");
        for name in ["b", "c", "d", "e"] {
            unfinished.forget_all(&key(name));
        }
        assert_eq!((unfinished.weight(), unfinished.len()), (0, 0));
    }

    #[test]
    fn law_k3_reregistered_turn_keeps_highest_fence() {
        let unfinished = UnfinishedTurns::default();
        let key = ConversationKey::new("c").unwrap();
        unfinished.register(&key, UnfinishedTurn { token: Some(FencingToken::new(7)), ..silent("a") });
        assert_eq!(unfinished.register(&key, silent("a")).token, Some(FencingToken::new(7)));
    }

    #[test]
    fn unfinished_runs_are_kept_until_written() {
        let unfinished = UnfinishedTurns::default();
        let key = ConversationKey::new("c").unwrap();
        for name in ["a", "b", "b"] {
            unfinished.register(&key, silent(name));
        }
        assert_eq!(unfinished.turns_in(&key).len(), 2);
        assert_eq!(unfinished.all().len(), 2);
        unfinished.forget_turn(&key, &turn("b"));
        assert_eq!(unfinished.turns_in(&key)[0].turn, turn("a"));
        unfinished.forget_all(&key);
        assert!(unfinished.all().is_empty());
    }

    #[test]
    fn law_r1_unfinished_turn_may_fill_the_limit() {
        let key = ConversationKey::new("c").unwrap();
        let with_text =
            UnfinishedTurn { end: TurnEnd::Interrupted { partial: "so far".into() }, ..silent("a") };
        for (most, kept) in [
            (with_text.bytes(), Some(with_text.end.clone())),
            (silent("a").bytes(), Some(silent("a").end)),
            (silent("a").bytes() - 1, None),
        ] {
            let unfinished = UnfinishedTurns::with_most(most);
            let registered = unfinished.register(&key, with_text.clone());
            assert_eq!(registered.number.is_some(), kept.is_some());
            assert_eq!(unfinished.turns_in(&key).pop().map(|turn| turn.end), kept);
        }
    }
}
