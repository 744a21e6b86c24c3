//! `MessageReader`: reads events into a message, as the AI SDK does.

use std::collections::HashMap;

use advisor_sse::Frame;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A message of the AI SDK.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ReadMessage {
    pub(super) id: String,
    role: &'static str,
    /// The parts, in the form of the AI SDK's `UIMessage`.
    pub(super) parts: Vec<Value>,
}

impl ReadMessage {
    pub(super) fn of_user(id: String, parts: Vec<Value>) -> Self {
        Self { id, role: "user", parts }
    }

    pub(super) fn of_assistant(id: String) -> Self {
        Self { id, role: "assistant", parts: Vec::new() }
    }

    pub(super) fn is_of_assistant(&self) -> bool {
        self.role == "assistant"
    }
}

/// Reads the events of [`UiMessages`](advisor_sse::UiMessages) into a message, as the AI SDK does.
///
/// A call that was decided also has the verdict of the person, which clients add themselves.
#[derive(Debug)]
pub(super) struct MessageReader<'a> {
    message: &'a mut ReadMessage,
    /// The places of the open texts and reasoning, by their ids.
    open: HashMap<String, usize>,
}

impl<'a> MessageReader<'a> {
    pub(super) fn new(message: &'a mut ReadMessage) -> Self {
        Self { message, open: HashMap::new() }
    }

    /// Reads the events of a stream, or of its beginning.
    pub(super) fn read(&mut self, stream: &str) {
        for frame in Frame::read_all(stream) {
            if let Some(Value::Object(event)) = frame.json() {
                self.event(event);
            }
        }
    }

    fn event(&mut self, event: Map<String, Value>) {
        let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "start-step" => self.message.parts.push(json!({"type": "step-start"})),
            "text-start" => self.open(text("id"), json!({"type": "text"})),
            "reasoning-start" => self.open(text("id"), json!({"type": "reasoning", "id": text("id")})),
            "text-delta" | "reasoning-delta" => self.extend(text("id"), text("delta")),
            "text-end" | "reasoning-end" => self.close(text("id")),
            "source-url" | "file" => self.message.parts.push(event.into()),
            data if data.starts_with("data-") => self.message.parts.push(event.into()),
            tool if tool.starts_with("tool-") => self.tool(&event),
            _ => {}
        }
    }

    fn open(&mut self, id: &str, mut part: Value) {
        if let Value::Object(part) = &mut part {
            part.extend([("text".into(), "".into()), ("state".into(), "streaming".into())]);
        }
        self.open.insert(id.to_owned(), self.message.parts.len());
        self.message.parts.push(part);
    }

    fn extend(&mut self, id: &str, delta: &str) {
        let part = self.open.get(id).and_then(|place| self.message.parts.get_mut(*place));
        if let Some(Value::String(text)) = part.and_then(|part| part.get_mut("text")) {
            text.push_str(delta);
        }
    }

    fn close(&mut self, id: &str) {
        let part = self.open.remove(id).and_then(|place| self.message.parts.get_mut(place));
        if let Some(state) = part.and_then(|part| part.get_mut("state")) {
            *state = "done".into();
        }
    }

    fn tool(&mut self, event: &Map<String, Value>) {
        let value = |name: &str| event.get(name).cloned().unwrap_or_default();
        let Some(part) = self.part_of_call(event) else { return };
        let state = match value("type").as_str().unwrap_or_default() {
            "tool-input-available" => {
                part.insert("input".into(), value("input"));
                "input-available"
            }
            "tool-input-error" => {
                part.insert("input".into(), value("input"));
                part.insert("errorText".into(), value("errorText"));
                "output-error"
            }
            "tool-approval-request" => {
                part.insert("approval".into(), json!({"id": value("approvalId")}));
                "approval-requested"
            }
            "tool-output-available" => {
                part.insert("output".into(), value("output"));
                decide(part, true);
                "output-available"
            }
            "tool-output-error" => {
                part.insert("errorText".into(), value("errorText"));
                decide(part, true);
                "output-error"
            }
            "tool-output-denied" if part.contains_key("approval") => {
                decide(part, false);
                "output-denied"
            }
            // The server no longer asks about this call, and clients refuse a denial without an approval.
            "tool-output-denied" => {
                part.insert("errorText".into(), "the call was denied".into());
                "output-error"
            }
            _ => return,
        };
        part.insert("state".into(), state.into());
    }

    /// Returns the part of an event's call, which is a new one if the call begins.
    fn part_of_call(&mut self, event: &Map<String, Value>) -> Option<&mut Map<String, Value>> {
        let parts = &mut self.message.parts;
        let id = event.get("toolCallId")?;
        let place = match (
            parts.iter().rposition(|part| part.get("toolCallId") == Some(id)),
            event.get("toolName"),
        ) {
            (Some(place), _) => place,
            (None, Some(name)) => {
                parts.push(json!({
                    "type": "dynamic-tool", "toolName": name, "toolCallId": id, "state": "input-streaming",
                }));
                parts.len().saturating_sub(1)
            }
            (None, None) => return None,
        };
        parts.get_mut(place)?.as_object_mut()
    }
}

/// Notes what a person has decided about a call, if one was asked.
fn decide(part: &mut Map<String, Value>, approved: bool) {
    if let Some(Value::Object(approval)) = part.get_mut("approval") {
        approval.insert("approved".into(), approved.into());
    }
}
