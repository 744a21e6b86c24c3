//! `ChatEvents`: the small protocol of a chat page.

use advisor_core::{BlockDelta, BlockId, CallHead, Chunk, ToolEvent, ToolEventKind, ToolResult};
use serde::Serialize;
use serde_json::Value;

use crate::content;
use crate::encoder::Encoder;
use crate::turn::{Ending, Turn};
use crate::{Failure, Frames};

/// A small protocol for a chat page: `content`, `tool_call_start`, `tool_call_end`, `error`, then `[DONE]`.
///
/// ```text
/// data: {"type":"content","content":"Let me look."}
/// data: {"type":"tool_call_start","tool":"weather","id":"c1","args":{"city":"Oslo"}}
/// data: {"type":"tool_call_end","tool":"weather","id":"c1","result":"sunny"}
/// data: {"type":"content","content":"It is sunny."}
/// data: [DONE]
/// ```
///
/// - A call starts when its tool starts, and ends when it has a result. Calls of one round may end in any order.
/// - A call that fails or never starts has an `error` event and an end, and the stream goes on.
/// - A call that the client has to run has a start without an end, before `[DONE]`.
/// - An answer without content has a fixed text. One that is cut has an `error`.
/// - `{"type":"restart"}` voids the text of the round: the model is called again.
/// - Media are `{"type":"media","url":"…","media_type":"image/png"}`, whose address may be a data URL. A citation of an
///   address is `{"type":"source","url":"…","title":"…"}`, without a title if it has none.
/// - Reasoning and the blocks of text are sent on request, see [`with_blocks`](Self::with_blocks).
#[derive(Debug, Default)]
pub struct ChatEvents {
    turn: Turn,
    /// Whether all blocks are sent, not only text and calls.
    has_blocks: bool,
}

/// The text that is shown for an answer without content.
const EMPTY: &str = "The model gave no answer.";

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event<'a> {
    Content {
        content: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        block: Option<&'a str>,
    },
    Reasoning {
        content: &'a str,
        block: &'a str,
    },
    Media {
        url: &'a str,
        media_type: &'a str,
    },
    Source {
        url: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    ToolCallOpen {
        tool: &'a str,
        id: &'a str,
        block: &'a str,
    },
    ToolCallArguments {
        id: &'a str,
        arguments: &'a str,
    },
    ToolCallStart {
        tool: &'a str,
        id: &'a str,
        args: Value,
    },
    ToolCallProgress {
        id: &'a str,
        progress: Value,
    },
    ToolCallEnd {
        tool: &'a str,
        id: &'a str,
        result: Value,
    },
    Error {
        error: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
    },
    Restart {
        #[serde(skip_serializing_if = "Option::is_none")]
        round: Option<u32>,
    },
}

impl ChatEvents {
    /// Also sends reasoning, as `{"type":"reasoning","content":"Hm.","block":"1.0"}`. Text has its `block`, too, and a
    /// restart its `round`. The id of a block begins with its round and a dot. Blocks of one turn may interleave.
    ///
    /// A call is sent as it forms: `{"type":"tool_call_open","tool":"weather","id":"c1","block":"1.2"}`, then its
    /// arguments in pieces, as `{"type":"tool_call_arguments","id":"c1","arguments":"{\"ci"}`. Between its start and its
    /// end, a tool reports progress, as `{"type":"tool_call_progress","id":"c1","progress":"Asking Oslo."}`.
    #[must_use]
    pub fn with_blocks(self) -> Self {
        Self { has_blocks: true, ..self }
    }

    /// Returns the id by which events name a block.
    #[must_use]
    pub fn block_id(&self, block: BlockId) -> String {
        self.turn.part_id(block)
    }

    fn content(&self, content: &str, block: Option<BlockId>, frames: &mut Frames) {
        let block = block.and_then(|block| self.block(block));
        frames.data(&Event::Content { content, block: block.as_deref() });
    }

    fn reasoning(&self, content: &str, block: BlockId, frames: &mut Frames) {
        if let Some(block) = self.block(block) {
            frames.data(&Event::Reasoning { content, block: &block });
        }
    }

