use std::collections::HashSet;

use crate::CallKey;

/// The calls of a turn that are not to be started again: an extension of the [`Turn`](crate::Turn).
///
/// A turn that was cut off and is submitted again under its id is run a second time. Whoever knows what the
/// earlier run did leaves it here before the loop comes to its calls, or in a recorder at
/// [`Step::Started`](crate::Step::Started). The loop adds what it starts itself.
///
/// # Example
/// ```
/// use advisor_core::{CallKey, StartedCalls, Turn, TurnId};
///
/// let turn = Turn::new(TurnId::new("t")?);
/// let key = CallKey::new(turn.id().clone(), 1, 0);
/// turn.extensions().update(|started: &mut StartedCalls| started.note(key.clone()));
/// assert!(turn.extensions().get::<StartedCalls>().is_some_and(|started| started.contains(&key)));
/// # Ok::<(), advisor_core::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartedCalls {
    keys: HashSet<CallKey>,
    repeated: HashSet<u32>,
}

impl StartedCalls {
    /// Notes that the start of this call is recorded: it is not run again.
    pub fn note(&mut self, key: CallKey) {
        self.keys.insert(key);
    }

    /// Notes that the answer of this round is repeated: it was given in an earlier run of the turn, so that any of its
    /// calls may have been started then. Those of tools that say nothing of their [`Effect`](crate::Effect) are not
    /// run again. It is repeated in the round that it was given in, so that its calls keep their keys.
    pub fn note_repeated(&mut self, round: u32) {
        self.repeated.insert(round);
    }

    /// Whether the start of this call is recorded.
    #[must_use]
    pub fn contains(&self, key: &CallKey) -> bool {
        self.keys.contains(key)
    }

    /// Whether the answer of this round was given in an earlier run of the turn.
    #[must_use]
    pub fn is_repeated(&self, round: u32) -> bool {
        self.repeated.contains(&round)
    }
}
