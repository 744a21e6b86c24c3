//! `StartedCalls`: turn extension that lists started calls and repeated rounds.

use std::collections::HashSet;

use crate::CallKey;

/// Calls of a turn that must not be started again: an extension of the [`Turn`](crate::Turn).
///
/// A turn that was interrupted and is submitted again under its id runs a second time. An advisor that knows the
/// calls of the earlier run notes them here before the loop reaches them. A recorder can do so at
/// [`Step::Started`](crate::Step::Started). The loop adds the calls that it starts.
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
    /// Notes that the start of this call is recorded, so that it is not run again.
    pub fn note(&mut self, key: CallKey) {
        self.keys.insert(key);
    }

    /// Notes that the answer of this round repeats one of an earlier run, so that any of its calls may have been
    /// started then. Calls of tools that declare no [`Effect`](crate::Effect) are not run again. The answer must
    /// keep its round number, so that its calls keep their keys.
    pub fn note_repeated(&mut self, round: u32) {
        self.repeated.insert(round);
    }

    /// Checks whether the start of this call is recorded.
    #[must_use]
    pub fn contains(&self, key: &CallKey) -> bool {
        self.keys.contains(key)
    }

    /// Checks whether the answer of this round repeats one of an earlier run.
    #[must_use]
    pub fn is_repeated(&self, round: u32) -> bool {
        self.repeated.contains(&round)
    }
}
