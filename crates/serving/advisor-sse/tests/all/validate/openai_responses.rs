//! Checks a stream of `OpenAiResponses` by the rules of its protocol.

use std::collections::BTreeMap;

use advisor_sse::Frame;
use serde_json::Value;

use super::{Checked, Lifecycles, Next, at, check_all, object, require, text};

/// Checks a stream of [`OpenAiResponses`](advisor_sse::OpenAiResponses).
///
/// # Errors
/// The first frame that breaks a rule:
/// - Events are numbered and named. A response is created first, and its id does not change.
/// - Items are numbered. Items, parts and texts open once, are extended while they are open, and close inside out.
/// - Pieces are of the kind of their part or item, and concatenate to the finished text.
/// - The last response has all items. An error precedes a failed response, and nothing is between the two.
pub(crate) fn openai_responses(frames: &[Frame]) -> Result<(), String> {
    let mut state = State::default();
    check_all(frames, |frame| state.check(frame))
}

/// The codes of a failed response that the encoder sends. The published list has all but the first one.
const CODES: [&str; 4] = ["context_length_exceeded", "invalid_prompt", "rate_limit_exceeded", "server_error"];

#[derive(Debug, Default)]
struct State {
    events: u64,
    response: Option<String>,
    /// An error was sent.
    has_failed: bool,
    /// Items, their parts, and their texts, all under the id of the item.
    lives: Lifecycles,
    /// The number of each item that has begun.
    numbers: BTreeMap<String, usize>,
    texts: BTreeMap<String, String>,
    finished: BTreeMap<usize, Value>,
}

impl State {
    fn check(&mut self, frame: &Frame) -> Checked {
        let event = object(frame)?;
        let kind = text(&event, "type")?;
        require(frame.name.as_deref() == Some(kind), "the name of the event is its type")?;
        let number = event.get("sequence_number").and_then(Value::as_u64);
        require(number == Some(self.events), "events are numbered")?;
        require((self.events == 0) == (kind == "response.created"), "a response is created first")?;
        require((self.events == 1) == (kind == "response.in_progress"), "a created response is in progress")?;
        self.events += 1;
        let item = at(&event, "/item");
        require(self.has_failed == (kind == "response.failed"), "an error precedes a failed response")?;
        match kind {
            "error" => {
                let nested = at(&event, "/error");
                text(nested, "type").and(text(nested, "code")).and(text(nested, "message"))?;
                text(&event, "code").and(text(&event, "message"))?;
                self.has_failed = true;
            }
            "response.created" | "response.in_progress" => self.check_response(&event, "in_progress")?,
            "response.completed" => return self.check_end(&event, "completed"),
            "response.incomplete" => {
                text(at(&event, "/response/incomplete_details"), "reason")?;
                return self.check_end(&event, "incomplete");
            }
            "response.failed" => {
                let error = at(&event, "/response/error");
                text(error, "message")?;
                require(
                    CODES.contains(&text(error, "code")?),
                    "the codes of a failed response are a closed list",
                )?;
                self.check_response(&event, "failed")?;
                return Ok(Next::End);
            }
            "response.output_item.added" => self.open_item(&event, item)?,
            "response.output_item.done" => self.close_item(&event, item)?,
            _ => self.check_part(kind, &event)?,
        }
        Ok(Next::Open)
    }

    fn check_response(&mut self, event: &Value, status: &str) -> Result<(), String> {
        let response = at(event, "/response");
        require(at(response, "/status") == status, "the status is that of the event")?;
        let id = text(response, "id")?;
        require(self.response.get_or_insert_with(|| id.into()) == id, "the id does not change")
    }

    fn check_end(&mut self, event: &Value, status: &str) -> Checked {
        self.check_response(event, status)?;
        let cache = at(event, "/response/usage/input_tokens_details/cache_write_tokens");
        let has_usage = !at(event, "/response/usage").is_null();
        require(!has_usage || cache.is_u64(), "token counts have those of the cache")?;
        self.lives.all_closed()?;
        let output = at(event, "/response/output").as_array().ok_or("a response has its output")?;
        require(output.iter().eq(self.finished.values()), "the last response has all items")?;
        Ok(Next::End)
    }

