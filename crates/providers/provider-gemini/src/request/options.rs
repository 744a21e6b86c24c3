//! The fields of a body beside its contents.

use advisor_core::{ChatRequest, ResponseFormat, Result, ToolChoice, ToolDefinition};
use bytes::Bytes;
use provider_http::names::WireNames;
use provider_http::written::{self, entries, written_tools};
use serde_json::{Map, Value, json};

/// Returns all fields but the contents, the instruction and the tools. The caller's extra fields are merged into
/// them: objects field by field, so that `generationConfig` can be extended, and anything else replaces a field.
pub(super) fn fields(request: &ChatRequest, names: &WireNames) -> Map<String, Value> {
    let generation = Some(generation_config(request)).filter(|config| !config.is_empty());
    let choice = request.api_tool_choice();
    let mut fields = written::fields([
        ("generationConfig", generation.map(Value::Object)),
        ("toolConfig", choice.map(|choice| json!({ "functionCallingConfig": tool_choice(choice, names) }))),
    ]);
    merge(&mut fields, &request.options.extra);
    fields
}

fn merge(fields: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (key, value) in more {
        match (fields.get_mut(key), value) {
            (Some(Value::Object(known)), Value::Object(more)) => merge(known, more),
            _ => {
                fields.insert(key.clone(), value.clone());
            }
        }
    }
}

fn generation_config(request: &ChatRequest) -> Map<String, Value> {
    let options = &request.options;
    let (mime, schema) = match &options.response_format {
        Some(ResponseFormat::JsonObject) => (Some("application/json"), None),
        Some(ResponseFormat::JsonSchema { schema, .. }) => (Some("application/json"), Some(schema)),
        _ => (None, None),
    };
    written::fields([
        ("temperature", options.temperature.map(Value::from)),
        ("topP", options.top_p.map(Value::from)),
        ("maxOutputTokens", options.max_tokens.map(Value::from)),
        ("stopSequences", (!options.stop.is_empty()).then(|| json!(options.stop))),
        ("seed", options.seed.map(Value::from)),
        ("responseMimeType", mime.map(Value::from)),
        ("responseJsonSchema", schema.cloned()),
    ])
}

fn tool_choice(choice: &ToolChoice, names: &WireNames) -> Value {
    match choice {
        ToolChoice::None => json!({ "mode": "NONE" }),
        ToolChoice::Required => json!({ "mode": "ANY" }),
        ToolChoice::Tool(name) => {
            json!({ "mode": "ANY", "allowedFunctionNames": [names.tool(name)] })
        }
        _ => json!({ "mode": "AUTO" }),
    }
}

/// The form of a list of tools, which depends on the tools alone.
#[derive(Clone, PartialEq)]
struct ToolsForm;

/// Returns the declaration of the described tools; `None` if there are none, or if the caller wrote them into the body.
pub(super) fn tools(request: &ChatRequest, names: &WireNames) -> Result<Option<Bytes>> {
    let tools = request.api_tools();
    if tools.is_empty() || request.options.extra.contains_key("tools") {
        return Ok(None);
    }
    let written = written_tools(tools, names, &ToolsForm, || {
        let functions: Vec<Value> = tools.definitions().map(|tool| declaration(tool, names)).collect();
        entries([json!({ "functionDeclarations": functions })])
    })?;
    Ok(Some(written))
}

/// Returns the description of a tool. Without parameters the field is absent: the API refuses an empty object.
fn declaration(tool: &ToolDefinition, names: &WireNames) -> Value {
    let (name, description) = (names.tool(&tool.name), &tool.description);
    match &tool.parameters {
        Value::Null => json!({ "name": name, "description": description }),
        schema => json!({ "name": name, "description": description, "parametersJsonSchema": schema }),
    }
}