    fn open(&self, call: &CallHead, block: BlockId, frames: &mut Frames) {
        if let Some(name) = self.block(block) {
            frames.data(&Event::ToolCallOpen { tool: &call.name, id: &self.turn.id(block), block: &name });
        }
    }

    fn arguments(&self, arguments: &str, block: BlockId, frames: &mut Frames) {
        if self.has_blocks {
            frames.data(&Event::ToolCallArguments { id: &self.turn.id(block), arguments });
        }
    }

    /// Returns the id of a block, if blocks are sent.
    fn block(&self, block: BlockId) -> Option<String> {
        self.has_blocks.then(|| self.block_id(block))
    }

    fn tool(&self, event: &ToolEvent, frames: &mut Frames) {
        let id = self.turn.id(event.block);
        match &event.kind {
            ToolEventKind::Started { arguments } => start(&event.name, &id, arguments, frames),
            ToolEventKind::Finished { result } => end(&event.name, &id, result, frames),
            ToolEventKind::NotStarted { result, .. } => {
                start(&event.name, &id, self.turn.arguments(event.block), frames);
                end(&event.name, &id, result, frames);
            }
            ToolEventKind::Progress { part } if self.has_blocks => {
                frames.data(&Event::ToolCallProgress { id: &id, progress: content::part_of(part) });
            }
            _ => {}
        }
    }
}

fn start(tool: &str, id: &str, arguments: &str, frames: &mut Frames) {
    frames.data(&Event::ToolCallStart { tool, id, args: content::arguments(arguments) });
}

/// Writes the end of a call. An error comes first, so that a client that shows both shows the error once.
fn end(tool: &str, id: &str, result: &ToolResult, frames: &mut Frames) {
    if result.is_error {
        frames.data(&Event::Error { error: &result.text(), id: Some(id) });
    }
    frames.data(&Event::ToolCallEnd { tool, id, result: content::result(result) });
}

impl Encoder for ChatEvents {
    fn begin(&mut self, _frames: &mut Frames) {}

    fn chunk(&mut self, chunk: &Chunk, frames: &mut Frames) {
        self.turn.note(chunk);
        match chunk {
            Chunk::Opened { block, head } => {
                if let Some(call) = &head.call {
                    self.open(call, *block, frames);
                }
            }
            Chunk::Delta { block, delta: BlockDelta::Arguments(text) } => {
                self.arguments(text, *block, frames)
            }
            Chunk::Delta { block, delta: BlockDelta::Text(text) | BlockDelta::Refusal(text) } => {
                self.content(text, Some(*block), frames);
            }
            Chunk::Delta { block, delta: BlockDelta::Reasoning(text) } => {
                self.reasoning(text, *block, frames)
            }
            Chunk::Delta { delta: BlockDelta::Media(media), .. } => {
                if let Some(url) = content::url(media) {
                    frames.data(&Event::Media { url: &url, media_type: &media.mime });
                }
            }
            Chunk::Delta { delta: BlockDelta::Citation(citation), .. } => {
                if let Some(url) = &citation.url {
                    frames.data(&Event::Source { url, title: citation.title.as_deref() });
                }
            }
            Chunk::Tool(event) => self.tool(event, frames),
            Chunk::AttemptRestarted { round } => {
                let round = self.has_blocks.then_some(*round);
                frames.data(&Event::Restart { round });
            }
            Chunk::Completed(response) => {
                let calls = self.turn.client_calls(response);
                for call in &calls {
                    start(&call.call.name, &call.id, &call.call.arguments, frames);
                }
                let ending = Ending::new(&response.finish.reason, !calls.is_empty());
                if let Some(incomplete) = ending.incomplete() {
                    frames.data(&Event::Error { error: incomplete.message, id: None });
                } else if calls.is_empty() && self.turn.is_empty() {
                    self.content(EMPTY, None, frames);
                }
                frames.done();
            }
            _ => {}
        }
    }

    fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
        frames.data(&Event::Error { error: failure.message, id: failure.request_id.as_deref() });
        frames.done();
    }
}
