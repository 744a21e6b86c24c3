//! Ollama's own API.

use advisor_tests::prelude::*;

use super::{Call, Item, ResultOf, Rule, Target, common, list, word};
use crate::history::origins::ollama;
use crate::history::story::{DRAWING, THOUGHT};

pub(crate) const LOCAL: Target = Target {
    name: "Ollama",
    server: "127.0.0.1:11434",
    model: |transport| Arc::new(OllamaModel::new("qwen3").with_transport(transport)),
    answer: ollama,
    in_text: None,
    read,
    accepts_id: |id| !id.is_empty(),
    accepts_name: |name| !name.is_empty(),
    rules: &[common::RULES, RULES],
};

fn read(body: &Value) -> Vec<Item> {
    list(&body["messages"]).iter().map(item).collect()
}

fn item(message: &Value) -> Item {
    let role = match word(message, "role").as_deref() {
        Some("system") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        other => panic!("unknown role {other:?}"),
    };
    let mut item = Item::new(role, message).with_text(&word(message, "content").expect("text"));
    item.pictures =
        list(&message["images"]).iter().filter_map(|image| Some(image.as_str()?.to_owned())).collect();
    let call = |call: &Value| Call {
        id: word(call, "id"),
        name: word(&call["function"], "name").expect("a name"),
        arguments: call["function"]["arguments"].clone(),
    };
    item.calls = list(&message["tool_calls"]).iter().map(call).collect();
    item.result_of = (role == Role::Tool)
        .then(|| ResultOf { id: word(message, "tool_call_id"), name: word(message, "tool_name") });
    item
}

const RULES: &[Rule] = &[
    Rule {
        name: "reasoning is sent as thinking, whoever thought it",
        check: |sent| {
            let thinking: Vec<_> =
                sent.of(Role::Assistant).map(|answer| answer.wire.get("thinking").cloned()).collect();
            assert_eq!(thinking, [Some(json!(THOUGHT)), None, None, None]);
        },
    },
    Rule {
        name: "a result has its picture, and the name of its tool",
        check: |sent| {
            assert_eq!(sent.of(Role::Tool).nth(2).expect("a result").pictures, [DRAWING]);
            assert!(sent.of(Role::Tool).all(|result| result.wire.get("tool_name").is_some()));
        },
    },
    Rule {
        name: "tools have their own names",
        check: |sent| assert_eq!(sent.answer(0).calls[1].name, "clock.now"),
    },
];
