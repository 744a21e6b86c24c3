//! The fields of a body beside its messages.

use advisor_core::{ChatRequest, Error, ResponseFormat, Result, ToolChoice, ToolDefinition};
use bytes::Bytes;
use provider_http::names::WireNames;
use provider_http::written::{entries, parameters_of};
use serde_json::{Map, Value, json};

use super::BodySettings;
use crate::profile::Profile;
use crate::wire::FORMAT;
use crate::written::written_functions;

/// Returns all fields but the messages and the tools. The caller's extra fields come last and override others.
///
/// # Errors
/// If the caller asks for several answers.
pub(super) fn write(
    request: &ChatRequest,
    model: &str,
    settings: &BodySettings,
    names: &WireNames,
) -> Result<Map<String, Value>> {
    let (options, profile) = (&request.options, &settings.profile);
    let mut fields = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(key.to_owned(), value);
        }
    };
    set("model", Some(json!(model)));
    set("stream", Some(json!(settings.streaming)));
    let asks_usage = settings.streaming && profile.asks_stream_usage;
    set("stream_options", asks_usage.then(|| json!({ "include_usage": true })));
    set("temperature", options.temperature.map(Value::from));
    set("top_p", options.top_p.map(Value::from));
    set(profile.max_tokens, options.max_tokens.map(Value::from));
    set(profile.seed, options.seed.map(Value::from));
    set("stop", (!options.stop.is_empty()).then(|| json!(options.stop)));
    set("response_format", options.response_format.as_ref().and_then(response_format));
    // Servers refuse fields about tools if no tool is offered.
    if is_any_offered(request, profile) {
        set("tool_choice", request.api_tool_choice().map(|choice| tool_choice(choice, profile, names)));
        set("parallel_tool_calls", options.parallel_tool_calls.map(Value::from));
    }
    fields.extend(options.extra.clone());
    if fields.get("n").is_some_and(|n| !n.is_null() && *n != 1) {
        return Err(Error::configuration(
            "an answer is one: leave `n` out of the extra fields, or ask several times",
        ));
    }
    Ok(fields)
}

/// Returns the list of offered tools as it is in the body; `None` if there are none.
pub(super) fn tools(
    request: &ChatRequest,
    profile: &Profile,
    names: &WireNames,
) -> Result<Option<Vec<Bytes>>> {
    if !is_any_offered(request, profile) {
        return Ok(None);
    }
    let function = |tool: &ToolDefinition| {
        json!({
            "type": "function",
            "function": {
                "name": names.tool(&tool.name), "description": tool.description, "parameters": parameters_of(tool),
            },
        })
    };
    let tools = match alone(request, profile) {
        Some(name) => {
            entries(request.api_tools().definitions().filter(|tool| tool.name == *name).map(function))
        }
        None => written_functions(request, FORMAT, names, function),
    };
    Ok(Some(vec![tools?]))
}

fn is_any_offered(request: &ChatRequest, profile: &Profile) -> bool {
    let only = alone(request, profile);
    request.api_tools().definitions().any(|tool| only.is_none_or(|only| tool.name == *only))
}

/// Returns the one tool to offer, if the server is asked for it by leaving out the others.
fn alone<'a>(request: &'a ChatRequest, profile: &Profile) -> Option<&'a str> {
    match request.api_tool_choice() {
        Some(ToolChoice::Tool(name)) if profile.offers_named_tool_alone => Some(name),
        _ => None,
    }
}

fn tool_choice(choice: &ToolChoice, profile: &Profile, names: &WireNames) -> Value {
    match choice {
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!(profile.required_tool),
        ToolChoice::Tool(_) if profile.offers_named_tool_alone => json!(profile.required_tool),
        ToolChoice::Tool(name) => {
            json!({ "type": "function", "function": { "name": names.tool(name) } })
        }
        _ => json!("auto"),
    }
}

fn response_format(format: &ResponseFormat) -> Option<Value> {
    match format {
        ResponseFormat::Text => Some(json!({ "type": "text" })),
        ResponseFormat::JsonObject => Some(json!({ "type": "json_object" })),
        ResponseFormat::JsonSchema { name, schema, strict } => Some(json!({
            "type": "json_schema",
            "json_schema": { "name": name, "schema": schema, "strict": strict },
        })),
        _ => None,
    }
}
