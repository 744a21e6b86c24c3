//! Recorded requests, parsed into messages and options, and written again.

use std::sync::Arc;

use advisor_testkit::recordings;

use super::*;

/// Fields of a request that are an option or a message here. Any other field is an extra one.
const KNOWN: [&str; 10] = [
    "include", "input", "instructions", "max_output_tokens", "model", "store", "stream", "temperature",
    "text", "tools",
];

/// Returns the messages of a request. Its instructions are the first one.
fn messages_of(request: &Value) -> Vec<Message> {
    let instructions = request["instructions"].as_str().map(Message::system);
    let mut messages: Vec<Message> = instructions.into_iter().collect();
    let mut calls: Vec<ToolCall> = Vec::new();
    let mut asked: Vec<Block> = Vec::new();
    let word = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
    for item in request["input"].as_array().expect("a list") {
        if item["type"] == "function_call" {
            let call = ToolCall::new(word(item, "call_id"), word(item, "name"), word(item, "arguments"));
            calls.push(call.clone());
            asked.push(call.into());
            continue;
        }
        if !asked.is_empty() {
            messages.push(Message::assistant_blocks(std::mem::take(&mut asked)));
        }
        if item["type"] == "function_call_output" {
            let call = calls.iter().find(|call| call.id == item["call_id"].as_str().unwrap_or_default());
            let result = ToolResult::new(call.expect("its call"), vec![word(item, "output").into()]);
            messages.push(Message::tool(result));
            continue;
        }
        let texts: Vec<Part> = match &item["content"] {
            Value::String(text) => vec![text.as_str().into()],
            parts => parts.as_array().expect("parts").iter().map(|part| word(part, "text").into()).collect(),
        };
        messages.push(match item["role"].as_str() {
            Some("user") => Message::user_parts(texts),
            _ => Message::system(texts.iter().filter_map(Part::as_text).collect::<String>()),
        });
    }
    messages
}

fn request_of(recorded: &Value) -> (ChatRequest, BodySettings) {
    let mut options = ChatOptions::new();
    options.max_tokens = recorded["max_output_tokens"].as_u64().and_then(|tokens| u32::try_from(tokens).ok());
    options.temperature = recorded["temperature"].as_f64();
    let format = &recorded["text"]["format"];
    if format["type"] == "json_schema" {
        options.response_format = Some(ResponseFormat::JsonSchema {
            name: format["name"].as_str().unwrap_or_default().into(),
            schema: format["schema"].clone(),
            strict: format["strict"] == true,
        });
    }
    for (key, value) in recorded.as_object().expect("an object") {
        if !KNOWN.contains(&key.as_str()) {
            options.extra.insert(key.clone(), value.clone());
        }
    }
    let mut request = ChatRequest::new(messages_of(recorded));
    let (functions, others): (Vec<Value>, Vec<Value>) =
        recorded["tools"].as_array().cloned().unwrap_or_default().into_iter().partition(is_plain_function);
    for function in functions {
        let word = |key: &str| function[key].as_str().unwrap_or_default().to_owned();
        let definition =
            ToolDefinition::new(word("name"), word("description"), function["parameters"].clone());
        request = request.with_tool(Named(definition));
    }
    let settings = BodySettings { server_tools: Arc::from(others), ..streaming() };
    (request.with_options(options), settings)
}

/// Checks whether a tool has only what a definition here has.
fn is_plain_function(tool: &Value) -> bool {
    tool["type"] == "function" && tool.get("defer_loading").is_none()
}

/// Rewrites a request so that equal meanings are equal:
/// - instructions are a message of the system, and so is a message of the developer;
/// - a text in place of parts is one part, and `"type": "message"` of an input message is left out;
/// - the order of tools does not matter; `strict` of a tool is a setting of the server's decoder, and an absent
///   description is an empty one;
/// - `store` and `include` are settings of the model here, and checked by other tests.
fn normal(request: &Value) -> Value {
    let mut fields = request.as_object().expect("an object").clone();
    fields.remove("store");
    fields.remove("include");
    let mut input = fields.remove("input").and_then(|input| input.as_array().cloned()).unwrap_or_default();
    if let Some(instructions) = fields.remove("instructions") {
        input.insert(0, json!({"role": "system", "content": instructions}));
    }
    for item in input.iter_mut().filter_map(Value::as_object_mut).filter(|item| item.contains_key("role")) {
        item.remove("type");
        if item["role"] == "developer" {
            item.insert("role".to_owned(), json!("system"));
        }
        if let Some(text) = item["content"].as_str() {
            let parts = json!([{"type": "input_text", "text": text}]);
            item.insert("content".to_owned(), parts);
        }
    }
    fields.insert("input".to_owned(), json!(input));
    if let Some(tools) = fields.get_mut("tools").and_then(Value::as_array_mut) {
        for tool in tools.iter_mut().filter(|tool| is_plain_function(tool)).filter_map(Value::as_object_mut) {
            tool.remove("strict");
            if tool["description"].is_null() {
                tool.insert("description".to_owned(), json!(""));
            }
        }
        tools.sort_by_key(Value::to_string);
    }
    Value::Object(fields)
}

#[test]
fn recorded_requests_are_rebuilt_equal() {
    let recordings = recordings::all("openai-responses");
    let Some(directory) = recordings.directory() else { return };
    let mut rebuilt = 0;
    for recording in &recordings {
        let Ok(json) = std::fs::read(directory.join(format!("{}.request.json", recording.name))) else {
            continue;
        };
        let recorded: Value = serde_json::from_slice(&json).expect("JSON");
        let (request, settings) = request_of(&recorded);
        let model = recorded["model"].as_str().expect("a model");
        let (pieces, _) = body(&request, model, &settings, &form()).expect("a body");
        let written: Value = serde_json::from_slice(&pieces.concat()).expect("JSON");
        assert_eq!(normal(&written), normal(&recorded), "{}", recording.name);
        rebuilt += 1;
    }
    assert!(rebuilt > 0, "no recording has a request");
}
