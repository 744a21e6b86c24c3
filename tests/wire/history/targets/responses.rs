//! The Responses API.

use advisor_tests::prelude::*;

use super::{Call, Item, ResultOf, Rule, Target, common, is_word, list, word};
use crate::history::origins::responses;
use crate::history::story::{DRAWING, THOUGHT};

pub(crate) const OPENAI: Target = Target {
    name: "Responses",
    server: "api.openai.com",
    model: |transport| Arc::new(OpenAiResponsesModel::new("gpt-5").with_transport(transport)),
    answer: responses,
    in_text: None,
    read,
    accepts_id: |id| (1..=64).contains(&id.len()),
    accepts_name: is_word,
    rules: &[common::RULES, RULES],
};

pub(crate) const ELSEWHERE: Target = Target {
    name: "Responses of another server",
    server: "responses.example",
    model: |transport| {
        let model = OpenAiResponsesModel::new("gpt-oss").with_base_url("https://responses.example/v1");
        Arc::new(model.with_transport(transport))
    },
    ..OPENAI
};

/// Reads the items. Adjacent ones of the model are one answer.
fn read(body: &Value) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for wire in list(&body["input"]) {
        let role = match (word(wire, "type").as_deref(), word(wire, "role").as_deref()) {
            (Some("function_call_output"), _) => Role::Tool,
            (_, Some("system")) => Role::System,
            (_, Some("user")) => Role::User,
            (Some("reasoning" | "function_call"), _) | (_, Some("assistant")) => Role::Assistant,
            other => panic!("unknown item {other:?}"),
        };
        if role != Role::Assistant || items.last().is_none_or(|last| last.role != role) {
            items.push(Item::new(role, wire));
        }
        let item = items.pop().expect("an item");
        let mut item = item.with_content(if role == Role::Tool { &wire["output"] } else { &wire["content"] });
        if wire["type"] == "function_call" {
            let arguments = word(wire, "arguments").expect("arguments are text");
            let arguments = serde_json::from_str(&arguments).expect("JSON");
            item.calls.push(Call {
                id: word(wire, "call_id"),
                name: word(wire, "name").expect("a name"),
                arguments,
            });
        }
        item.result_of = (role == Role::Tool).then(|| ResultOf { id: word(wire, "call_id"), name: None });
        items.push(item);
    }
    items
}

const RULES: &[Rule] = &[
    Rule {
        name: "reasoning goes back as the item that it was, before its message, and to its server only",
        check: |sent| {
            let kinds: Vec<_> =
                list(&sent.body["input"]).iter().filter_map(|item| word(item, "type")).collect();
            assert_eq!(kinds.iter().any(|kind| kind == "reasoning"), sent.is_at_home(), "{kinds:?}");
            if sent.is_at_home() {
                assert_eq!(kinds[..3], ["reasoning", "message", "function_call"]);
            } else {
                assert!(!sent.body.to_string().contains(THOUGHT), "{:#}", sent.body);
            }
        },
    },
    Rule {
        name: "a result holds its picture",
        check: |sent| assert_eq!(sent.of(Role::Tool).nth(2).expect("a result").pictures, [DRAWING]),
    },
    Rule {
        name: "text of an answer is output, that of the user input",
        check: |sent| {
            for item in list(&sent.body["input"]).iter().filter(|item| item["role"] == "assistant") {
                assert!(list(&item["content"]).iter().all(|part| part["type"] == "output_text"), "{item:#}");
            }
            for item in list(&sent.body["input"]).iter().filter(|item| item["role"] == "user") {
                let kinds = list(&item["content"]).iter().map(|part| word(part, "type").expect("a type"));
                assert!(kinds.into_iter().all(|kind| kind.starts_with("input_")), "{item:#}");
            }
        },
    },
    Rule {
        name: "nothing refers to what the server may not have kept",
        check: |sent| {
            assert_eq!(sent.body["store"], false);
            assert!(sent.body.get("previous_response_id").is_none());
        },
    },
];
