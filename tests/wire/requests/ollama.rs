//! Ollama's own API.
use advisor_tests::prelude::*;

use crate::requests::read::{Asked, extras, list, number, tool, word};
use crate::requests::rule::{Rule, remove, remove_unless_recorded};
use crate::transport::ScriptedTransport;

const OPTIONS: [&str; 6] = ["format", "messages", "model", "options", "stream", "tools"];
const EXTRAS: [&str; 1] = ["think"];

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "empty format",
        reason: "an empty format is what Ollama's own client writes for none",
        rewrite: |request, _| {
            if request["format"] == "" {
                remove(request, "format");
            }
        },
    },
    Rule {
        name: "no options",
        reason: "an empty object of options means the same as none",
        rewrite: |request, _| {
            if request["options"] == json!({}) {
                remove(request, "options");
            }
        },
    },
    Rule {
        name: "streamed by default",
        reason: "Ollama streams unless `stream` is false",
        rewrite: |request, recorded| {
            if request["stream"] == true {
                remove_unless_recorded(request, recorded, "stream");
            }
        },
    },
    Rule {
        name: "spelling of a number",
        reason: "0 and 0.0 are the same JSON number",
        rewrite: |request, _| {
            if let Some(number) = request["options"]["temperature"].as_f64() {
                request["options"]["temperature"] = number.into();
            }
        },
    },
];

pub(crate) fn read(recorded: &Value, _: &str, transport: ScriptedTransport) -> Asked {
    let message = |message: &Value| match word(message, "role") {
        "system" => Message::system(word(message, "content")),
        "user" => Message::user(word(message, "content")),
        other => panic!("unknown role {other}"),
    };
    let messages: Vec<Message> = list(recorded, "messages").iter().map(message).collect();
    let mut request = ChatRequest::new(messages).with_options(options(recorded));
    for described in list(recorded, "tools") {
        let function = &described["function"];
        let parameters = function["parameters"].clone();
        request = request.with_tool(tool(word(function, "name"), word(function, "description"), parameters));
    }
    Asked { request, model: Box::new(OllamaModel::new(word(recorded, "model")).with_transport(transport)) }
}

fn options(recorded: &Value) -> ChatOptions {
    let mut options = ChatOptions::new();
    options.temperature = recorded["options"]["temperature"].as_f64();
    options.max_tokens = number(&recorded["options"], "num_predict");
    extras(recorded, &OPTIONS, &EXTRAS, &mut options);
    // Options of Ollama's own, such as one that its client put in the wrong place.
    let mut others = recorded["options"].as_object().cloned().unwrap_or_default();
    others.retain(|key, _| !matches!(key.as_str(), "temperature" | "num_predict"));
    if !others.is_empty() {
        options.extra.insert("options".to_owned(), Value::Object(others));
    }
    options
}
