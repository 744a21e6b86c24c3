//! `ClientSideAnswer`: turn extension with the recorded answer whose calls are client-side.

use std::collections::HashSet;

use advisor_core::{BlockId, ChatResponse};

/// The recorded answer with client-side calls: an extension of the turn.
#[derive(Clone)]
pub(crate) struct ClientSideAnswer {
    pub(crate) answer: ChatResponse,
    /// The blocks of the client-side calls. The other calls have results.
    pub(crate) open: HashSet<BlockId>,
}
