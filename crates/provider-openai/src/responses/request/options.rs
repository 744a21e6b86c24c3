//! The fields of a body beside its input.

use advisor_core::{ChatRequest, Error, ErrorKind, ResponseFormat, Result, ToolChoice};
use bytes::Bytes;
use provider_http::names::WireNames;
use provider_http::written::{entries, fields, parameters_of};
use serde_json::{Map, Value, json};

use super::BodySettings;
use crate::responses::wire::FORMAT;
use crate::written::written_functions;

/// The beginnings of models of OpenAI that do not reason. They refuse a request for encrypted reasoning
/// (pydantic/pydantic-ai#2865, ShishirPatil/gorilla#1148).
const NOT_REASONING: [&str; 3] = ["gpt-3", "gpt-4", "chatgpt"];

/// Returns all fields but the input and the tools. The caller's extra fields come last and override others.
///
/// # Errors
/// The API has no stop texts, and to leave them out would change the answer.
pub(super) fn write(
    request: &ChatRequest,
    model: &str,
    settings: &BodySettings,
    names: &WireNames,
) -> Result<Map<String, Value>> {
    let options = &request.options;
    if !options.stop.is_empty() {
        let problem = "the Responses API has no stop texts (`ChatOptions::stop`); leave them out, or use `OpenAiModel` \
                       (Chat Completions)";
        return Err(Error::new(ErrorKind::InvalidRequest, problem));
    }
    // Servers refuse fields about tools if no tool is offered. Without tools of the chain, the choice is among those of
    // the server.
    let is_any_offered = !request.api_tools().is_empty() || !settings.server_tools.is_empty();
    let (choice, parallel) = match is_any_offered {
        true if request.tools.is_empty() => (options.tool_choice.as_ref(), options.parallel_tool_calls),
        true => (request.api_tool_choice(), options.parallel_tool_calls),
        false => (None, None),
    };
    let mut fields = fields([
        ("model", Some(json!(model))),
        ("stream", Some(json!(settings.streaming))),
        ("store", Some(json!(false))),
        ("include", may_reason(model).then(|| json!(["reasoning.encrypted_content"]))),
        ("temperature", options.temperature.map(Value::from)),
        ("top_p", options.top_p.map(Value::from)),
        ("max_output_tokens", options.max_tokens.map(Value::from)),
        ("tool_choice", choice.map(|choice| tool_choice(choice, names))),
        ("parallel_tool_calls", parallel.map(Value::from)),
    ]);
    fields.extend(options.extra.clone());
    if let Some(format) = options.response_format.as_ref().and_then(text_format) {
        // The caller's extra `text` may have other fields, such as `verbosity`.
        let text = fields.entry("text").or_insert_with(|| json!({}));
        if let Some(text) = text.as_object_mut() {
            text.entry("format").or_insert(format);
        }
    }
    Ok(fields)
}

/// Checks by its name whether a model may reason. A name may have a vendor before it.
fn may_reason(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    !NOT_REASONING.iter().any(|beginning| name.starts_with(beginning)) && !name.contains("-chat")
}

/// Returns the list of tools as it is in the body; `None` if there are none.
pub(super) fn tools(
    request: &ChatRequest,
    server_tools: &[Value],
    names: &WireNames,
) -> Result<Option<Vec<Bytes>>> {
    if request.api_tools().is_empty() && server_tools.is_empty() {
        return Ok(None);
    }
    let functions = written_functions(request, FORMAT, names, |tool| {
        json!({
            "type": "function", "name": names.tool(&tool.name), "description": tool.description,
            "parameters": parameters_of(tool),
            // Without the field the API makes the schema strict, which changes it.
            "strict": false,
        })
    })?;
    Ok(Some(vec![functions, entries(server_tools)?]))
}

fn tool_choice(choice: &ToolChoice, names: &WireNames) -> Value {
    match choice {
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Tool(name) => json!({ "type": "function", "name": names.tool(name) }),
        _ => json!("auto"),
    }
}

fn text_format(format: &ResponseFormat) -> Option<Value> {
    match format {
        ResponseFormat::Text => Some(json!({ "type": "text" })),
        ResponseFormat::JsonObject => Some(json!({ "type": "json_object" })),
        ResponseFormat::JsonSchema { name, schema, strict } => {
            Some(json!({ "type": "json_schema", "name": name, "schema": schema, "strict": strict }))
        }
        _ => None,
    }
}