    fn open_item(&mut self, event: &Value, item: &Value) -> Result<(), String> {
        let (kind, id) = (kind_of(item)?, text(item, "id")?);
        self.lives.open(kind, id)?;
        if kind == "function_call" {
            text(item, "call_id").and(text(item, "name"))?;
            self.lives.open("text", id)?;
        }
        if kind == "mcp_approval_request" {
            text(item, "name").and(text(item, "arguments")).and(text(item, "server_label"))?;
        }
        self.numbers.insert(id.into(), self.numbers.len());
        self.check_number(event, id)
    }

    fn close_item(&mut self, event: &Value, item: &Value) -> Result<(), String> {
        let id = text(item, "id")?;
        self.lives.close(kind_of(item)?, id)?;
        self.lives.all_closed_of(id)?;
        self.check_number(event, id)?;
        let number = self.numbers.get(id).copied().unwrap_or_default();
        self.finished.insert(number, item.clone());
        Ok(())
    }

    fn check_number(&self, event: &Value, id: &str) -> Result<(), String> {
        let number = self.numbers.get(id).and_then(|number| u64::try_from(*number).ok());
        require(at(event, "/output_index").as_u64() == number, "items are numbered")
    }

    /// Checks an event of a part or of a text. `holder` is the item or the part that it extends.
    fn check_part(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        let (family, step) = kind.rsplit_once('.').unwrap_or((kind, ""));
        let unknown = || format!("the type `{kind}` is unknown");
        let (holder, number, field) = place_of(family).ok_or_else(unknown)?;
        let id = text(event, "item_id")?;
        self.lives.extend(holder, id)?;
        self.check_number(event, id)?;
        require(number.is_none_or(|number| *at(event, number) == 0), "an item has one part")?;
        let shown = self.texts.entry(id.into()).or_default();
        match (field, step) {
            ("part", "added") => {
                self.lives.open(kind_of(at(event, "/part"))?, id)?;
                self.lives.open("text", id)
            }
            ("part", "done") => {
                self.lives.is_closed("text", id)?;
                self.lives.close(kind_of(at(event, "/part"))?, id)
            }
            ("annotation", "added") => {
                text(at(event, "/annotation"), "url").and(text(at(event, "/annotation"), "title"))?;
                self.lives.extend("text", id)
            }
            (_, "delta") => {
                shown.push_str(text(event, "delta")?);
                self.lives.extend("text", id)
            }
            (_, "done") => {
                require(text(event, field)? == shown, "the finished text is that of its pieces")?;
                self.lives.close("text", id)
            }
            _ => Err(unknown()),
        }
    }
}

/// Returns the holder of the events of a family, the place of their number, and the field that the last one has.
fn place_of(family: &str) -> Option<(&'static str, Option<&'static str>, &'static str)> {
    Some(match family {
        "response.content_part" => ("message", Some("/content_index"), "part"),
        "response.reasoning_summary_part" => ("reasoning", Some("/summary_index"), "part"),
        "response.output_text.annotation" => ("output_text", Some("/content_index"), "annotation"),
        "response.output_text" => ("output_text", Some("/content_index"), "text"),
        "response.refusal" => ("refusal", Some("/content_index"), "refusal"),
        "response.reasoning_summary_text" => ("summary_text", Some("/summary_index"), "text"),
        "response.function_call_arguments" => ("function_call", None, "arguments"),
        _ => return None,
    })
}

/// Returns the type of an item or of a part.
fn kind_of(part: &Value) -> Result<&'static str, String> {
    const KINDS: [&str; 7] = [
        "message", "reasoning", "function_call", "mcp_approval_request", "output_text", "refusal",
        "summary_text",
    ];
    let kind = text(part, "type")?;
    let known = KINDS.into_iter().find(|known| *known == kind);
    known.ok_or_else(|| format!("the part `{kind}` is unknown"))
}
