//! `OpenAiResponses`: encodes a turn as a stream of OpenAI's Responses API.

use std::collections::BTreeMap;

use advisor_core::{BlockDelta, BlockId, BlockKind, Chunk, Citation, Text, Usage};
use serde_json::{Map, Value, json};

use crate::content::{self, AnswerInfo, CitedText};
use crate::encoder::Encoder;
use crate::turn::{ClientCall, Ending, Turn, is_of_citation};
use crate::{ApprovalId, Approvals, Failure, Frames};

/// The stream of OpenAI's Responses, so that any OpenAI client can read a chain.
///
/// - Each text is a message item, reasoning a reasoning item with a summary.
/// - Media are a message item with a picture or a link in Markdown. Citations of an address are annotations of the text
///   before them, all of it.
/// - Tools that the server runs are not shown: the client would run them.
/// - Calls that the client has to run come whole, at the end. So do requests for approvals
///   ([`with_approvals`](Self::with_approvals)).
/// - The response that ends the stream has all items.
#[derive(Debug)]
pub struct OpenAiResponses {
    info: AnswerInfo,
    turn: Turn,
    items: Items,
    /// The id of the response that this one continues.
    previous: Option<Text>,
    approvals: Option<Approvals>,
}

impl OpenAiResponses {
    /// Creates the encoder of one turn.
    #[must_use]
    pub fn new(info: AnswerInfo) -> Self {
        Self { info, turn: Turn::default(), items: Items::default(), previous: None, approvals: None }
    }

    /// Sets the id of the response that this one continues (`previous_response_id`).
    #[must_use]
    pub fn with_previous(self, id: impl Into<Text>) -> Self {
        Self { previous: Some(id.into()), ..self }
    }

    /// Asks the client for approvals of these calls: each is an item `mcp_approval_request`, which an input item
    /// `mcp_approval_response` answers. The model's name is the `server_label`. By default, it asks for none.
    #[must_use]
    pub fn with_approvals(self, approvals: Approvals) -> Self {
        Self { approvals: Some(approvals), ..self }
    }

    fn open_call(&mut self, call: &ClientCall, frames: &mut Frames) {
        match self.approvals.as_ref().and_then(|approvals| approvals.find(call)) {
            Some(id) => self.items.approval(&id, call, &self.info.model, frames),
            None => self.items.call(call, &self.info.id, frames),
        }
    }

    /// Returns what stands behind the prefix in the id of an item.
    fn place(&self, block: BlockId) -> String {
        format!("{}_{}", self.info.id, self.turn.part_id(block))
    }

    fn response(&self, status: &str, usage: Option<&Usage>) -> Value {
        json!({
            "id": self.info.id,
            "object": "response",
            "created_at": self.info.created,
            "status": status,
            "model": self.info.model,
            "output": self.items.finished(),
            "usage": usage.map(counts),
            "error": null,
            "incomplete_details": null,
            "instructions": null,
            "metadata": {},
            "parallel_tool_calls": true,
            "previous_response_id": self.previous.as_deref(),
            "temperature": null,
            "tool_choice": "auto",
            "tools": [],
            "top_p": null,
        })
    }

    fn end(&mut self, ending: Ending, usage: Option<&Usage>, frames: &mut Frames) {
        let cut = match ending {
            Ending::Whole | Ending::ClientCalls => None,
            Ending::Length | Ending::Interrupted | Ending::Limit => Some("max_output_tokens"),
            Ending::Filtered => Some("content_filter"),
        };
        let (name, status) = match cut {
            None => ("response.completed", "completed"),
            Some(_) => ("response.incomplete", "incomplete"),
        };
        let mut response = self.response(status, usage);
        if let (Some(reason), Some(fields)) = (cut, response.as_object_mut()) {
            fields.insert("incomplete_details".into(), json!({"reason": reason}));
        }
        self.items.write(name, json!({"response": response}), frames);
    }
}

