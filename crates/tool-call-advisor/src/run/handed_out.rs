use advisor_core::ChatResponse;

/// The recorded answer whose calls the loop left to the caller: an extension of the turn.
#[derive(Clone)]
pub(crate) struct HandedOut(pub(crate) ChatResponse);
