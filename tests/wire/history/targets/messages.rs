//! Anthropic's Messages API.

use advisor_tests::prelude::*;

use super::{Call, Item, ResultOf, Rule, Sent, Target, common, is_word, list, picture, word};
use crate::history::origins::{SIGNATURE, messages};
use crate::history::story::{DRAWING, THOUGHT};

pub(crate) const ANTHROPIC: Target = Target {
    name: "Messages",
    server: "api.anthropic.com",
    model: |transport| Arc::new(AnthropicModel::new("claude-sonnet-4-5").with_transport(transport)),
    answer: messages,
    in_text: None,
    read,
    accepts_id: |id| {
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    },
    accepts_name: is_word,
    rules: &[common::RULES, RULES],
};

pub(crate) const ELSEWHERE: Target = Target {
    name: "Messages of another server",
    server: "messages.example",
    model: |transport| {
        let model = AnthropicModel::new("minimax-m2").with_base_url("https://messages.example");
        Arc::new(model.with_transport(transport))
    },
    ..ANTHROPIC
};

fn read(body: &Value) -> Vec<Item> {
    let mut items: Vec<_> =
        list(&body["system"]).iter().map(|block| with_block(Item::new(Role::System, block), block)).collect();
    for message in list(&body["messages"]) {
        let blocks = list(&message["content"]);
        if message["role"] == "assistant" {
            items.push(blocks.iter().fold(Item::new(Role::Assistant, message), with_block));
            continue;
        }
        let (results, others): (Vec<_>, Vec<_>) =
            blocks.iter().partition(|block| block["type"] == "tool_result");
        for result in results {
            let mut item = Item::new(Role::Tool, result).with_content(&result["content"]);
            item.result_of = Some(ResultOf { id: word(result, "tool_use_id"), name: None });
            items.push(item);
        }
        if !others.is_empty() {
            items.push(others.into_iter().fold(Item::new(Role::User, message), with_block));
        }
    }
    items
}

fn with_block(mut item: Item, block: &Value) -> Item {
    match word(block, "type").as_deref() {
        Some("text") => item.with_text(&word(block, "text").expect("text")),
        Some("tool_use") => {
            let name = word(block, "name").expect("a name");
            item.calls.push(Call { id: word(block, "id"), name, arguments: block["input"].clone() });
            item
        }
        Some("image") => {
            item.pictures.extend(picture(block));
            item
        }
        Some("thinking" | "redacted_thinking") => item,
        other => panic!("unknown block {other:?}"),
    }
}

const RULES: &[Rule] = &[
    Rule {
        name: "roles take turns, and the user begins",
        check: |sent| {
            let roles: Vec<_> = list(&sent.body["messages"]).iter().map(|message| &message["role"]).collect();
            let turns = ["user", "assistant"].into_iter().cycle();
            assert!(roles.iter().zip(turns).all(|(role, turn)| **role == turn), "{roles:?}");
            assert_eq!(roles.len(), 9);
        },
    },
    Rule {
        name: "the results of an answer are the beginning of one message",
        check: |sent| {
            let kinds = |place: usize| kinds_of(&sent.body["messages"][place]);
            assert_eq!((kinds(2), kinds(4)), (vec!["tool_result"; 2], vec!["tool_result"; 2]));
        },
    },
    Rule {
        name: "thinking goes back signed, unmodified and before the rest, to its server only",
        check: |sent| {
            let first = list(&sent.body["messages"][1]["content"]);
            let kinds: Vec<_> = first.iter().filter_map(|block| block["type"].as_str()).collect();
            if sent.is_at_home() {
                assert_eq!(kinds, ["thinking", "redacted_thinking", "text", "tool_use", "tool_use"]);
                let thinking = json!({"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE});
                assert_eq!(first[0], thinking);
            } else {
                assert_eq!(kinds, ["text", "tool_use", "tool_use"]);
                assert!(!sent.body.to_string().contains(THOUGHT));
            }
        },
    },
    Rule { name: "only the failed call is marked as an error", check: only_failure_is_error },
    Rule {
        name: "a result holds its picture",
        check: |sent| assert_eq!(sent.of(Role::Tool).nth(2).expect("a result").pictures, [DRAWING]),
    },
    Rule {
        name: "no text block is blank, and none ends an answer with white space",
        check: |sent| {
            for block in list(&sent.body["messages"]).iter().flat_map(|message| list(&message["content"])) {
                assert!(block["text"].as_str().is_none_or(|text| !text.trim().is_empty()), "{block:#}");
            }
        },
    },
    Rule {
        name: "a number of tokens is always named",
        check: |sent| assert!(sent.body["max_tokens"].is_u64()),
    },
];

fn only_failure_is_error(sent: &Sent<'_>) {
    let errors: Vec<_> = sent.of(Role::Tool).map(|result| result.wire["is_error"] == true).collect();
    assert_eq!(errors, [false, false, false, true]);
}

fn kinds_of(message: &Value) -> Vec<&str> {
    list(&message["content"]).iter().filter_map(|block| block["type"].as_str()).collect()
}
