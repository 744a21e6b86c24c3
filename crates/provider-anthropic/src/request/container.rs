//! The container in which the server runs code.

use advisor_core::{MessageContent, MessageList, Text};
use serde_json::Value;

use super::assistant::own_data;
use crate::wire::CONTAINER;

/// Returns the id of the container of the running turn: that of the last answer, if only results of its calls follow it.
///
/// The API needs it for calls that its code made, and a paused answer continues in it. Containers expire, so that of an
/// earlier turn is not sent.
pub(super) fn of_running_turn(messages: &MessageList, format: &Text) -> Option<Value> {
    let last = messages.iter_back().find(|message| message.tool_result().is_none())?;
    let MessageContent::Assistant(blocks) = last.content() else { return None };
    let reports = blocks.iter().rev().flat_map(|block| own_data(block, format));
    reports.filter_map(|report| report.get(CONTAINER)?.get("id")).next().cloned()
}
