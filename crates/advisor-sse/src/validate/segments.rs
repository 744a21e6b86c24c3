//! Checks a stream of `Segments` by the rules of its protocol.

use super::{Lifecycles, Next, Violation, at, check_all, object, require, text};
use crate::Frame;

/// Checks a stream of [`Segments`](crate::Segments).
///
/// # Errors
/// The first frame that breaks a rule:
/// - Each event has all fields of its type.
/// - A segment starts once, and is extended and ended only while it is open. One that has ended may end once more, with
///   `interrupted`: its attempt is void.
/// - All segments end before `[DONE]`, which comes last.
pub fn segments(frames: &[Frame]) -> Result<(), Violation> {
    let mut lives = Lifecycles::default();
    check_all(frames, |frame| {
        if frame.is_done() {
            lives.all_closed()?;
            return Ok(Next::End);
        }
        let event = object(frame)?;
        let id = text(&event, "segment_id")?;
        text(&event, "turn_id")?;
        match text(&event, "type")? {
            "SEGMENT_START" => {
                text(&event, "segment_type")?;
                lives.open("segment", id)?;
            }
            "SEGMENT_CONTENT" => {
                require(event.get("delta").is_some(), "content has a `delta`")?;
                lives.extend("segment", id)?;
            }
            "SEGMENT_END" if *at(&event, "/metadata/interrupted") == true => {
                lives.make_void("segment", id)?
            }
            "SEGMENT_END" => lives.close("segment", id)?,
            other => return Err(format!("the type `{other}` is unknown")),
        }
        Ok(Next::Open)
    })
}
