//! Requests that real clients sent, read into our messages and written again.

use std::collections::HashMap;

use advisor_core::Part;
use advisor_testkit::recordings;
use serde_json::Map;

use super::*;

/// Reads a request of the API into a request of ours.
fn parsed(request: &Value) -> (ChatRequest, BodySettings) {
    let mut settings = BodySettings { streaming: request["stream"] == true, ..BodySettings::default() };
    let system = list(&request["system"]).into_iter().map(|block| Message::system(word(&block, "text")));
    let mut names = HashMap::new();
    let messages = list(&request["messages"]).into_iter().flat_map(|message| {
        let content = content(&message["content"]);
        if message["role"] == "assistant" {
            vec![answer(&content, &mut names)]
        } else {
            user(&content, &names)
        }
    });
    let mut parsed =
        ChatRequest::new(system.chain(messages).collect::<Vec<_>>()).with_options(options(request));
    for tool in list(&request["tools"]) {
        if tool.get("input_schema").is_some() {
            let description = word(&tool, "description");
            let schema = tool["input_schema"].clone();
            parsed = parsed.with_tool(Named(ToolDefinition::new(word(&tool, "name"), description, schema)));
        } else {
            settings.definitions.push(tool);
        }
    }
    (parsed, settings)
}

fn options(request: &Value) -> ChatOptions {
    let mut options = ChatOptions::new();
    options.temperature = request["temperature"].as_f64();
    options.max_tokens = request["max_tokens"].as_u64().and_then(|most| most.try_into().ok());
    let choice = &request["tool_choice"];
    options.tool_choice = match choice["type"].as_str() {
        Some("auto") => Some(ToolChoice::Auto),
        Some("any") => Some(ToolChoice::Required),
        Some("tool") => Some(ToolChoice::Tool(word(choice, "name").into())),
        _ => None,
    };
    options.parallel_tool_calls = choice["disable_parallel_tool_use"].as_bool().map(|disabled| !disabled);
    for key in ["thinking", "mcp_servers", "anthropic_version"] {
        options.extra.extend(request.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    options
}

fn answer(content: &[Value], names: &mut HashMap<String, ToolCall>) -> Message {
    let blocks = content.iter().map(|block| match word(block, "type") {
        "text" => Block::text(word(block, "text")),
        "thinking" => thought(word(block, "thinking"), FORMAT, json!({"signature": block["signature"]})),
        "tool_use" => {
            let call = ToolCall::new(word(block, "id"), word(block, "name"), block["input"].to_string());
            names.insert(word(block, "id").to_owned(), call.clone());
            call.into()
        }
        _ => opaque(block.clone()),
    });
    Message::assistant_blocks(blocks.collect())
}

fn user(blocks: &[Value], calls: &HashMap<String, ToolCall>) -> Vec<Message> {
    let parts =
        |blocks: &[Value]| blocks.iter().map(|block| Part::from(word(block, "text"))).collect::<Vec<_>>();
    let (results, others): (Vec<Value>, Vec<Value>) =
        blocks.iter().cloned().partition(|block| block["type"] == "tool_result");
    let results = results.iter().map(|result| {
        let call = &calls[word(result, "tool_use_id")];
        Message::tool(ToolResult::new(call, parts(&content(&result["content"]))))
    });
    let text = (!others.is_empty()).then(|| Message::user_parts(parts(&others)));
    results.chain(text).collect()
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// A content that is a text, as a list of blocks.
fn content(value: &Value) -> Vec<Value> {
    value.as_str().map_or_else(|| list(value), |content| vec![text(content)])
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Rewrites a request in the one form of several that mean the same: content as a list of blocks; no list without
/// entries, no `null`; nothing about the cache, which is a setting here, and no model where the address names it.
fn normalised(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(normalised).collect(),
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(key, value)| {
                !value.is_null() && !matches!(key.as_str(), "cache_control" | "model") && *value != json!([])
            });
            let fields = kept.map(|(key, value)| {
                let value = if key == "content" { content(&value).into() } else { value };
                (key, normalised(value))
            });
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other,
    }
}

#[test]
fn recorded_requests_are_written_again() {
    let recordings = recordings::all("anthropic-messages");
    let Some(directory) = recordings.directory().map(std::path::Path::to_owned) else { return };
    let mut count = 0;
    for recording in &recordings {
        let Ok(file) = std::fs::read(directory.join(format!("{}.request.json", recording.name))) else {
            continue;
        };
        let recorded: Value = serde_json::from_slice(&file).expect("JSON");
        let (request, settings) = parsed(&recorded);
        let mut written = written_with(&settings, &request);
        if let (None, Some(fields)) = (recorded.get("stream"), written.as_object_mut()) {
            // Bedrock chooses it by the address.
            fields.remove("stream");
        }
        assert_eq!(normalised(written), normalised(recorded), "{}", recording.name);
        count += 1;
    }
    println!("{count} requests");
}