/// Returns token counts in the form of the protocol, which has no unknown counts: they are 0.
fn counts(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens.unwrap_or_default(),
        "input_tokens_details": {
            "cached_tokens": usage.cached_input_tokens.unwrap_or_default(),
            "cache_write_tokens": usage.cache_write_tokens.unwrap_or_default(),
        },
        "output_tokens": usage.output_tokens.unwrap_or_default(),
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens.unwrap_or_default()},
        "total_tokens": usage.total().unwrap_or_default(),
    })
}

impl Encoder for OpenAiResponses {
    fn begin(&mut self, frames: &mut Frames) {
        for name in ["response.created", "response.in_progress"] {
            let response = self.response("in_progress", None);
            self.items.write(name, json!({"response": response}), frames);
        }
    }

    fn chunk(&mut self, chunk: &Chunk, frames: &mut Frames) {
        self.turn.note(chunk);
        if !is_of_citation(chunk) {
            self.items.settle(frames);
        }
        match chunk {
            Chunk::Opened { block, head } => {
                self.items.open(*block, head.kind, &self.place(*block), frames);
            }
            Chunk::Delta {
                block,
                delta: BlockDelta::Text(text) | BlockDelta::Refusal(text) | BlockDelta::Reasoning(text),
            } => self.items.piece(*block, text, frames),
            Chunk::Delta { block, delta: BlockDelta::Media(media) } => {
                if let Some(text) = content::media_as_text(media) {
                    self.items.open(*block, BlockKind::Text, &self.place(*block), frames);
                    self.items.piece(*block, &text, frames);
                }
            }
            Chunk::Delta { block, delta: BlockDelta::Citation(citation) } => {
                self.items.cite(*block, citation, &self.place(*block), frames);
            }
            Chunk::Closed { block, .. } => self.items.close(*block, frames),
            Chunk::AttemptRestarted { .. } => self.items.close_all(frames),
            Chunk::Completed(response) => {
                self.items.close_all(frames);
                let calls = self.turn.client_calls(response);
                calls.iter().for_each(|call| self.open_call(call, frames));
                let ending = Ending::new(&response.finish.reason, !calls.is_empty());
                self.end(ending, response.usage.as_ref(), frames);
            }
            _ => {}
        }
    }

    fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
        self.items.settle(frames);
        let error = failure.for_openai();
        // Some clients take a failed response for a complete one. All of them raise an error that is nested so; the
        // published schema has the fields beside it.
        let nested = failure.identify(error.openai_object());
        let event = json!({"code": error.code, "message": error.message, "param": null, "error": nested});
        self.items.write("error", event, frames);
        let mut response = self.response("failed", None);
        if let Some(fields) = response.as_object_mut() {
            let error = json!({"code": error.response_code(), "message": error.message});
            fields.insert("error".into(), failure.identify(error));
        }
        self.items.write("response.failed", json!({"response": response}), frames);
    }
}

/// The output items of a response.
#[derive(Debug, Default)]
struct Items {
    /// The finished items, by their number.
    finished: BTreeMap<usize, Value>,
    open: BTreeMap<BlockId, Open>,
    /// A text that has closed, and ends once no citation can follow.
    closed: Option<Open>,
    begun: usize,
    /// The number of events so far.
    events: u64,
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
    /// Writes an event with these fields.
    fn write(&mut self, name: &str, fields: Value, frames: &mut Frames) {
        let mut event = Map::new();
        event.insert("type".into(), name.into());
        event.insert("sequence_number".into(), self.events.into());
        if let Value::Object(fields) = fields {
            event.extend(fields);
        }
        self.events += 1;
        frames.named(name, &event);
    }

    fn finished(&self) -> Vec<&Value> {
        self.finished.values().collect()
    }

    fn open(&mut self, block: BlockId, kind: BlockKind, place: &str, frames: &mut Frames) {
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
        self.write("response.output_item.added", json!({"output_index": index, "item": item}), frames);
        let [added, ..] = kind.events();
        self.write(added, open.place("part", kind.part("", &[])), frames);
        self.open.insert(block, open);
    }

