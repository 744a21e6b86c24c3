//! The fields of a body beside its messages.

use advisor_core::{ChatOptions, ChatRequest, ResponseFormat, ToolChoice, ToolDefinition};
use serde_json::{Map, Value, json};

use crate::profile::{MaxTokensField, NamedTool, OptionRules, RequiredTool, SeedField};

/// All fields but the messages. The caller's extra fields come last and win.
pub(super) fn write(
    request: &ChatRequest,
    model: &str,
    streaming: bool,
    rules: &OptionRules,
) -> Map<String, Value> {
    let options = &request.options;
    let mut fields = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(key.to_owned(), value);
        }
    };
    set("model", Some(json!(model)));
    set("stream", Some(json!(streaming)));
    set("stream_options", (streaming && rules.ask_stream_usage).then(|| json!({ "include_usage": true })));
    set("temperature", options.temperature.map(Value::from));
    set("top_p", options.top_p.map(Value::from));
    set(max_tokens_field(rules), options.max_tokens.map(Value::from));
    set(seed_field(rules), options.seed.map(Value::from));
    set("stop", (!options.stop.is_empty()).then(|| json!(options.stop)));
    // One answer is what every server gives; some refuse the field.
    set("n", options.choices.filter(|choices| *choices > 1).map(Value::from));
    set("response_format", options.response_format.as_ref().and_then(response_format));
    let tools = offered(request, rules);
    // Servers refuse words about tools where there are none.
    if !tools.is_empty() {
        set("tool_choice", options.tool_choice.as_ref().map(|choice| tool_choice(choice, rules)));
        set("parallel_tool_calls", options.parallel_tool_calls.map(Value::from));
        set("tools", Some(Value::Array(tools)));
    }
    fields.extend(options.extra.clone());
    fields
}

fn max_tokens_field(rules: &OptionRules) -> &'static str {
    match rules.max_tokens {
        MaxTokensField::MaxTokens => "max_tokens",
        MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
    }
}

fn seed_field(rules: &OptionRules) -> &'static str {
    match rules.seed {
        SeedField::Seed => "seed",
        SeedField::RandomSeed => "random_seed",
    }
}

fn offered(request: &ChatRequest, rules: &OptionRules) -> Vec<Value> {
    let only = alone(&request.options, rules);
    let wanted = request.tools.definitions().filter(|tool| only.is_none_or(|only| tool.name == *only));
    wanted.map(tool).collect()
}

/// The one tool to be offered, where it is asked for by leaving out the others.
fn alone<'a>(options: &'a ChatOptions, rules: &OptionRules) -> Option<&'a str> {
    match &options.tool_choice {
        Some(ToolChoice::Tool(name)) if rules.named_tool == NamedTool::OfferedAlone => Some(name),
        _ => None,
    }
}

fn tool(definition: &ToolDefinition) -> Value {
    let no_parameters = json!({ "type": "object", "properties": {} });
    let parameters = if definition.parameters.is_null() { &no_parameters } else { &definition.parameters };
    json!({
        "type": "function",
        "function": {
            "name": definition.name,
            "description": definition.description,
            "parameters": parameters,
        },
    })
}

fn tool_choice(choice: &ToolChoice, rules: &OptionRules) -> Value {
    let required = match rules.required_tool {
        RequiredTool::Required => "required",
        RequiredTool::Any => "any",
    };
    match choice {
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!(required),
        ToolChoice::Tool(_) if rules.named_tool == NamedTool::OfferedAlone => json!(required),
        ToolChoice::Tool(name) => json!({ "type": "function", "function": { "name": name } }),
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
