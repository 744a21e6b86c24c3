//! The Responses API.
use advisor_chain::chain::ResponseFormat;
use advisor_tests::prelude::*;

use crate::requests::read::{Asked, Calls, extras, list, number, tool, word};
use crate::requests::rule::{Rule, objects, remove, remove_unless_recorded};
use crate::transport::ScriptedTransport;

const OPTIONS: [&str; 10] = [
    "input", "instructions", "max_output_tokens", "model", "store", "stream", "temperature", "text",
    "tool_choice", "tools",
];
const EXTRAS: [&str; 2] = ["include", "reasoning"];

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "instructions",
        reason: "instructions are inserted as the first message of the system, says the API's reference",
        rewrite: |request, _| {
            let instructions = request["instructions"].take();
            remove(request, "instructions");
            if let (Value::String(text), Some(input)) = (instructions, request["input"].as_array_mut()) {
                input.insert(0, json!({"role": "system", "content": text}));
            }
        },
    },
    Rule {
        name: "developer",
        reason: "for reasoning models a message of the system is read as one of the developer, and the other way round",
        rewrite: |request, _| {
            for item in objects(request, "input")
                .filter(|item| item.get("role").is_some_and(|role| role == "developer"))
            {
                item.insert("role".to_owned(), "system".into());
            }
        },
    },
    Rule {
        name: "type of a message",
        reason: "an item with a role is a message, with or without `type`",
        rewrite: |request, _| {
            objects(request, "input")
                .filter(|item| item.contains_key("role"))
                .for_each(|item| drop(item.remove("type")));
        },
    },
    Rule {
        name: "list of one text",
        reason: "content that is a list of one text part means the same as the text",
        rewrite: |request, _| {
            for item in objects(request, "input").filter(|item| item.contains_key("role")) {
                let only = match item.get("content").and_then(Value::as_array).map(Vec::as_slice) {
                    Some([part]) if part["type"] == "input_text" => part["text"].clone(),
                    _ => continue,
                };
                item.insert("content".to_owned(), only);
            }
        },
    },
    Rule {
        name: "stored by default",
        reason: "`store` is true by default",
        rewrite: |request, _| {
            if request["store"] == true {
                remove(request, "store");
            }
        },
    },
    Rule {
        name: "encrypted reasoning",
        reason: "where the server stores nothing, our model asks for the reasoning that a later request needs; the answer is the same",
        rewrite: |request, recorded| remove_unless_recorded(request, recorded, "include"),
    },
    Rule {
        name: "strict tools",
        reason: "a definition of ours has no switch for the grammar of arguments: the loop validates them against the same schema",
        rewrite: |request, _| {
            objects(request, "tools")
                .filter(|tool| is_function(tool))
                .for_each(|tool| drop(tool.remove("strict")));
        },
    },
    Rule {
        name: "tool without description",
        reason: "an empty description says as much as none",
        rewrite: |request, _| {
            for tool in
                objects(request, "tools").filter(|tool| tool.get("description").is_some_and(Value::is_null))
            {
                tool.insert("description".to_owned(), "".into());
            }
        },
    },
];

/// Checks whether a tool has only what a definition of ours has.
fn is_function(tool: &serde_json::Map<String, Value>) -> bool {
    tool.get("type").is_some_and(|kind| kind == "function") && !tool.contains_key("defer_loading")
}

pub(crate) fn read(recorded: &Value, _: &str, transport: ScriptedTransport) -> Asked {
    let mut request = ChatRequest::new(messages(recorded)).with_options(options(recorded));
    let mut others = Vec::new();
    for described in list(recorded, "tools") {
        if described.as_object().is_some_and(is_function) {
            let parameters = described["parameters"].clone();
            request =
                request.with_tool(tool(word(described, "name"), word(described, "description"), parameters));
        } else {
            others.push(described.clone());
        }
    }
    let model = OpenAiResponsesModel::new(word(recorded, "model"))
        .with_server_tools(others)
        .with_store(recorded["store"] != false)
        .with_streaming(recorded["stream"] == true)
        .with_transport(transport);
    Asked { request, model: Box::new(model) }
}

fn options(recorded: &Value) -> ChatOptions {
    let mut options = ChatOptions::new();
    options.max_tokens = number(recorded, "max_output_tokens");
    options.temperature = recorded["temperature"].as_f64();
    options.tool_choice = (recorded["tool_choice"] == "auto").then_some(ToolChoice::Auto);
    let format = &recorded["text"]["format"];
    options.response_format = (format["type"] == "json_schema").then(|| ResponseFormat::JsonSchema {
        name: word(format, "name").into(),
        schema: format["schema"].clone(),
        strict: format["strict"] == true,
    });
    extras(recorded, &OPTIONS, &EXTRAS, &mut options);
    options
}

/// Returns the messages. Adjacent calls are one answer.
fn messages(recorded: &Value) -> Vec<Message> {
    let mut messages: Vec<_> = recorded["instructions"].as_str().map(Message::system).into_iter().collect();
    let (mut calls, mut asked) = (Calls::default(), Vec::<Block>::new());
    for item in list(recorded, "input") {
        if item["type"] == "function_call" {
            asked.push(calls.add(word(item, "call_id"), word(item, "name"), word(item, "arguments")).into());
            continue;
        }
        if !asked.is_empty() {
            messages.push(Message::assistant_blocks(std::mem::take(&mut asked)));
        }
        messages.push(match (word(item, "type"), word(item, "role")) {
            ("function_call_output", _) => {
                let call = calls.with_id(word(item, "call_id"));
                Message::tool(ToolResult::new(call, vec![word(item, "output").into()]))
            }
            (_, "user") => Message::user_parts(texts(item).into_iter().map(Part::from).collect()),
            (_, "system" | "developer") => Message::system(texts(item).concat()),
            (kind, role) => panic!("unknown item {kind} {role}"),
        });
    }
    messages
}

fn texts(item: &Value) -> Vec<String> {
    match &item["content"] {
        Value::String(text) => vec![text.clone()],
        _ => list(item, "content").iter().map(|part| word(part, "text").to_owned()).collect(),
    }
}
