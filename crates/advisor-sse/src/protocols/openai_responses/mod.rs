//! `OpenAiResponses`: encodes a turn as a stream of OpenAI's Responses API.

mod items;
mod tools;

use advisor_core::{BlockDelta, BlockKind, Chunk, Text, ToolEvent, ToolEventKind, Usage};
use serde_json::{Map, Value, json};

use self::items::Items;
use self::tools::Tools;
use crate::encoder::Encoder;
use crate::shared::answer_info::AnswerInfo;
use crate::shared::ending::Ending;
use crate::shared::json as form;
use crate::shared::server_tools::ServerTools;
use crate::shared::turn::{ClientCall, Turn, is_of_citation};
use crate::{Approvals, Failure, Frames};

/// The stream of OpenAI's Responses, so that any OpenAI client can read a chain.
///
/// - Each text is a message item, reasoning a reasoning item with a summary.
/// - Media are a message item with a picture or a link in Markdown. Citations of an address are annotations of the text
///   before them, all of it.
/// - Tools that the server runs are not shown, unless [`with_server_tools`](Self::with_server_tools) asks for them.
/// - Calls that the client has to run come whole, at the end. So do requests for approvals
///   ([`with_approvals`](Self::with_approvals)).
/// - The response that ends the stream has all items.
#[derive(Debug)]
pub struct OpenAiResponses {
    info: AnswerInfo,
    turn: Turn,
    items: Items,
    events: Events,
    server_tools: ServerTools,
    tools: Tools,
    /// The id of the response that this one continues.
    previous: Option<Text>,
    approvals: Option<Approvals>,
}

/// Numbers the events.
#[derive(Debug, Default)]
struct Events {
    next: u64,
}

impl Events {
    /// Writes an event with these fields.
    fn write(&mut self, name: &str, fields: Value, frames: &mut Frames) {
        let mut event = Map::new();
        event.insert("type".into(), name.into());
        event.insert("sequence_number".into(), self.next.into());
        if let Value::Object(fields) = fields {
            event.extend(fields);
        }
        self.next += 1;
        frames.named(name, &event);
    }
}

impl OpenAiResponses {
    /// Creates the encoder of one turn.
    #[must_use]
    pub fn new(info: AnswerInfo) -> Self {
        Self {
            info,
            turn: Turn::default(),
            items: Items::default(),
            events: Events::default(),
            server_tools: ServerTools::default(),
            tools: Tools::default(),
            previous: None,
            approvals: None,
        }
    }

    /// Sets the id of the response that this one continues (`previous_response_id`).
    #[must_use]
    pub fn with_previous(self, id: impl Into<Text>) -> Self {
        Self { previous: Some(id.into()), ..self }
    }

    /// Sets whether tools that the server runs are shown: each call is an item `mcp_call`, which begins when the tool
    /// starts and has its result when it ends. The model's name is the `server_label`.
    #[must_use]
    pub fn with_server_tools(self, server_tools: ServerTools) -> Self {
        Self { server_tools, ..self }
    }

    /// Asks the client for approvals of these calls: each is an item `mcp_approval_request`, which an input item
    /// `mcp_approval_response` answers. The model's name is the `server_label`. By default, it asks for none.
    #[must_use]
    pub fn with_approvals(self, approvals: Approvals) -> Self {
        Self { approvals: Some(approvals), ..self }
    }

    fn open_call(&mut self, call: &ClientCall, frames: &mut Frames) {
        let (items, events) = (&mut self.items, &mut self.events);
        match self.approvals.as_ref().and_then(|approvals| approvals.find(call)) {
            Some(id) => items.approval(&id, call, &self.info.model, events, frames),
            None => items.call(call, &self.info.id, events, frames),
        }
    }

    fn tool(&mut self, event: &ToolEvent, frames: &mut Frames) {
        if self.server_tools == ServerTools::Hidden {
            return;
        }
        let arguments = match &event.kind {
            ToolEventKind::Started { arguments } => arguments.as_str(),
            _ => self.turn.arguments(event.block),
        };
        let place = format!("{}_{}", self.info.id, self.turn.part_id(event.block));
        let (items, events) = (&mut self.items, &mut self.events);
        if !matches!(event.kind, ToolEventKind::Progress(_)) {
            // A call that never starts is shown with its result.
            let of = (place.as_str(), self.info.model.as_str());
            self.tools.begin(event, arguments, of, items, events, frames);
        }
        if let Some(result) = event.result() {
            self.tools.end(event.block, result, items, events, frames);
        }
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
        self.events.write(name, json!({"response": response}), frames);
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
            self.events.write(name, json!({"response": response}), frames);
        }
    }

    fn chunk(&mut self, chunk: &Chunk, frames: &mut Frames) {
        self.turn.note(chunk);
        if !is_of_citation(chunk) {
            self.items.settle(&mut self.events, frames);
        }
        let events = &mut self.events;
        match chunk {
            Chunk::Opened { block, head } => {
                let place = format!("{}_{}", self.info.id, self.turn.part_id(*block));
                self.items.open(*block, head.kind, &place, events, frames);
            }
            Chunk::Delta {
                block,
                delta: BlockDelta::Text(text) | BlockDelta::Refusal(text) | BlockDelta::Reasoning(text),
            } => self.items.piece(*block, text, events, frames),
            Chunk::Delta { block, delta: BlockDelta::Media(media) } => {
                if let Some(text) = form::media_as_text(media) {
                    let place = format!("{}_{}", self.info.id, self.turn.part_id(*block));
                    self.items.open(*block, BlockKind::Text, &place, events, frames);
                    self.items.piece(*block, &text, events, frames);
                }
            }
            Chunk::Delta { block, delta: BlockDelta::Citation(citation) } => {
                let place = format!("{}_{}", self.info.id, self.turn.part_id(*block));
                self.items.cite(*block, citation, &place, events, frames);
            }
            Chunk::Closed { block, .. } => self.items.close(*block, events, frames),
            Chunk::AttemptRestarted { .. } => self.items.close_all(events, frames),
            Chunk::Tool(event) => self.tool(event, frames),
            Chunk::Completed(response) => {
                self.items.close_all(events, frames);
                let calls = self.turn.client_calls(response);
                calls.iter().for_each(|call| self.open_call(call, frames));
                let ending = Ending::new(&response.finish().reason, !calls.is_empty());
                self.end(ending, response.usage(), frames);
            }
            _ => {}
        }
    }

    fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
        self.items.settle(&mut self.events, frames);
        let error = failure.for_openai();
        // Some clients take a failed response for a complete one. All of them raise an error that is nested so; the
        // published schema has the fields beside it.
        let nested = failure.identify(error.openai_object());
        let event = json!({"code": error.code, "message": error.message, "param": null, "error": nested});
        self.events.write("error", event, frames);
        let mut response = self.response("failed", None);
        if let Some(fields) = response.as_object_mut() {
            let error = json!({"code": error.response_code(), "message": error.message});
            fields.insert("error".into(), failure.identify(error));
        }
        self.events.write("response.failed", json!({"response": response}), frames);
    }
}
