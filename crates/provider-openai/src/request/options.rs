//! The fields of a body beside its messages.

use advisor_core::{ChatRequest, Error, ResponseFormat, Result, ToolChoice, ToolDefinition};
use bytes::Bytes;
use provider_http::names::WireNames;
use provider_http::written::{entries, fields, parameters_of};
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
    let asks_usage = settings.streaming && profile.asks_stream_usage;
    // Servers refuse fields about tools if no tool is offered.
    let (choice, parallel) = match is_any_offered(request, profile) {
        true => (request.api_tool_choice(), options.parallel_tool_calls),
        false => (None, None),
    };
    let mut fields = fields([
        ("model", Some(json!(model))),
        ("stream", Some(json!(settings.streaming))),
        ("stream_options", asks_usage.then(|| json!({ "include_usage": true }))),
        ("temperature", options.temperature.map(Value::from)),
        ("top_p", options.top_p.map(Value::from)),
        (profile.max_tokens, options.max_tokens.map(Value::from)),
        (profile.seed, options.seed.map(Value::from)),
        ("stop", (!options.stop.is_empty()).then(|| json!(options.stop))),
        ("response_format", options.response_format.as_ref().and_then(response_format)),
        ("tool_choice", choice.map(|choice| tool_choice(choice, profile, names))),
        ("parallel_tool_calls", parallel.map(Value::from)),
    ]);
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
