//! Checks a stream of `AnthropicMessages` by the rules of its protocol.

use advisor_sse::Frame;
use serde_json::{Value, json};

use super::{Checked, Next, at, check_all, object, require, text};

/// Checks a stream of [`AnthropicMessages`](advisor_sse::AnthropicMessages).
///
/// # Errors
/// The first frame that breaks a rule:
/// - Events are named, and an empty message starts first.
/// - Blocks are numbered, and one is open at a time. Pieces are of the kind of their block.
/// - Calls come last, and start without input. The stop reason is `tool_use` if the message has calls.
/// - Tools of the server come whole, and a result follows its call.
/// - `message_stop` or an error comes last. A `ping` may come before, once the message has started.
pub(crate) fn anthropic_messages(frames: &[Frame]) -> Result<(), String> {
    let mut state = State::default();
    check_all(frames, |frame| state.check(frame))
}

#[derive(Debug, Default)]
struct State {
    stage: Stage,
    blocks: u64,
    has_calls: bool,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    New,
    Between,
    /// A block is open. Its deltas have this type, and their text is in this field.
    InBlock {
        delta: &'static str,
        field: &'static str,
    },
    Ended,
}

impl State {
    fn check(&mut self, frame: &Frame) -> Checked {
        let event = object(frame)?;
        let kind = text(&event, "type")?;
        require(frame.name.as_deref() == Some(kind), "the name of the event is its type")?;
        match (kind, &mut self.stage) {
            ("message_start", stage @ Stage::New) => {
                check_start(at(&event, "/message"))?;
                *stage = Stage::Between;
            }
            ("content_block_start", Stage::Between) => self.open_block(&event)?,
            ("content_block_delta", Stage::InBlock { delta, field }) => {
                let piece = at(&event, "/delta");
                let kind = text(piece, "type")?;
                if kind == "citations_delta" && *delta == "text_delta" {
                    text(at(piece, "/citation"), "type").and(text(at(piece, "/citation"), "cited_text"))?;
                } else {
                    require(kind == *delta, "a piece is of the kind of its block")?;
                    text(piece, field)?;
                }
                self.check_index(&event, self.blocks - 1)?;
            }
            ("content_block_stop", Stage::InBlock { .. }) => {
                self.check_index(&event, self.blocks - 1)?;
                self.stage = Stage::Between;
            }
            ("message_delta", stage @ Stage::Between) => {
                let reason = text(at(&event, "/delta"), "stop_reason")?;
                require((reason == "tool_use") == self.has_calls, "the reason tells of calls")?;
                require(at(&event, "/usage/output_tokens").is_u64(), "the end has token counts")?;
                *stage = Stage::Ended;
            }
            ("ping", Stage::Between | Stage::InBlock { .. } | Stage::Ended) => {}
            ("message_stop", Stage::Ended) => return Ok(Next::End),
            ("error", _) => {
                text(at(&event, "/error"), "type").and(text(at(&event, "/error"), "message"))?;
                return Ok(Next::End);
            }
            (other, _) => return Err(format!("`{other}` is out of order")),
        }
        Ok(Next::Open)
    }

    fn open_block(&mut self, event: &Value) -> Result<(), String> {
        self.check_index(event, self.blocks)?;
        let block = at(event, "/content_block");
        let kind = text(block, "type")?;
        let (delta, field) = match kind {
            "text" => ("text_delta", "text"),
            "thinking" => ("thinking_delta", "thinking"),
            "tool_use" => ("input_json_delta", "partial_json"),
            other => return Err(format!("the block `{other}` is unknown")),
        };
        if kind == "tool_use" {
            text(block, "id").and(text(block, "name"))?;
            require(at(block, "/input") == &json!({}), "a call starts without input")?;
            self.has_calls = true;
        } else {
            require(!self.has_calls, "calls come last")?;
            require(text(block, field)?.is_empty(), "a block starts empty")?;
        }
        self.blocks += 1;
        self.stage = Stage::InBlock { delta, field };
        Ok(())
    }

    fn check_index(&self, event: &Value, index: u64) -> Result<(), String> {
        require(at(event, "/index").as_u64() == Some(index), "blocks are numbered")
    }
}

fn check_start(message: &Value) -> Result<(), String> {
    text(message, "id").and(text(message, "model"))?;
    require(at(message, "/role") == "assistant", "the message is one of the assistant")?;
    require(at(message, "/content") == &json!([]), "the message starts empty")?;
    let has_count = |field: &str| at(message, &format!("/usage/{field}")).is_u64();
    require(has_count("input_tokens") && has_count("output_tokens"), "the start has token counts")
}
