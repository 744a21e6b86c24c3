use super::{Lifecycles, Next, Violation, check_all, object, require, text};
use crate::Frame;

/// Checks a stream of [`Segments`](crate::Segments).
///
/// # Errors
/// The first frame that extends or ends a segment that is not open, starts one twice, or lacks a field; also a stream
/// that ends with an open segment or without `[DONE]`.
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
            "SEGMENT_END" => lives.close("segment", id)?,
            other => return Err(format!("the type `{other}` is unknown")),
        }
        Ok(Next::Open)
    })
}
