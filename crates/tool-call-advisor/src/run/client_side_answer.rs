use advisor_core::ChatResponse;

/// The recorded answer with client-side calls: an extension of the turn.
#[derive(Clone)]
pub(crate) struct ClientSideAnswer(pub(crate) ChatResponse);
