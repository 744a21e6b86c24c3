//! Checks that the frames of a stream keep the rules of their protocol, for tests of encoders and servers.
//!
//! Each function checks a whole stream, from its first frame to its end.
//!
//! # Example
//! ```
//! use advisor_sse::{Frame, validate};
//!
//! let stream = "data: {\"type\":\"content\",\"content\":\"Hello\"}\n\ndata: [DONE]\n\n";
//! assert_eq!(validate::chat_events(&Frame::read_all(stream)), Ok(()));
//! assert!(validate::chat_events(&Frame::read_all("data: [DONE]\n\ndata: [DONE]\n\n")).is_err());
//! ```

mod ag_ui;
mod anthropic_messages;
mod chat_events;
mod openai_chat;
mod openai_responses;
mod segments;
mod ui_messages;

use std::collections::BTreeMap;

use serde_json::Value;

pub use self::ag_ui::ag_ui;
pub use self::anthropic_messages::anthropic_messages;
pub use self::chat_events::chat_events;
pub use self::openai_chat::openai_chat;
pub use self::openai_responses::openai_responses;
pub use self::segments::segments;
pub use self::ui_messages::ui_messages;
use crate::Frame;

/// The first frame that breaks a rule of its protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("frame {position}: {rule}")]
#[non_exhaustive]
pub struct Violation {
    /// The position of the frame, from 0; the number of frames if the end is missing.
    pub position: usize,
    /// The rule.
    pub rule: String,
}

/// The state of the stream after the check of one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// More frames follow.
    Open,
    /// The frame was the last.
    End,
}

/// The outcome of a check of one frame.
type Checked = Result<Next, String>;

/// Checks the frames one by one, and that the stream ends with the last one.
fn check_all(frames: &[Frame], mut check: impl FnMut(&Frame) -> Checked) -> Result<(), Violation> {
    let violation = |position, rule: String| Err(Violation { position, rule });
    for (position, frame) in frames.iter().enumerate() {
        match check(frame) {
            Err(rule) => return violation(position, rule),
            Ok(Next::End) if position + 1 < frames.len() => {
                return violation(position + 1, "a frame follows the end".into());
            }
            Ok(Next::End) => return Ok(()),
            Ok(Next::Open) => {}
        }
    }
    violation(frames.len(), "the stream has no end".into())
}

/// Returns the data of a frame as an object of JSON.
fn object(frame: &Frame) -> Result<Value, String> {
    match frame.json() {
        Some(value) if value.is_object() => Ok(value),
        _ => Err("the data is no JSON object".into()),
    }
}

/// Returns the value at a place such as `/delta/type`; `null` if there is none.
fn at<'a>(value: &'a Value, place: &str) -> &'a Value {
    value.pointer(place).unwrap_or(&Value::Null)
}

/// Returns a field that must be a string.
fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str, String> {
    value.get(field).and_then(Value::as_str).ok_or_else(|| format!("the string `{field}` is missing"))
}

fn require(holds: bool, rule: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(rule.into()) }
}

/// Things with an id that open and close, such as parts of a message.
#[derive(Debug, Default)]
struct Lifecycles(BTreeMap<(&'static str, String), Life>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Open,
    Closed,
    /// Closed a second time.
    Void,
}

impl Lifecycles {
    fn open(&mut self, kind: &'static str, id: &str) -> Result<(), String> {
        let known = self.0.insert((kind, id.into()), Life::Open);
        require(known.is_none(), &format!("the {kind} `{id}` opens twice"))
    }

    fn extend(&self, kind: &'static str, id: &str) -> Result<(), String> {
        let is_open = self.0.get(&(kind, id.into())) == Some(&Life::Open);
        require(is_open, &format!("the {kind} `{id}` is extended while it is not open"))
    }

    fn close(&mut self, kind: &'static str, id: &str) -> Result<(), String> {
        let was = self.0.insert((kind, id.into()), Life::Closed);
        require(was == Some(Life::Open), &format!("the {kind} `{id}` closes while it is not open"))
    }

    /// Closes a thing that is open, or one that has closed once more.
    fn make_void(&mut self, kind: &'static str, id: &str) -> Result<(), String> {
        if self.0.get(&(kind, id.into())) != Some(&Life::Closed) {
            return self.close(kind, id);
        }
        self.0.insert((kind, id.into()), Life::Void);
        Ok(())
    }

    /// Checks that the thing was opened and has closed.
    fn is_closed(&self, kind: &'static str, id: &str) -> Result<(), String> {
        let is_closed = self.0.get(&(kind, id.into())) == Some(&Life::Closed);
        require(is_closed, &format!("the {kind} `{id}` has not closed"))
    }

    /// Checks that nothing is open.
    fn all_closed(&self) -> Result<(), String> {
        self.none_open(|_| true)
    }

    /// Checks that nothing with this id is open.
    fn all_closed_of(&self, id: &str) -> Result<(), String> {
        self.none_open(|of| of == id)
    }

    fn none_open(&self, is_meant: impl Fn(&str) -> bool) -> Result<(), String> {
        let open = self.0.iter().find(|((_, id), life)| **life == Life::Open && is_meant(id));
        open.map_or(Ok(()), |((kind, id), _)| Err(format!("the {kind} `{id}` is still open")))
    }
}
