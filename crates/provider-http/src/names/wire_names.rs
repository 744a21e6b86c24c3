//! The call ids and the tool names of one request.

use advisor_core::{Message, Text};

use super::call_ids::{CallIds, IdRule};
use super::tool_names::{NameRule, ToolNames};

/// The call ids and tool names of one request on the wire.
#[derive(Debug)]
pub struct WireNames {
    /// The call ids.
    pub ids: CallIds,
    /// The tool names.
    pub tools: ToolNames,
}

impl WireNames {
    /// Creates the usual names, which do not depend on the rest of the request. A message that is written with
    /// them can be kept for later requests.
    #[must_use]
    pub fn usual(ids: IdRule, tools: NameRule) -> Self {
        Self { ids: CallIds::usual(ids), tools: ToolNames::usual(tools) }
    }

    /// Checks whether the call ids and tool names of a message are sent unchanged.
    #[must_use]
    pub fn accepts(&self, message: &Message) -> bool {
        Self::ids_in(message).all(|id| self.ids.accepts(id))
            && Self::tools_in(message).all(|name| self.tools.accepts(name))
    }

    /// Checks whether an id or a name in a message differs from its usual wire form.
    #[must_use]
    pub fn is_special(&self, message: &Message) -> bool {
        Self::ids_in(message).any(|id| self.ids.is_special(id))
            || Self::tools_in(message).any(|name| self.tools.is_special(name))
    }

    /// Returns the ids of the calls that a message makes or answers.
    pub fn ids_in(message: &Message) -> impl Iterator<Item = &Text> {
        let answered = message.tool_result().map(|result| &result.call_id);
        message.tool_calls().map(|call| &call.id).chain(answered)
    }

    /// Returns the names of the tools that a message calls or answers for.
    pub fn tools_in(message: &Message) -> impl Iterator<Item = &Text> {
        let answered = message.tool_result().map(|result| &result.name);
        message.tool_calls().map(|call| &call.name).chain(answered)
    }
}
