//! Gemini's `generateContent`.
use advisor_chain::messages::ProviderData;
use advisor_tests::prelude::*;

use crate::requests::read::{Asked, extras, list, number, tool, word};
use crate::requests::rule::{Rule, objects, remove};
use crate::transport::ScriptedTransport;

const OPTIONS: [&str; 3] = ["contents", "systemInstruction", "tools"];
const EXTRAS: [&str; 3] = ["generationConfig", "safetySettings", "toolConfig"];

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "spelling of fields",
        reason: "the API reads the snake case of protocol buffers, too",
        rewrite: |request, _| rename(request),
    },
    Rule {
        name: "spelling of types",
        reason: "the types of a schema are an enumeration whose upper and lower case mean the same",
        rewrite: |request, _| request.get_mut("tools").into_iter().for_each(lower_types),
    },
    Rule {
        name: "role of the instruction",
        reason: "the API ignores the role of the system instruction",
        rewrite: |request, _| {
            request
                .get_mut("systemInstruction")
                .into_iter()
                .for_each(|instruction| remove(instruction, "role"));
        },
    },
    Rule {
        name: "empty text among others",
        reason: "an empty text without a signature says nothing",
        rewrite: |request, _| {
            for content in objects(request, "contents") {
                if let Some(parts) =
                    content.get_mut("parts").and_then(Value::as_array_mut).filter(|all| all.len() > 1)
                {
                    parts.retain(|part| *part != json!({"text": ""}));
                }
            }
        },
    },
    Rule {
        name: "form of schemas",
        reason: "these clients describe tools in the older of two forms",
        rewrite: |request, _| {
            for tool in objects(request, "tools") {
                let functions = tool.get_mut("functionDeclarations").and_then(Value::as_array_mut);
                for function in functions.into_iter().flatten().filter_map(Value::as_object_mut) {
                    let schema = function.remove("parameters");
                    function.extend(schema.map(|schema| ("parametersJsonSchema".to_owned(), schema)));
                }
            }
        },
    },
];

fn rename(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(rename),
        Value::Object(fields) => {
            for (snake, camel) in
                [("function_call", "functionCall"), ("function_response", "functionResponse")]
            {
                if let Some(value) = fields.remove(snake) {
                    fields.insert(camel.to_owned(), value);
                }
            }
            fields.values_mut().for_each(rename);
        }
        _ => {}
    }
}

fn lower_types(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(lower_types),
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(name) if key == "type" => *name = name.to_ascii_lowercase(),
                    other => lower_types(other),
                }
            }
        }
        _ => {}
    }
}

pub(crate) fn read(recorded: &Value, provider: &str, transport: ScriptedTransport) -> Asked {
    let mut recorded = recorded.clone();
    rename(&mut recorded);
    let mut request = ChatRequest::new(messages(&recorded));
    let mut options = options(&recorded);
    for described in list(&recorded, "tools") {
        let Some(functions) = described["functionDeclarations"].as_array() else {
            options.extra.insert("tools".to_owned(), recorded["tools"].clone());
            continue;
        };
        for function in functions {
            let (name, description) = (word(function, "name"), word(function, "description"));
            let mut parameters = function.get("parameters").cloned().unwrap_or_default();
            lower_types(&mut parameters);
            request = request.with_tool(tool(name, description, parameters));
        }
    }
    let model = GeminiModel::new("gemini-2.5-flash").with_transport(transport);
    // Vertex AI takes no ids, and older clients of the other service send none.
    let has_ids = provider != "gemini-vertex" && recorded.to_string().contains(r#""id":"#);
    let model = if has_ids { model } else { model.at_vertex_ai() };
    Asked { request: request.with_options(options), model: Box::new(model) }
}

fn options(recorded: &Value) -> ChatOptions {
    let mut options = ChatOptions::new();
    extras(recorded, &OPTIONS, &EXTRAS, &mut options);
    let generation = options.extra.get_mut("generationConfig").and_then(Value::as_object_mut);
    if let Some(config) = generation {
        options.temperature = config.remove("temperature").and_then(|value| value.as_f64());
        options.max_tokens = number(&json!({"limit": config.remove("maxOutputTokens")}), "limit");
    }
    let calling = recorded["toolConfig"]["functionCallingConfig"].clone();
    options.tool_choice = match (word(&calling, "mode"), list(&calling, "allowedFunctionNames")) {
        ("AUTO", []) => Some(ToolChoice::Auto),
        ("ANY", []) => Some(ToolChoice::Required),
        ("ANY", [Value::String(only)]) => Some(ToolChoice::Tool(only.as_str().into())),
        ("", _) => return options,
        (mode, names) => panic!("unknown mode {mode} of {names:?}"),
    };
    options
        .extra
        .get_mut("toolConfig")
        .into_iter()
        .for_each(|config| remove(config, "functionCallingConfig"));
    options
}

fn messages(recorded: &Value) -> Vec<Message> {
    let instruction = list(&recorded["systemInstruction"], "parts").iter();
    let mut messages: Vec<_> = instruction.map(|part| Message::system(word(part, "text"))).collect();
    for content in list(recorded, "contents") {
        let parts = list(content, "parts");
        if content["role"] == "model" {
            messages.push(Message::assistant_blocks(parts.iter().map(block).collect()));
        } else if parts.iter().any(|part| part.get("functionResponse").is_some()) {
            messages.extend(parts.iter().map(|part| Message::tool(result(&part["functionResponse"]))));
        } else {
            messages.push(Message::user_parts(parts.iter().map(|part| word(part, "text").into()).collect()));
        }
    }
    messages
}

fn block(part: &Value) -> Block {
    let data = part.get("thoughtSignature").map(|signature| json!({"thoughtSignature": signature}));
    let content = match part.get("functionCall") {
        Some(call) => BlockContent::ToolCall(named(call, call["args"].to_string())),
        None => BlockContent::Text(word(part, "text").to_owned()),
    };
    Block::with_data(content, data.map(|data| ProviderData::new("gemini", data)).into_iter().collect())
}

/// Returns a call with the id and the name that a call or a result has.
fn named(value: &Value, arguments: String) -> ToolCall {
    let id = value["id"].as_str().unwrap_or("none");
    ToolCall::new(id.to_owned(), word(value, "name").to_owned(), arguments)
}

fn result(response: &Value) -> ToolResult {
    let part = match response["response"]["output"].as_str() {
        Some(output) => Part::from(output),
        None => Part::from(response["response"].clone()),
    };
    ToolResult::new(&named(response, String::new()), vec![part])
}
