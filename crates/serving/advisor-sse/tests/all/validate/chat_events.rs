//! Checks a stream of `ChatEvents` by the rules of its protocol.

use std::collections::BTreeSet;

use advisor_sse::Frame;
use serde_json::Value;

use super::{Next, check_all, object, require, text};

/// Checks a stream of [`ChatEvents`](advisor_sse::ChatEvents).
///
/// # Errors
/// The first frame that breaks a rule:
/// - Each event has a known type and all fields of that type.
/// - A call starts once, and ends only after its start. It opens before its arguments, and both come before its start.
/// - Progress is that of a started call.
/// - The stream has a visible event, and `[DONE]` as its last frame.
pub(crate) fn chat_events(frames: &[Frame]) -> Result<(), String> {
    let mut calls = Calls::default();
    let mut is_visible = false;
    check_all(frames, |frame| {
        if frame.is_done() {
            require(is_visible, "nothing was shown")?;
            return Ok(Next::End);
        }
        let event = object(frame)?;
        match text(&event, "type")? {
            "content" => is_visible |= !text(&event, "content")?.is_empty(),
            "error" => {
                text(&event, "error")?;
                is_visible = true;
            }
            "reasoning" => {
                text(&event, "content")?;
                text(&event, "block")?;
            }
            "restart" => {}
            "media" => {
                text(&event, "url").and(text(&event, "media_type"))?;
                is_visible = true;
            }
            "source" => drop(text(&event, "url")?),
            kind @ ("tool_call_open" | "tool_call_arguments") => calls.forms(kind, &event)?,
            kind => {
                calls.runs(kind, &event)?;
                is_visible = true;
            }
        }
        Ok(Next::Open)
    })
}

/// The ids of the calls of a stream.
#[derive(Default)]
struct Calls {
    /// The calls that have opened, and not started.
    forming: BTreeSet<String>,
    started: BTreeSet<String>,
    /// The calls that have started, and not ended.
    running: BTreeSet<String>,
}

impl Calls {
    /// Checks an event before the start of a call.
    fn forms(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        let id = text(event, "id")?;
        if kind == "tool_call_arguments" {
            text(event, "arguments")?;
            return require(self.forming.contains(id), "arguments come between the opening and the start");
        }
        text(event, "tool")?;
        text(event, "block")?;
        require(!self.started.contains(id) && self.forming.insert(id.to_owned()), "a call opens once")
    }

    /// Checks an event of a call from its start on.
    fn runs(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        match kind {
            "tool_call_start" => {
                let id = text(event, "id")?;
                text(event, "tool")?;
                require(event.get("args").is_some(), "a start has `args`")?;
                require(self.started.insert(id.to_owned()), "a call starts once")?;
                self.forming.remove(id);
                self.running.insert(id.to_owned());
                Ok(())
            }
            "tool_call_progress" => {
                require(event.get("progress").is_some(), "progress has a `progress`")?;
                require(self.running.contains(text(event, "id")?), "progress is that of a running call")
            }
            "tool_call_end" => {
                text(event, "tool")?;
                require(event.get("result").is_some(), "an end has a `result`")?;
                require(self.running.remove(text(event, "id")?), "a call ends once, after its start")
            }
            other => Err(format!("the type `{other}` is unknown")),
        }
    }
}
