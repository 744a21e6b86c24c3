use advisor_core::ChatResponse;

/// The answer whose calls the loop has left to the caller, as it is recorded: an extension of the turn.
#[derive(Clone)]
pub(crate) struct HandedOut(pub(crate) ChatResponse);
