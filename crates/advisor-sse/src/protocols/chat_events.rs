//! `ChatEvents`: the small protocol of a chat page.

use advisor_core::{BlockDelta, BlockId, CallHead, Chunk, Text, ToolEvent, ToolEventKind, ToolResult};
use serde::Serialize;
use serde_json::Value;

use crate::encoder::Encoder;
use crate::shared::ending::Ending;
use crate::shared::json;
use crate::shared::turn::Turn;
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
/// - For an answer without content, [`with_empty_text`](Self::with_empty_text) sets a text. One that is cut has an
///   `error`.
/// - `{"type":"restart"}` voids the text of the round: the model is called again.
/// - Media are `{"type":"media","url":"…","media_type":"image/png"}`, whose address may be a data URL. A citation of an
///   address is `{"type":"source","url":"…","title":"…"}`, without a title if it has none.
/// - Reasoning and the blocks of text are sent on request, see [`with_detail`](Self::with_detail).
#[derive(Debug)]
pub struct ChatEvents {
    turn: Turn,
    content: ContentForm,
    start: StartName,
    detail: ChatDetail,
    empty: Text,
}

/// The form of a piece of text in [`ChatEvents`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContentForm {
    /// `{"type":"content","content":"Hello"}`.
    #[default]
    Typed,
    /// `{"content":"Hello"}`, for older clients.
    Bare,
}

/// The type of the event that starts a call in [`ChatEvents`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartName {
    /// `tool_call_start`.
    #[default]
    ToolCallStart,
    /// `tool_call`, for older clients.
    ToolCall,
}

/// The parts of a turn that [`ChatEvents`] sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChatDetail {
    /// Text and calls.
    #[default]
    Answer,
    /// Also reasoning, as `{"type":"reasoning","content":"Hm.","block":"1.0"}`. Text has its `block`, too, and a restart
    /// its `round`. The id of a block begins with its round and a dot. Blocks of one turn may interleave.
    ///
    /// A call is sent as it forms: `{"type":"tool_call_open","tool":"weather","id":"c1","block":"1.2"}`, then its
    /// arguments in pieces, as `{"type":"tool_call_arguments","id":"c1","arguments":"{\"ci"}`. Between its start and its
    /// end, a tool reports progress, as `{"type":"tool_call_progress","id":"c1","progress":"Asking Oslo."}`.
    Blocks,
}

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
    ToolCall {
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

#[derive(Serialize)]
struct BareContent<'a> {
    content: &'a str,
}

impl Default for ChatEvents {
    fn default() -> Self {
        Self {
            turn: Turn::default(),
            content: ContentForm::default(),
            start: StartName::default(),
            detail: ChatDetail::default(),
            empty: "The model gave no answer.".into(),
        }
    }
}

impl ChatEvents {
    /// Creates the encoder of one turn.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the form of text.
    #[must_use]
    pub fn with_content_form(self, content: ContentForm) -> Self {
        Self { content, ..self }
    }

    /// Sets the type of the event that starts a call.
    #[must_use]
    pub fn with_start_name(self, start: StartName) -> Self {
        Self { start, ..self }
    }

    /// Sets the parts of a turn that are sent.
    #[must_use]
    pub fn with_detail(self, detail: ChatDetail) -> Self {
        Self { detail, ..self }
    }

    /// Sets the text that is shown for an answer without content; `The model gave no answer.` by default.
    #[must_use]
    pub fn with_empty_text(self, text: impl Into<Text>) -> Self {
        Self { empty: text.into(), ..self }
    }

    /// Returns the id by which events name a block.
    #[must_use]
    pub fn block_id(&self, block: BlockId) -> String {
        self.turn.part_id(block)
    }

    fn content(&self, content: &str, block: Option<BlockId>, frames: &mut Frames) {
        let block = block.and_then(|block| self.block(block));
        match self.content {
            ContentForm::Typed => frames.data(&Event::Content { content, block: block.as_deref() }),
            ContentForm::Bare => frames.data(&BareContent { content }),
        }
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
        if self.detail == ChatDetail::Blocks {
            frames.data(&Event::ToolCallArguments { id: &self.turn.id(block), arguments });
        }
    }

    /// Returns the id of a block, if blocks are sent.
    fn block(&self, block: BlockId) -> Option<String> {
        (self.detail == ChatDetail::Blocks).then(|| self.block_id(block))
    }

    fn start(&self, tool: &str, id: &str, arguments: &str, frames: &mut Frames) {
        let args = json::arguments(arguments);
        frames.data(&match self.start {
            StartName::ToolCallStart => Event::ToolCallStart { tool, id, args },
            StartName::ToolCall => Event::ToolCall { tool, id, args },
        });
    }

    fn tool(&self, event: &ToolEvent, frames: &mut Frames) {
        let id = self.turn.id(event.block);
        match &event.kind {
            ToolEventKind::Started { arguments } => self.start(&event.name, &id, arguments, frames),
            ToolEventKind::Finished(result) => end(&event.name, &id, result, frames),
            ToolEventKind::NotStarted { result, .. } => {
                self.start(&event.name, &id, self.turn.arguments(event.block), frames);
                end(&event.name, &id, result, frames);
            }
            ToolEventKind::Progress(part) if self.detail == ChatDetail::Blocks => {
                frames.data(&Event::ToolCallProgress { id: &id, progress: json::part_of(part) });
            }
            _ => {}
        }
    }
}

/// Writes the end of a call. An error comes first, so that a client that shows both shows the error once.
fn end(tool: &str, id: &str, result: &ToolResult, frames: &mut Frames) {
    if result.is_error {
        frames.data(&Event::Error { error: &result.text(), id: Some(id) });
    }
    frames.data(&Event::ToolCallEnd { tool, id, result: json::result(result) });
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
                if let Some(url) = json::url(media) {
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
                let round = (self.detail == ChatDetail::Blocks).then_some(*round);
                frames.data(&Event::Restart { round });
            }
            Chunk::Completed(response) => {
                let calls = self.turn.client_calls(response);
                for call in &calls {
                    self.start(&call.call.name, &call.id, &call.call.arguments, frames);
                }
                let ending = Ending::new(&response.finish().reason, !calls.is_empty());
                if let Some(incomplete) = ending.incomplete() {
                    frames.data(&Event::Error { error: incomplete.message, id: None });
                } else if calls.is_empty() && self.turn.is_empty() {
                    self.content(&self.empty, None, frames);
                }
                frames.done();
            }
            _ => {}
        }
    }

    fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
        frames.data(&Event::Error { error: failure.message(), id: failure.request_id() });
        frames.done();
    }
}