    fn piece(&mut self, block: BlockId, text: &str, frames: &mut Frames) {
        let Some(open) = self.open.get_mut(&block) else { return };
        open.text.push_str(text);
        let [_, delta, ..] = open.kind.events();
        let event = open.place("delta", text.into());
        self.write(delta, event, frames);
    }

    /// Adds a citation to the last text, or to an empty one of its own. One without an address is left out.
    fn cite(&mut self, block: BlockId, citation: &Citation, place: &str, frames: &mut Frames) {
        if citation.url.is_none() {
            return;
        }
        if self.last_text().is_none() {
            self.open(block, BlockKind::Text, place, frames);
            self.close(block, frames);
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
        self.write("response.output_text.annotation.added", event, frames);
    }

    /// Returns the place of the last text that has not ended.
    fn last_text(&self) -> Option<usize> {
        let texts = self.open.values().chain(&self.closed).filter(|open| open.kind == Kind::Text);
        texts.map(|open| open.index).max()
    }

    /// Closes a block. A text stays open for its citations, until [`settle`](Self::settle).
    fn close(&mut self, block: BlockId, frames: &mut Frames) {
        let Some(open) = self.open.remove(&block) else { return };
        if open.kind == Kind::Text {
            self.settle(frames);
            self.closed = Some(open);
        } else {
            self.end(&open, frames);
        }
    }

    /// Ends the text that has closed.
    fn settle(&mut self, frames: &mut Frames) {
        if let Some(open) = self.closed.take() {
            self.end(&open, frames);
        }
    }

    fn end(&mut self, open: &Open, frames: &mut Frames) {
        let [.., text_done, part_done] = open.kind.events();
        let field = if open.kind == Kind::Refusal { "refusal" } else { "text" };
        self.write(text_done, open.place(field, open.text.as_str().into()), frames);
        let part = open.kind.part(&open.text, &open.annotations);
        self.write(part_done, open.place("part", part.clone()), frames);
        self.finish(open.index, open.item("completed", &[part]), frames);
    }

    fn close_all(&mut self, frames: &mut Frames) {
        let open: Vec<_> = self.open.keys().copied().collect();
        open.into_iter().for_each(|block| self.close(block, frames));
        self.settle(frames);
    }

    fn call(&mut self, call: &ClientCall, response: &str, frames: &mut Frames) {
        let (index, id) = (self.next(), format!("fc_{response}_{}", call.block));
        let item = |status: &str, arguments: &str| {
            json!({
                "type": "function_call", "id": id, "status": status,
                "call_id": call.id, "name": call.call.name, "arguments": arguments,
            })
        };
        let added = json!({"output_index": index, "item": item("in_progress", "")});
        self.write("response.output_item.added", added, frames);
        let arguments = &call.call.arguments;
        let piece = json!({"item_id": id, "output_index": index, "delta": arguments});
        self.write("response.function_call_arguments.delta", piece, frames);
        let done =
            json!({"item_id": id, "output_index": index, "name": call.call.name, "arguments": arguments});
        self.write("response.function_call_arguments.done", done, frames);
        self.finish(index, item("completed", arguments), frames);
    }

    /// Writes a request for the approval of a call.
    fn approval(&mut self, id: &ApprovalId, call: &ClientCall, server_label: &str, frames: &mut Frames) {
        let index = self.next();
        let item = json!({
            "type": "mcp_approval_request", "id": id.to_string(), "name": call.call.name,
            "arguments": call.call.arguments, "server_label": server_label,
        });
        self.write("response.output_item.added", json!({"output_index": index, "item": item}), frames);
        self.finish(index, item, frames);
    }

    /// Ends an item.
    fn finish(&mut self, index: usize, item: Value, frames: &mut Frames) {
        self.write("response.output_item.done", json!({"output_index": index, "item": item}), frames);
        self.finished.insert(index, item);
    }

    /// Returns the place of a further item.
    fn next(&mut self) -> usize {
        self.begun += 1;
        self.begun - 1
    }
}
