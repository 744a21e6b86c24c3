//! `DecidedResults`: the results of the decided calls of a turn.

use advisor_core::{Message, TurnId};

/// The results of the decided calls of a turn.
#[derive(Debug)]
pub(crate) struct DecidedResults {
    /// The turn that asked, if the calls ran in this attempt. The results belong to its calls.
    pub(crate) asked: Option<TurnId>,
    pub(crate) results: Vec<Message>,
}
