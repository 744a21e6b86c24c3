//! The fields of a body beside its messages.

use advisor_core::{ChatRequest, ResponseFormat, Result, ToolChoice, ToolDefinition};
use bytes::Bytes;
use provider_http::names::WireNames;
use provider_http::written::{entries, fields, parameters_of, written_tools};
use serde_json::{Map, Value, json};

/// Returns all fields but the messages and the tools. The caller's extra fields come last and override others; those
/// in an object `options` override single options.
pub(super) fn write(request: &ChatRequest, model: &str, streaming: bool) -> Map<String, Value> {
    let mut fields = fields([
        ("model", Some(json!(model))),
        ("stream", Some(json!(streaming))),
        ("format", request.options.response_format.as_ref().and_then(format)),
    ]);
    let mut options = options(request);
    let mut extra = request.options.extra.clone();
    match extra.get_mut("options") {
        Some(Value::Object(own)) => {
            options.append(own);
            *own = options;
        }
        Some(_) => {}
        None if options.is_empty() => {}
        None => drop(extra.insert("options".to_owned(), Value::Object(options))),
    }
    fields.append(&mut extra);
    fields
}

fn options(request: &ChatRequest) -> Map<String, Value> {
    let options = &request.options;
    fields([
        ("temperature", options.temperature.map(Value::from)),
        ("top_p", options.top_p.map(Value::from)),
        ("num_predict", options.max_tokens.map(Value::from)),
        ("seed", options.seed.map(Value::from)),
        ("stop", (!options.stop.is_empty()).then(|| json!(options.stop))),
    ])
}

fn format(format: &ResponseFormat) -> Option<Value> {
    match format {
        ResponseFormat::JsonObject => Some(json!("json")),
        ResponseFormat::JsonSchema { schema, .. } => Some(schema.clone()),
        _ => None,
    }
}

/// Returns the offered tools as they are in the body; `None` if there are none. They are written once per set, unless a
/// tool is offered alone.
///
/// Ollama has no tool choice. For no tool, none is offered; for a certain tool, that tool alone.
pub(super) fn tools(request: &ChatRequest, names: &WireNames) -> Result<Option<Bytes>> {
    let offered = || {
        let choice = request.api_tool_choice();
        request.api_tools().definitions().filter(move |tool| match choice {
            Some(ToolChoice::None) => false,
            Some(ToolChoice::Tool(name)) => tool.name == *name,
            _ => true,
        })
    };
    let count = offered().count();
    if count == 0 {
        return Ok(None);
    }
    let write = || entries(offered().map(described));
    let is_whole = count == request.api_tools().len();
    let tools = if is_whole { written_tools(request.api_tools(), names, &ToolsForm, write) } else { write() };
    tools.map(Some)
}

/// The form of a list of tools, which depends on the tools alone.
#[derive(Clone, PartialEq)]
struct ToolsForm;

/// Describes a tool to the model.
fn described(tool: &ToolDefinition) -> Value {
    let (name, description, parameters) = (&*tool.name, &*tool.description, parameters_of(tool));
    json!({
        "type": "function",
        "function": { "name": name, "description": description, "parameters": parameters },
    })
}
