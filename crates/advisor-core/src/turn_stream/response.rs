//! `TurnResponse`: the final response together with its turn.

use std::ops::Deref;
use std::sync::Arc;

use message_aggregator::ChatResponse;

use crate::{Turn, TurnId};

/// The response that ended a turn, with the turn; it dereferences to [`ChatResponse`].
///
/// It keeps the extensions of the turn alive; [`into_response`](Self::into_response) releases them.
#[derive(Debug, Clone)]
pub struct TurnResponse {
    response: ChatResponse,
    turn: Arc<Turn>,
}

impl TurnResponse {
    pub(crate) fn new(response: ChatResponse, turn: Arc<Turn>) -> Self {
        Self { response, turn }
    }

    /// Returns the turn's id.
    #[must_use]
    pub fn turn_id(&self) -> &TurnId {
        self.turn.id()
    }

    /// Returns the turn with its extensions.
    #[must_use]
    pub fn turn(&self) -> &Arc<Turn> {
        &self.turn
    }

    /// Returns the response alone.
    #[must_use]
    pub fn into_response(self) -> ChatResponse {
        self.response
    }
}

impl Deref for TurnResponse {
    type Target = ChatResponse;

    fn deref(&self) -> &ChatResponse {
        &self.response
    }
}

impl From<TurnResponse> for ChatResponse {
    fn from(response: TurnResponse) -> Self {
        response.response
    }
}
