//! `Known`: the turns of this process that run or have ended lately.

use std::collections::{HashMap, VecDeque};

use advisor_core::{ConversationKey, TurnId};

use super::elsewhere::Relayed;
use super::run::Run;
use crate::turns::run::Said;

/// The turns of this process that run, and those that ended lately.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) turns: HashMap<TurnKey, Entry>,
    /// The keys in the order of their start.
    pub(super) order: VecDeque<TurnKey>,
}

/// A conversation, and the turn in it.
pub(super) type TurnKey = (ConversationKey, TurnId);

/// A turn of this process.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) run: Run,
    /// The digest of its input.
    pub(super) input: String,
    /// The messages of the user in it.
    pub(super) said: Vec<Said>,
    pub(super) relayed: Relayed,
}

impl Entry {
    /// Checks whether this process owns the turn, as far as it knows.
    pub(super) fn is_owned(&self) -> bool {
        !self.relayed.is_copy()
    }
}

impl Known {
    /// Returns a turn that a repeated request joins. A void one begins again instead.
    pub(super) fn submitted(&self, key: &TurnKey) -> Option<&Entry> {
        self.owned(key).filter(|entry| !entry.run.is_void())
    }

    /// Returns a turn, unless another process owns it.
    pub(super) fn owned(&self, key: &TurnKey) -> Option<&Entry> {
        self.turns.get(key).filter(|entry| entry.is_owned())
    }

    pub(super) fn remove(&mut self, key: &TurnKey) {
        self.turns.remove(key);
        self.order.retain(|other| other != key);
    }

    /// Removes the oldest of these turns that have ended, beyond this number.
    pub(super) fn forget_ended(&mut self, most: usize, among: impl Fn(&TurnKey) -> bool) {
        let ended = |turns: &HashMap<TurnKey, Entry>, key: &TurnKey| {
            among(key) && turns.get(key).is_none_or(|entry| entry.run.turn.has_ended())
        };
        let mut surplus =
            self.order.iter().filter(|key| ended(&self.turns, key)).count().saturating_sub(most);
        let turns = &mut self.turns;
        self.order.retain(|key| {
            let goes = surplus > 0 && ended(turns, key);
            if goes {
                surplus -= 1;
                turns.remove(key);
            }
            !goes
        });
    }
}
