use std::collections::VecDeque;

use advisor_core::{BlockDelta, BlockHead, BlockId, BlockKind, Chunk, ErrorKind, Usage};
use serde_json::{Value, json};

use crate::encoder::Encoder;
use crate::shared::answer_info::AnswerInfo;
use crate::shared::ending::Ending;
use crate::shared::turn::{ClientCall, Turn};
use crate::{Failure, Frames};

/// The stream of Anthropic's Messages, so that any Anthropic client can read a chain.
///
/// - One block is open at a time: the pieces of a block that opens meanwhile follow when the earlier one has closed.
/// - Tools that the server runs are not shown. Calls that the client has to run come whole, at the end.
/// - Reasoning is a `thinking` block with an empty signature.
/// - The number of input tokens is 0 at the start, since it is not known yet. The end has all counts.
#[derive(Debug)]
pub struct AnthropicMessages {
    info: AnswerInfo,
    turn: Turn,
    /// The blocks that are not written completely, in the order of their opening.
    queue: VecDeque<Pending>,
    /// The number of blocks that have begun.
    begun: usize,
}

#[derive(Debug)]
struct Pending {
    block: BlockId,
    kind: Kind,
    text: String,
    is_closed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

impl AnthropicMessages {
    /// Creates the encoder of one turn.
    #[must_use]
    pub fn new(info: AnswerInfo) -> Self {
        Self { info, turn: Turn::default(), queue: VecDeque::new(), begun: 0 }
    }

    fn open(&mut self, block: BlockId, head: &BlockHead, frames: &mut Frames) {
        let kind = match head.kind {
            BlockKind::Text | BlockKind::Refusal => Kind::Text,
            BlockKind::Reasoning => Kind::Thinking,
            _ => return,
        };
        self.queue.push_back(Pending { block, kind, text: String::new(), is_closed: false });
        if self.queue.len() == 1 {
            self.start(kind, frames);
        }
    }

    fn delta(&mut self, block: BlockId, text: &str, frames: &mut Frames) {
        match self.queue.iter().position(|pending| pending.block == block) {
            Some(0) => {
                self.queue.front().into_iter().for_each(|pending| self.piece(pending.kind, text, frames))
            }
            Some(place) => {
                self.queue.get_mut(place).into_iter().for_each(|pending| pending.text.push_str(text))
            }
            None => {}
        }
    }

    fn close(&mut self, block: BlockId, frames: &mut Frames) {
        for pending in &mut self.queue {
            pending.is_closed |= pending.block == block;
        }
        while self.queue.front().is_some_and(|pending| pending.is_closed) {
            self.stop(frames);
            self.queue.pop_front();
            if let Some(next) = self.queue.front_mut() {
                let (kind, text) = (next.kind, std::mem::take(&mut next.text));
                self.start(kind, frames);
                if !text.is_empty() {
                    self.piece(kind, &text, frames);
                }
            }
        }
    }

    fn close_all(&mut self, frames: &mut Frames) {
        let blocks: Vec<_> = self.queue.iter().map(|pending| pending.block).collect();
        blocks.into_iter().for_each(|block| self.close(block, frames));
    }

    fn start(&mut self, kind: Kind, frames: &mut Frames) {
        let block = match kind {
            Kind::Text => json!({"type": "text", "text": ""}),
            Kind::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
        };
        self.start_block(&block, frames);
    }

    fn start_block(&mut self, block: &Value, frames: &mut Frames) {
        let start = json!({"type": "content_block_start", "index": self.begun, "content_block": block});
        frames.named("content_block_start", &start);
        self.begun += 1;
    }

    fn piece(&self, kind: Kind, text: &str, frames: &mut Frames) {
        self.block_delta(
            &match kind {
                Kind::Text => json!({"type": "text_delta", "text": text}),
                Kind::Thinking => json!({"type": "thinking_delta", "thinking": text}),
            },
            frames,
        );
    }

    fn block_delta(&self, delta: &Value, frames: &mut Frames) {
        let delta = json!({"type": "content_block_delta", "index": self.index(), "delta": delta});
        frames.named("content_block_delta", &delta);
    }

    fn stop(&self, frames: &mut Frames) {
        frames.named("content_block_stop", &json!({"type": "content_block_stop", "index": self.index()}));
    }

    /// Returns the number of the open block.
    fn index(&self) -> usize {
        self.begun.saturating_sub(1)
    }

    fn call(&mut self, call: &ClientCall, frames: &mut Frames) {
        let block = json!({"type": "tool_use", "id": call.id, "name": call.call.name, "input": {}});
        self.start_block(&block, frames);
        let arguments = call.call.arguments.trim();
        let arguments = if arguments.is_empty() { "{}" } else { arguments };
        self.block_delta(&json!({"type": "input_json_delta", "partial_json": arguments}), frames);
        self.stop(frames);
    }

    fn end(&self, ending: Ending, usage: Option<&Usage>, frames: &mut Frames) {
        let reason = match ending {
            Ending::Whole => "end_turn",
            Ending::ClientCalls => "tool_use",
            Ending::Length | Ending::Interrupted => "max_tokens",
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
        if !self.turn.note(chunk) {
            return;
        }
        match chunk {
            Chunk::Opened { block, head } => self.open(*block, head, frames),
            Chunk::Delta {
                block,
                delta: BlockDelta::Text(text) | BlockDelta::Refusal(text) | BlockDelta::Reasoning(text),
            } => self.delta(*block, text, frames),
            Chunk::Closed { block, .. } => self.close(*block, frames),
            Chunk::AttemptRestarted { .. } => self.close_all(frames),
            Chunk::Completed(response) => {
                self.close_all(frames);
                let calls = self.turn.client_calls(response);
                calls.iter().for_each(|call| self.call(call, frames));
                let ending = Ending::new(&response.finish().reason, !calls.is_empty());
                self.end(ending, response.usage(), frames);
            }
            _ => {}
        }
    }

    fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
        frames.named("error", &error(failure));
    }

    fn keep_alive(&self) -> &'static [u8] {
        b"event: ping\ndata: {\"type\":\"ping\"}\n\n"
    }
}

/// Returns an error in the form of Anthropic's API.
fn error(failure: &Failure) -> Value {
    let kind = match failure.kind() {
        ErrorKind::RateLimited { .. } => "rate_limit_error",
        ErrorKind::InvalidRequest | ErrorKind::InvalidHistory | ErrorKind::ContextOverflow => {
            "invalid_request_error"
        }
        ErrorKind::NotFound => "not_found_error",
        ErrorKind::TooLarge => "request_too_large",
        ErrorKind::Timeout => "timeout_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": failure.message()}})
}
