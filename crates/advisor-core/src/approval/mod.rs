//! Calls that wait for their caller, and decisions about them.

pub(crate) mod decision;
pub(crate) mod observer;
pub(crate) mod parts;

use std::fmt;

use message_aggregator::{Text, ToolCall};
use serde::{Deserialize, Serialize};

use crate::CallKey;

/// A call that its turn left to the caller, and that has no result yet.
///
/// It has a JSON form, so that a person in another process sees it and decides.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientSideCall {
    /// The permanent key of the call, the same in every process.
    ///
    /// `None` if the answer was written by a version that did not store rounds.
    pub key: Option<CallKey>,
    /// The call that the model made.
    pub call: ToolCall,
    /// Whether its start is recorded: it runs or ran, and its result is still to come.
    pub started: bool,
    /// The [digest](crate::ToolDefinition::digest) of its tool's definition, as the model was offered it. `None` if the
    /// loop did not know the tool, and for a call that an older version stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Text>,
}

impl ClientSideCall {
    /// Creates a call that was not started.
    #[must_use]
    pub fn new(key: Option<CallKey>, call: ToolCall) -> Self {
        Self { key, call, started: false, definition: None }
    }
}

impl fmt::Debug for ClientSideCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments are content and must not be logged.
        f.debug_struct("ClientSideCall")
            .field("key", &self.key)
            .field("name", &self.call.name)
            .field("started", &self.started)
            .finish_non_exhaustive()
    }
}
