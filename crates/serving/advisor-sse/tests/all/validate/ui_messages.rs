//! Checks a stream of `UiMessages` by the rules of its protocol.

use std::collections::BTreeSet;

use advisor_sse::Frame;
use serde_json::Value;

use super::{Checked, Lifecycles, Next, check_all, object, require, text};

/// Checks a stream of [`UiMessages`](advisor_sse::UiMessages) with the rules of the strictest client.
///
/// # Errors
/// The first frame that breaks a rule:
/// - The type of each frame is known, as are its fields.
/// - A part is extended and ended only while it is open.
/// - A call has an input before its output, and before a request for its approval.
/// - A denied call has a request for its approval, here or in an earlier turn.
/// - Before the first step, only calls of earlier turns end.
/// - The stream ends with `finish`, `error` or `abort`, and then `[DONE]`.
pub(crate) fn ui_messages(frames: &[Frame]) -> Result<(), String> {
    let mut state = State::default();
    check_all(frames, |frame| state.check(frame))
}

#[derive(Debug, Default)]
struct State {
    has_started: bool,
    in_step: bool,
    has_steps: bool,
    has_ended: bool,
    parts: Lifecycles,
    outputs: BTreeSet<String>,
    approvals: BTreeSet<String>,
}

/// The required fields of each type, then the optional ones.
const FIELDS: &[(&str, &[&str], &[&str])] = &[
    ("start", &["messageId"], &[]),
    ("start-step", &[], &[]),
    ("text-start", &["id"], &[]),
    ("text-delta", &["id", "delta"], &[]),
    ("text-end", &["id"], &[]),
    ("reasoning-start", &["id"], &[]),
    ("reasoning-delta", &["id", "delta"], &[]),
    ("reasoning-end", &["id"], &[]),
    ("tool-input-start", &["toolCallId", "toolName"], &["dynamic"]),
    ("tool-input-delta", &["toolCallId", "inputTextDelta"], &[]),
    ("tool-input-available", &["toolCallId", "toolName", "input"], &["dynamic"]),
    ("tool-output-available", &["toolCallId", "output"], &["dynamic"]),
    ("tool-output-error", &["toolCallId", "errorText"], &["dynamic"]),
    ("source-url", &["sourceId", "url"], &["title"]),
    ("file", &["url", "mediaType"], &[]),
    ("data-restart", &["data"], &[]),
    ("data-incomplete", &["data"], &[]),
    ("finish-step", &[], &[]),
    ("tool-input-error", &["toolCallId", "toolName", "input", "errorText"], &["dynamic"]),
    ("tool-approval-request", &["approvalId", "toolCallId"], &[]),
    ("tool-output-denied", &["toolCallId"], &[]),
    ("finish", &["finishReason"], &[]),
    ("error", &["errorText"], &[]),
    ("abort", &[], &[]),
];

impl State {
    fn check(&mut self, frame: &Frame) -> Checked {
        if frame.is_done() {
            require(self.has_ended, "`[DONE]` follows an end of the message")?;
            return Ok(Next::End);
        }
        require(!self.has_ended, "only `[DONE]` follows the end of the message")?;
        let event = object(frame)?;
        let kind = text(&event, "type")?;
        Self::check_fields(kind, &event)?;
        require(self.has_started != (kind == "start"), "the message starts once, first")?;
        self.has_started = true;
        match kind.split_once('-').map_or(kind, |(part, _)| part) {
            "text" => self.check_part("text", kind, text(&event, "id")?)?,
            "reasoning" => self.check_part("reasoning", kind, text(&event, "id")?)?,
            "tool" => self.check_call(kind, text(&event, "toolCallId")?)?,
            _ => self.check_frame(kind)?,
        }
        Ok(Next::Open)
    }

    fn check_fields(kind: &str, event: &Value) -> Result<(), String> {
        let known = FIELDS.iter().find(|(name, ..)| *name == kind);
        let (_, required, optional) = known.ok_or_else(|| format!("there is no type `{kind}`"))?;
        for field in *required {
            require(event.get(field).is_some(), &format!("`{kind}` has a field `{field}`"))?;
        }
        let is_known =
            |field: &str| field == "type" || required.contains(&field) || optional.contains(&field);
        let unknown = event.as_object().and_then(|fields| fields.keys().find(|field| !is_known(field)));
        unknown.map_or(Ok(()), |field| Err(format!("`{kind}` has no field `{field}`")))
    }

    fn check_part(&mut self, part: &'static str, kind: &str, id: &str) -> Result<(), String> {
        require(self.in_step, "parts are in a step")?;
        match kind.rsplit('-').next() {
            Some("start") => self.parts.open(part, id),
            Some("delta") => self.parts.extend(part, id),
            _ => self.parts.close(part, id),
        }
    }

    fn check_call(&mut self, kind: &str, id: &str) -> Result<(), String> {
        if !self.has_steps && kind.starts_with("tool-output-") {
            return require(self.outputs.insert(id.into()), "a call has one output");
        }
        require(self.in_step, "calls are in a step")?;
        match kind {
            "tool-input-start" => self.parts.open("call", id),
            "tool-input-delta" => self.parts.extend("call", id),
            "tool-input-available" | "tool-input-error" => {
                // The input of a call may come whole, without a start.
                if self.parts.extend("call", id).is_err() {
                    self.parts.open("call", id)?;
                }
                if kind == "tool-input-error" {
                    self.outputs.insert(id.into());
                }
                self.parts.close("call", id)
            }
            "tool-approval-request" => {
                self.parts.is_closed("call", id)?;
                require(!self.outputs.contains(id), "a call with an output needs no approval")?;
                require(self.approvals.insert(id.into()), "a call has one request for its approval")
            }
            _ => {
                self.parts.is_closed("call", id)?;
                let is_asked = kind != "tool-output-denied" || self.approvals.contains(id);
                require(is_asked, "a denied call has a request for its approval")?;
                require(self.outputs.insert(id.into()), "a call has one output")
            }
        }
    }

    fn check_frame(&mut self, kind: &str) -> Result<(), String> {
        match kind {
            "start-step" => {
                self.has_steps = true;
                require(!std::mem::replace(&mut self.in_step, true), "steps do not overlap")
            }
            "finish-step" => {
                require(std::mem::replace(&mut self.in_step, false), "a step finishes once")?;
                self.parts.all_closed()
            }
            "finish" => {
                self.has_ended = true;
                require(!self.in_step, "the last step finishes before the message")
            }
            "error" | "abort" => {
                self.has_ended = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
