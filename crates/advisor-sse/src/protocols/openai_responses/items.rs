use std::collections::BTreeMap;

use advisor_core::{BlockId, BlockKind};
use serde_json::{Value, json};

use super::Events;
use crate::shared::turn::ClientCall;
use crate::{ApprovalId, Frames};

/// The output items of a response.
#[derive(Debug, Default)]
pub(super) struct Items {
    /// The finished items, by their number.
    finished: BTreeMap<usize, Value>,
    open: BTreeMap<BlockId, Open>,
    begun: usize,
}

/// An item that is open.
#[derive(Debug)]
struct Open {
    index: usize,
    id: String,
    kind: Kind,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Refusal,
    Reasoning,
}

impl Kind {
    fn new(kind: BlockKind) -> Option<Self> {
        match kind {
            BlockKind::Text => Some(Self::Text),
            BlockKind::Refusal => Some(Self::Refusal),
            BlockKind::Reasoning => Some(Self::Reasoning),
            _ => None,
        }
    }

    /// Returns the names of the events of the part: its start, its pieces, their end, and its end.
    fn events(self) -> [&'static str; 4] {
        match self {
            Self::Text => [
                "response.content_part.added", "response.output_text.delta", "response.output_text.done",
                "response.content_part.done",
            ],
            Self::Refusal => [
                "response.content_part.added", "response.refusal.delta", "response.refusal.done",
                "response.content_part.done",
            ],
            Self::Reasoning => [
                "response.reasoning_summary_part.added",
                "response.reasoning_summary_text.delta",
                "response.reasoning_summary_text.done",
                "response.reasoning_summary_part.done",
            ],
        }
    }

    fn part(self, text: &str) -> Value {
        match self {
            Self::Text => json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []}),
            Self::Refusal => json!({"type": "refusal", "refusal": text}),
            Self::Reasoning => json!({"type": "summary_text", "text": text}),
        }
    }
}

impl Open {
    fn item(&self, status: &str, parts: &[Value]) -> Value {
        match self.kind {
            Kind::Text | Kind::Refusal => json!({
                "type": "message", "id": self.id, "status": status, "role": "assistant", "content": parts,
            }),
            Kind::Reasoning => json!({"type": "reasoning", "id": self.id, "summary": parts}),
        }
    }

    /// Returns the fields that name the part, and one more.
    fn place(&self, field: &str, value: Value) -> Value {
        let number = if self.kind == Kind::Reasoning { "summary_index" } else { "content_index" };
        let mut place = json!({"item_id": self.id, "output_index": self.index, number: 0});
        if let Some(fields) = place.as_object_mut() {
            fields.insert(field.into(), value);
            if self.kind == Kind::Text && field != "part" {
                fields.insert("logprobs".into(), json!([]));
            }
        }
        place
    }
}

impl Items {
    pub(super) fn finished(&self) -> Vec<&Value> {
        self.finished.values().collect()
    }

    pub(super) fn open(
        &mut self,
        block: BlockId,
        kind: BlockKind,
        place: &str,
        events: &mut Events,
        frames: &mut Frames,
    ) {
        let Some(kind) = Kind::new(kind) else { return };
        let prefix = if kind == Kind::Reasoning { "rs" } else { "msg" };
        let (index, id) = (self.next(), format!("{prefix}_{place}"));
        let open = Open { index, id, kind, text: String::new() };
        let item = open.item("in_progress", &[]);
        events.write("response.output_item.added", json!({"output_index": index, "item": item}), frames);
        let [added, ..] = kind.events();
        events.write(added, open.place("part", kind.part("")), frames);
        self.open.insert(block, open);
    }

    pub(super) fn piece(&mut self, block: BlockId, text: &str, events: &mut Events, frames: &mut Frames) {
        let Some(open) = self.open.get_mut(&block) else { return };
        open.text.push_str(text);
        let [_, delta, ..] = open.kind.events();
        events.write(delta, open.place("delta", text.into()), frames);
    }

    pub(super) fn close(&mut self, block: BlockId, events: &mut Events, frames: &mut Frames) {
        let Some(open) = self.open.remove(&block) else { return };
        let [.., text_done, part_done] = open.kind.events();
        let field = if open.kind == Kind::Refusal { "refusal" } else { "text" };
        events.write(text_done, open.place(field, open.text.as_str().into()), frames);
        let part = open.kind.part(&open.text);
        events.write(part_done, open.place("part", part.clone()), frames);
        self.finish(open.index, open.item("completed", &[part]), events, frames);
    }

    pub(super) fn close_all(&mut self, events: &mut Events, frames: &mut Frames) {
        let open: Vec<_> = self.open.keys().copied().collect();
        open.into_iter().for_each(|block| self.close(block, events, frames));
    }

    pub(super) fn call(
        &mut self,
        call: &ClientCall,
        response: &str,
        events: &mut Events,
        frames: &mut Frames,
    ) {
        let (index, id) = (self.next(), format!("fc_{response}_{}", call.block));
        let item = |status: &str, arguments: &str| {
            json!({
                "type": "function_call", "id": id, "status": status,
                "call_id": call.id, "name": call.call.name, "arguments": arguments,
            })
        };
        let added = json!({"output_index": index, "item": item("in_progress", "")});
        events.write("response.output_item.added", added, frames);
        let arguments = &call.call.arguments;
        let piece = json!({"item_id": id, "output_index": index, "delta": arguments});
        events.write("response.function_call_arguments.delta", piece, frames);
        let done =
            json!({"item_id": id, "output_index": index, "name": call.call.name, "arguments": arguments});
        events.write("response.function_call_arguments.done", done, frames);
        self.finish(index, item("completed", arguments), events, frames);
    }

    /// Writes a request for the approval of a call.
    pub(super) fn approval(
        &mut self,
        id: &ApprovalId,
        call: &ClientCall,
        server_label: &str,
        events: &mut Events,
        frames: &mut Frames,
    ) {
        let index = self.next();
        let item = json!({
            "type": "mcp_approval_request", "id": id.to_string(), "name": call.call.name,
            "arguments": call.call.arguments, "server_label": server_label,
        });
        events.write("response.output_item.added", json!({"output_index": index, "item": item}), frames);
        self.finish(index, item, events, frames);
    }

    /// Ends an item.
    pub(super) fn finish(&mut self, index: usize, item: Value, events: &mut Events, frames: &mut Frames) {
        events.write("response.output_item.done", json!({"output_index": index, "item": item}), frames);
        self.finished.insert(index, item);
    }

    /// Returns the place of a further item.
    pub(super) fn next(&mut self) -> usize {
        self.begun += 1;
        self.begun - 1
    }
}
