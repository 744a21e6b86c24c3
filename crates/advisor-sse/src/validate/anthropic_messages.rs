use serde_json::Value;

use super::{Checked, Next, Violation, at, check_all, object, require, text};
use crate::Frame;

/// Checks a stream of [`AnthropicMessages`](crate::AnthropicMessages).
///
/// # Errors
/// The first frame that breaks a rule:
/// - Events are named, and a message starts first.
/// - Blocks are numbered, and one is open at a time. Pieces are of the kind of their block.
/// - The stop reason is `tool_use` if the message has calls.
/// - `message_stop` or an error comes last. A `ping` may come before, once the message has started.
pub fn anthropic_messages(frames: &[Frame]) -> Result<(), Violation> {
    let mut state = State::default();
    check_all(frames, |frame| state.check(frame))
}

#[derive(Debug, Default)]
struct State {
    stage: Stage,
    blocks: u64,
    has_calls: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    New,
    Between,
    InBlock {
        kind: String,
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
                text(at(&event, "/message"), "id").and(text(at(&event, "/message"), "model"))?;
                require(at(&event, "/message/usage/input_tokens").is_u64(), "the start has token counts")?;
                *stage = Stage::Between;
            }
            ("content_block_start", Stage::Between) => self.open_block(&event)?,
            ("content_block_delta", Stage::InBlock { kind }) => {
                check_piece(kind, at(&event, "/delta"))?;
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
        let kind = text(at(event, "/content_block"), "type")?.to_owned();
        self.has_calls |= kind == "tool_use";
        require(!self.has_calls || kind == "tool_use", "calls come last")?;
        self.blocks += 1;
        self.stage = Stage::InBlock { kind };
        Ok(())
    }

    fn check_index(&self, event: &Value, index: u64) -> Result<(), String> {
        require(at(event, "/index").as_u64() == Some(index), "blocks are numbered")
    }
}

fn check_piece(kind: &str, piece: &Value) -> Result<(), String> {
    let expected = match kind {
        "text" => "text_delta",
        "thinking" => "thinking_delta",
        "tool_use" => "input_json_delta",
        // Such as the calls of server tools and their results.
        other => return Err(format!("a block `{other}` has no pieces")),
    };
    require(text(piece, "type")? == expected, "a piece is of the kind of its block")?;
    if kind == "tool_use" {
        text(piece, "partial_json")?;
    }
    Ok(())
}
