//! The running turn: the answers and results behind the user's last message.
//!
//! The server may wait for results there, or for the next request, also over several answers. So all of it goes back,
//! until the user's next message ends it.

use advisor_core::{Message, MessageList, Text};
use serde_json::Value;

use super::message::WireRole;
use super::server_tools::own_data;
use crate::wire::CONTAINER;

/// Returns the number of messages before the running turn.
pub(super) fn messages_before(messages: &[&Message]) -> usize {
    messages.iter().rposition(|message| ends_turn(message)).map_or(0, |last| last + 1)
}

/// Returns the id of the container that the running turn named last.
///
/// The API needs it for calls that a program in the container made, and a paused answer continues in it. An answer need
/// not name it again. Containers expire, so that of an earlier turn is not sent.
pub(super) fn container(messages: &MessageList, format: &Text) -> Option<Value> {
    let turn = messages.iter_back().take_while(|message| !ends_turn(message));
    let reports =
        turn.flat_map(|message| message.blocks().iter().rev()).flat_map(|block| own_data(block, format));
    reports.filter_map(|report| report.get(CONTAINER)?.get("id")).next().cloned()
}

/// Checks whether a message is content of the user beside results of tools.
fn ends_turn(message: &Message) -> bool {
    WireRole::from_message(message) == WireRole::User && message.tool_result().is_none()
}
