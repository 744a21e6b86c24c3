//! The fields of a body beside messages, system and tools.

use advisor_core::{ChatOptions, ResponseFormat};
use serde_json::{Map, Value, json};

use super::BodySettings;

/// The maximum number of tokens of an answer if the request names none. The API demands a number, and every model
/// that it serves accepts this one.
const MAX_TOKENS: u64 = 8192;

/// Returns the other fields. The caller's extra fields come last and override others.
pub(super) fn write(
    options: &ChatOptions,
    model: &str,
    settings: &BodySettings,
    tool_choice: Option<Value>,
) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(key.to_owned(), value);
        }
    };
    set("model", Some(model.into()));
    set("max_tokens", Some(max_tokens(options).into()));
    set("stream", Some(settings.streaming.into()));
    set("temperature", options.temperature.map(Value::from));
    set("top_p", options.top_p.map(Value::from));
    set("stop_sequences", (!options.stop.is_empty()).then(|| json!(options.stop)));
    set("tool_choice", tool_choice);
    fields.extend(options.extra.clone());
    add_format(options, &mut fields);
    fields
}

/// Returns the limit of the request, or the usual one in addition to the tokens for thinking, which must be fewer.
fn max_tokens(options: &ChatOptions) -> u64 {
    let thinking = options.extra.get("thinking").and_then(|thinking| thinking.get("budget_tokens")?.as_u64());
    let usual = thinking.unwrap_or_default().saturating_add(MAX_TOKENS);
    options.max_tokens.map_or(usual, u64::from)
}

/// Adds the schema of the answer, beside the caller's other output settings. The API has no form for an object
/// without a schema.
fn add_format(options: &ChatOptions, fields: &mut Map<String, Value>) {
    let Some(ResponseFormat::JsonSchema { schema, .. }) = &options.response_format else { return };
    let config = fields.entry("output_config").or_insert_with(|| json!({}));
    if let Some(config) = config.as_object_mut() {
        config.entry("format").or_insert_with(|| json!({ "type": "json_schema", "schema": schema }));
    }
}
