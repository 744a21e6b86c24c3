//! The output items of a response.

use std::collections::BTreeMap;

use advisor_core::{BlockId, BlockKind, Citation};
use serde_json::{Value, json};

use super::Events;
use crate::shared::cited_text::CitedText;
use crate::shared::turn::ClientCall;
use crate::{ApprovalId, Frames};

/// The output items of a response.
#[derive(Debug, Default)]
pub(super) struct Items {
    /// The finished items, by their number.
    finished: BTreeMap<usize, Value>,
    open: BTreeMap<BlockId, Open>,
    /// A text that has closed, and ends once no citation can follow.
    closed: Option<Open>,
    begun: usize,
}

/// An item that is open.
#[derive(Debug)]
struct Open {
    index: usize,
    id: String,
    kind: Kind,
    text: String,
    annotations: Vec<Value>,
    cited: CitedText,
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

    fn part(self, text: &str, annotations: &[Value]) -> Value {
        match self {
            Self::Text => {
                json!({"type": "output_text", "text": text, "annotations": annotations, "logprobs": []})
            }
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
            if self.kind == Kind::Text && !matches!(field, "part" | "annotation") {
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
        let open = Open {
            index,
            id,
            kind,
            text: String::new(),
            annotations: Vec::new(),
            cited: CitedText::default(),
        };
        let item = open.item("in_progress", &[]);
        events.write("response.output_item.added", json!({"output_index": index, "item": item}), frames);
        let [added, ..] = kind.events();
        events.write(added, open.place("part", kind.part("", &[])), frames);
        self.open.insert(block, open);
    }

    pub(super) fn piece(&mut self, block: BlockId, text: &str, events: &mut Events, frames: &mut Frames) {
        let Some(open) = self.open.get_mut(&block) else { return };
        open.text.push_str(text);
        let [_, delta, ..] = open.kind.events();
        events.write(delta, open.place("delta", text.into()), frames);
    }

    /// Adds a citation to the last text, or to an empty one of its own. One without an address is left out.
    pub(super) fn cite(
        &mut self,
        block: BlockId,
        citation: &Citation,
        place: &str,
        events: &mut Events,
        frames: &mut Frames,
    ) {
        if citation.url.is_none() {
            return;
        }
        if self.last_text().is_none() {
            self.open(block, BlockKind::Text, place, events, frames);
            self.close(block, events, frames);
        }
        let last = self.last_text();
        let mut texts = self.open.values_mut().chain(&mut self.closed);
        let Some(open) = texts.find(|open| Some(open.index) == last) else { return };
        let Some(mut annotation) = open.cited.citation(citation, 0, open.text.chars().count()) else {
            return;
        };
        if let Some(fields) = annotation.as_object_mut() {
            fields.insert("type".into(), "url_citation".into());
        }
        let mut event = open.place("annotation", annotation.clone());
        if let Some(fields) = event.as_object_mut() {
            fields.insert("annotation_index".into(), open.annotations.len().into());
        }
        open.annotations.push(annotation);
        events.write("response.output_text.annotation.added", event, frames);
    }

    /// Returns the place of the last text that has not ended.
    fn last_text(&self) -> Option<usize> {
        let texts = self.open.values().chain(&self.closed).filter(|open| open.kind == Kind::Text);
        texts.map(|open| open.index).max()
    }

    /// Closes a block. A text stays open for its citations, until [`settle`](Self::settle).
    pub(super) fn close(&mut self, block: BlockId, events: &mut Events, frames: &mut Frames) {
        let Some(open) = self.open.remove(&block) else { return };
        if open.kind == Kind::Text {
            self.settle(events, frames);
            self.closed = Some(open);
        } else {
            self.end(&open, events, frames);
        }
    }

    /// Ends the text that has closed.
    pub(super) fn settle(&mut self, events: &mut Events, frames: &mut Frames) {
        if let Some(open) = self.closed.take() {
            self.end(&open, events, frames);
        }
    }

    fn end(&mut self, open: &Open, events: &mut Events, frames: &mut Frames) {
        let [.., text_done, part_done] = open.kind.events();
        let field = if open.kind == Kind::Refusal { "refusal" } else { "text" };
        events.write(text_done, open.place(field, open.text.as_str().into()), frames);
        let part = open.kind.part(&open.text, &open.annotations);
        events.write(part_done, open.place("part", part.clone()), frames);
        self.finish(open.index, open.item("completed", &[part]), events, frames);
    }

    pub(super) fn close_all(&mut self, events: &mut Events, frames: &mut Frames) {
        let open: Vec<_> = self.open.keys().copied().collect();
        open.into_iter().for_each(|block| self.close(block, events, frames));
        self.settle(events, frames);
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
