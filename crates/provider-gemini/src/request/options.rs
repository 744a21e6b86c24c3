//! The fields of a body beside its contents.

use std::borrow::Cow;
use std::sync::OnceLock;

use advisor_core::{ChatRequest, ResponseFormat, Result, ToolChoice, ToolDefinition, ToolSet};
use provider_http::names::ToolNames;
use serde_json::{Map, Value, json};

use super::{open_api, unwritable};
use crate::profile::{Profile, SchemaForm};

/// Returns all fields but the contents, the instruction and the tools. The caller's extra fields are merged into
/// them: objects field by field, so that `generationConfig` can be extended, and anything else replaces a field.
pub(super) fn fields(request: &ChatRequest, profile: &Profile, names: &ToolNames) -> Map<String, Value> {
    let mut fields = Map::new();
    let generation = generation_config(request, profile.schemas);
    if !generation.is_empty() {
        fields.insert("generationConfig".to_owned(), Value::Object(generation));
    }
    if let Some(choice) = request.api_tool_choice() {
        let config = json!({ "functionCallingConfig": tool_choice(choice, names) });
        fields.insert("toolConfig".to_owned(), config);
    }
    merge(&mut fields, &request.options.extra);
    fields
}

/// Returns the number of answers that the fields ask for.
pub(super) fn choices(fields: &Map<String, Value>) -> u32 {
    let count = fields.get("generationConfig").and_then(|config| config.get("candidateCount")?.as_u64());
    count.and_then(|count| u32::try_from(count).ok()).unwrap_or(1).max(1)
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

fn generation_config(request: &ChatRequest, schemas: SchemaForm) -> Map<String, Value> {
    let options = &request.options;
    let mut config = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            config.insert(key.to_owned(), value);
        }
    };
    set("temperature", options.temperature.map(Value::from));
    set("topP", options.top_p.map(Value::from));
    set("maxOutputTokens", options.max_tokens.map(Value::from));
    set("stopSequences", (!options.stop.is_empty()).then(|| json!(options.stop)));
    set("seed", options.seed.map(Value::from));
    set("candidateCount", options.choices.filter(|choices| *choices > 1).map(Value::from));
    match &options.response_format {
        Some(ResponseFormat::JsonObject) => set("responseMimeType", Some("application/json".into())),
        Some(ResponseFormat::JsonSchema { schema, .. }) => {
            set("responseMimeType", Some("application/json".into()));
            match schemas {
                SchemaForm::OpenApi => set("responseSchema", open_api::schema(schema)),
                SchemaForm::JsonSchema => set("responseJsonSchema", Some(schema.clone())),
            }
        }
        _ => {}
    }
    config
}

fn tool_choice(choice: &ToolChoice, names: &ToolNames) -> Value {
    match choice {
        ToolChoice::None => json!({ "mode": "NONE" }),
        ToolChoice::Required => json!({ "mode": "ANY" }),
        ToolChoice::Tool(name) => {
            json!({ "mode": "ANY", "allowedFunctionNames": [names.on_the_wire(name)] })
        }
        _ => json!({ "mode": "AUTO" }),
    }
}

/// The tools of a set on the wire, with their usual names. Kept with the set.
#[derive(Default)]
struct Declared {
    json_schema: OnceLock<Vec<u8>>,
    open_api: OnceLock<Vec<u8>>,
}

/// Returns the list of described tools; `None` if there are none, or if the caller wrote them into the body.
pub(super) fn tools<'a>(
    request: &'a ChatRequest,
    schemas: SchemaForm,
    names: &ToolNames,
) -> Result<Option<Cow<'a, [u8]>>> {
    let tools = request.api_tools();
    if tools.is_empty() || request.options.extra.contains_key("tools") {
        return Ok(None);
    }
    if tools.definitions().any(|tool| names.is_special(&tool.name)) {
        return declared(tools, schemas, names).map(|written| Some(Cow::Owned(written)));
    }
    let kept = tools.wire_form(|_| Declared::default());
    let kept = if schemas == SchemaForm::OpenApi { &kept.open_api } else { &kept.json_schema };
    if let Some(written) = kept.get() {
        return Ok(Some(Cow::Borrowed(written)));
    }
    let written = declared(tools, schemas, names)?;
    Ok(Some(Cow::Borrowed(kept.get_or_init(|| written))))
}

fn declared(tools: &ToolSet, schemas: SchemaForm, names: &ToolNames) -> Result<Vec<u8>> {
    let functions: Vec<Value> = tools.definitions().map(|tool| declaration(tool, schemas, names)).collect();
    serde_json::to_vec(&json!([{ "functionDeclarations": functions }])).map_err(unwritable)
}

/// Returns the description of a tool. Without parameters the field is absent: the API refuses an empty object.
fn declaration(tool: &ToolDefinition, schemas: SchemaForm, names: &ToolNames) -> Value {
    let mut function = json!({ "name": names.on_the_wire(&tool.name), "description": tool.description });
    let (key, schema) = match (schemas, &tool.parameters) {
        (_, Value::Null) => return function,
        (SchemaForm::OpenApi, schema) => ("parameters", open_api::parameters(schema)),
        (SchemaForm::JsonSchema, schema) => ("parametersJsonSchema", Some(schema.clone())),
    };
    if let (Some(schema), Some(fields)) = (schema, function.as_object_mut()) {
        fields.insert(key.to_owned(), schema);
    }
    function
}
