//! Construction of turn streams; nothing happens before they are polled.

use std::sync::Arc;

use tracing::Span;

use crate::turn::side_tasks::AttachedTasks;
use crate::turn_stream::beginning::Beginning;
use crate::turn_stream::control::TurnControl;
use crate::turn_stream::delivered::Delivered;
use crate::turn_stream::state::State;
use crate::{AdvisorChain, ChatRequest, OnDrop, Result, Turn, TurnStream};

impl AdvisorChain {
    /// Creates a turn of this chain. Nothing happens before it is polled.
    pub fn stream(&self, request: ChatRequest) -> TurnStream {
        TurnStream::new(Arc::clone(&request.turn), Ok(Box::new(Beginning { chain: self.clone(), request })))
    }
}

impl TurnStream {
    /// Creates the turn; `begin` is its beginning, or the error with which it ends.
    pub(crate) fn new(turn: Arc<Turn>, begin: Result<Box<Beginning>>) -> Self {
        Self {
            state: State::Waiting(begin),
            turn,
            control: TurnControl::new(),
            delivered: Delivered::default(),
            on_drop: OnDrop::KeepPartial,
            spawner: None,
            beside: AttachedTasks::default(),
            span: Span::none(),
            in_poll: false,
        }
    }
}
