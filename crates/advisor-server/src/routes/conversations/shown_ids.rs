//! `ShownIds`: the ids of calls and results, as in the stream of their turn.

use std::collections::{HashMap, VecDeque};

use advisor_core::{Message, Role, Text, ToolResult};
use advisor_sse::CallIds;

/// The ids of calls and their results, as in the stream of their turn.
#[derive(Debug, Clone, Default)]
pub(in crate::routes) struct ShownIds {
    turn: CallIds,
    /// The ids of the calls of the last answer, by the id in memory. Their results follow, perhaps in the next turn.
    open: HashMap<Text, VecDeque<Text>>,
}

impl ShownIds {
    pub(in crate::routes) fn begin_turn(&mut self) {
        self.turn = CallIds::default();
    }

    /// Begins a turn whose calls' ids all end so.
    pub(in crate::routes) fn begin_turn_with(&mut self, suffix: String) {
        self.turn = CallIds::with_suffix(suffix);
    }

    /// Takes note of the ids of a message that is shown elsewhere.
    pub(in crate::routes) fn pass(&mut self, message: &Message) {
        match message.tool_result() {
            Some(result) => drop(self.of_result(result)),
            None if message.role() == Role::Assistant => drop(self.of_calls(message)),
            None => {}
        }
    }

    /// Returns the ids of the calls of an answer, in their order.
    pub(in crate::routes) fn of_calls(&mut self, answer: &Message) -> Vec<String> {
        self.open.clear();
        let ids = answer.tool_calls().map(|call| {
            let id = self.turn.next_id(&call.id);
            self.open.entry(call.id.clone()).or_default().push_back(id.clone());
            id.to_string()
        });
        ids.collect()
    }

    /// Returns the id of the call of a result.
    pub(in crate::routes) fn of_result(&mut self, result: &ToolResult) -> String {
        let open = self.open.get_mut(&result.call_id).and_then(VecDeque::pop_front);
        open.unwrap_or_else(|| result.call_id.clone()).to_string()
    }
}
