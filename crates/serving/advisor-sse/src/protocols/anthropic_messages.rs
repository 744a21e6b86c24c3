//! `AnthropicMessages`: encodes a turn as a stream of Anthropic's Messages API.

use std::collections::VecDeque;

use advisor_core::{BlockDelta, BlockHead, BlockId, BlockKind, Chunk, Citation, ToolCall, Usage};
use serde_json::{Value, json};

use crate::content::{self, AnswerInfo};
use crate::encoder::Encoder;
use crate::turn::{ClientCall, Ending, Turn, is_of_citation};
use crate::{ApiError, Failure, Frames};

/// The stream of Anthropic's Messages, so that any Anthropic client can read a chain.
///
/// - One block is open at a time: the pieces of a block that opens meanwhile follow when the earlier one has closed.
/// - Tools that the server runs are not shown: the client would run them.
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
}

impl AnthropicMessages {
    /// Creates the encoder of one turn.
    #[must_use]
    pub fn new(info: AnswerInfo) -> Self {
        Self { info, turn: Turn::default(), blocks: Blocks::default() }
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
                if let Some(text) = content::media_as_text(media) {
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
            Chunk::AttemptRestarted { .. } => self.blocks.close_all(frames),
            Chunk::Completed(response) => {
                self.blocks.close_all(frames);
                let calls = self.turn.client_calls(response);
                calls.iter().for_each(|call| self.blocks.call(call, frames));
                let ending = Ending::new(&response.finish.reason, !calls.is_empty());
                self.end(ending, response.usage.as_ref(), frames);
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
    let error = ApiError::anthropic(failure.status(), failure.code, failure.message);
    let error = json!({"type": error.kind, "message": error.message, "code": error.code});
    failure.identify(json!({"type": "error", "error": error}))
}

/// The content blocks of a message, of which one is open at a time. The pieces of a block that opens meanwhile follow
/// when the earlier one has closed.
#[derive(Debug, Default)]
struct Blocks {
    /// The blocks that are not written completely, in the order of their opening. The first one has begun.
    queue: VecDeque<Pending>,
    /// The number of blocks that have begun.
    begun: usize,
}

/// A block of text or reasoning, with its text and citations that are not written yet.
#[derive(Debug)]
struct Pending {
    block: BlockId,
    is_thinking: bool,
    text: String,
    citations: Vec<Value>,
    is_closed: bool,
}

impl Pending {
    /// Creates a block of text that is whole.
    fn whole(block: BlockId, text: String, citations: Vec<Value>) -> Self {
        Self { block, is_thinking: false, text, citations, is_closed: true }
    }

    fn start(&self) -> Value {
        match self.is_thinking {
            true => json!({"type": "thinking", "thinking": "", "signature": ""}),
            false => json!({"type": "text", "text": ""}),
        }
    }

    fn piece(&self, text: &str) -> Value {
        match self.is_thinking {
            true => json!({"type": "thinking_delta", "thinking": text}),
            false => json!({"type": "text_delta", "text": text}),
        }
    }
}

impl Blocks {
    /// Opens a block of text or reasoning. Other kinds are not written.
    fn open(&mut self, block: BlockId, head: &BlockHead, frames: &mut Frames) {
        if matches!(head.kind, BlockKind::Text | BlockKind::Refusal | BlockKind::Reasoning) {
            let is_thinking = head.kind == BlockKind::Reasoning;
            let open =
                Pending { is_thinking, is_closed: false, ..Pending::whole(block, String::new(), Vec::new()) };
            self.add(open, frames);
        }
    }

    /// Extends a block.
    fn delta(&mut self, block: BlockId, piece: &str, frames: &mut Frames) {
        match self.queue.iter_mut().enumerate().find(|(_, pending)| pending.block == block) {
            Some((0, pending)) => {
                let piece = pending.piece(piece);
                self.write_piece(&piece, frames);
            }
            Some((_, pending)) => pending.text.push_str(piece),
            None => {}
        }
    }

    /// Writes a block of text that is whole.
    fn text(&mut self, block: BlockId, text: String, frames: &mut Frames) {
        self.add(Pending::whole(block, text, Vec::new()), frames);
    }

    /// Adds a citation to the last text, or to an empty one of its own.
    fn cite(&mut self, block: BlockId, citation: Value, frames: &mut Frames) {
        match self.queue.iter_mut().enumerate().rfind(|(_, pending)| !pending.is_thinking) {
            Some((0, _)) => self.write_piece(&citation_piece(&citation), frames),
            Some((_, pending)) => pending.citations.push(citation),
            None => self.add(Pending::whole(block, String::new(), vec![citation]), frames),
        }
    }

    /// Closes a block. The last one stays open for its citations, until [`settle`](Self::settle).
    fn close(&mut self, block: BlockId, frames: &mut Frames) {
        let of_block = self.queue.iter_mut().filter(|pending| pending.block == block);
        of_block.for_each(|pending| pending.is_closed = true);
        if self.queue.len() > 1 {
            self.settle(frames);
        }
    }

    /// Ends the first block if it has closed.
    fn settle(&mut self, frames: &mut Frames) {
        if self.queue.front().is_some_and(|pending| pending.is_closed) {
            self.stop(frames);
            self.queue.pop_front();
            self.begin_next(frames);
        }
    }

    /// Closes all blocks, and ends them.
    fn close_all(&mut self, frames: &mut Frames) {
        self.queue.iter_mut().for_each(|pending| pending.is_closed = true);
        while !self.queue.is_empty() {
            self.settle(frames);
        }
    }

    /// Writes a call of the client, behind all other blocks.
    fn call(&mut self, call: &ClientCall, frames: &mut Frames) {
        let block = json!({"type": "tool_use", "id": call.id, "name": call.call.name, "input": {}});
        self.start(&block, frames);
        let arguments = call.call.arguments.trim();
        let arguments = if ToolCall::gives_none(arguments) { "{}" } else { arguments };
        self.write_piece(&json!({"type": "input_json_delta", "partial_json": arguments}), frames);
        self.stop(frames);
    }

    fn add(&mut self, pending: Pending, frames: &mut Frames) {
        self.queue.push_back(pending);
        match self.queue.len() {
            1 => self.begin_next(frames),
            _ => self.settle(frames),
        }
    }

    /// Begins the first block, and writes all blocks before the first one that is still open, or that is the last.
    fn begin_next(&mut self, frames: &mut Frames) {
        while let Some(mut pending) = self.queue.pop_front() {
            self.start(&pending.start(), frames);
            let text = std::mem::take(&mut pending.text);
            if !text.is_empty() {
                self.write_piece(&pending.piece(&text), frames);
            }
            for citation in std::mem::take(&mut pending.citations) {
                self.write_piece(&citation_piece(&citation), frames);
            }
            if !pending.is_closed || self.queue.is_empty() {
                return self.queue.push_front(pending);
            }
            self.stop(frames);
        }
    }

    fn start(&mut self, block: &Value, frames: &mut Frames) {
        let start = json!({"type": "content_block_start", "index": self.begun, "content_block": block});
        frames.named("content_block_start", &start);
        self.begun += 1;
    }

    fn write_piece(&self, delta: &Value, frames: &mut Frames) {
        let delta = json!({"type": "content_block_delta", "index": self.index(), "delta": delta});
        frames.named("content_block_delta", &delta);
    }

    fn stop(&self, frames: &mut Frames) {
        frames.named("content_block_stop", &json!({"type": "content_block_stop", "index": self.index()}));
    }

    /// Returns the number of the last block that has begun.
    fn index(&self) -> usize {
        self.begun.saturating_sub(1)
    }
}

/// Returns the piece that adds a citation.
fn citation_piece(citation: &Value) -> Value {
    json!({"type": "citations_delta", "citation": citation})
}
