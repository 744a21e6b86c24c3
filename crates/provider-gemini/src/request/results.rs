//! Tool results on the wire.

use advisor_core::{Part, ToolResult};
use provider_http::names::WireNames;
use provider_http::parts_of_result;
use serde_json::{Map, Value, json};

use super::{MessageRules, media};
use crate::profile::{CallIdField, Generation};

/// The keys with a meaning in a response. A result that has one of them is put under `output`.
const KEYS: [&str; 2] = ["output", "error"];

/// Returns the part for a result, and its media beside it where the model does not take them inside.
pub(super) fn parts(result: &ToolResult, rules: &MessageRules, names: &WireNames) -> Vec<Value> {
    let mut function = Map::new();
    if rules.call_ids == CallIdField::Sent {
        function.insert("id".to_owned(), names.ids.on_the_wire(&result.call_id).into());
    }
    function.insert("name".to_owned(), names.tools.on_the_wire(&result.name).into());
    function.insert("response".to_owned(), response(result));
    let mut media: Vec<Value> = result.parts.iter().filter_map(media::part).collect();
    if rules.generation == Generation::Gemini3 && !media.is_empty() {
        function.insert("parts".to_owned(), Value::Array(std::mem::take(&mut media)));
    }
    let mut parts = vec![json!({ "functionResponse": function })];
    parts.append(&mut media);
    parts
}

/// Returns the response: a structured result as it is, anything else as `output`, a failure as `error`.
fn response(result: &ToolResult) -> Value {
    if result.is_error {
        return json!({ "error": lines(&parts_of_result(result)) });
    }
    let mut said = result.parts.iter().filter(|part| media::part(part).is_none());
    match (said.next(), said.next()) {
        (Some(Part::Json(Value::Object(fields))), None)
            if !KEYS.iter().any(|key| fields.contains_key(*key)) =>
        {
            Value::Object(fields.clone())
        }
        (Some(Part::Json(value)), None) => json!({ "output": value }),
        _ => json!({ "output": lines(&result.parts) }),
    }
}

fn lines(parts: &[Part]) -> String {
    let text = |part: &Part| match part {
        Part::Text(text) => Some(text.to_string()),
        Part::Json(value) => Some(value.to_string()),
        other => media::note(other),
    };
    parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}
