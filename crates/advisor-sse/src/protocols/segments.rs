//! `Segments`: a start, content and an end for each block.

use std::collections::BTreeMap;

use advisor_core::{Block, BlockContent, BlockDelta, BlockHead, BlockId, BlockKind, Chunk, Text};
use serde::Serialize;
use serde_json::{Value, json};

use crate::encoder::Encoder;
use crate::shared::ending::{Ending, Incomplete};
use crate::shared::json as form;
use crate::shared::turn::Turn;
use crate::{Failure, Frames};

/// Segments: each block has a start, its content as it forms, and an end, then `[DONE]`.
///
/// ```text
/// data: {"type":"SEGMENT_START","turn_id":"t1","segment_id":"t1:1.0","segment_type":"text"}
/// data: {"type":"SEGMENT_CONTENT","turn_id":"t1","segment_id":"t1:1.0","delta":"Hello"}
/// data: {"type":"SEGMENT_END","turn_id":"t1","segment_id":"t1:1.0"}
/// ```
///
/// The id of a tool-call segment is the id of the call, with the turn before it. Results of tools are no segments: a
/// client that needs them uses another protocol. Segments that are open when the turn fails end with `failed`.
///
/// An answer that is cut has a last segment of the type `notice`, with the reason: `length`, `content_filter`,
/// `interrupted` or `limit`.
///
/// ```text
/// data: {"type":"SEGMENT_END","turn_id":"t1","segment_id":"t1:notice","metadata":{"incomplete":true,"reason":"length"}}
/// ```
///
/// If an attempt is made again, each of its segments ends with `interrupted`, also one that had ended. Its shown
/// text is void.
#[derive(Debug)]
pub struct Segments {
    turn_id: Text,
    turn: Turn,
    segments: BTreeMap<BlockId, State>,
}

/// The state of a segment that has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Ended,
}

#[derive(Serialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    turn_id: &'a str,
    segment_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    segment_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Value>,
}

impl Segments {
    /// Creates the encoder of the turn with this id.
    pub fn new(turn_id: impl Into<Text>) -> Self {
        Self { turn_id: turn_id.into(), turn: Turn::default(), segments: BTreeMap::new() }
    }

    fn event(&self, kind: &'static str, block: BlockId) -> Event<'_> {
        let call = self.turn.id(block);
        match call.is_empty() {
            true => self.named_event(kind, &self.turn.part_id(block)),
            false => self.named_event(kind, &call),
        }
    }

    /// Returns an event of the segment with this id in the turn.
    fn named_event(&self, kind: &'static str, id: &str) -> Event<'_> {
        let segment_id = format!("{}:{id}", self.turn_id);
        Event { kind, turn_id: &self.turn_id, segment_id, segment_type: None, delta: None, metadata: None }
    }

    fn start(&mut self, block: BlockId, head: &BlockHead, frames: &mut Frames) {
        let Some(segment_type) = segment_type(head.kind) else { return };
        self.segments.insert(block, State::Open);
        let metadata = head.call.as_ref().map(|call| json!({"tool_name": call.name}));
        let event = self.event("SEGMENT_START", block);
        frames.data(&Event { segment_type: Some(segment_type), metadata, ..event });
    }

    fn content(&self, block: BlockId, delta: &BlockDelta, frames: &mut Frames) {
        let delta = match delta {
            BlockDelta::Text(text)
            | BlockDelta::Reasoning(text)
            | BlockDelta::Refusal(text)
            | BlockDelta::Arguments(text) => Value::String(text.to_string()),
            BlockDelta::Media(media) => json!(form::url(media)),
            _ => return,
        };
        if self.segments.get(&block) == Some(&State::Open) {
            frames.data(&Event { delta: Some(delta), ..self.event("SEGMENT_CONTENT", block) });
        }
    }

    fn end(&mut self, block: BlockId, content: &Block, frames: &mut Frames) {
        if let Some(state @ State::Open) = self.segments.get_mut(&block) {
            *state = State::Ended;
            let metadata = match content.content() {
                BlockContent::ToolCall(call) if call.complete => {
                    Some(json!({"arguments": form::arguments(&call.arguments)}))
                }
                BlockContent::ToolCall(_) => {
                    Some(json!({"interrupted": true, "reason": "the call was cut off"}))
                }
                _ => None,
            };
            frames.data(&Event { metadata, ..self.event("SEGMENT_END", block) });
        }
    }

    /// Writes a segment that says why the answer is not whole.
    fn notice(&self, Incomplete { reason, message }: Incomplete, frames: &mut Frames) {
        let event = |kind| self.named_event(kind, "notice");
        frames.data(&Event { segment_type: Some("notice"), ..event("SEGMENT_START") });
        frames.data(&Event { delta: Some(message.into()), ..event("SEGMENT_CONTENT") });
        let metadata = json!({"incomplete": true, "reason": reason});
        frames.data(&Event { metadata: Some(metadata), ..event("SEGMENT_END") });
    }

    /// Ends the segments that `is_meant` selects, and forgets them.
    fn break_off(
        &mut self,
        is_meant: impl Fn(BlockId, State) -> bool,
        metadata: &Value,
        frames: &mut Frames,
    ) {
        for (block, state) in std::mem::take(&mut self.segments) {
            if is_meant(block, state) {
                frames.data(&Event { metadata: Some(metadata.clone()), ..self.event("SEGMENT_END", block) });
            } else {
                self.segments.insert(block, state);
            }
        }
    }
}

/// Returns the type of the segment of a block. Citations and opaque blocks have none.
fn segment_type(kind: BlockKind) -> Option<&'static str> {
    match kind {
        BlockKind::Text | BlockKind::Refusal => Some("text"),
        BlockKind::Reasoning => Some("reasoning"),
        BlockKind::Media => Some("media"),
        BlockKind::ToolCall => Some("tool_call"),
        _ => None,
    }
}

impl Encoder for Segments {
    fn begin(&mut self, _frames: &mut Frames) {}

    fn chunk(&mut self, chunk: &Chunk, frames: &mut Frames) {
        self.turn.note(chunk);
        match chunk {
            Chunk::Opened { block, head } => self.start(*block, head, frames),
            Chunk::Delta { block, delta } => self.content(*block, delta, frames),
            Chunk::Closed { block, content } => self.end(*block, content, frames),
            Chunk::AttemptRestarted { round } => {
                let void = json!({"interrupted": true, "reason": "the model is called again"});
                self.break_off(|block, _| block.round == *round, &void, frames);
            }
            Chunk::Completed(response) => {
                let calls = self.turn.client_calls(response);
                if let Some(incomplete) =
                    Ending::new(&response.finish().reason, !calls.is_empty()).incomplete()
                {
                    self.notice(incomplete, frames);
                }
                frames.done();
            }
            _ => {}
        }
    }

    fn failure(&mut self, failure: &Failure, frames: &mut Frames) {
        let failed = json!({"failed": true, "error": failure.message()});
        self.break_off(|_, state| state == State::Open, &failed, frames);
        frames.done();
    }
}
