//! The state that an application shares with its AG-UI page.

use std::fmt;

use advisor_core::Chunk;
use serde_json::Value;

type After = dyn FnMut(&Chunk) -> Option<Value> + Send;

/// The state that the application shares with its page.
pub(super) struct SharedState(Box<After>);

impl SharedState {
    pub(super) fn new(after: impl FnMut(&Chunk) -> Option<Value> + Send + 'static) -> Self {
        Self(Box::new(after))
    }

    /// Returns the state after a chunk, if the chunk changes it.
    pub(super) fn after(&mut self, chunk: &Chunk) -> Option<Value> {
        (self.0)(chunk)
    }
}

impl fmt::Debug for SharedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedState").finish_non_exhaustive()
    }
}
