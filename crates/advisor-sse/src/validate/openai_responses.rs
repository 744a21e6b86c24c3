use std::collections::BTreeMap;

use serde_json::Value;

use super::{Checked, Lifecycles, Next, Violation, at, check_all, object, require, text};
use crate::Frame;

/// Checks a stream of [`OpenAiResponses`](crate::OpenAiResponses).
///
/// # Errors
/// The first frame that breaks a rule:
/// - Events are numbered and named, and a response is created first.
/// - Items, parts and arguments open, are extended and close. Pieces concatenate to the finished text.
/// - The last response has all items.
pub fn openai_responses(frames: &[Frame]) -> Result<(), Violation> {
    let mut state = State::default();
    check_all(frames, |frame| state.check(frame))
}

#[derive(Debug, Default)]
struct State {
    events: u64,
    lives: Lifecycles,
    texts: BTreeMap<String, String>,
    items: BTreeMap<u64, Value>,
}

impl State {
    fn check(&mut self, frame: &Frame) -> Checked {
        let event = object(frame)?;
        let kind = text(&event, "type")?;
        require(frame.name.as_deref() == Some(kind), "the name of the event is its type")?;
        require(
            event.get("sequence_number").and_then(Value::as_u64) == Some(self.events),
            "events are numbered",
        )?;
        require((self.events == 0) == (kind == "response.created"), "a response is created first")?;
        self.events += 1;
        match kind {
            "response.created" | "response.in_progress" => {
                require(at(&event, "/response/status") == "in_progress", "the response is in progress")?;
                Ok(Next::Open)
            }
            "response.completed" | "response.incomplete" => {
                self.check_end(at(&event, "/response"), kind.trim_start_matches("response."))?;
                Ok(Next::End)
            }
            "response.failed" => {
                text(at(&event, "/response/error"), "message")?;
                Ok(Next::End)
            }
            "response.output_item.added" => {
                self.lives.open("item", text(at(&event, "/item"), "id")?)?;
                Ok(Next::Open)
            }
            "response.output_item.done" => {
                self.lives.close("item", text(at(&event, "/item"), "id")?)?;
                let index = at(&event, "/output_index").as_u64().ok_or("an item has an output index")?;
                self.items.insert(index, at(&event, "/item").clone());
                Ok(Next::Open)
            }
            _ => self.check_part(kind, &event).map(|()| Next::Open),
        }
    }

    fn check_end(&self, response: &Value, status: &str) -> Result<(), String> {
        self.lives.all_closed()?;
        let output = at(response, "/output").as_array().ok_or("a response has its output")?;
        require(output.iter().eq(self.items.values()), "the last response has all items")?;
        require(at(response, "/status") == status, "the status is that of the event")
    }

    fn check_part(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        let id = text(event, "item_id")?;
        self.lives.extend("item", id)?;
        if let "response.mcp_call.in_progress" | "response.mcp_call.completed" | "response.mcp_call.failed" =
            kind
        {
            return Ok(());
        }
        if kind.ends_with("part.added") {
            return self.lives.open("part", id);
        }
        if kind.ends_with("part.done") {
            return self.lives.close("part", id);
        }
        let is_call = kind.contains("_call_arguments.");
        if !is_call {
            self.lives.extend("part", id)?;
        }
        let shown = self.texts.entry(id.into()).or_default();
        if kind.ends_with(".delta") {
            shown.push_str(text(event, "delta")?);
            return Ok(());
        }
        let field = match kind {
            "response.output_text.done" | "response.reasoning_summary_text.done" => "text",
            "response.refusal.done" => "refusal",
            "response.function_call_arguments.done" | "response.mcp_call_arguments.done" => "arguments",
            other => return Err(format!("the type `{other}` is unknown")),
        };
        require(text(event, field)? == shown, "the finished text is that of its pieces")
    }
}
