//! The calls of server tools, as items `mcp_call`.

use std::collections::BTreeMap;

use advisor_core::{BlockId, ToolEvent, ToolResult};
use serde_json::{Value, json};

use super::Events;
use super::items::Items;
use crate::Frames;

/// The calls of server tools that run, as items `mcp_call`.
#[derive(Debug, Default)]
pub(super) struct Tools {
    running: BTreeMap<BlockId, Call>,
}

#[derive(Debug)]
struct Call {
    index: usize,
    id: String,
    name: String,
    server: String,
    arguments: String,
}

impl Call {
    fn item(&self, status: &str, arguments: &str) -> Value {
        json!({
            "type": "mcp_call", "id": self.id, "status": status, "server_label": self.server, "name": self.name,
            "arguments": arguments, "output": null, "error": null, "approval_request_id": null,
        })
    }

    /// Returns the fields that name the item, and one more.
    fn place(&self, field: Option<(&str, Value)>) -> Value {
        let mut place = json!({"item_id": self.id, "output_index": self.index});
        if let (Some(fields), Some((field, value))) = (place.as_object_mut(), field) {
            fields.insert(field.into(), value);
        }
        place
    }
}

impl Tools {
    /// Begins the item of a call, unless it has begun. `of` is the end of its id, and the name of the server.
    pub(super) fn begin(
        &mut self,
        event: &ToolEvent,
        arguments: &str,
        (place, server): (&str, &str),
        items: &mut Items,
        events: &mut Events,
        frames: &mut Frames,
    ) {
        if self.running.contains_key(&event.block) {
            return;
        }
        let call = Call {
            index: items.next(),
            id: format!("mcp_{place}"),
            name: event.name.to_string(),
            server: server.to_owned(),
            arguments: arguments.to_owned(),
        };
        let added = json!({"output_index": call.index, "item": call.item("in_progress", "")});
        events.write("response.output_item.added", added, frames);
        events.write("response.mcp_call.in_progress", call.place(None), frames);
        let piece = call.place(Some(("delta", arguments.into())));
        events.write("response.mcp_call_arguments.delta", piece, frames);
        let all = call.place(Some(("arguments", arguments.into())));
        events.write("response.mcp_call_arguments.done", all, frames);
        self.running.insert(event.block, call);
    }

    /// Ends the item of a call with its result.
    pub(super) fn end(
        &mut self,
        block: BlockId,
        result: &ToolResult,
        items: &mut Items,
        events: &mut Events,
        frames: &mut Frames,
    ) {
        let Some(call) = self.running.remove(&block) else { return };
        let text = result.text();
        let (name, status, field, value) = match result.is_error {
            true => {
                let content = json!([{"type": "text", "text": text}]);
                let error = json!({"type": "mcp_tool_execution_error", "content": content});
                ("response.mcp_call.failed", "failed", "error", error)
            }
            false => ("response.mcp_call.completed", "completed", "output", text.into()),
        };
        events.write(name, call.place(None), frames);
        let mut item = call.item(status, &call.arguments);
        if let Some(fields) = item.as_object_mut() {
            fields.insert(field.into(), value);
        }
        items.finish(call.index, item, events, frames);
    }
}
