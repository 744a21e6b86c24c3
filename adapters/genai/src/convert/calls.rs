//! Tool calls, as the client repeats them.
//!
//! Each event has one call as it is so far: its arguments are a growing text, or a whole JSON value. A delta has what
//! is new.

use std::sync::Arc;

use advisor_core::{ProviderData, Text, ToolCallDelta};
use genai::chat::ToolCall;
use provider_http::names::WireNames;
use serde_json::{Value, json};

/// The field of a call's signatures in its data.
pub(crate) const SIGNATURES: &str = "thought_signatures";

/// The calls of one answer.
#[derive(Debug)]
pub(super) struct Calls {
    names: Arc<WireNames>,
    format: Text,
    sent: Vec<Sent>,
}

/// A call as it was sent on. Its place is its index.
#[derive(Debug)]
struct Sent {
    id: String,
    name: String,
    arguments: String,
    is_whole: bool,
}

impl Calls {
    pub(super) fn new(names: Arc<WireNames>, format: Text) -> Self {
        Self { names, format, sent: Vec::new() }
    }

    /// Returns what an event adds to a call, or begins.
    pub(super) fn grown(&mut self, call: ToolCall) -> Option<ToolCallDelta> {
        let is_whole = !call.fn_arguments.is_string();
        let text = text_of(&call.fn_arguments);
        let of_this = |sent: &Sent| {
            let is_named = sent.name.is_empty() || call.fn_name.is_empty() || sent.name == call.fn_name;
            sent.id == call.call_id && is_named && !sent.is_whole && text.starts_with(&sent.arguments)
        };
        let Some(at) = self.sent.iter().rposition(of_this).filter(|_| !is_whole) else {
            return Some(self.begun(call, text, is_whole));
        };
        let sent = self.sent.get_mut(at)?;
        let more = text.get(sent.arguments.len()..).unwrap_or_default().to_owned();
        let name = (sent.name.is_empty() && !call.fn_name.is_empty()).then_some(call.fn_name);
        if more.is_empty() && name.is_none() {
            return None;
        }
        sent.arguments = text;
        let mut delta = ToolCallDelta::arguments(index(at), more);
        if let Some(name) = name {
            delta.name = Some(self.names.meant_by(&name).unwrap_or_else(|| name.as_str().into()));
            sent.name = name;
        }
        Some(delta)
    }

    /// Returns what the end of the answer adds to a call: all of one that no event has named.
    pub(super) fn completed(&mut self, call: ToolCall) -> Option<ToolCallDelta> {
        if self.sent.iter().any(|sent| sent.id == call.call_id && sent.name == call.fn_name) {
            return None;
        }
        let text = text_of(&call.fn_arguments);
        Some(self.begun(call, text, true))
    }

    fn begun(&mut self, call: ToolCall, arguments: String, is_whole: bool) -> ToolCallDelta {
        let name = self.names.meant_by(&call.fn_name).unwrap_or_else(|| call.fn_name.as_str().into());
        let mut delta = ToolCallDelta::start(index(self.sent.len()), call.call_id.as_str(), name);
        delta.arguments_delta = (!arguments.is_empty()).then(|| arguments.as_str().into());
        delta.provider_data = call
            .thought_signatures
            .filter(|signatures| !signatures.is_empty())
            .map(|signatures| ProviderData::new(self.format.clone(), json!({ SIGNATURES: signatures })));
        self.sent.push(Sent { id: call.call_id, name: call.fn_name, arguments, is_whole });
        delta
    }
}

fn index(at: usize) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

/// Returns the signatures in data of a call.
pub(crate) fn signatures(data: &Value) -> Option<Vec<String>> {
    let list = data.get(SIGNATURES)?.as_array()?;
    Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Returns the text of arguments. Some servers send the text of an object in place of the object.
fn text_of(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
