//! Checks that the frames of a stream keep the rules of their protocol. Each function checks a whole stream, from its first
//! frame to its end. Tests of the server and of `tests/wire` take these files, too.

mod ag_ui;
mod anthropic_messages;
mod chat_events;
mod openai_chat;
mod openai_responses;
mod ui_messages;

use std::collections::BTreeMap;

use advisor_sse::Frame;
use serde_json::Value;

pub(crate) use self::ag_ui::ag_ui;
pub(crate) use self::anthropic_messages::anthropic_messages;
pub(crate) use self::chat_events::chat_events;
pub(crate) use self::openai_chat::openai_chat;
pub(crate) use self::openai_responses::openai_responses;
pub(crate) use self::ui_messages::ui_messages;

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

/// Checks the frames one by one, and that the stream ends with the last one. An error names the first frame that breaks a
/// rule, and the rule.
fn check_all(frames: &[Frame], mut check: impl FnMut(&Frame) -> Checked) -> Result<(), String> {
    let violation = |position, rule: String| Err(format!("frame {position}: {rule}"));
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
