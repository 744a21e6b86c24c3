//! Converts one event of an answer to deltas.
//!
//! Order within an event: reasoning, text, refusal, tool calls, usage, finish reason.

use std::sync::Arc;

use advisor_core::{Delta, DeltaKind, Error, ErrorKind, Finish, FinishReason, Text, ToolCallDelta, Usage};
use provider_http::failure::Report;
use provider_http::names::WireNames;
use serde_json::Value;

use crate::error::Failures;

/// Turns the events of one answer into deltas.
#[derive(Debug)]
pub(crate) struct Converter {
    names: Arc<WireNames>,
    /// Whether the origin was emitted. Every event repeats it.
    sent_origin: bool,
    /// The number of the choice that speaks. One answer is asked for; some servers put its calls in another choice.
    speaker: Option<u64>,
    /// The number of the choice that calls.
    caller: Option<u64>,
}

impl Converter {
    pub(crate) fn new(names: Arc<WireNames>) -> Self {
        Self { names, sent_origin: false, speaker: None, caller: None }
    }

    /// Appends the deltas of an event. One of an unknown form has none.
    ///
    /// # Errors
    /// The failure that the event reports. What was appended before it has arrived.
    pub(crate) fn convert(
        &mut self,
        event: &Value,
        deltas: &mut Vec<Delta>,
        failures: &Failures,
    ) -> Result<(), Error> {
        let choices = event.get("choices").and_then(Value::as_array);
        if choices.is_some() {
            self.origin(event, deltas);
        }
        for choice in choices.into_iter().flatten() {
            self.choice(choice, deltas)?;
        }
        deltas.extend(event.get("usage").and_then(usage).map(Delta::usage));
        let own = event.get("error").filter(|error| !error.is_null()).map(Report::read);
        let report = own.or_else(|| if choices.is_none() { Report::find(event) } else { None });
        report.map_or(Ok(()), |report| Err(failures.reported(report, None)))
    }

    fn origin(&mut self, event: &Value, deltas: &mut Vec<Delta>) {
        let (id, model) = (text(event, "id"), text(event, "model"));
        if !self.sent_origin && (id.is_some() || model.is_some()) {
            self.sent_origin = true;
            deltas.push(Delta::origin(id, model));
        }
    }

    fn choice(&mut self, choice: &Value, deltas: &mut Vec<Delta>) -> Result<(), Error> {
        let index = choice.get("index").and_then(Value::as_u64).unwrap_or(0);
        let before = deltas.len();
        let mut push = |kind: DeltaKind| deltas.push(kind.into());
        if let Some(delta) = choice.get("delta") {
            let parts = delta.get("content").and_then(Value::as_array).into_iter().flatten();
            reasoning(delta).into_iter().for_each(|text| push(DeltaKind::Reasoning(text)));
            text(delta, "content").into_iter().for_each(|text| push(DeltaKind::Text(text)));
            parts.filter_map(|part| text(part, "text")).for_each(|text| push(DeltaKind::Text(text)));
            text(delta, "refusal").into_iter().for_each(|text| push(DeltaKind::Refusal(text)));
            let calls = delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
            let calls: Vec<_> = calls.map(|call| self.call(call)).collect();
            if (deltas.len() > before && *self.speaker.get_or_insert(index) != index)
                || (!calls.is_empty() && *self.caller.get_or_insert(index) != index)
            {
                deltas.truncate(before);
                let kind = ErrorKind::Protocol { position: None };
                return Err(Error::new(kind, "the server gives several answers to one request"));
            }
            if !calls.is_empty() {
                deltas.push(DeltaKind::ToolCalls(calls).into());
            }
        }
        if let Some(word) = text(choice, "finish_reason") {
            deltas.push(DeltaKind::Finish(Box::new(finish(&word))).into());
        }
        Ok(())
    }

    fn call(&self, call: &Value) -> ToolCallDelta {
        let function = call.get("function").unwrap_or(&Value::Null);
        let name = text(function, "name");
        let arguments = match function.get("arguments") {
            Some(Value::String(arguments)) => Some(Text::from(arguments.as_str())),
            Some(object @ Value::Object(_)) => Some(object.to_string().into()),
            _ => None,
        };
        let mut delta = ToolCallDelta::default();
        delta.index = call.get("index").and_then(Value::as_i64);
        delta.call_id = text(call, "id");
        delta.name = name.map(|name| self.names.meant_by(&name).unwrap_or(name));
        delta.arguments_delta = arguments;
        delta
    }
}

/// Returns the text of a field, if it has any.
fn text(object: &Value, field: &str) -> Option<Text> {
    object.get(field)?.as_str().filter(|text| !text.is_empty()).map(Text::from)
}

/// Returns the reasoning, under the first of the names that servers give it. Some use two at once.
fn reasoning(delta: &Value) -> Option<Text> {
    let details = || {
        let details = delta.get("reasoning_details")?.as_array()?;
        details.iter().find_map(|detail| text(detail, "text"))
    };
    text(delta, "reasoning_content").or_else(|| text(delta, "reasoning")).or_else(details)
}

fn usage(counts: &Value) -> Option<Usage> {
    let count = |place: &str| counts.pointer(place).and_then(Value::as_u64);
    let mut usage = Usage::default();
    usage.input_tokens = count("/prompt_tokens");
    usage.output_tokens = count("/completion_tokens");
    usage.total_tokens = count("/total_tokens");
    usage.cached_input_tokens = count("/prompt_tokens_details/cached_tokens");
    usage.cache_write_tokens = count("/prompt_tokens_details/cache_write_tokens");
    usage.reasoning_tokens = count("/completion_tokens_details/reasoning_tokens");
    (usage != Usage::default()).then_some(usage)
}

fn finish(word: &str) -> Finish {
    let reason = match word {
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "content_filter" => FinishReason::ContentFilter,
        // The server gave up in the middle, so an open call must not run.
        "error" => FinishReason::Interrupted,
        other => FinishReason::Other(other.into()),
    };
    Finish::written(reason, word)
}
