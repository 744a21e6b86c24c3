use std::collections::BTreeSet;

use super::{Next, Violation, check_all, object, require, text};
use crate::Frame;

/// Checks a stream of [`ChatEvents`](crate::ChatEvents), in any of its forms.
///
/// # Errors
/// The first frame that breaks a rule:
/// - Each event has a known type and all fields of that type.
/// - A call starts once, and ends only after its start.
/// - The stream has a visible event, and `[DONE]` as its last frame.
pub fn chat_events(frames: &[Frame]) -> Result<(), Violation> {
    let mut open = BTreeSet::new();
    let mut started = BTreeSet::new();
    let mut is_visible = false;
    check_all(frames, |frame| {
        if frame.is_done() {
            require(is_visible, "nothing was shown")?;
            return Ok(Next::End);
        }
        let event = object(frame)?;
        match event.get("type").and_then(|kind| kind.as_str()) {
            None | Some("content") => is_visible |= !text(&event, "content")?.is_empty(),
            Some("tool_call_start" | "tool_call") => {
                let id = text(&event, "id")?;
                text(&event, "tool")?;
                require(event.get("args").is_some(), "a start has `args`")?;
                require(started.insert(id.to_owned()), "a call starts once")?;
                open.insert(id.to_owned());
                is_visible = true;
            }
            Some("tool_call_end") => {
                text(&event, "tool")?;
                require(event.get("result").is_some(), "an end has a `result`")?;
                require(open.remove(text(&event, "id")?), "a call ends once, after its start")?;
            }
            Some("error") => {
                text(&event, "error")?;
                is_visible = true;
            }
            Some("reasoning") => {
                text(&event, "content")?;
                text(&event, "block")?;
            }
            Some("restart") => {}
            Some(other) => return Err(format!("the type `{other}` is unknown")),
        }
        Ok(Next::Open)
    })
}
