//! The fields of a body beside its messages.

use std::borrow::Cow;

use advisor_core::{ChatRequest, ResponseFormat, Result, ToolChoice, ToolDefinition};
use bytes::Bytes;
use provider_http::names::WireNames;
use provider_http::written::{parameters_of, unwritable, written_tools};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::BodySettings;
use crate::profile::{NamedTool, OptionRules};

/// Returns all fields but the messages and the tools. The caller's extra fields come last and override others.
pub(super) fn write(
    request: &ChatRequest,
    model: &str,
    settings: &BodySettings,
    names: &WireNames,
) -> Map<String, Value> {
    let (options, rules) = (&request.options, &settings.profile.options);
    let mut fields = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(key.to_owned(), value);
        }
    };
    set("model", Some(json!(model)));
    set("stream", Some(json!(settings.streaming)));
    let asks_usage = settings.streaming && rules.asks_stream_usage;
    set("stream_options", asks_usage.then(|| json!({ "include_usage": true })));
    set("temperature", options.temperature.map(Value::from));
    set("top_p", options.top_p.map(Value::from));
    set(rules.max_tokens, options.max_tokens.map(Value::from));
    set(rules.seed, options.seed.map(Value::from));
    set("stop", (!options.stop.is_empty()).then(|| json!(options.stop)));
    set("response_format", options.response_format.as_ref().and_then(response_format));
    // Servers refuse fields about tools if no tool is offered.
    if offered(request, rules).next().is_some() {
        set("tool_choice", request.api_tool_choice().map(|choice| tool_choice(choice, rules, names)));
        set("parallel_tool_calls", options.parallel_tool_calls.map(|calls| calls.are_allowed().into()));
    }
    fields.extend(options.extra.clone());
    fields
}

/// Returns the list of offered tools as it is in the body; `None` if there are none. The list is written once
/// per set, unless a tool is offered alone or does not have its usual name.
pub(super) fn tools(request: &ChatRequest, rules: &OptionRules, names: &WireNames) -> Result<Option<Bytes>> {
    if offered(request, rules).next().is_none() {
        return Ok(None);
    }
    let written = || {
        let tools: Vec<_> = offered(request, rules).map(|tool| Offered::new(tool, names)).collect();
        serde_json::to_vec(&tools).map(Bytes::from).map_err(unwritable)
    };
    let described = request.api_tools();
    let as_usual = !described.definitions().any(|tool| names.is_special_tool(&tool.name));
    let tools = if as_usual && alone(request, rules).is_none() {
        written_tools(described, &ToolsForm, written)
    } else {
        written()
    };
    tools.map(Some)
}

/// The form of a list of tools, which depends on the tools alone.
#[derive(Clone, PartialEq)]
struct ToolsForm;

fn offered<'a>(request: &'a ChatRequest, rules: &OptionRules) -> impl Iterator<Item = &'a ToolDefinition> {
    let only = alone(request, rules);
    request.api_tools().definitions().filter(move |tool| only.is_none_or(|only| tool.name == *only))
}

/// Returns the one tool to offer, if the server is asked for it by leaving out the others.
fn alone<'a>(request: &'a ChatRequest, rules: &OptionRules) -> Option<&'a str> {
    match request.api_tool_choice() {
        Some(ToolChoice::Tool(name)) if rules.named_tool == NamedTool::OfferedAlone => Some(name),
        _ => None,
    }
}

/// A tool as described to the model.
#[derive(Serialize)]
struct Offered<'a> {
    r#type: &'static str,
    function: OfferedFunction<'a>,
}

#[derive(Serialize)]
struct OfferedFunction<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    parameters: Cow<'a, Value>,
}

impl<'a> Offered<'a> {
    fn new(definition: &'a ToolDefinition, names: &'a WireNames) -> Self {
        let parameters = parameters_of(definition);
        let (name, description) = (names.tool(&definition.name), &*definition.description);
        Self { r#type: "function", function: OfferedFunction { name, description, parameters } }
    }
}

fn tool_choice(choice: &ToolChoice, rules: &OptionRules, names: &WireNames) -> Value {
    match choice {
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!(rules.required_tool),
        ToolChoice::Tool(_) if rules.named_tool == NamedTool::OfferedAlone => json!(rules.required_tool),
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
