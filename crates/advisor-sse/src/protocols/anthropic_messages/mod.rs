//! `AnthropicMessages`: encodes a turn as a stream of Anthropic's Messages API.

mod blocks;

use std::collections::BTreeSet;

use advisor_core::{BlockDelta, BlockId, Chunk, Citation, Text, ToolEvent, ToolEventKind, Usage};
use serde_json::{Value, json};

use self::blocks::Blocks;
use crate::encoder::Encoder;
use crate::shared::answer_info::AnswerInfo;
use crate::shared::ending::Ending;
use crate::shared::json as form;
use crate::shared::server_tools::ServerTools;
use crate::shared::turn::{Turn, is_of_citation};
use crate::{ApiError, Failure, Frames};

/// The stream of Anthropic's Messages, so that any Anthropic client can read a chain.
///
/// - One block is open at a time: the pieces of a block that opens meanwhile follow when the earlier one has closed.
/// - Tools that the server runs are not shown, unless [`with_server_tools`](Self::with_server_tools) asks for them.
/// - Calls that the client has to run come whole, at the end.
/// - Reasoning is a `thinking` block with an empty signature.
/// - Media are a text block with a picture or a link in Markdown. Citations of an address are those of the text before
///   them, in the form of search results (`web_search_result_location`) with an empty `encrypted_index`.
/// - The number of input tokens is 0 at the start, since it is not known yet. The end has all counts.
#[derive(Debug)]
pub struct AnthropicMessages {
    info: AnswerInfo,
    turn: Turn,
    blocks: Blocks,
    server_tools: ServerTools,
    /// The calls of server tools that are shown.
    shown: BTreeSet<BlockId>,
}

impl AnthropicMessages {
    /// Creates the encoder of one turn.
    #[must_use]
    pub fn new(info: AnswerInfo) -> Self {
        let (blocks, server_tools) = (Blocks::default(), ServerTools::default());
        Self { info, turn: Turn::default(), blocks, server_tools, shown: BTreeSet::new() }
    }

    /// Sets whether tools that the server runs are shown: as `mcp_tool_use` when a tool starts, and `mcp_tool_result`
    /// when it ends, with the model's name as the `server_name`.
    #[must_use]
    pub fn with_server_tools(self, server_tools: ServerTools) -> Self {
        Self { server_tools, ..self }
    }

    fn tool(&mut self, event: &ToolEvent, frames: &mut Frames) {
        if self.server_tools == ServerTools::Hidden {
            return;
        }
        if let ToolEventKind::Started { arguments } = &event.kind {
            self.tool_use(event.block, &event.name, arguments, frames);
        } else if let Some(result) = event.result() {
            // A call that never starts is shown with its result.
            let arguments = self.turn.arguments(event.block).to_owned();
            self.tool_use(event.block, &event.name, &arguments, frames);
            let content = json!([{"type": "text", "text": result.text()}]);
            let id = self.turn.id(event.block);
            self.blocks.whole(
                json!({"type": "mcp_tool_result", "tool_use_id": id, "is_error": result.is_error, "content": content}),
                frames,
            );
        }
    }

    fn tool_use(&mut self, block: BlockId, name: &Text, arguments: &str, frames: &mut Frames) {
        if !self.shown.insert(block) {
            return;
        }
        let input = match form::arguments(arguments) {
            Value::Object(input) => Value::Object(input),
            other => json!({"arguments": other}),
        };
        let (id, server) = (self.turn.id(block), &self.info.model);
        self.blocks.whole(
            json!({"type": "mcp_tool_use", "id": id, "name": name, "server_name": server, "input": input}),
            frames,
        );
    }

    fn end(&self, ending: Ending, usage: Option<&Usage>, frames: &mut Frames) {
        let reason = match ending {
            Ending::Whole => "end_turn",
            Ending::ClientCalls => "tool_use",
            Ending::Length | Ending::Interrupted | Ending::Limit => "max_tokens",
            Ending::Filtered => "refusal",
        };
        let delta = json!({"stop_reason": reason, "stop_sequence": null});
        frames.named(
            "message_delta",
            &json!({"type": "message_delta", "delta": delta, "usage": counts(usage)}),
        );
        frames.named("message_stop", &json!({"type": "message_stop"}));
    }
}

/// Returns token counts in the form of the protocol. It counts cached tokens apart from the input.
fn counts(usage: Option<&Usage>) -> Value {
    let usage = usage.copied().unwrap_or_default();
    let read = usage.cached_input_tokens.unwrap_or_default();
    let written = usage.cache_write_tokens.unwrap_or_default();
    let input = usage.input_tokens.unwrap_or_default().saturating_sub(read).saturating_sub(written);
    json!({
        "input_tokens": input,
        "output_tokens": usage.output_tokens.unwrap_or_default(),
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    })
}

impl Encoder for AnthropicMessages {
    fn begin(&mut self, frames: &mut Frames) {
        let message = json!({
            "id": self.info.id,
            "type": "message",
            "role": "assistant",
            "model": self.info.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": counts(None),
        });
        frames.named("message_start", &json!({"type": "message_start", "message": message}));
    }

    fn chunk(&mut self, chunk: &Chunk, frames: &mut Frames) {
        self.turn.note(chunk);
        if !is_of_citation(chunk) {
            self.blocks.settle(frames);
        }
        match chunk {
            Chunk::Opened { block, head } => self.blocks.open(*block, head, frames),
            Chunk::Delta { block, delta: BlockDelta::Media(media) } => {
                if let Some(text) = form::media_as_text(media) {
                    self.blocks.text(*block, text, frames);
                }
            }
            Chunk::Delta { block, delta: BlockDelta::Citation(citation) } => {
                if let Some(citation) = cited(citation) {
                    self.blocks.cite(*block, citation, frames);
                }
            }
            Chunk::Delta {
                block,
                delta: BlockDelta::Text(text) | BlockDelta::Refusal(text) | BlockDelta::Reasoning(text),
            } => self.blocks.delta(*block, text, frames),
            Chunk::Closed { block, .. } => self.blocks.close(*block, frames),
            Chunk::AttemptRestarted { round } => {
                self.blocks.close_all(frames);
                self.shown.retain(|block| block.round != *round);
            }
            Chunk::Tool(event) => self.tool(event, frames),
            Chunk::Completed(response) => {
                self.blocks.close_all(frames);
                let calls = self.turn.client_calls(response);
                calls.iter().for_each(|call| self.blocks.call(call, frames));
                let ending = Ending::new(&response.finish().reason, !calls.is_empty());
                self.end(ending, response.usage(), frames);
            }
            _ => {}
        }
    }

    fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
        self.blocks.settle(frames);
        frames.named("error", &error(failure));
    }

    fn keep_alive(&self) -> &'static [u8] {
        b"event: ping\ndata: {\"type\":\"ping\"}\n\n"
    }
}

/// Returns a citation of an address in the form of the protocol; `None` for another one.
fn cited(citation: &Citation) -> Option<Value> {
    let (url, quote) = (citation.url.as_ref()?, citation.quote.as_ref().map_or("", |quote| quote.as_str()));
    Some(json!({
        "type": "web_search_result_location", "url": url, "title": citation.title, "cited_text": quote,
        "encrypted_index": "",
    }))
}

/// Returns an error in the form of Anthropic's API.
fn error(failure: &Failure) -> Value {
    let error = ApiError::anthropic(failure.status(), failure.code(), failure.message());
    let error = json!({"type": error.kind, "message": error.message, "code": error.code});
    failure.identify(json!({"type": "error", "error": error}))
}
